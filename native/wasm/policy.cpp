#include "wasm/policy.hpp"

#include <cmath>

#include "wasm/world.hpp"

namespace gridmill::wasm {
namespace {

constexpr float kForbidden = -1e9f;  // the logit of an action that the policy has no word for

const Value& part(const Value& head, const char* name) {
  const Value* found = head.find(name);
  if (found == nullptr) fail_at("$", std::string("expected `") + name + "`, got none");
  return *found;
}

template <class T>
T checked(const Value& head, const char* name) {
  const std::string path = std::string("$.") + name;
  T out = decode<T>(part(head, name), path);
  out.check(path);
  return out;
}

// Actor and critic over the same numbers: one product.
std::unique_ptr<Dense> joined_heads(const Tensors& tensors, std::size_t hidden, std::size_t actions) {
  auto weight = tensors.take("actor.weight", {actions, hidden}), bias = tensors.take("actor.bias", {actions});
  const auto critic = tensors.take("critic.weight", {1, hidden}), critic_bias = tensors.take("critic.bias", {1});
  weight.insert(weight.end(), critic.begin(), critic.end());
  bias.insert(bias.end(), critic_bias.begin(), critic_bias.end());
  return std::make_unique<Dense>(weight, std::move(bias), hidden, false);
}

}  // namespace

Policy::Policy(const Value& head, const float* data, std::size_t count)
    : config_(checked<PolicyConfig>(head, "config")),
      spec_(checked<Spec>(head, "spec")),
      masks_(decode_bool(part(head, "masks"), "$.masks")) {
  const Tensors tensors(part(head, "tensors"), "$.tensors", data, count);
  const std::size_t hidden = config_.size();
  encoder_ = make_encoder(config_, spec_, tensors);
  for (std::int64_t i = 0; i < config_.layers; ++i)
    layers_.emplace_back(tensors, "dense." + std::to_string(i), hidden, hidden, true);
  core_ = make_core(config_, tensors);
  heads_ = joined_heads(tensors, hidden, spec_.actions.size());
}

void Policy::begin(const World& world) {
  const Seen seen = world.seen();
  const auto what = [](bool tokens, std::size_t size) {
    return tokens ? std::string("token observations") : "vectors of " + std::to_string(size) + " numbers";
  };
  const bool tokens = spec_.kind == "tokens";
  const auto own_size = static_cast<std::size_t>(spec_.obs_size);
  if (seen.tokens != tokens || (!tokens && seen.obs_size != own_size))
    throw std::invalid_argument("the policy was trained on " + what(tokens, own_size) + " and cannot read " +
                                what(seen.tokens, seen.obs_size));
  encoder_->read(seen);
  actions_.clear();
  for (const auto& name : seen.actions) {
    const auto found = std::find(spec_.actions.begin(), spec_.actions.end(), name);
    actions_.push_back(found == spec_.actions.end() ? -1 : static_cast<std::int32_t>(found - spec_.actions.begin()));
  }
  all_known_ = seen.actions == spec_.actions;
  world_ = world.id();
  agents_.assign(seen.num_agents, Memory{});
}

const Thought& Policy::think(const World& world, std::uint32_t agent) {
  if (world_ != world.id()) throw std::invalid_argument("call begin(world) before the first question");
  if (agent >= agents_.size())
    throw std::invalid_argument("agent " + std::to_string(agent) + " is not in [0, " + std::to_string(agents_.size()) +
                                ")");
  Memory& own = agents_[agent];
  const Moment now = world.moment();
  if (own.when == now) return own.thought;
  if (own.when.story != now.story) own.state.assign(core_->state_size(), 0.0f);
  run(world, agent, own);
  own.when = now;
  return own.thought;
}

void Policy::run(const World& world, std::uint32_t agent, Memory& own) {
  const Bytes obs = world.array(Array::obs);
  const std::size_t row_bytes = obs.size / agents_.size();
  std::vector<float> x(config_.size()), y(config_.size()), out(heads_->outputs());
  encoder_->run(static_cast<const std::byte*>(obs.data) + row_bytes * agent, x.data());
  for (const Dense& layer : layers_) {
    layer.run(x.data(), y.data());
    x.swap(y);
  }
  core_->run(x, own.state.data());
  heads_->run(x.data(), out.data());
  own.thought.value = out.back();
  own.thought.logits.clear();
  for (const auto at : actions_) own.thought.logits.push_back(at < 0 ? kForbidden : out[static_cast<std::size_t>(at)]);
  allow(world, agent, own.thought);
}

void Policy::allow(const World& world, std::uint32_t agent, Thought& thought) const {
  const Bytes masks = world.array(Array::masks);
  const std::size_t actions = actions_.size();
  thought.allowed.clear();
  if (masks_ && masks.size != 0) {
    const auto* row = static_cast<const std::uint8_t*>(masks.data) + agent * actions;
    thought.allowed.assign(row, row + actions);
  }
  if (all_known_) return;
  if (thought.allowed.empty()) thought.allowed.assign(actions, 1);
  for (std::size_t a = 0; a < actions; ++a)  // a logit alone leaves an action a chance, however small
    if (actions_[a] < 0) thought.allowed[a] = 0;
}

std::vector<float> Thought::shares(float temperature) const {
  std::vector<float> shares(logits.size(), 0.0f);
  float top = -std::numeric_limits<float>::infinity(), total = 0;
  const auto open = [this](std::size_t a) { return allowed.empty() || allowed[a] != 0; };
  for (std::size_t a = 0; a < logits.size(); ++a)
    if (open(a)) top = std::max(top, logits[a] / temperature);
  for (std::size_t a = 0; a < logits.size(); ++a) {
    if (open(a)) shares[a] = std::exp(logits[a] / temperature - top);
    total += shares[a];
  }
  for (float& share : shares) share = total > 0 ? share / total : 0.0f;
  return shares;
}

std::int32_t Policy::act(const World& world, std::uint32_t agent, const Choice& choice) {
  const Thought& thought = think(world, agent);
  if (choice.greedy) {
    const std::vector<float> shares = thought.shares(1.0f);
    return static_cast<std::int32_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  }
  if (!(choice.temperature > 0))
    throw std::invalid_argument("temperature: expected more than 0; use greedy for the best action");
  std::vector<float> logits = thought.logits;
  if (choice.temperature != 1.0f)
    for (float& logit : logits) logit /= choice.temperature;
  std::int32_t action = 0;
  float log_prob = 0;
  learn::best().sample({logits.data(), thought.allowed.empty() ? nullptr : thought.allowed.data(), 1, logits.size(),
                        choice.seed, choice.step, agent},
                       &action, &log_prob);
  return action;
}

}  // namespace gridmill::wasm
