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

// The values of all terms for one agent after the other. What a collective's agents share is evaluated once: no agent
// pays another, so that it stays the same.
class TermValues {
 public:
  TermValues(const Program& p, const World& w, std::vector<double>& shared, std::vector<bool>& known)
      : p_(p), w_(w), shared_(shared), known_(known) {
    std::fill(known_.begin(), known_.end(), false);
  }
  double of(std::size_t term, std::uint32_t agent) {
    const CompiledTerm& asked = p_.rewards.terms[term];
    if (!asked.by_team) return value_of(asked, p_, w_, agent);
    const std::uint8_t team = w_.collective_of(agent);
    const std::size_t place = (team == kNeutral ? p_.collectives.teams.size() : team) * p_.rewards.terms.size() + term;
    if (!known_[place]) shared_[place] = value_of(asked, p_, w_, agent);
    known_[place] = true;
    return shared_[place];
  }

 private:
  const Program& p_;
  const World& w_;
  std::vector<double>& shared_;
  std::vector<bool>& known_;
};

}  // namespace

// What the start state is worth, so that start amounts pay nothing.
void start_terms(const Program& p, World& w, Worker& worker) {
  TermValues values(p, w, worker.shared_terms, worker.known_terms);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent)
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t) {
      double* state = w.term_state + (agent * p.rewards.terms.size() + t) * 2;
      const double value = values.of(t, agent);
      state[0] = p.rewards.terms[t].mode == RewardMode::change ? std::min(p.rewards.terms[t].cap, value) : value;
    }
}

void Grid::pay(T& tick) {
  const Program& p = tick.program;
  World& w = tick.view;
  std::copy_n(w.touched, (p.num_agents + 63) / 64, tick.worker.touched.begin());  // for the signal
  if (p.rewards.terms.empty()) return;
  double* rewards = tick.worker.raw_rewards.data();
  bool any = !p.rewards.on_change_only;
  TermValues values(p, w, tick.worker.shared_terms, tick.worker.known_terms);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    rewards[agent] = 0;
    const bool touched = w.touched[agent >> 6] >> (agent & 63) & 1;
    if (p.rewards.on_change_only && !touched) continue;  // what did not change pays nothing
    any = true;
    double* state = w.term_state + std::size_t{agent} * p.rewards.terms.size() * 2;
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t)
      rewards[agent] += term_pays(p.rewards.terms[t], values.of(t, agent), state + 2 * t);
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
    if (value.size() == 1 && value[0].code == ValueOp::inventory && value[0].whose == 0)
      rewards.terms.back().resource = value[0].arg;
  }
  rewards.on_change_only = std::all_of(rewards.terms.begin(), rewards.terms.end(), [](const CompiledTerm& term) {
    return term.resource >= 0 && term.mode != RewardMode::per_tick;
  });
  return rewards;
}

}  // namespace gridmill::grid
