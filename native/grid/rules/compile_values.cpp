// Game values as postfix programs, and the rewards made of them.
#include <algorithm>

#include "grid/compile.hpp"

namespace gridmill::grid {
namespace {

std::uint16_t place_in(const std::vector<std::string>& known, const std::string& name, const char* what,
                       const std::string& path) {
  const auto at = std::find(known.begin(), known.end(), name);
  if (at == known.end()) fail_at(path, "unknown " + std::string(what) + " `" + name + "`" + nearest(name, known));
  return static_cast<std::uint16_t>(at - known.begin());
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
      out_.push_back({ValueOp::game_stat, place_in(p_.vocabulary->game_stats, item.name, "stat", path + ".name")});
    } else if (item.of == "collective") {
      ValueOp op{ValueOp::team_stat, place_in(p_.vocabulary->stats_of_team(), item.name, "stat", path + ".name")};
      op.team = team(item.collective, path);
      out_.push_back(op);
    } else {
      agent_stat(item.name, path + ".name");
    }
  }

  // The order is that of Vocabulary::stats().
  void agent_stat(const std::string& name, const std::string& path) {
    std::vector<std::string> known;
    const auto& extra = p_.vocabulary->agent_stats;
    const std::size_t own = 1 + p_.actions.num_counters + kAgentCounters +
                            p_.vocabulary->resources.size() * (kResourceCounters + 1) + extra.size();
    for (const auto& stat : p_.vocabulary->stats())
      if (known.size() < own) known.push_back(stat.name);
    const std::size_t at = place_in(known, name, "stat", path);
    if (at == 0) return out_.push_back({ValueOp::reward_sum});
    if (at <= p_.actions.num_counters)
      return out_.push_back({ValueOp::action_counter, static_cast<std::uint16_t>(at - 1)});
    if (at <= p_.actions.num_counters + kAgentCounters)
      return out_.push_back({ValueOp::agent_counter, static_cast<std::uint16_t>(at - 1 - p_.actions.num_counters)});
    if (at >= known.size() - extra.size())
      return out_.push_back({ValueOp::agent_stat, static_cast<std::uint16_t>(at - (known.size() - extra.size()))});
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
