// The functions that effects of effects.hpp share, and all of them compiled.
#include "grid/rules/effects.hpp"

#include <cmath>
#include <stdexcept>

#include "grid/combat.hpp"
#include "grid/compile.hpp"
#include "grid/occupancy.hpp"
#include "grid/rules/rules.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

std::uint32_t index_of(std::int32_t object) { return static_cast<std::uint32_t>(object); }

// ---- amounts

bool give(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i) {
    const auto& [resource, by] = s.p.rules.amounts[i];
    if (s.room(who, resource) == 0) return false;  // asked first: what is above its limit would fall to it
    s.change(who, resource, by);
  }
  return true;
}

void give_alone(const Op& op, const Program& p, World& w, std::uint32_t who) {
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i) {
    const auto& [resource, by] = p.rules.amounts[i];
    if (room_in(p.limit_sets[0], w.held(who), resource) != 0) change_agents_amount(p, w, who, resource, by);
  }
}

bool take(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i)
    s.change(who, s.p.rules.amounts[i].resource, -s.p.rules.amounts[i].by);
  return true;
}

void take_alone(const Op& op, const Program& p, World& w, std::uint32_t who) {
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i)
    change_agents_amount(p, w, who, p.rules.amounts[i].resource, -p.rules.amounts[i].by);
}

// What an agent fetches from, or brings to, something that is no agent is counted as got and put.
void count_transfer(RuleContext& s, std::int32_t source, std::int32_t to, std::uint32_t resource, std::uint32_t units) {
  if (s.dry()) return;
  if (s.is_agent(to) && !s.is_agent(source))
    s.w.resource_counter(index_of(to), resource, ResourceCounter::get) += units;
  if (s.is_agent(source) && !s.is_agent(to))
    s.w.resource_counter(index_of(source), resource, ResourceCounter::put) += units;
}

bool holds_nothing(const RuleContext& s, std::int32_t who) {
  const std::uint16_t* held = s.held(who);
  return std::all_of(held, held + s.p.num_resources, [](std::uint16_t n) { return n == 0; });
}

bool transfer(const Op& op, RuleContext& s) {
  const std::int32_t source = s.holder_of(op.who), to = s.holder_of(op.to);
  if (source < 0 || to < 0 || source == to) return false;
  std::uint32_t moved = 0;
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i) {
    const auto& [resource, most] = s.p.rules.amounts[i];
    const std::uint32_t there = std::min<std::uint32_t>(static_cast<std::uint32_t>(most), s.held(source)[resource]);
    const std::uint32_t units = std::min(there, s.room(to, resource));
    if (units == 0) continue;
    s.change(source, resource, -static_cast<std::int32_t>(units));
    s.change(to, resource, static_cast<std::int32_t>(units));
    count_transfer(s, source, to, resource, units);
    moved += units;
  }
  if (moved == 0) return false;
  const bool goes = op.flag && op.who < 2 && !s.is_agent(source) && holds_nothing(s, source);
  if (goes && s.dry()) s.removed = source;
  if (goes && !s.dry()) remove_object(s.p, s.w, index_of(source), s.header.tick);
  return true;
}

bool clear(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i) {
    const std::uint16_t resource = s.p.rules.amounts[i].resource;
    if (const std::int32_t held = s.held(who)[resource]) s.change(who, resource, -held);
  }
  return true;
}

bool add(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  const double value =
      evaluate(s.p.rules.values[static_cast<std::size_t>(op.number)], {s.p, s.w, s.object(0), s.object(1), &s});
  const auto by = rounded(std::clamp(value, -65'535.0, 65'535.0));
  if (by != 0) s.change(who, op.id, by);
  return true;
}

void add_alone(const Op& op, const Program& p, World& w, std::uint32_t who) {
  const CompiledValue& value = p.rules.values[static_cast<std::size_t>(op.number)];
  const auto self = static_cast<std::int32_t>(who);
  const bool own = value.size() == 1 && value[0].code == ValueOp::inventory && value[0].whose < 2;
  const std::int32_t by =
      own ? w.held(who)[value[0].arg] : rounded(std::clamp(evaluate(value, {p, w, self, self}), -65'535.0, 65'535.0));
  if (by != 0) change_agents_amount(p, w, who, op.id, by);
}

// ---- tags, collectives, vibes

bool change_tag(const Op& op, RuleContext& s, bool set) {
  const std::int32_t who = s.object(op.who);
  if (who < 0) return false;
  std::uint64_t& tag_bits = s.w.tag_bits()[who];
  const auto mark = static_cast<std::size_t>(s.p.tags.bit_of[op.id]);
  const std::uint64_t bit = std::uint64_t{1} << mark;
  if (s.dry() || set == ((tag_bits & bit) != 0)) return true;
  tag_bits ^= bit;
  s.w.mark_dirty(index_of(who));
  const Range rules = set ? s.p.tags.rules[mark].added : s.p.tags.rules[mark].removed;
  if (rules.empty() || s.depth >= kMostRulesDeep) return true;
  RuleContext about(s.p, s.w, s.header, s.trials, who, who, Mode::apply, s.depth + 1);
  run_rules(rules, true, about);
  return true;
}
bool set_tag(const Op& op, RuleContext& s) { return change_tag(op, s, true); }
bool clear_tag(const Op& op, RuleContext& s) { return change_tag(op, s, false); }

// An agent that changes whose something is gets the credit.
void credit(RuleContext& s, std::int32_t who, std::size_t place) {
  if (!s.is_agent(s.actor) || s.actor == who) return;
  const std::size_t name = s.p.types[s.w.type[who]].counted_as;
  s.w.agent_stats(index_of(s.actor))[s.p.collectives.credit[name][place]] += 1;
}

bool align(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  const std::uint8_t team = op.flag ? s.collective_of(s.object(0)) : static_cast<std::uint8_t>(op.id);
  if (who < 0 || team == kNeutral) return false;
  if (s.dry() || s.collective_of(who) == team) return true;
  set_collective(s.p, s.w, index_of(who), team);
  credit(s, who, 0);
  return true;
}

bool unalign(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  if (who < 0) return false;
  if (s.dry() || s.collective_of(who) == kNeutral) return true;
  set_collective(s.p, s.w, index_of(who), kNeutral);
  credit(s, who, 1);
  return true;
}

// ---- bodies

bool strike(const Op&, RuleContext& s) {
  if (!s.is_agent(s.actor) || !s.is_agent(s.target) || s.actor == s.target || s.w.frozen[s.target] > 0) return false;
  if (!s.dry()) land_hit(s.p, s.w, index_of(s.actor), index_of(s.target));
  return true;
}

// In a trial the cell of what would be gone is empty.
bool is_free_for(const RuleContext& s, std::int64_t row, std::int64_t column) {
  return is_free(s.p, s.w, row, column) ||
         (s.removed >= 0 && row == s.w.row[s.removed] && column == s.w.column[s.removed]);
}

// Moves an object up to `most` cells in a direction, as far as they are empty; true if it moved at all.
bool slide(RuleContext& s, std::int32_t who, std::int32_t down, std::int32_t right, std::int64_t most) {
  std::int64_t row = s.w.row[who], column = s.w.column[who], steps = 0;
  while (steps < most && is_free_for(s, row + down, column + right)) {
    row += down;
    column += right;
    ++steps;
  }
  if (steps == 0) return false;
  if (!s.dry())
    relocate_object(s.w, index_of(who), static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column));
  return true;
}

bool move(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  return who >= 0 && slide(s, who, kDirections[op.id].row, kDirections[op.id].column, 1);
}

bool push(const Op& op, RuleContext& s) {
  const std::int32_t from = s.object(0), who = s.object(1);
  if (from < 0 || who < 0) return false;
  const auto sign = [](int n) { return (n > 0) - (n < 0); };
  const int down = sign(s.w.row[who] - s.w.row[from]), right = sign(s.w.column[who] - s.w.column[from]);
  return (down != 0 || right != 0) && slide(s, who, down, right, op.number);
}

bool relocate_somewhere(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  if (who < 0) return false;
  if (op.flag) {  // where it started
    if (!s.is_agent(who)) return false;
    const std::uint32_t row = s.w.spawn_row[who], column = s.w.spawn_column[who];
    if (!is_free_for(s, row, column)) return false;
    if (!s.dry()) relocate_object(s.w, index_of(who), row, column);
    return true;
  }
  // The first empty cell from a random one on: fair where few cells are taken, and never a search without end.
  const Stream draws(s.header.key, s.tick(), kRelocateStream);
  const std::int64_t at = first_empty(s.p, s.w, draws.below(index_of(who), s.p.height * s.p.width));
  if (at < 0) return s.removed >= 0;  // on a full map there is room where something was removed in trial
  if (!s.dry())
    relocate_object(s.w, index_of(who), static_cast<std::uint32_t>(at / s.p.width),
                    static_cast<std::uint32_t>(at % s.p.width));
  return true;
}

bool spawn(const Op& op, RuleContext& s) {
  const std::int32_t near = s.holders[op.who];  // it may just have been removed
  if (near < 0) return false;
  const std::int32_t place = s.p.types[op.id].terrain ? 0 : unused_object(s.p, s.w, s.tick());
  if (place < 0) return false;
  constexpr std::int32_t down[] = {0, -1, 1, 0, 0, -1, -1, 1, 1}, right[] = {0, 0, 0, -1, 1, -1, 1, -1, 1};
  for (std::size_t i = 0; i < 9; ++i) {
    const std::int32_t row = s.w.row[near] + down[i], column = s.w.column[near] + right[i];
    if (!is_free_for(s, row, column)) continue;
    if (!s.dry())
      add_object(s.p, s.w, place, op.id, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column),
                 s.header.tick);
    return true;
  }
  return false;
}

bool remove(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  if (who < 0 || s.is_agent(who)) return false;
  if (s.dry()) s.removed = who;
  else remove_object(s.p, s.w, index_of(who), s.header.tick);
  return true;
}

bool add_stat(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holders[op.who];
  if (op.to == 2) {
    if (!s.dry()) s.w.game_stats()[op.id] += op.real;
    return true;
  }
  if (who < 0 || (op.to == 0 && !s.is_agent(who))) return false;
  if (s.dry()) return true;
  if (op.to == 0) s.w.agent_stats(index_of(who))[op.id] += op.real;
  else s.w.team_stats(index_of(who) - s.p.num_objects)[op.id] += op.real;
  return true;
}

std::uint16_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::uint16_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Op Give::compile(Compiler& c) const {
  const Range range = c.amounts(amounts, ".amounts");
  c.receives(holder(who), range);
  return {
      .run = &give, .alone = &give_alone, .who = holder(who), .whole = range.last - range.first <= 1, .range = range};
}
Op Take::compile(Compiler& c) const {
  return {
      .run = &take, .alone = &take_alone, .who = holder(who), .sure = true, .range = c.amounts(amounts, ".amounts")};
}
Op Transfer::compile(Compiler& c) const {
  if (source == to) fail_at(c.path + ".to", "a transfer needs two different sides, got `" + to + "` twice");
  const Range range = c.amounts(amounts, ".amounts");
  c.receives(holder(to), range);
  return {
      .run = &transfer, .who = holder(source), .to = holder(to), .flag = remove_empty, .whole = true, .range = range};
}
Op Clear::compile(Compiler& c) const {
  return {.run = &clear, .who = holder(who), .sure = true, .range = c.resources(resources, ".resources")};
}
Op Add::compile(Compiler& c) const {
  c.receives(holder(who), c.amounts({{resource, 1}}, ".resource"));
  return {.run = &add,
          .alone = &add_alone,
          .who = holder(who),
          .sure = true,
          .id = c.resource(resource, ".resource"),
          .number = c.value(value, ".value")};
}
Op SetTag::compile(Compiler& c) const {
  return {.run = &set_tag, .who = holder(who), .sure = true, .id = c.tag(tag, ".tag")};
}
Op ClearTag::compile(Compiler& c) const {
  return {.run = &clear_tag, .who = holder(who), .sure = true, .id = c.tag(tag, ".tag")};
}
Op Align::compile(Compiler& c) const {
  if (c.p.collectives.teams.empty()) fail_at(c.path, "`align` needs the game's `collectives`, got none");
  return {.run = &align,
          .who = holder(who),
          .flag = to.empty(),
          .id = to.empty() ? std::uint16_t{0} : c.collective(to, ".to")};
}
Op Unalign::compile(Compiler& c) const {
  if (c.p.collectives.teams.empty()) fail_at(c.path, "`unalign` needs the game's `collectives`, got none");
  return {.run = &unalign, .who = holder(who)};
}
Op Move::compile(Compiler&) const {
  const auto at = std::find(std::begin(kCompass), std::end(kCompass), direction) - std::begin(kCompass);
  return {.run = &move, .who = holder(who), .id = static_cast<std::uint16_t>(at)};
}
Op Push::compile(Compiler&) const { return {.run = &push, .number = distance}; }
Op Relocate::compile(Compiler&) const {
  return {.run = &relocate_somewhere, .who = holder(who), .flag = to == "start"};
}
Op SpawnObject::compile(Compiler& c) const {
  return {.run = &spawn, .who = holder(near), .id = c.type(object, ".object")};
}
Op Remove::compile(Compiler&) const { return {.run = &remove, .who = holder(who)}; }
Op Strike::compile(Compiler& c) const {
  if (!c.p.config.attack) fail_at(c.path, "a strike needs the game's `attack`, got none");
  return {.run = &strike};
}
Op AddStat::compile(Compiler& c) const {
  if (name.empty()) fail_at(c.path + ".name", "expected a name, got nothing");
  const Vocabulary& vocabulary = *c.p.vocabulary;
  Op op{.run = &add_stat, .real = amount};
  if (of == "game") {
    op.to = 2;
    op.id = place_of(vocabulary.game_stats, name);
  } else if (of == "collective") {
    op.to = 1;
    op.who = holder("actor_collective");
    op.id = place_of(vocabulary.team_stats, name);
  } else {
    op.to = 0;
    op.who = holder(of);
    op.id = place_of(vocabulary.agent_stats, name);
  }
  return op;
}

Op Effect::compile(Compiler& c) const {
  return std::visit(
      [&c]<class T>(const T& effect) {
        Op op = effect.compile(c);
        if constexpr (requires(RuleContext& s) { T::apply(op, s); })
          op.run = [](const Op& of, RuleContext& s) { return T::apply(of, s); };
        if (op.run == nullptr) throw std::logic_error("the effect `" + std::string(T::kind) + "` does nothing");
        return op;
      },
      data);
}

}  // namespace gridmill::grid
