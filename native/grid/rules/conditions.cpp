// The questions of conditions.hpp: each compiles to one Op and answers for a context.
#include "grid/rules/conditions.hpp"

#include "grid/compile.hpp"
#include "grid/rules/rules.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

bool close_enough(const World& w, std::uint32_t a, std::uint32_t b, std::int64_t radius, bool euclid) {
  const std::int64_t dr = std::abs(w.row[a] - w.row[b]), dc = std::abs(w.column[a] - w.column[b]);
  return euclid ? dr * dr + dc * dc <= radius * radius : std::max(dr, dc) <= radius;
}

bool holds(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  const std::uint16_t* held = s.held(who);
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i)
    if (held[s.p.rules.amounts[i].resource] < s.p.rules.amounts[i].by) return false;
  return true;
}

bool empty(const Op& op, RuleContext& s) {
  const std::int32_t who = s.holder_of(op.who);
  if (who < 0) return false;
  const std::uint16_t* held = s.held(who);
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i)
    if (held[s.p.rules.amounts[i].resource] > 0) return false;
  return true;
}

bool has_vibe(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  return who >= 0 && s.w.vibe[who] == op.id;
}

bool has_tag(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  return who >= 0 && s.w.has_tag(static_cast<std::uint32_t>(who), op.id);
}

bool same_collective(const Op&, RuleContext& s) {
  const std::uint8_t team = s.collective_of(s.actor);
  return team != kNeutral && team == s.collective_of(s.target);
}

bool other_collective(const Op&, RuleContext& s) {
  const std::uint8_t mine = s.collective_of(s.actor), its = s.collective_of(s.target);
  return mine != kNeutral && its != kNeutral && mine != its;
}

bool aligned(const Op& op, RuleContext& s) {
  const std::uint8_t team = s.collective_of(s.object(op.who));
  return team != kNeutral && (op.flag || team == op.id);
}

bool within(const Op& op, RuleContext& s) {
  const std::int32_t one = s.object(0), other = s.object(1);
  if (one < 0 || other < 0) return false;
  return close_enough(s.w, static_cast<std::uint32_t>(one), static_cast<std::uint32_t>(other), op.number, op.flag);
}

bool near(const Op& op, RuleContext& s) {
  const std::int32_t who = s.object(op.who);
  if (who < 0) return false;
  for (std::uint32_t object = 0; object < s.p.num_objects; ++object) {
    if (!s.w.on_map(object) || !s.w.has_tag(object, op.id)) continue;
    if (!close_enough(s.w, static_cast<std::uint32_t>(who), object, op.number, op.flag)) continue;
    RuleContext about(s.p, s.w, s.header, s.trials, s.actor, static_cast<std::int32_t>(object), s.mode, s.depth);
    about.negated = s.negated;
    if (all_hold(op.range, about)) return true;
  }
  return false;
}

bool periodic(const Op& op, RuleContext& s) {
  const std::int64_t tick = s.tick();
  return tick >= op.range.first && (tick - op.range.first) % op.number == 0;
}

bool chance(const Op& op, RuleContext& s) {
  if (s.mode == Mode::possible) return s.negated ? op.real >= 1 : op.real > 0;
  const Stream draws(s.header.key, s.header.tick, kChanceStream);
  const std::uint64_t index = std::uint64_t{op.id} << 40 ^ static_cast<std::uint64_t>(s.actor + 1) << 20 ^
                              static_cast<std::uint64_t>(s.target + 1);
  return static_cast<double>(draws.at(index) >> 11) * 0x1p-53 < op.real;
}

bool at_least(const Op& op, RuleContext& s) {
  return evaluate(s.p.rules.values[op.id], {s.p, s.w, s.object(0), s.object(1), &s}) >= op.real;
}

bool not_all(const Op& op, RuleContext& s) {
  s.negated = !s.negated;
  const bool all = all_hold(op.range, s);
  s.negated = !s.negated;
  return !all;
}

bool any_of(const Op& op, RuleContext& s) {
  for (std::uint32_t i = op.range.first; i < op.range.last; ++i)
    if (s.p.rules.conditions[i].run(s.p.rules.conditions[i], s)) return true;
  return false;
}

}  // namespace

void Condition::decode(Condition& out, const Value& value, const std::string& path) {
  if (std::count(path.begin(), path.end(), '[') > 10)
    fail_at(path, "expected conditions nested at most 8 levels deep, got more");
  decode_one_of(out.data, value, path);
}

Op Holds::compile(Compiler& c) const {
  return {.run = &holds, .who = holder(who), .range = c.amounts(amounts, ".amounts")};
}
Op Empty::compile(Compiler& c) const {
  return {.run = &empty, .who = holder(who), .range = c.resources(resources, ".resources")};
}
Op HasVibe::compile(Compiler& c) const { return {.run = &has_vibe, .who = holder(who), .id = c.vibe(vibe, ".vibe")}; }
Op HasTag::compile(Compiler& c) const { return {.run = &has_tag, .who = holder(who), .id = c.tag(tag, ".tag")}; }
Op SameCollective::compile(Compiler&) const { return {.run = &same_collective}; }
Op OtherCollective::compile(Compiler&) const { return {.run = &other_collective}; }
Op Aligned::compile(Compiler& c) const {
  return {.run = &aligned,
          .who = holder(who),
          .flag = to.empty(),
          .id = to.empty() ? std::uint16_t{0} : c.collective(to, ".to")};
}
Op Within::compile(Compiler&) const { return {.run = &within, .flag = metric == "euclid", .number = distance}; }
Op Near::compile(Compiler& c) const {
  return {.run = &near,
          .who = holder(who),
          .flag = metric == "euclid",
          .id = c.tag(tag, ".tag"),
          .number = radius,
          .range = c.conditions(when, ".when")};
}
Op Periodic::compile(Compiler&) const {
  return {.run = &periodic, .number = every, .range = {static_cast<std::uint32_t>(start), 0}};
}
Op Chance::compile(Compiler& c) const {
  return {
      .run = &chance, .id = number_of(c.p.rules.num_chances++, "conditions of `chance`", c.path), .real = probability};
}
Op AtLeast::compile(Compiler& c) const { return {.run = &at_least, .id = c.value(value, ".value"), .real = number}; }
Op Not::compile(Compiler& c) const { return {.run = &not_all, .range = c.conditions(conditions, ".conditions")}; }
Op AnyOf::compile(Compiler& c) const { return {.run = &any_of, .range = c.conditions(conditions, ".conditions")}; }

Op Condition::compile(Compiler& c) const {
  return std::visit([&c](const auto& condition) { return condition.compile(c); }, data);
}

}  // namespace gridmill::grid
