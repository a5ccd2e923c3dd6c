// What a game's rules, values and events speak of, found in one walk through its tree: which tags change or are looked
// for, which statistics are added to, what is spawned. The vocabulary and the program are made from it. A struct says
// what it refers to with `refer`, and what it may put into somebody with `gives`.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/value.hpp"

namespace gridmill::grid {

struct Area;
struct Event;
struct GameConfig;
struct ObjectType;
struct Rule;

struct References {
  std::set<std::string> looked_for;                           // tags by which objects are counted, found or chosen
  std::set<std::string> changeable;                           // tags that rules set or clear
  std::set<std::string> agent_stats, team_stats, game_stats;  // that rules add to
  std::set<std::string> spawned;                              // object types
  bool aligns = false;                                        // some rule changes who belongs to whom
  bool freezes = false;                                       // the laser or a rule does
};
References references_of(const GameConfig& game);

// Whether amounts have anything of a resource.
inline bool has(const OrderedDict<std::int64_t>& amounts, const std::string& resource) {
  return std::any_of(amounts.begin(), amounts.end(), [&](const auto& a) { return a.first == resource && a.second; });
}

// No state of its own: all pieces share one code. What is looked for by tag has one.
bool is_terrain(const GameConfig& game, const References& references, const std::string& name, const ObjectType& type);

// True where rules in some part of a game may put a resource into what is `who` there.
template <class Part>
bool may_give(const Part& part, const std::string& resource, const std::string& who);
extern template bool may_give(const GameConfig&, const std::string&, const std::string&);
extern template bool may_give(const OrderedDict<Event>&, const std::string&, const std::string&);
extern template bool may_give(const OrderedDict<std::vector<Rule>>&, const std::string&, const std::string&);
extern template bool may_give(const std::vector<Rule>&, const std::string&, const std::string&);
extern template bool may_give(const std::vector<Area>&, const std::string&, const std::string&);

}  // namespace gridmill::grid
