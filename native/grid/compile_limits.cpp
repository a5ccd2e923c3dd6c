// Limits of one kind of holder: groups of resources, what their limits hang on, and in which order the groups are
// looked at when something is lost.
#include <algorithm>

#include "grid/compile.hpp"

namespace gridmill::grid {
namespace {

// The resources of each group in order of the game's resources; a limit of nothing is none.
std::vector<LimitGroup> declared_groups(const GameConfig& game, const std::vector<Limit>& limits) {
  std::vector<LimitGroup> groups;
  for (const Limit& limit : limits) {
    LimitGroup group{{}, static_cast<std::uint32_t>(limit.base), static_cast<std::uint32_t>(limit.max), {}};
    for (std::size_t r = 0; r < game.resources.size(); ++r)
      if (std::find(limit.resources.begin(), limit.resources.end(), game.resources[r]) != limit.resources.end())
        group.resources.push_back(static_cast<std::uint16_t>(r));
    for (const auto& [r, n] : costs(game, limit.bonus)) group.bonus.emplace_back(r, n);
    if (!group.resources.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

// How often what one group loses can make another lose something, at most; 0 if that does not hang on it. Each time it
// is a unit at least of what the limit allows. If each unit is worth two, the losses grow twofold from one time to the
// next, but for what a resource that is no bonus takes up, each once.
double most_losses(const LimitGroup& source, const LimitGroup& fed) {
  std::uint32_t least = 0;
  for (const auto& [resource, each] : fed.bonus)
    if (std::find(source.resources.begin(), source.resources.end(), resource) != source.resources.end())
      least = least == 0 ? each : std::min(least, each);
  const double units = 1.0 + source.max - std::min(source.base, source.max);
  constexpr double kTwofold = 17;  // from 1 to 65 536
  const double times = kTwofold * (1.0 + static_cast<double>(source.resources.size() + fed.resources.size()));
  return least == 0 ? 0 : least == 1 ? units : std::min(units, times);
}

// Groups after those that their limits hang on. Where these hang on each other in a circle, first the one that is fed
// by the fewest units of groups behind it: `rounds` says how often all have to be looked at for that, at most.
std::vector<LimitGroup> in_order(std::vector<LimitGroup> groups, double& rounds) {
  const std::size_t count = groups.size();
  std::vector<std::vector<std::size_t>> fed_by(count);  // each group: those that hang on it
  std::vector<double> behind(count, 0);                 // what groups that have no place yet feed it with
  for (std::size_t source = 0; source < count; ++source)
    for (std::size_t g = 0; g < count; ++g)
      if (const double losses = most_losses(groups[source], groups[g]); losses > 0) {
        fed_by[source].push_back(g);
        behind[g] += losses;
      }
  std::vector<LimitGroup> ordered;
  std::vector<bool> placed(count, false);
  rounds = 1;
  while (ordered.size() < count) {
    std::size_t next = count;
    for (std::size_t g = 0; g < count; ++g)
      if (!placed[g] && (next == count || behind[g] < behind[next])) next = g;
    rounds += behind[next];
    placed[next] = true;
    for (const std::size_t g : fed_by[next])
      if (!placed[g]) behind[g] -= most_losses(groups[next], groups[g]);
    ordered.push_back(std::move(groups[next]));
  }
  return ordered;
}

}  // namespace

LimitSet compile_limits(const GameConfig& game, const std::vector<Limit>& limits) {
  const std::size_t num_resources = game.resources.size();
  LimitSet set;
  set.groups = in_order(declared_groups(game, limits), set.rounds);
  set.bonus_for.resize(num_resources);
  set.of.resize(num_resources);
  const auto end_of = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  for (std::size_t g = 0; g < set.groups.size(); ++g) {
    const LimitGroup& group = set.groups[g];
    const std::uint32_t first_bonus = end_of(set.bonuses);
    set.bonuses.insert(set.bonuses.end(), group.bonus.begin(), group.bonus.end());
    for (const auto& bonus : group.bonus) set.bonus_for[bonus.first][g >> 6] |= std::uint64_t{1} << (g & 63);
    for (const auto r : group.resources) {
      const std::uint32_t first_other = end_of(set.others);
      std::copy_if(group.resources.begin(), group.resources.end(), std::back_inserter(set.others),
                   [r](auto other) { return other != r; });
      const bool only = group.resources.size() == 1;  // others leave it no room of its own
      set.of[r] = {.limited = true,
                   .least = only ? static_cast<std::int32_t>(std::min({group.base, group.max, 65'535u})) : 0,
                   .base = group.base,
                   .max = group.max,
                   .bonuses = {first_bonus, end_of(set.bonuses)},
                   .others = {first_other, end_of(set.others)},
                   .dependents = {}};
    }
  }
  for (std::size_t r = 0; r < num_resources; ++r) {
    const std::uint32_t first = end_of(set.dependents);
    for (std::size_t g = 0; g < set.groups.size(); ++g)
      if (set.bonus_for[r][g >> 6] >> (g & 63) & 1)
        set.dependents.insert(set.dependents.end(), set.groups[g].resources.begin(), set.groups[g].resources.end());
    set.of[r].dependents = {first, end_of(set.dependents)};
  }
  return set;
}

}  // namespace gridmill::grid
