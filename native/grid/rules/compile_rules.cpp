// compile_rules() and the Compiler of ops.hpp: names become ids, lists become ranges of the program's flat lists.
#include <algorithm>
#include <map>

#include "grid/compile.hpp"

namespace gridmill::grid {

std::uint8_t holder(const std::string& name) {
  return static_cast<std::uint8_t>(std::find(std::begin(kHolders), std::end(kHolders), name) - std::begin(kHolders));
}

namespace {

std::uint16_t position(const std::string& name, const std::vector<std::string>& known, const char* what,
                       const std::string& path) {
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) fail_at(path, "unknown " + std::string(what) + " `" + name + "`" + nearest(name, known));
  return static_cast<std::uint16_t>(at - known.begin());
}

template <class T>
std::vector<std::string> names_of(const OrderedDict<T>& named) {
  std::vector<std::string> names;
  for (const auto& [name, value] : named) names.push_back(name);
  return names;
}

// Compiles a list of choices into one range of a flat list; parts of its members come before it.
template <class T>
Range compile_ops(Compiler& c, const std::vector<T>& list, const char* where, std::vector<Op>& out) {
  std::vector<Op> ops;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Compiler inner = c.inside(std::string(where) + "[" + std::to_string(i) + "]");
    ops.push_back(list[i].compile(inner));
  }
  const auto first = static_cast<std::uint32_t>(out.size());
  out.insert(out.end(), ops.begin(), ops.end());
  return {first, static_cast<std::uint32_t>(out.size())};
}

}  // namespace

std::uint16_t Compiler::resource(const std::string& name, const char* where) const {
  return position(name, p.config.resources, "resource", path + where);
}
std::uint16_t Compiler::tag(const std::string& name, const char* where) const {
  position(name, p.tags.own, "tag", path + where);
  return p.vocabulary->tag(name);
}
std::uint16_t Compiler::vibe(const std::string& name, const char* where) const {
  position(name, p.config.vibes, "vibe", path + where);
  return p.vocabulary->vibe(name);
}
std::uint16_t Compiler::collective(const std::string& name, const char* where) const {
  std::vector<std::string> known = names_of(p.config.collectives);
  std::sort(known.begin(), known.end());
  return position(name, known, "collective", path + where);
}
std::uint16_t Compiler::type(const std::string& name, const char* where) const {
  return type_index(p, name, path + where);
}

Range Compiler::amounts(const OrderedDict<std::int64_t>& named, const char* where) {
  std::vector<Amount> list;
  for (const auto& [name, n] : named) {
    const std::uint16_t r = resource(name, where);
    if (n != 0) list.push_back({r, static_cast<std::int32_t>(n)});
  }
  std::sort(list.begin(), list.end(), [](const Amount& a, const Amount& b) { return a.resource < b.resource; });
  const auto first = static_cast<std::uint32_t>(p.rules.amounts.size());
  p.rules.amounts.insert(p.rules.amounts.end(), list.begin(), list.end());
  return {first, static_cast<std::uint32_t>(p.rules.amounts.size())};
}

Range Compiler::resources(const std::vector<std::string>& names, const char* where) {
  OrderedDict<std::int64_t> all;
  for (const auto& name : names.empty() ? p.config.resources : names) all.emplace_back(name, 1);
  return amounts(all, where);
}

Range Compiler::conditions(const std::vector<Condition>& list, const char* where) {
  return compile_ops(*this, list, where, p.rules.conditions);
}
Range Compiler::effects(const std::vector<Effect>& list, const char* where) {
  return compile_ops(*this, list, where, p.rules.effects);
}

CompiledRule Compiler::rule(const std::vector<Condition>& when, const std::vector<Effect>& then) {
  CompiledRule rule;
  rule.conditions = conditions(when, ".when");
  rule.effects = effects(then, ".then");
  rule.sure = true;
  bool alone = rule.conditions.empty();
  for (std::uint32_t i = rule.effects.first; i < rule.effects.last; ++i) {
    const Op& op = p.rules.effects[i];
    rule.sure = rule.sure && op.sure && op.who < 2;
    rule.parties = static_cast<std::uint8_t>(rule.parties | 1u << op.who);
    alone = alone && op.alone != nullptr && op.who < 2;
  }
  rule.single = rule.effects.last - rule.effects.first == 1 && p.rules.effects[rule.effects.first].whole;
  rule.alone = alone && (rule.sure || rule.single);
  return rule;
}

std::uint16_t number_of(std::size_t place, const char* what, const std::string& path) {
  if (place > 65'535) fail_at(path, "expected at most 65,536 " + std::string(what) + " in a game, got more");
  return static_cast<std::uint16_t>(place);
}

Range Compiler::rules(const std::vector<Rule>& list, const char* where) {
  std::vector<CompiledRule> compiled;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Compiler inner = inside(std::string(where) + "[" + std::to_string(i) + "]");
    compiled.push_back(inner.rule(list[i].when, list[i].then));
  }
  const auto first = static_cast<std::uint32_t>(p.rules.list.size());
  p.rules.list.insert(p.rules.list.end(), compiled.begin(), compiled.end());
  return {first, static_cast<std::uint32_t>(p.rules.list.size())};
}

void Compiler::receives(std::uint8_t who, Range range) {
  if (who > 1) return;
  for (const std::size_t t : who == 0 ? actors : targets)
    for (std::uint32_t i = range.first; i < range.last; ++i) p.types[t].may_hold[p.rules.amounts[i].resource] = true;
}

std::uint16_t Compiler::value(const GameValue& value, const char* where) {
  CompiledValue compiled;
  compile_value(p, value, path + where, compiled);
  p.rules.reads_rewards = p.rules.reads_rewards || std::any_of(compiled.begin(), compiled.end(), [](const ValueOp& op) {
                            return op.code == ValueOp::reward_sum;
                          });
  p.rules.values.push_back(std::move(compiled));
  return number_of(p.rules.values.size() - 1, "values in rules", path + where);
}

namespace {

void compile_areas(Program& p, std::size_t t, const std::vector<Area>& areas, const std::string& path) {
  p.types[t].areas.first = static_cast<std::uint32_t>(p.areas.list.size());
  for (std::size_t i = 0; i < areas.size(); ++i) {
    const Area& declared = areas[i];
    Compiler c{p, path + ".areas[" + std::to_string(i) + "]", {t}, {p.agent_type}};
    CompiledArea area;
    number_of(p.areas.list.size(), "areas", c.path);
    area.type = static_cast<std::uint16_t>(t);
    area.place = static_cast<std::uint16_t>(i);
    area.radius = static_cast<std::int32_t>(declared.radius);
    area.euclid = declared.metric == "euclid";
    area.territory = declared.territory;
    area.affects = declared.affects == "friend"  ? Affects::friends
                   : declared.affects == "enemy" ? Affects::enemies
                   : declared.affects == "all"   ? Affects::all
                                                 : Affects::self;
    area.conditions = c.conditions(declared.when, ".when");
    area.changes = c.amounts(declared.changes, ".changes");
    area.enter = c.amounts(declared.enter, ".enter");
    area.exit = c.amounts(declared.exit, ".exit");
    area.rules = c.rules(declared.rules, ".rules");
    area.on_enter = c.rules(declared.on_enter, ".on_enter");
    area.on_exit = c.rules(declared.on_exit, ".on_exit");
    p.areas.has_territory = p.areas.has_territory || area.territory;
    p.areas.remembers = p.areas.remembers || !area.enter.empty() || !area.exit.empty() || !area.on_enter.empty() ||
                        !area.on_exit.empty();
    p.areas.list.push_back(area);
  }
  p.types[t].areas.last = static_cast<std::uint32_t>(p.areas.list.size());
  p.areas.most_of_type = std::max(p.areas.most_of_type, static_cast<std::uint32_t>(areas.size()));
}

template <class Declared>
void compile_type(Program& p, std::size_t t, const Declared& declared, const std::string& path) {
  Compiler use{p, path, {p.agent_type}, {t}}, tick{p, path, {t}, {t}};
  p.types[t].on_use = use.rules(declared.on_use, ".on_use");
  p.types[t].use_all = declared.use == "all";
  p.types[t].on_tick = tick.rules(declared.on_tick, ".on_tick");
  compile_areas(p, t, declared.areas, path);
  p.rules.any_in_tick = p.rules.any_in_tick || !declared.on_tick.empty();
}

std::vector<std::size_t> types_with(const Program& p, std::int32_t tag) {
  std::vector<std::size_t> types;
  for (std::size_t t = 0; t < p.types.size(); ++t)
    if (tag < 0 || p.types[t].tag_set[static_cast<std::size_t>(tag)] ||
        p.tags.bit_of[static_cast<std::size_t>(tag)] >= 0)
      types.push_back(t);
  return types;
}

void compile_events(Program& p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.config.events.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&p](std::size_t a, std::size_t b) {
    return p.config.events[a].second.priority > p.config.events[b].second.priority;
  });
  std::map<std::string, std::int32_t> place_of;
  for (std::size_t place = 0; place < order.size(); ++place)
    place_of[p.config.events[order[place]].first] = static_cast<std::int32_t>(place);
  for (const std::size_t i : order) {
    const auto& [name, declared] = p.config.events[i];
    Compiler c{p, "$.events." + name, {}, {}};
    CompiledEvent event;
    event.at = declared.at;
    std::sort(event.at.begin(), event.at.end());
    event.every = declared.every;
    event.start = declared.start;
    event.until = declared.until;
    event.max_targets = static_cast<std::uint32_t>(declared.max_targets);
    if (!declared.targets.empty()) {
      event.tag = c.tag(declared.targets, ".targets");
      c.targets = types_with(p, event.tag);
    }
    event.rule = c.rule(declared.when, declared.then);
    if (const auto found = place_of.find(declared.fallback); found != place_of.end()) event.fallback = found->second;
    p.events.list.push_back(std::move(event));
  }
}

void compile_tag_rules(Program& p, const OrderedDict<std::vector<Rule>>& declared, const std::string& path,
                       Range TagRules::* which) {
  const std::vector<std::size_t> all = types_with(p, -1);
  for (const auto& [name, rules] : declared) {
    Compiler c{p, path + "." + name, all, all};
    const std::int32_t mark = p.tags.bit_of[c.tag(name, "")];
    if (mark < 0 && !rules.empty()) fail_at(c.path, "no rule ever sets or clears the tag `" + name + "`");
    if (mark >= 0) p.tags.rules[static_cast<std::size_t>(mark)].*which = c.rules(rules, "");
  }
}

}  // namespace

void compile_rules(Program& p) {
  for (std::size_t t = 0; t < p.config.objects.size(); ++t) {
    compile_type(p, t, p.config.objects[t].second, "$.objects." + p.config.objects[t].first);
    p.rules.objects_tick = p.rules.objects_tick || !p.types[t].on_tick.empty();
  }
  compile_type(p, p.agent_type, p.config.agent, "$.agent");
  Compiler game{p, "$", {}, {}};
  p.rules.on_tick = game.rules(p.config.on_tick, ".on_tick");
  p.rules.any_in_tick = p.rules.any_in_tick || !p.rules.on_tick.empty();
  const Range of_agents = p.types[p.agent_type].on_tick;
  p.rules.agents_tick_alone = std::all_of(p.rules.list.begin() + of_agents.first, p.rules.list.begin() + of_agents.last,
                                          [](const CompiledRule& rule) { return rule.alone; });
  p.areas.strongest_territory = p.config.territory == "strongest";
  p.tags.rules.resize(p.tags.changeable.size());
  compile_tag_rules(p, p.config.on_tag_added, "$.on_tag_added", &TagRules::added);
  compile_tag_rules(p, p.config.on_tag_removed, "$.on_tag_removed", &TagRules::removed);
  compile_events(p);
}

}  // namespace gridmill::grid
