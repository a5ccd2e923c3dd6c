// See rules.hpp.
#include "grid/rules/rules.hpp"

#include "grid/machines.hpp"

namespace gridmill::grid {

void TrialInventories::start_paid(const Program& p, const World& w, std::uint32_t agent, const Costs& costs) {
  resources_ = p.num_resources;
  payer_ = static_cast<std::int32_t>(agent);
  std::uint16_t* paid = row(kInventories);
  std::copy_n(w.held(agent), resources_, paid);
  const auto set = [paid](std::uint32_t r, std::uint32_t amount) { paid[r] = static_cast<std::uint16_t>(amount); };
  for (const auto& [resource, amount] : costs)
    change_held(p.limit_sets[0], paid, resource, -static_cast<std::int32_t>(amount), set);
  empty(w);
}

void TrialInventories::empty(const World& w) {
  count_ = 0;
  if (payer_ >= 0) std::copy_n(row(kInventories), resources_, get(w, payer_));
}

std::uint16_t* TrialInventories::get(const World& w, std::int32_t holder) {
  for (std::size_t i = 0; i < count_; ++i)
    if (owners_[i] == holder) return row(i);
  owners_[count_] = holder;
  std::copy_n(w.held(static_cast<std::uint32_t>(holder)), resources_, row(count_));
  return row(count_++);
}

std::int32_t RuleContext::change(std::int32_t holder, std::uint32_t resource, std::int32_t by) {
  const auto who = static_cast<std::uint32_t>(holder);
  if (!dry()) return change_amount(p, w, who, resource, by);
  std::uint16_t* purse = trials.get(w, holder);
  return change_held(limits_of(p, w, who), purse, resource, by,
                     [purse](std::uint32_t r, std::uint32_t amount) { purse[r] = static_cast<std::uint16_t>(amount); });
}

bool all_hold(Range conditions, RuleContext& context) {
  for (std::uint32_t i = conditions.first; i < conditions.last; ++i)
    if (!context.p.rules.conditions[i].run(context.p.rules.conditions[i], context)) return false;
  return true;
}

namespace {

bool effects_run(Range effects, RuleContext& context) {
  for (std::uint32_t i = effects.first; i < effects.last; ++i)
    if (!context.p.rules.effects[i].run(context.p.rules.effects[i], context)) return false;
  return true;
}

// What a rule brought or took may let a machine start.
void start_machines(const RuleContext& context) {
  for (std::uint8_t who = 0; who < 2; ++who)
    if (const std::int32_t object = context.object(who); object >= 0) {
      const auto index = static_cast<std::uint32_t>(object);
      if (context.p.types[context.w.type[index]].converter >= 0)
        try_start(context.p, context.w, index, context.header.tick);
    }
}

// Without a trial where nothing can fail: all whom such effects need are there.
bool cannot_fail(const CompiledRule& rule, const RuleContext& context) {
  return rule.sure && (!(rule.parties & 1) || context.object(0) >= 0) &&
         (!(rule.parties & 2) || context.object(1) >= 0);
}

}  // namespace

bool run_rule(const CompiledRule& rule, RuleContext& context) {
  if (context.dry()) context.trials.empty(context.w);
  if (!all_hold(rule.conditions, context)) return false;
  if (!(rule.single && !context.dry()) && !cannot_fail(rule, context)) {
    if (!context.dry()) context.trials.start_from(context.p, context.w);
    RuleContext trial = context;
    trial.mode = context.dry() ? context.mode : Mode::now;
    if (!effects_run(rule.effects, trial)) return false;
  }
  if (context.dry()) return true;
  const bool delivered = effects_run(rule.effects, context);
  if (rule.single && !delivered) return false;
  if (!context.p.machines.converters.empty()) start_machines(context);
  return true;
}

bool run_rules(Range rules, bool all, RuleContext& context) {
  bool any = false;
  for (std::uint32_t i = rules.first; i < rules.last && (all || !any); ++i) {
    context.look_again();
    any = run_rule(context.p.rules.list[i], context) || any;
  }
  return any;
}

namespace {

// What follows from the amounts of an agent alone needs neither a context nor a trial.
void run_alone(const Program& p, World& w, Range rules, std::uint32_t agent) {
  for (std::uint32_t rule = rules.first; rule < rules.last; ++rule)
    for (std::uint32_t i = p.rules.list[rule].effects.first; i < p.rules.list[rule].effects.last; ++i)
      p.rules.effects[i].alone(p.rules.effects[i], p, w, agent);
}

}  // namespace

void run_tick_rules(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch) {
  if (!p.rules.on_tick.empty()) {
    RuleContext context(p, w, header, scratch.trials, -1, -1, Mode::apply);
    run_rules(p.rules.on_tick, true, context);
  }
  const auto run = [&](std::uint32_t object) {
    const Range rules = p.types[w.type[object]].on_tick;
    if (rules.empty() || !w.on_map(object)) return;
    const auto self = static_cast<std::int32_t>(object);
    RuleContext context(p, w, header, scratch.trials, self, self, Mode::apply);
    run_rules(rules, true, context);
  };
  if (p.rules.objects_tick)
    for (std::uint32_t object = p.num_agents; object < p.num_objects; ++object) run(object);
  const Range rules = p.types[p.agent_type].on_tick;
  if (rules.empty()) return;
  if (p.rules.agents_tick_alone) {
    for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) run_alone(p, w, rules, agent);
    return;
  }
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) run(agent);
}

void RuleScratch::fit(const Program& p) {
  trials.fit(p);
  const auto grow = [](auto& list, std::size_t size) {
    if (list.size() < size) list.resize(size);
  };
  if (!p.events.list.empty()) grow(candidates, p.num_objects);
  if (p.areas.list.empty()) return;
  grow(sums, std::size_t{p.num_agents} * p.num_resources);
  grow(near, p.areas.reach_words);
  grow(claims, p.collectives.teams.size());
  if (p.areas.remembers) grow(now_inside, (std::size_t{p.num_objects} * p.areas.most_of_type + 63) / 64);
}

}  // namespace gridmill::grid
