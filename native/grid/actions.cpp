// Phase actions: one shuffle of the agents per tick, attacks first, then everything else in the same order; and the
// masks, which ask the same questions without changing anything.
#include <algorithm>

#include "grid/ahead.hpp"
#include "grid/combat.hpp"
#include "grid/directions.hpp"
#include "grid/grid.hpp"
#include "grid/machines.hpp"
#include "grid/occupancy.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

// Inside-out shuffle (Knuth, TAOCP 3.4.2): agent i goes to a random place among the first i + 1.
void shuffle(std::uint16_t* order, std::uint32_t n, const WorldHeader& header) {
  const Stream draws(header.key, header.tick, kShuffleStream);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t j = draws.below(i, i + 1);
    order[i] = order[j];
    order[j] = static_cast<std::uint16_t>(i);
  }
}

// One agent's turn: what it knows of the world, and how earnest the question is.
struct ActionContext {
  const Program& p;
  World& w;
  const WorldHeader& header;
  TrialInventories& trials;
  bool dry() const { return mode != Mode::apply; }
  Mode mode = Mode::apply;
};

// What a bump into an object with this code does: its rules, its machine, or nothing.
bool use(const ActionContext& t, std::uint32_t agent, std::uint16_t code, const Type& type) {
  RuleContext context(t.p, t.w, t.header, t.trials, static_cast<std::int32_t>(agent), code - 1, t.mode);
  if (!type.on_use.empty() && run_rules(type.on_use, type.use_all, context)) return true;
  if (type.converter >= 0) {
    if (t.dry()) t.trials.empty(t.w);
    return use_machine(context);
  }
  return type.assembler >= 0 && use_assembler(context);
}

// A move into something: use it, push it, or take a frozen agent's place.
bool bump(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry) {
  const Program& p = t.p;
  World& w = t.w;
  const std::uint32_t row = w.row[agent] + static_cast<std::uint32_t>(entry.row);
  const std::uint32_t column = w.column[agent] + static_cast<std::uint32_t>(entry.column);
  if (row >= p.height || column >= p.width) return false;
  const std::uint16_t code = w.code_at(w.cell_at(row, column));
  if (code <= p.num_agents && p.actions.can_freeze && w.frozen[code - 1u] > 0) {
    if (!t.dry()) swap_places(w, agent, row, column);
    return true;
  }
  const Type& type = p.types[w.type_of(code)];
  if (type.inert) return false;
  if (code <= p.num_objects && use(t, agent, code, type)) return true;
  if (!type.pushable) return false;
  const std::uint32_t next_row = row + static_cast<std::uint32_t>(entry.row);
  const std::uint32_t next_column = column + static_cast<std::uint32_t>(entry.column);
  if (!is_free(p, w, next_row, next_column)) return false;
  if (t.dry()) return true;
  relocate(w, code, row, column, next_row, next_column);
  relocate_object(w, agent, row, column);
  return true;
}

// The agent in cell k of the cone: 1 + k / 3 ahead and k % 3 - 1 to the side, left being -1; or -1.
std::int32_t agent_in_cone(const Program& p, const World& w, std::uint32_t agent, std::int32_t k) {
  const Direction &ahead = kDirections[w.facing[agent]], &left = kDirections[kLeftOf[w.facing[agent]]];
  const std::int32_t distance = 1 + k / 3, side = 1 - k % 3;  // to the left
  const std::int32_t row = w.row[agent] + distance * ahead.row + side * left.row;
  const std::int32_t column = w.column[agent] + distance * ahead.column + side * left.column;
  if (!inside_map(p, row, column)) return -1;
  const std::uint16_t code = w.code_at(w.cell_at(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column)));
  return code != kEmpty && code <= p.num_agents ? code - 1 : -1;
}

bool attack(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry) {
  if (!can_pay(t.w.held(agent), t.p.actions.attack_cost)) return false;
  std::int32_t found = -1;
  for (std::int32_t k = entry.first; k <= entry.last && found < 0; ++k) found = agent_in_cone(t.p, t.w, agent, k);
  if (found < 0) return false;
  const auto target = static_cast<std::uint32_t>(found);
  if (t.w.frozen[target] > 0) return false;
  if (t.dry()) return true;
  pay_costs(t.p, t.w, agent, t.p.actions.attack_cost);
  land_hit(t.p, t.w, agent, target);
  return true;
}

bool swap_with_faced(const ActionContext& t, std::uint32_t agent) {
  const Direction& ahead = kDirections[t.w.facing[agent]];
  const std::int32_t row = t.w.row[agent] + ahead.row, column = t.w.column[agent] + ahead.column;
  if (!inside_map(t.p, row, column)) return false;
  const auto r = static_cast<std::uint32_t>(row), c = static_cast<std::uint32_t>(column);
  const std::uint16_t code = t.w.code_at(t.w.cell_at(r, c));
  if (code == kEmpty || (code > t.p.num_agents && !t.p.types[t.w.type_of(code)].swappable)) return false;
  if (!t.dry()) swap_places(t.w, agent, r, c);
  return true;
}

// What is neither a plain step onto an empty cell nor nothing; true if it succeeded, or would.
bool act_specially(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry) {
  switch (entry.kind) {
    case ActionKind::move:
      return bump(t, agent, entry);
    case ActionKind::attack:
      return attack(t, agent, entry);
    case ActionKind::swap:
      return swap_with_faced(t, agent);
    case ActionKind::change_vibe:
      if (!t.dry() && t.w.vibe[agent] != entry.vibe) t.w.set_vibe(agent, entry.vibe);
      return true;
    case ActionKind::noop:
      return true;
    case ActionKind::invalid:
      break;
  }
  return false;
}

// The same question without acting; what a move or a use costs is paid before anything is handed over.
bool would_succeed(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry, Mode mode) {
  if (entry.kind == ActionKind::move && !t.p.actions.move_cost.empty())
    t.trials.start_paid(t.p, t.w, agent, t.p.actions.move_cost);
  else t.trials.start_from(t.p, t.w);
  return act_specially({t.p, t.w, t.header, t.trials, mode}, agent, entry);
}

bool is_frozen(const Program& p, const World& w, std::uint32_t agent) {
  return p.actions.can_freeze && w.frozen[agent] > 0;
}

// Noop, plain moves and invalid share one path without branches: an action that does not move has distance 0, and the
// agent's own cell is never empty.
void act(const ActionContext& t, std::uint32_t agent, std::int32_t action) {
  const Program& p = t.p;
  World& w = t.w;
  const auto last = static_cast<std::uint32_t>(p.actions.entries.size()) - 1;
  const std::uint32_t index = std::min(static_cast<std::uint32_t>(action), last);
  const ActionEntry& entry = p.actions.entries[index];
  const std::uint32_t cell = w.cell[agent], row = w.row[agent], column = w.column[agent];
  const bool able = !is_frozen(p, w, agent);
  const bool pays =
      p.actions.move_cost.empty() || entry.kind != ActionKind::move || can_pay(w.held(agent), p.actions.move_cost);
  // All bits or none instead of a choice: whether an agent can move or turns is anybody's guess.
  const std::int32_t may = -static_cast<std::int32_t>(able & pays);
  const auto target = static_cast<std::uint32_t>(static_cast<std::int32_t>(cell) + (entry.delta & may));
  const std::uint32_t moved = w.code_at(target) == kEmpty;
  const std::int32_t does = -static_cast<std::int32_t>(moved);
  const std::uint32_t new_cell = cell + static_cast<std::uint32_t>(entry.delta & may & does);
  const auto new_row = row + static_cast<std::uint32_t>(entry.row & does);
  const auto new_column = column + static_cast<std::uint32_t>(entry.column & does);
  w.set_code(cell, kEmpty);
  w.set_code(new_cell, static_cast<std::uint16_t>(agent + 1));
  w.clear_occupied(row, column);
  w.set_occupied(new_row, new_column);
  w.cell[agent] = new_cell;
  w.row[agent] = static_cast<std::uint16_t>(new_row);
  w.column[agent] = static_cast<std::uint16_t>(new_column);
  const std::int32_t turns = -static_cast<std::int32_t>(able & (entry.facing >= 0));
  w.turn(agent, static_cast<std::uint8_t>((entry.facing & turns) | (w.facing[agent] & ~turns)));
  std::uint32_t success = moved | (entry.kind == ActionKind::noop);
  const bool special = entry.kind == ActionKind::move ? p.actions.interactive : entry.kind != ActionKind::invalid;
  const bool costs = entry.kind == ActionKind::move && !p.actions.move_cost.empty();
  if (success && costs) pay_costs(p, w, agent, p.actions.move_cost);
  if (!success && special && able && pays) {
    // What a use costs is paid before anything is handed over, and only if something would be.
    success = !costs || would_succeed(t, agent, entry, Mode::now);
    if (success && costs) pay_costs(p, w, agent, p.actions.move_cost);
    if (success) success = act_specially(t, agent, entry);
  }
  w.agent_counter(AgentCounter::visited)[agent] += w.visit(agent, w.row[agent], w.column[agent]);
  // An action of the batch that this game does not have counts as invalid, like an index out of range.
  const std::uint32_t counted = entry.kind == ActionKind::invalid ? last : index;
  w.count_action(agent, 2 * counted + success);
  w.last_action[agent] = static_cast<std::uint8_t>(success ? index : 0);
}

// Whether a move would succeed; what is free or inert is not asked further.
bool may_move(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry) {
  const Program& p = t.p;
  const auto target = static_cast<std::uint32_t>(static_cast<std::int32_t>(t.w.cell[agent]) + entry.delta);
  const std::uint16_t code = t.w.code_at(target);
  if (code == kEmpty) return true;
  if (!p.actions.interactive || code >= p.codes.count) return false;  // the last: outside the map
  if (code <= p.num_agents && is_frozen(p, t.w, code - 1u)) return true;
  return !p.types[t.w.type_of(code)].inert && would_succeed(t, agent, entry, Mode::possible);
}

bool may_act(const ActionContext& t, std::uint32_t agent, const ActionEntry& entry) {
  switch (entry.kind) {
    case ActionKind::noop:
    case ActionKind::change_vibe:
      return true;
    case ActionKind::move:
      return may_move(t, agent, entry);
    case ActionKind::attack:
    case ActionKind::swap:
      return would_succeed(t, agent, entry, Mode::possible);
    case ActionKind::invalid:
      break;
  }
  return false;
}

bool is_attack(const Program& p, std::int32_t action) {
  return p.actions
             .entries[std::min(static_cast<std::uint32_t>(action),
                               static_cast<std::uint32_t>(p.actions.entries.size()) - 1)]
             .kind == ActionKind::attack;
}

}  // namespace

void Grid::act_in_shuffled_order(T& tick) {
  const Program& p = tick.program;
  World& w = tick.view;
  std::uint16_t* order = tick.worker.order.data();
  const std::uint32_t n = p.num_agents;
  const std::int32_t* actions = tick.rows.actions;
  const ActionContext turn{p, w, tick.header, tick.worker.rules.trials};
  shuffle(order, n, tick.header);
  if (p.actions.has_attack)
    for (std::uint32_t i = 0; i < n; ++i)
      if (is_attack(p, actions[order[i]])) act(turn, order[i], actions[order[i]]);
  const Ahead ahead(p, tick.ahead);
  for (std::uint32_t i = 0; i < n; ++i) {
    ahead.ask_for(i);
    if (p.actions.has_attack && is_attack(p, actions[order[i]])) continue;
    act(turn, order[i], actions[order[i]]);
  }
  ahead.ask_at_last();
}

void write_masks(const Program& p, World& w, const WorldHeader& header, TrialInventories& trials, std::uint8_t* masks) {
  const ActionContext turn{p, w, header, trials};
  const std::size_t n = p.actions.entries.size() - 1;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent, masks += n) {
    const bool able = !is_frozen(p, w, agent), can_move = can_pay(w.held(agent), p.actions.move_cost);
    for (std::size_t a = 0; a < n; ++a) {
      const ActionEntry& entry = p.actions.entries[a];
      const bool ready = entry.kind == ActionKind::noop || (able && (can_move || entry.kind != ActionKind::move));
      masks[a] = ready && may_act(turn, agent, entry);
    }
  }
}

}  // namespace gridmill::grid
