// See references.hpp. A walk is compiled for every kind of struct in a game, so all walks are here and there are two.
#include "grid/rules/references.hpp"

#include <algorithm>

#include "grid/config.hpp"

namespace gridmill::grid {
namespace {

struct Collect {
  References& found;
  template <class T>
  void operator()(const T& item) const {
    if constexpr (requires { item.refer(found); }) item.refer(found);
  }
};

struct Giving {
  const std::string &resource, &who;
  bool& found;
  template <class T>
  void operator()(const T& item) const {
    if constexpr (requires { item.gives(resource, who); }) found = found || item.gives(resource, who);
  }
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
