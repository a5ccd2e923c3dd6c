// See references.hpp. A walk is compiled for every kind of struct in a game, so all walks are here and there are two.
#include "grid/rules/references.hpp"

#include <algorithm>

namespace gridmill::grid {
namespace {

struct Collect {
  References& found;
  template <class T>
  void operator()(const T&) const {}
  void operator()(const CountOf& item) const { found.looked_for.insert(item.tag); }
  void operator()(const Near& item) const { found.looked_for.insert(item.tag); }
  void operator()(const Event& item) const { found.looked_for.insert(item.targets); }
  void operator()(const SetTag& item) const { found.changeable.insert(item.tag); }
  void operator()(const ClearTag& item) const { found.changeable.insert(item.tag); }
  void operator()(const SpawnObject& item) const { found.spawned.insert(item.object); }
  void operator()(const Align&) const { found.aligns = true; }
  void operator()(const Unalign&) const { found.aligns = true; }
  void operator()(const Freeze&) const { found.freezes = true; }
  void operator()(const Attack&) const { found.freezes = true; }
  void operator()(const AddStat& item) const {
    (item.of == "game"         ? found.game_stats
     : item.of == "collective" ? found.team_stats
                               : found.agent_stats)
        .insert(item.name);
  }
};

struct Giving {
  const std::string &resource, &who;
  bool& found;
  bool in(const OrderedDict<std::int64_t>& amounts) const {
    return std::any_of(amounts.begin(), amounts.end(), [&](const auto& a) { return a.first == resource && a.second; });
  }
  template <class T>
  void operator()(const T&) const {}
  void operator()(const Give& item) const { found = found || (item.who == who && in(item.amounts)); }
  void operator()(const Transfer& item) const { found = found || (item.to == who && in(item.amounts)); }
  void operator()(const Add& item) const { found = found || (item.who == who && item.resource == resource); }
  void operator()(const Area& item) const { found = found || in(item.changes) || in(item.enter) || in(item.exit); }
  void operator()(const Recipe& item) const { found = found || in(item.outputs); }
};

}  // namespace

References references_of(const GameConfig& game) {
  References found;
  walk(game, Collect{found});
  return found;
}

bool is_terrain(const GameConfig& game, const References& references, const std::string& name, const ObjectType& type) {
  const bool plain = type.inventory.empty() && !type.converter && !type.assembler && type.collective.empty() &&
                     type.on_use.empty() && type.on_tick.empty() && type.areas.empty() &&
                     (type.vibe.empty() || type.vibe == game.vibes.front());
  if (!plain || references.looked_for.contains("type:" + (type.counts_as.empty() ? name : type.counts_as)))
    return false;
  return std::none_of(type.tags.begin(), type.tags.end(),
                      [&](const auto& tag) { return references.looked_for.contains(tag); });
}

template <class Part>
bool may_give(const Part& part, const std::string& resource, const std::string& who) {
  bool found = false;
  walk(part, Giving{resource, who, found});
  return found;
}
template bool may_give(const GameConfig&, const std::string&, const std::string&);
template bool may_give(const OrderedDict<Event>&, const std::string&, const std::string&);
template bool may_give(const OrderedDict<std::vector<Rule>>&, const std::string&, const std::string&);
template bool may_give(const std::vector<Rule>&, const std::string&, const std::string&);
template bool may_give(const std::vector<Area>&, const std::string&, const std::string&);

}  // namespace gridmill::grid
