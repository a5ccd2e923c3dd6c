// A trained policy as it plays one world of the page: what src/gridmill/policy/player.py is in Python. It remembers of
// every agent what it saw when it was asked; asked twice in one moment it answers the same.
#pragma once

#include <memory>
#include <vector>

#include "wasm/network.hpp"
#include "wasm/observer.hpp"

namespace gridmill::wasm {

class World;

// For the actions of the world, in their order.
struct Thought {
  std::vector<float> logits;
  std::vector<std::uint8_t> allowed;  // 0 where it would not act so; empty: it may do anything
  float value = 0;
  std::vector<float> shares(float temperature) const;  // the chance of each action
};

struct Choice {
  bool greedy = false;
  float temperature = 1;
  std::uint64_t seed = 0, step = 0;
};

class Policy {
 public:
  // `head`: {config, spec, masks, tensors: [[name, [side, ...]], ...]}; the tensors' numbers lie in `data`.
  Policy(const Value& head, const float* data, std::size_t count);

  void begin(const World& world);  // from now on this one, with an empty memory
  const Thought& think(const World& world, std::uint32_t agent);
  std::int32_t act(const World& world, std::uint32_t agent, const Choice& choice);

 private:
  struct Memory {
    Moment when{0, 0};  // never
    std::vector<float> state;
    Thought thought;
  };
  void run(const World& world, std::uint32_t agent, Memory& own);
  void allow(const World& world, std::uint32_t agent, Thought& thought) const;

  PolicyConfig config_;
  Spec spec_;
  bool masks_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<Dense> layers_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Dense> heads_;  // actor and critic, whose number is the last
  std::vector<std::int32_t> actions_;  // where the world's actions are among the policy's; -1: nowhere
  bool all_known_ = true;              // they are the same
  std::uint64_t world_ = 0;            // the id of the one it plays; 0: none yet
  std::vector<Memory> agents_;
};

}  // namespace gridmill::wasm
