// See rules.hpp.
#include "grid/rules.hpp"

#include "grid/machines.hpp"

namespace gridmill::grid {

void Purses::start_paid(const Program& p, const World& w, std::uint32_t agent, const Costs& costs) {
  resources_ = p.num_resources;
  payer_ = static_cast<std::int32_t>(agent);
  std::uint16_t* paid = row(kPurses);
  std::copy_n(w.held(agent), resources_, paid);
  const auto set = [paid](std::uint32_t r, std::uint32_t amount) { paid[r] = static_cast<std::uint16_t>(amount); };
  for (const auto& [resource, amount] : costs)
    change_held(p.limit_sets[0], paid, resource, -static_cast<std::int32_t>(amount), set);
  empty(w);
}

void Purses::empty(const World& w) {
  count_ = 0;
  if (payer_ >= 0) std::copy_n(row(kPurses), resources_, get(w, payer_));
}

std::uint16_t* Purses::get(const World& w, std::int32_t holder) {
  for (std::size_t i = 0; i < count_; ++i)
    if (owners_[i] == holder) return row(i);
  owners_[count_] = holder;
  std::copy_n(w.held(static_cast<std::uint32_t>(holder)), resources_, row(count_));
  return row(count_++);
}

std::int32_t Scene::change(std::int32_t holder, std::uint32_t resource, std::int32_t by) {
  const auto who = static_cast<std::uint32_t>(holder);
  if (!dry()) return change_amount(p, w, who, resource, by);
  std::uint16_t* purse = purses.get(w, holder);
  return change_held(limits_of(p, w, who), purse, resource, by,
                     [purse](std::uint32_t r, std::uint32_t amount) { purse[r] = static_cast<std::uint16_t>(amount); });
}

bool all_hold(Range conditions, Scene& scene) {
  for (std::uint32_t i = conditions.first; i < conditions.last; ++i)
    if (!scene.p.rules.conditions[i].run(scene.p.rules.conditions[i], scene)) return false;
  return true;
}

namespace {

bool effects_run(Range effects, Scene& scene) {
  for (std::uint32_t i = effects.first; i < effects.last; ++i)
    if (!scene.p.rules.effects[i].run(scene.p.rules.effects[i], scene)) return false;
  return true;
}

// What a rule brought or took may let a machine start.
void start_machines(const Scene& scene) {
  for (std::uint8_t who = 0; who < 2; ++who)
    if (const std::int32_t object = scene.object(who); object >= 0) {
      const auto index = static_cast<std::uint32_t>(object);
      if (scene.p.types[scene.w.type[index]].converter >= 0) try_start(scene.p, scene.w, index, scene.header.tick);
    }
}

// Without a trial where nothing can fail: all whom such effects need are there.
bool cannot_fail(const CompiledRule& rule, const Scene& scene) {
  return rule.sure && (!(rule.parties & 1) || scene.object(0) >= 0) && (!(rule.parties & 2) || scene.object(1) >= 0);
}

}  // namespace

bool run_rule(const CompiledRule& rule, Scene& scene) {
  if (scene.dry()) scene.purses.empty(scene.w);
  if (!all_hold(rule.conditions, scene)) return false;
  if (!(rule.single && !scene.dry()) && !cannot_fail(rule, scene)) {
    if (!scene.dry()) scene.purses.start_from(scene.p, scene.w);
    Scene trial = scene;
    trial.ask = scene.dry() ? scene.ask : Ask::now;
    if (!effects_run(rule.effects, trial)) return false;
  }
  if (scene.dry()) return true;
  const bool delivered = effects_run(rule.effects, scene);
  if (rule.single && !delivered) return false;
  if (!scene.p.machines.converters.empty()) start_machines(scene);
  return true;
}

bool run_rules(Range rules, bool all, Scene& scene) {
  bool any = false;
  for (std::uint32_t i = rules.first; i < rules.last && (all || !any); ++i) {
    scene.look_again();
    any = run_rule(scene.p.rules.list[i], scene) || any;
  }
  return any;
}

namespace {

// What follows from the amounts of an agent alone needs neither a scene nor a trial.
void run_alone(const Program& p, World& w, Range rules, std::uint32_t agent) {
  for (std::uint32_t rule = rules.first; rule < rules.last; ++rule)
    for (std::uint32_t i = p.rules.list[rule].effects.first; i < p.rules.list[rule].effects.last; ++i)
      p.rules.effects[i].alone(p.rules.effects[i], p, w, agent);
}

}  // namespace

void run_tick_rules(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch) {
  if (!p.rules.on_tick.empty()) {
    Scene scene(p, w, header, scratch.purses, -1, -1, Ask::apply);
    run_rules(p.rules.on_tick, true, scene);
  }
  const auto run = [&](std::uint32_t object) {
    const Range rules = p.types[w.type[object]].on_tick;
    if (rules.empty() || !w.on_map(object)) return;
    const auto self = static_cast<std::int32_t>(object);
    Scene scene(p, w, header, scratch.purses, self, self, Ask::apply);
    run_rules(rules, true, scene);
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
  purses.fit(p);
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
