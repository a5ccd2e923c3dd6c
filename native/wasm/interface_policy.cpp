// The C interface of policies; see interface.cpp.
#include "wasm/json.hpp"
#include "wasm/module.hpp"

using namespace gridmill;
using namespace gridmill::wasm;

// `data`: float32, aligned to 4 bytes.
GRIDMILL_EXPORT(gridmill_policy)
std::int32_t gridmill_policy(const char* head, std::size_t head_size, const float* data, std::size_t data_size) {
  return guarded(0, [&] {
    return keep(module().policies,
                std::make_unique<Policy>(parse_json(text(head, head_size)), data, data_size / sizeof(float)));
  });
}

GRIDMILL_EXPORT(gridmill_policy_close) void gridmill_policy_close(std::int32_t policy) {
  module().policies.erase(policy);
}

GRIDMILL_EXPORT(gridmill_policy_begin) std::int32_t gridmill_policy_begin(std::int32_t policy, std::int32_t world) {
  return guarded(-1, [&] {
    policy_at(policy).begin(world_at(world));
    return 0;
  });
}

// float32: the logits of all actions, their shares, the value.
GRIDMILL_EXPORT(gridmill_policy_think)
std::int32_t gridmill_policy_think(std::int32_t policy, std::int32_t world, std::uint32_t agent) {
  return guarded(-1, [&] {
    const Thought& thought = policy_at(policy).think(world_at(world), agent);
    std::vector<float> out = thought.logits;
    const std::vector<float> shares = thought.shares(1.0f);
    out.insert(out.end(), shares.begin(), shares.end());
    out.push_back(thought.value);
    leave(out);
    return 0;
  });
}

GRIDMILL_EXPORT(gridmill_policy_act)
std::int32_t gridmill_policy_act(std::int32_t policy, std::int32_t world, std::uint32_t agent, std::int32_t greedy,
                                 float temperature, std::uint64_t seed, std::uint64_t step) {
  return guarded(-1, [&] {
    return policy_at(policy).act(world_at(world), agent, {greedy != 0, temperature, seed, step});
  });
}
