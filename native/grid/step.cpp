// One tick of one world, read aloud: the nine phases in order, each a line in `phase<P>`; Batch calls them.
// A world that ended is reset and observed again by Batch.
#include <algorithm>
#include <cmath>

#include "grid/grid.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

void clear_outputs(Grid::T& tick) {
  const std::size_t agents = tick.program.num_agents;
  std::fill_n(tick.rows.rewards, agents, 0.0f);
  std::fill_n(tick.rows.terminals, agents, false);
  std::fill_n(tick.rows.truncations, agents, false);
}

// Inside-out shuffle (Knuth, TAOCP 3.4.2): agent i goes to a random place among the first i + 1.
void shuffle(std::uint16_t* order, std::uint32_t n, const WorldHeader& header) {
  const Stream draws(header.key, header.tick, kShuffleStream);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t j = draws.below(i, i + 1);
    order[i] = order[j];
    order[j] = static_cast<std::uint16_t>(i);
  }
}

// Noop, move and invalid share one path without branches: an action that does not move has distance 0, and
// the agent's own cell is never empty.
void act(const Program& p, World& w, std::uint32_t agent, std::int32_t action) {
  const auto last = static_cast<std::uint32_t>(p.actions.size()) - 1;
  const std::uint32_t index = std::min(static_cast<std::uint32_t>(action), last);
  const ActionEntry& entry = p.actions[index];
  const std::uint32_t cell = w.cell[agent], row = w.row[agent], column = w.column[agent];
  const auto target = static_cast<std::uint32_t>(static_cast<std::int32_t>(cell) + entry.delta);
  const std::uint32_t moved = w.code_at(target) == kEmpty;
  const std::uint32_t new_cell = moved ? target : cell;
  const auto new_row = row + static_cast<std::uint32_t>(moved ? entry.row : 0);
  const auto new_column = column + static_cast<std::uint32_t>(moved ? entry.column : 0);
  w.set_code(cell, kEmpty);
  w.set_code(new_cell, static_cast<std::uint16_t>(agent + 1));
  w.clear_occupied(row, column);
  w.set_occupied(new_row, new_column);
  w.cell[agent] = new_cell;
  w.row[agent] = static_cast<std::uint16_t>(new_row);
  w.column[agent] = static_cast<std::uint16_t>(new_column);
  w.facing[agent] = entry.facing < 0 ? w.facing[agent] : static_cast<std::uint8_t>(entry.facing);
  w.tally(Tally::visited)[agent] += w.visit(agent, new_row, new_column);
  std::uint32_t success = moved | (entry.kind == ActionKind::noop);
  if (entry.kind == ActionKind::change_vibe) {
    success = 1;
    if (w.vibe[agent] != entry.vibe) w.vibe[agent] = entry.vibe, w.mark_dirty(agent);
  }
  // An action of the batch that this game does not have counts as invalid, like an index out of range.
  const std::uint32_t slot = entry.kind == ActionKind::invalid ? last : index;
  w.count_outcome(agent, 2 * slot + success);
  w.last_action[agent] = static_cast<std::uint8_t>(success ? index : 0);
}

void act_in_shuffled_order(Grid::T& tick) {
  World w(tick.program, tick.state);
  std::uint16_t* order = tick.worker.order.data();
  const std::uint32_t n = tick.program.num_agents;
  shuffle(order, n, tick.header);
  // The next world's hot bytes, asked for a few lines at a time while this world's agents act.
  const std::size_t share = (tick.program.layout.hot / 64 + n) / n * 64;
  const std::byte* ahead = tick.ahead;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (ahead != nullptr)
      for (std::size_t at = i * share; at < (i + 1) * share; at += 64) __builtin_prefetch(ahead + at, 1, 2);
    act(tick.program, w, order[i], tick.rows.actions[order[i]]);
  }
  if (ahead == nullptr) return;
  const World next(tick.program, const_cast<std::byte*>(ahead));  // its positions have come by now
  for (std::uint32_t agent = 0; agent < n; ++agent)
    __builtin_prefetch(next.visited_word(agent, next.row[agent], next.column[agent]), 1, 2);
}

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

// What the start state is worth, so that start amounts pay nothing.
void start_terms(const Program& p, World& w) {
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent)
    for (std::size_t t = 0; t < p.terms.size(); ++t) {
      double* state = w.term_state + (agent * p.terms.size() + t) * 2;
      const double value = evaluate(p.terms[t].value, p, w, agent);
      state[0] = p.terms[t].mode == RewardMode::change ? std::min(p.terms[t].cap, value) : value;
    }
}

// r = (1 - f) r + f * mean of the group, over agents of the same group.
void share(const Program& p, const World& w, double* rewards) {
  const double f = p.config.reward_sharing;
  double sums[256] = {};
  std::uint32_t counts[256] = {};
  for (std::uint32_t a = 0; a < p.num_agents; ++a) sums[w.group[a]] += rewards[a], ++counts[w.group[a]];
  for (std::uint32_t a = 0; a < p.num_agents; ++a)
    rewards[a] = (1 - f) * rewards[a] + f * (sums[w.group[a]] / counts[w.group[a]]);
}

void pay(Grid::T& tick) {
  const Program& p = tick.program;
  if (p.terms.empty()) return;
  World w(p, tick.state);
  double* rewards = tick.worker.raw_rewards.data();
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    double sum = 0;
    for (std::size_t t = 0; t < p.terms.size(); ++t)
      sum += term_pays(p.terms[t], evaluate(p.terms[t].value, p, w, agent),
                       w.term_state + (agent * p.terms.size() + t) * 2);
    rewards[agent] = sum;
  }
  if (p.config.reward_sharing > 0) share(p, w, rewards);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    const auto reward = static_cast<float>(rewards[agent]);
    tick.rows.rewards[agent] = reward;
    w.reward_sum[agent] += static_cast<double>(reward);
    w.reward_token[agent] = reward_token(static_cast<double>(reward), p.config.observation.reward_scale);
  }
}

void mark_ends(Grid::T& tick) {
  if (tick.header.tick < tick.header.max_steps) return;
  bool* flags = tick.program.truncates ? tick.rows.truncations : tick.rows.terminals;
  std::fill_n(flags, tick.program.num_agents, true);
  tick.header.ended = 1;
}

}  // namespace

template <std::size_t P>
void Grid::phase(T& tick) {
  if constexpr (phases[P] == "reset") clear_outputs(tick);
  if constexpr (phases[P] == "events") ++tick.header.tick;
  if constexpr (phases[P] == "actions") act_in_shuffled_order(tick);
  if constexpr (phases[P] == "observations") observe(tick);
  if constexpr (phases[P] == "rewards") pay(tick);
  if constexpr (phases[P] == "truncation") mark_ends(tick);
}
template void Grid::phase<0>(T&);
template void Grid::phase<1>(T&);
template void Grid::phase<2>(T&);
template void Grid::phase<3>(T&);
template void Grid::phase<4>(T&);
template void Grid::phase<5>(T&);
template void Grid::phase<6>(T&);
template void Grid::phase<7>(T&);
template void Grid::phase<8>(T&);

bool Grid::uses(const Program& program, std::size_t phase) {
  const std::string_view name = phases[phase];
  if (name == "rewards") return !program.terms.empty();
  return name != "on_tick" && name != "aoe" && name != "collectives";
}

void Grid::observe(T& tick) {
  World w(tick.program, tick.state);
  observe_world(tick, w);
}

void Grid::reset(T& tick) {
  const Program& p = tick.program;
  World w(p, tick.state);
  draw_map(p, w, tick.header.key, tick.worker.map);
  refresh_terrain(p, w);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    w.facing[agent] = 1;  // south
    w.reward_token[agent] = 128;
    w.tally(Tally::visited)[agent] += w.visit(agent, w.row[agent], w.column[agent]);
  }
  start_terms(p, w);
}

Vocabulary Grid::vocabulary(const std::vector<Value>& games) {
  std::vector<GameConfig> configs;
  for (const auto& game : games) configs.push_back(decode_game(game));
  return make_vocabulary(configs);
}

Shape Grid::shape(const Program& p) {
  const Observation& o = p.config.observation;
  return {p.num_agents,
          {static_cast<std::size_t>(o.num_tokens), 3},
          p.words->actions.size(),
          std::to_string(o.height) + "x" + std::to_string(o.width) + " " + o.window};
}

// In the order of Vocabulary::stats(): reward, two per action, invalid, the tallies, amounts.
void Grid::record(const T& tick, double* out) {
  const Program& p = tick.program;
  const World w(p, tick.state);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    *out++ = w.reward_sum[agent];
    for (std::uint32_t i = 0; i < p.num_outcomes; ++i) *out++ = w.outcome(agent, i);
    for (std::size_t i = 0; i < kTallies; ++i) *out++ = static_cast<double>(w.tallies[i * p.num_agents + agent]);
    for (const auto& name : p.words->resources) {
      const auto& own = p.config.resources;
      const auto at = static_cast<std::size_t>(std::find(own.begin(), own.end(), name) - own.begin());
      *out++ = at < own.size() ? w.inventory[std::size_t{agent} * p.num_resources + at] : 0;
    }
  }
}

Worker::Worker(ObserveOptions o) : options(o), fast(have_avx512() ? observe_avx512 : observe_portable) {}

void Worker::fit(const Program& p) {
  map.fit(p);
  const std::size_t agents = p.num_agents;
  order.resize(std::max(order.size(), agents));
  extra_counts.resize(std::max(extra_counts.size(), agents));
  raw_rewards.resize(std::max(raw_rewards.size(), agents));
  extra.resize(std::max(extra.size(), agents * 3 * (2 + 2 * p.shown.size()) + 16));
  if (!options.validate) return;
  const auto tokens = static_cast<std::size_t>(p.config.observation.num_tokens);
  shadow.resize(std::max(shadow.size(), agents * tokens * 3));
  shadow_used.resize(std::max(shadow_used.size(), agents));
}

double evaluate(const CompiledValue& value, const Program& p, const World& w, std::uint32_t agent) {
  double stack[kValueStack];
  std::size_t top = 0;
  for (const ValueOp& op : value) {
    double* operands = stack + top - (op.code >= ValueOp::sum ? op.arg : 0);
    double result = 0;
    switch (op.code) {
      case ValueOp::inventory:
        result = w.inventory[std::size_t{agent} * p.num_resources + op.arg];
        break;
      case ValueOp::outcome:
        result = w.outcome(agent, op.arg);
        break;
      case ValueOp::tally:
        result = static_cast<double>(w.tallies[std::size_t{op.arg} * p.num_agents + agent]);
        break;
      case ValueOp::reward_sum:
        result = w.reward_sum[agent];
        break;
      case ValueOp::constant:
        result = op.number;
        break;
      case ValueOp::sum:
        for (int i = 0; i < op.arg; ++i) result += operands[i];
        break;
      case ValueOp::ratio:
        result = operands[1] != 0 ? operands[0] / operands[1] : 0;
        break;
      case ValueOp::least:
        result = *std::min_element(operands, operands + op.arg);
        break;
      case ValueOp::most:
        result = *std::max_element(operands, operands + op.arg);
        break;
      case ValueOp::log_one_plus:
        result = std::log1p(std::max(0.0, operands[0]));
        break;
    }
    if (op.code >= ValueOp::sum) top -= op.arg;
    stack[top++] = result;
  }
  return stack[0];
}

void write_masks(const Program& p, const World& w, std::uint8_t* masks) {
  const std::size_t n = p.actions.size() - 1;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent, masks += n)
    for (std::size_t a = 0; a < n; ++a) {
      const ActionEntry& entry = p.actions[a];
      const auto target = static_cast<std::uint32_t>(static_cast<std::int32_t>(w.cell[agent]) + entry.delta);
      masks[a] = entry.kind == ActionKind::move ? w.code_at(target) == kEmpty : entry.kind != ActionKind::invalid;
    }
}

}  // namespace gridmill::grid
