// Game values and rewards: terms added in order of declaration in float64, rounded to float32 once.
#include <algorithm>
#include <cmath>

#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

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

}  // namespace

// What the start state is worth, so that start amounts pay nothing.
void start_terms(const Program& p, World& w) {
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent)
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t) {
      double* state = w.term_state + (agent * p.rewards.terms.size() + t) * 2;
      const double value = value_of(p.rewards.terms[t], p, w, agent);
      state[0] = p.rewards.terms[t].mode == RewardMode::change ? std::min(p.rewards.terms[t].cap, value) : value;
    }
}

void Grid::pay(T& tick) {
  const Program& p = tick.program;
  if (p.rewards.terms.empty()) return;
  World& w = tick.view;
  double* rewards = tick.worker.raw_rewards.data();
  bool any = !p.rewards.on_change_only;
  std::uint8_t team_before = kNeutral;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    rewards[agent] = 0;
    const bool touched = w.touched[agent >> 6] >> (agent & 63) & 1;
    if (p.rewards.on_change_only && !touched) continue;  // what did not change pays nothing
    any = true;
    double* state = w.term_state + std::size_t{agent} * p.rewards.terms.size() * 2;
    const std::uint8_t team = w.collective_of(agent);
    const bool same = agent > 0 && team == team_before;  // no agent pays another, so shared values stay
    for (std::size_t t = 0; t < p.rewards.terms.size(); ++t) {
      double& value = tick.worker.term_values[t];
      if (!(same && p.rewards.terms[t].by_team)) value = value_of(p.rewards.terms[t], p, w, agent);
      rewards[agent] += term_pays(p.rewards.terms[t], value, state + 2 * t);
    }
    team_before = team;
  }
  std::fill_n(w.touched, (p.num_agents + 63) / 64, 0);
  if (!any) {
    std::fill_n(w.reward_token, p.num_agents, std::uint8_t{128});
    return;
  }
  if (p.config.reward_sharing > 0) share(p, w, rewards);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    const auto reward = static_cast<float>(rewards[agent]);
    tick.rows.rewards[agent] = reward;
    w.reward_sum[agent] += static_cast<double>(reward);
    w.reward_token[agent] = rewards[agent] == 0
                                ? std::uint8_t{128}
                                : reward_token(static_cast<double>(reward), p.config.observation.reward_scale);
  }
}

namespace {

std::int32_t team_of(const ValueOp& op, const ValueContext& viewer) {
  if (op.team != 0xFFFF) return op.team;
  const std::uint8_t team =
      viewer.actor < 0 ? kNeutral : viewer.w.collective_of(static_cast<std::uint32_t>(viewer.actor));
  return team == kNeutral ? -1 : team;
}

// In a rule that is only tried, as it would be.
const std::uint16_t* held_by(std::int32_t holder, const ValueContext& viewer) {
  return viewer.rule ? viewer.rule->held(holder) : viewer.w.held(static_cast<std::uint32_t>(holder));
}

double amount_seen(const ValueOp& op, const ValueContext& viewer) {
  std::int32_t holder = op.whose == 0 ? viewer.actor : viewer.target;
  if (op.whose == kNamed) {
    const std::int32_t team = team_of(op, viewer);
    holder = team < 0 ? -1 : static_cast<std::int32_t>(viewer.p.num_objects) + team;
  }
  if (holder < 0) return 0;
  return held_by(holder, viewer)[op.arg];
}

double counted(const ValueOp& op, const ValueContext& viewer) {
  double sum = 0;
  for (std::uint32_t object = 0; object < viewer.p.num_objects; ++object) {
    if (!viewer.w.on_map(object) || !viewer.w.has_tag(object, op.arg)) continue;
    if (op.team != 0xFFFF && viewer.w.collective_of(object) != op.team) continue;
    sum += op.resource == 0xFFFF ? 1 : held_by(static_cast<std::int32_t>(object), viewer)[op.resource];
  }
  return sum;
}

// One of an agent's own statistics; what is no agent has none.
double agents_own(const ValueOp& op, const Program& p, const World& w, std::int32_t actor) {
  if (actor < 0 || actor >= static_cast<std::int32_t>(p.num_agents)) return 0;
  const auto agent = static_cast<std::uint32_t>(actor);
  switch (op.code) {
    case ValueOp::action_counter:
      return w.action_counter(agent, op.arg);
    case ValueOp::agent_counter:
      return static_cast<double>(w.agent_counters[std::size_t{op.arg} * p.num_agents + agent]);
    case ValueOp::resource_counter:
      return static_cast<double>(
          w.resource_counters[std::size_t{agent} * p.num_resources * kResourceCounters + op.arg]);
    case ValueOp::reward_sum:
      return w.reward_sum[agent];
    default:
      return w.agent_stats(agent)[op.arg];
  }
}

double teams_own(const ValueOp& op, const ValueContext& viewer) {
  const std::int32_t team = team_of(op, viewer);
  return team < 0 ? 0 : team_stat(viewer.p, viewer.w, static_cast<std::size_t>(team), op.arg);
}

double leaf(const ValueOp& op, const ValueContext& viewer) {
  switch (op.code) {
    case ValueOp::inventory:
      return amount_seen(op, viewer);
    case ValueOp::team_stat:
      return teams_own(op, viewer);
    case ValueOp::game_stat:
      return viewer.w.game_stats()[op.arg];
    case ValueOp::count:
      return counted(op, viewer);
    case ValueOp::index:
      return viewer.actor >= 0 && viewer.actor < static_cast<std::int32_t>(viewer.p.num_agents) &&
             viewer.actor % op.arg == op.number;
    case ValueOp::constant:
      return op.number;
    default:
      return agents_own(op, viewer.p, viewer.w, viewer.actor);
  }
}

double combined(const ValueOp& op, const double* operands) {
  switch (op.code) {
    case ValueOp::sum: {
      double sum = 0;
      for (int i = 0; i < op.arg; ++i) sum += operands[i];
      return sum;
    }
    case ValueOp::ratio:
      return operands[1] != 0 ? operands[0] / operands[1] : 0;
    case ValueOp::least:
      return *std::min_element(operands, operands + op.arg);
    case ValueOp::most:
      return *std::max_element(operands, operands + op.arg);
    default:
      return std::log1p(std::max(0.0, operands[0]));
  }
}

}  // namespace

double evaluate(const CompiledValue& value, const ValueContext& viewer) {
  if (value.size() == 1) return leaf(value[0], viewer);
  double stack[kValueStack];
  std::size_t top = 0;
  for (const ValueOp& op : value) {
    if (op.code >= ValueOp::sum) {
      top -= op.arg;
      stack[top] = combined(op, stack + top);
    } else {
      stack[top] = leaf(op, viewer);
    }
    ++top;
  }
  return stack[0];
}

}  // namespace gridmill::grid
