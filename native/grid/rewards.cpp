// Rewards: terms added in order of declaration in float64, rounded to float32 once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "grid/compile.hpp"
#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

constexpr double kLargest =
    std::numeric_limits<float>::max();  // reward; what a state from elsewhere held may be larger

std::uint8_t reward_token(double reward, double scale) {
  const double scaled = std::clamp(reward * scale, -127.0, 127.0);  // before rounding: the range of lround
  return static_cast<std::uint8_t>(std::lround(scaled) + 128);
}

double term_pays(const CompiledTerm& term, double value, double* state) {
  const double capped = std::min(term.cap, value);
  if (term.mode == RewardMode::per_tick) return term.weight * capped;
  double before = state[0], now = capped;
  if (term.mode == RewardMode::gained) {
    const double sum = state[1] + std::max(0.0, value - state[0]);
    before = std::min(term.cap, state[1]);
    now = std::min(term.cap, sum);
    state[1] = sum;
    state[0] = value;
  } else {
    state[0] = now;
  }
  return term.weight * (now - before);
}

// r = (1 - f) r + f * mean of the group, over agents of the same group.
void share(const Program& p, const World& w, double* rewards) {
  const double f = p.config.reward_sharing;
  double sums[256] = {};
  std::uint32_t counts[256] = {};
  for (std::uint32_t a = 0; a < p.num_agents; ++a) {
    sums[w.group[a]] += rewards[a];
    ++counts[w.group[a]];
  }
  for (std::uint32_t a = 0; a < p.num_agents; ++a)
    rewards[a] = (1 - f) * rewards[a] + f * (sums[w.group[a]] / counts[w.group[a]]);
}

double value_of(const CompiledTerm& term, const Program& p, const World& w, std::uint32_t agent) {
  return term.resource >= 0 ? w.held(agent)[term.resource]
                            : evaluate(term.value, {p, w, static_cast<std::int32_t>(agent)});
}

// The values of terms that a collective's agents share, evaluated once: no agent pays another, so that they stay.
class SharedValues {
 public:
  SharedValues(const Program& p, const World& w, Worker& worker) : p_(p), w_(w), worker_(worker) {
    if (p.rewards.any_shared) std::fill(worker.known_terms.begin(), worker.known_terms.end(), std::uint8_t{0});
  }
  double of(std::size_t term, std::uint32_t agent) {
    const std::uint8_t team = w_.collective_of(agent);
    const std::size_t place = (team == kNeutral ? p_.collectives.teams.size() : team) * p_.rewards.terms.size() + term;
    if (!worker_.known_terms[place]) worker_.shared_terms[place] = value_of(p_.rewards.terms[term], p_, w_, agent);
    worker_.known_terms[place] = 1;
    return worker_.shared_terms[place];
  }

 private:
  const Program& p_;
  const World& w_;
  Worker& worker_;
};

}  // namespace

// What the start state is worth, so that start amounts pay nothing.
void start_terms(const Program& p, World& w, Worker& worker) {
  SharedValues shared(p, w, worker);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent)
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t) {
      const CompiledTerm& term = p.rewards.terms[t];
      double* state = w.term_state + (agent * p.rewards.terms.size() + t) * 2;
      const double value = term.by_team ? shared.of(t, agent) : value_of(term, p, w, agent);
      state[0] = term.mode == RewardMode::change ? std::min(term.cap, value) : value;
    }
}

void Grid::pay(T& tick) {
  const Program& p = tick.program;
  World& w = tick.view;
  std::copy_n(w.touched, (p.num_agents + 63) / 64, tick.worker.touched.begin());  // for the signal
  if (p.rewards.terms.empty()) return;
  double* rewards = tick.worker.raw_rewards.data();
  bool any = !p.rewards.on_change_only;
  SharedValues shared(p, w, tick.worker);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    rewards[agent] = 0;
    const bool touched = w.touched[agent >> 6] >> (agent & 63) & 1;
    if (p.rewards.on_change_only && !touched) continue;  // what did not change pays nothing
    any = true;
    double* state = w.term_state + std::size_t{agent} * p.rewards.terms.size() * 2;
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t) {
      const CompiledTerm& term = p.rewards.terms[t];
      const double value = term.by_team ? shared.of(t, agent) : value_of(term, p, w, agent);
      rewards[agent] += term_pays(term, value, state + 2 * t);
    }
  }
  std::fill_n(w.touched, (p.num_agents + 63) / 64, 0);
  if (!any) {
    std::fill_n(w.reward_token, p.num_agents, std::uint8_t{128});
    return;
  }
  if (p.config.reward_sharing > 0) share(p, w, rewards);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    const auto reward = static_cast<float>(std::clamp(rewards[agent], -kLargest, kLargest));
    tick.rows.rewards[agent] = reward;
    w.reward_sum[agent] += static_cast<double>(reward);
    w.reward_token[agent] = rewards[agent] == 0
                                ? std::uint8_t{128}
                                : reward_token(static_cast<double>(reward), p.config.observation.reward_scale);
  }
  // Masks were written with the observations; the next actions find these sums of rewards.
  if (p.rules.reads_rewards && tick.rows.masks != nullptr)
    write_masks(p, w, tick.header, tick.worker.rules.trials, tick.rows.masks);
}

Rewards compile_rewards(const Program& p) {
  Rewards rewards;
  for (std::size_t i = 0; i < p.config.rewards.size(); ++i) {
    const RewardTerm& term = p.config.rewards[i];
    const RewardMode mode = term.mode == "change"   ? RewardMode::change
                            : term.mode == "gained" ? RewardMode::gained
                                                    : RewardMode::per_tick;
    rewards.terms.push_back({term.weight, term.cap, mode, -1, false, {}});
    compile_value(p, term.value, "$.rewards[" + std::to_string(i) + "].value", rewards.terms.back().value);
    const CompiledValue& value = rewards.terms.back().value;
    rewards.terms.back().by_team = same_in_team(value);
    rewards.any_shared = rewards.any_shared || rewards.terms.back().by_team;
    if (value.size() == 1 && value[0].code == ValueOp::inventory && value[0].whose == 0)
      rewards.terms.back().resource = value[0].arg;
  }
  rewards.on_change_only = std::all_of(rewards.terms.begin(), rewards.terms.end(), [](const CompiledTerm& term) {
    return term.resource >= 0 && term.mode != RewardMode::per_tick;
  });
  return rewards;
}

}  // namespace gridmill::grid
