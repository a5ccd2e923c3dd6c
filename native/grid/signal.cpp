// What a signal (core/signal.hpp) can read of a grid world: any statistic by the name that episode records give it, and
// any game value.
#include <algorithm>

#include "grid/compile.hpp"
#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// By the names of Vocabulary::stats(), which are all different.
GameValue statistic(const Program& p, const std::string& name, const std::string& path) {
  const Vocabulary& v = *p.vocabulary;
  if (has(v.every_agents, name) || has(v.agent_stats, name)) return {StatOf{name, "agent", ""}};
  if (name.starts_with("game/") && has(v.game_stats, name.substr(5))) return {StatOf{name.substr(5), "game", ""}};
  for (std::size_t team = 0; team < v.teams.size(); ++team) {
    if (!name.starts_with(v.teams[team] + "/")) continue;
    const std::string own = name.substr(v.teams[team].size() + 1);
    if (!has(v.every_teams, own) && !has(v.team_stats, own)) continue;
    if (p.collectives.by_batch_id[team] < 0) return {Constant{}};  // a collective of another game of the batch
    return {StatOf{own, "collective", v.teams[team]}};
  }
  std::vector<std::string> names;
  for (const auto& stat : v.stats()) names.push_back(stat.name);
  fail_at(path, "unknown statistic `" + name + "`" + nearest(name, names));
}

// Terrain has no objects that could be counted.
struct RefuseTerrain {
  const Program& p;
  const std::string& path;
  template <class T>
  void operator()(const T& item) const {
    if constexpr (std::is_same_v<T, CountOf>)
      for (const Type& type : p.types)
        if (const auto tag = std::find(p.vocabulary->tags.begin(), p.vocabulary->tags.end(), item.tag);
            type.terrain && tag != p.vocabulary->tags.end() &&
            type.tag_set[static_cast<std::size_t>(tag - p.vocabulary->tags.begin())])
          fail_at(path, "expected a tag of objects with their own state, got `" + item.tag + "`, which " + type.name +
                            " has: terrain is not counted");
  }
};

}  // namespace

void Grid::add_signal(const Program& p, const Value& value, const std::string& path, SignalValues& values) {
  const auto* name = std::get_if<std::string>(&value.data);
  const GameValue read = name ? statistic(p, *name, path) : decode<GameValue>(value, path);
  walk(read, RefuseTerrain{p, path});
  CompiledValue& out = values.list.emplace_back();
  compile_value(p, read, path, out);
  const bool amount = out.front().code == ValueOp::inventory && out.front().whose == 0;
  const bool counted = out.front().code == ValueOp::resource_counter || out.front().code == ValueOp::constant;
  values.in_inventory = values.in_inventory && out.size() == 1 && (amount || counted);
  values.work += p.num_agents * work_of(p, out);
  if (values.work > kMostWork)
    fail_at(path, "expected a signal of at most " + millions(kMostWork) + " steps in a tick, got " +
                      millions(values.work) + "; count fewer objects, or read fewer values");
}

void Grid::read_signal(const T& tick, std::uint32_t agent, const SignalValues& values, double* out) {
  for (const CompiledValue& value : values.list)
    *out++ = evaluate(value, {tick.program, tick.view, static_cast<std::int32_t>(agent)});
}

}  // namespace gridmill::grid
