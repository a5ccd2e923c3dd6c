// Game values: compiled to postfix programs, and evaluated.
#include <algorithm>
#include <cmath>

#include "grid/compile.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

std::uint16_t place_in(const std::vector<std::string>& known, const std::string& name, const char* what,
                       const std::string& path) {
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) fail_at(path, "unknown " + std::string(what) + " `" + name + "`" + nearest(name, known));
  return static_cast<std::uint16_t>(at - known.begin());
}

// Among those that everybody has, then, sorted, those that rules add to.
std::size_t stat_place(const std::vector<std::string>& everybodys, const std::vector<std::string>& of_rules,
                       const std::string& name, const std::string& path) {
  const auto own = std::lower_bound(of_rules.begin(), of_rules.end(), name);
  if (own != of_rules.end() && *own == name)
    return everybodys.size() + static_cast<std::size_t>(own - of_rules.begin());
  const auto at = std::find(everybodys.begin(), everybodys.end(), name);
  if (at != everybodys.end()) return static_cast<std::size_t>(at - everybodys.begin());
  std::vector<std::string> known = everybodys;
  known.insert(known.end(), of_rules.begin(), of_rules.end());
  fail_at(path, "unknown stat `" + name + "`" + nearest(name, known));
}

class ValueCompiler {
 public:
  ValueCompiler(const Program& program, CompiledValue& out) : p_(program), out_(out) {}

  void compile(const GameValue& value, const std::string& path) {
    std::visit([&](const auto& item) { add(item, path); }, value.data);
  }

 private:
  std::uint16_t team(const std::string& name, const std::string& path) const {
    if (name.empty()) return 0xFFFF;
    Compiler c{const_cast<Program&>(p_), path, {}, {}};
    return c.collective(name, ".collective");
  }

  void add(const InventoryOf& item, const std::string& path) {
    ValueOp op{ValueOp::inventory, place_in(p_.config.resources, item.resource, "resource", path + ".resource")};
    op.whose = item.of == "actor" ? std::uint8_t{0} : item.of == "target" ? std::uint8_t{1} : kNamed;
    if (op.whose != kNamed && !item.collective.empty())
      fail_at(path + ".collective", "expected nothing unless `of` is 'collective', got `" + item.collective + "`");
    op.team = team(item.collective, path);
    out_.push_back(op);
  }

  void add(const CountOf& item, const std::string& path) {
    Compiler c{const_cast<Program&>(p_), path, {}, {}};
    ValueOp op{ValueOp::count, c.tag(item.tag, ".tag")};
    op.team = team(item.collective, path);
    if (!item.resource.empty()) op.resource = c.resource(item.resource, ".resource");
    out_.push_back(op);
  }

  void add(const IndexOf& item, const std::string& path) {
    if (item.every < 1) fail_at(path + ".every", "expected at least 1, got " + std::to_string(item.every));
    out_.push_back({ValueOp::index, static_cast<std::uint16_t>(item.every), static_cast<double>(item.place)});
  }

  void add(const Constant& item, const std::string&) { out_.push_back({ValueOp::constant, 0, item.value}); }

  void add(const StatOf& item, const std::string& path) {
    if (item.of == "game") {
      const std::size_t at = stat_place({}, p_.vocabulary->game_stats, item.name, path + ".name");
      out_.push_back({ValueOp::game_stat, static_cast<std::uint16_t>(at)});
    } else if (item.of == "collective") {
      const Vocabulary& v = *p_.vocabulary;
      const std::size_t at = stat_place(v.every_teams, v.team_stats, item.name, path + ".name");
      ValueOp op{ValueOp::team_stat, static_cast<std::uint16_t>(at)};
      op.team = team(item.collective, path);
      out_.push_back(op);
    } else {
      agent_stat(item.name, path + ".name");
    }
  }

  // The order is that of Vocabulary::stats().
  void agent_stat(const std::string& name, const std::string& path) {
    const auto& known = p_.vocabulary->every_agents;
    const std::size_t at = stat_place(known, p_.vocabulary->agent_stats, name, path);
    if (at == 0) return out_.push_back({ValueOp::reward_sum});
    if (at <= p_.actions.num_counters)
      return out_.push_back({ValueOp::action_counter, static_cast<std::uint16_t>(at - 1)});
    if (at <= p_.actions.num_counters + kAgentCounters)
      return out_.push_back({ValueOp::agent_counter, static_cast<std::uint16_t>(at - 1 - p_.actions.num_counters)});
    if (at >= known.size()) return out_.push_back({ValueOp::agent_stat, static_cast<std::uint16_t>(at - known.size())});
    const auto& resources = p_.config.resources;
    const std::size_t dot = name.rfind('.');
    const auto found = std::find(resources.begin(), resources.end(), name.substr(0, dot));
    const auto index = static_cast<std::size_t>(found - resources.begin());
    const auto resource_counter =
        std::find(kResourceCounterNames.begin(), kResourceCounterNames.end(), name.substr(dot + 1));
    if (found == resources.end()) out_.push_back({ValueOp::constant, 0, 0.0});
    else if (resource_counter == kResourceCounterNames.end())
      out_.push_back({ValueOp::inventory, static_cast<std::uint16_t>(index)});
    else
      out_.push_back(
          {ValueOp::resource_counter,
           static_cast<std::uint16_t>(index * kResourceCounters +
                                      static_cast<std::size_t>(resource_counter - kResourceCounterNames.begin()))});
  }

  template <class T>
  void add(const T& item, const std::string& path) {
    for (std::size_t i = 0; i < item.values.size(); ++i)
      compile(item.values[i], path + ".values[" + std::to_string(i) + "]");
    constexpr ValueOp::Code code = std::is_same_v<T, Sum>     ? ValueOp::sum
                                   : std::is_same_v<T, Ratio> ? ValueOp::ratio
                                   : std::is_same_v<T, Least> ? ValueOp::least
                                   : std::is_same_v<T, Most>  ? ValueOp::most
                                                              : ValueOp::log_one_plus;
    out_.push_back({code, static_cast<std::uint16_t>(item.values.size())});
  }

  const Program& p_;
  CompiledValue& out_;
};

}  // namespace

void compile_value(const Program& p, const GameValue& value, const std::string& path, CompiledValue& out) {
  check_value(value, p.config, path);
  ValueCompiler(p, out).compile(value, path);
}

// Nothing of an agent's own but whom it belongs to.
bool same_in_team(const CompiledValue& value) {
  return std::all_of(value.begin(), value.end(), [](const ValueOp& op) {
    return op.code == ValueOp::inventory ? op.whose == kNamed
                                         : op.code == ValueOp::team_stat || op.code == ValueOp::game_stat ||
                                               op.code == ValueOp::count || op.code >= ValueOp::constant;
  });
}

// ---- evaluation

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

// In a rule that is only tried, what its user has paid is lost already.
double lost_in_trial(const ValueOp& op, const ValueContext& viewer) {
  const bool asks = op.arg % kResourceCounters == static_cast<std::size_t>(ResourceCounter::lost);
  if (!asks || viewer.rule == nullptr || !viewer.rule->dry()) return 0;
  return viewer.rule->trials.paid(viewer.w, viewer.actor, op.arg / kResourceCounters);
}

// One of an agent's own statistics; what is no agent has none.
double agents_own(const ValueOp& op, const ValueContext& viewer) {
  const Program& p = viewer.p;
  const World& w = viewer.w;
  const std::int32_t actor = viewer.actor;
  if (actor < 0 || actor >= static_cast<std::int32_t>(p.num_agents)) return 0;
  const auto agent = static_cast<std::uint32_t>(actor);
  switch (op.code) {
    case ValueOp::action_counter:
      return w.action_counter(agent, op.arg);
    case ValueOp::agent_counter:
      return static_cast<double>(w.agent_counters[std::size_t{op.arg} * p.num_agents + agent]);
    case ValueOp::resource_counter:
      return static_cast<double>(
                 w.resource_counters[std::size_t{agent} * p.num_resources * kResourceCounters + op.arg]) +
             lost_in_trial(op, viewer);
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
      return agents_own(op, viewer);
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
      return operands[1] != 0 ? std::clamp(operands[0] / operands[1], -kMostRatio, kMostRatio) : 0;
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
