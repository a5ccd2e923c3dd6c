// Effects: what a rule does. Each is declared by fields(), compiles itself to one Op, and says what it does in `apply`:
// true if it could deliver, and where `s.dry()` nothing may happen. What it refers to and gives it says too (see
// references.hpp). Those that share functions are in effects.cpp; there `compile` names the function itself.
#pragma once

#include "grid/directions.hpp"
#include "grid/rules/conditions.hpp"

namespace gridmill::grid {

struct Give {
  static constexpr std::string_view kind = "give";
  std::string who = "actor";
  OrderedDict<std::int64_t> amounts;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("who", &Self::who, one_of(kHolders), "who receives them"),
        field("amounts", &Self::amounts, between(0, 65'535), "resource -> maximum units; fewer if they do not fit")};
  }
  Op compile(Compiler&) const;
  bool gives(const std::string& resource, const std::string& to) const { return who == to && has(amounts, resource); }
};
struct Take {
  static constexpr std::string_view kind = "take";
  std::string who = "actor";
  OrderedDict<std::int64_t> amounts;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("who", &Self::who, one_of(kHolders), "who loses them"),
        field("amounts", &Self::amounts, between(0, 65'535), "resource -> maximum units; fewer if there are fewer")};
  }
  Op compile(Compiler&) const;
};
struct Transfer {
  static constexpr std::string_view kind = "transfer";
  std::string source = "target", to = "actor";
  OrderedDict<std::int64_t> amounts;
  bool remove_empty = false;
  template <class Self>
  static auto fields() {
    return std::tuple{field("source", &Self::source, one_of(kHolders), "who gives"),
                      field("to", &Self::to, one_of(kHolders), "who receives"),
                      field("amounts", &Self::amounts, between(0, 65'535), "resource -> maximum units"),
                      field("remove_empty", &Self::remove_empty, "remove the source when it is empty")};
  }
  Op compile(Compiler&) const;
  bool gives(const std::string& resource, const std::string& who) const { return to == who && has(amounts, resource); }
};
struct Clear {
  static constexpr std::string_view kind = "clear";
  std::string who = "actor";
  std::vector<std::string> resources;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kHolders), "who loses them"),
                      field("resources", &Self::resources, "the resources to remove; empty: all of them")};
  }
  Op compile(Compiler&) const;
};
struct Add {
  static constexpr std::string_view kind = "add";
  std::string who = "actor", resource;
  GameValue value;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kHolders), "who receives it"),
                      field("resource", &Self::resource, "the resource"),
                      field("value", &Self::value, "the amount, rounded; a negative amount is taken")};
  }
  Op compile(Compiler&) const;
  bool gives(const std::string& what, const std::string& to) const { return who == to && resource == what; }
};
struct SetTag {
  static constexpr std::string_view kind = "set_tag";
  std::string who = "target", tag;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who gets the tag"),
                      field("tag", &Self::tag, "the tag")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.changeable.insert(tag); }
};
struct ClearTag {
  static constexpr std::string_view kind = "clear_tag";
  std::string who = "target", tag;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who loses the tag"),
                      field("tag", &Self::tag, "the tag")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.changeable.insert(tag); }
};
struct Align {
  static constexpr std::string_view kind = "align";
  std::string who = "target", to;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who joins"),
                      field("to", &Self::to, "the collective; empty: the actor's")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.aligns = true; }
};
struct Unalign {
  static constexpr std::string_view kind = "unalign";
  std::string who = "target";
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who leaves")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.aligns = true; }
};
struct ChangeVibe {
  static constexpr std::string_view kind = "change_vibe";
  std::string who = "target", vibe;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "whose vibe"),
                      field("vibe", &Self::vibe, "the new vibe")};
  }
  Op compile(Compiler& c) const { return {.who = holder(who), .sure = true, .id = c.vibe(vibe, ".vibe")}; }
  static bool apply(const Op& op, auto& s) {
    const std::int32_t who = s.object(op.who);
    if (who < 0) return false;
    if (s.dry() || s.w.vibe[who] == op.id) return true;
    s.w.set_vibe(static_cast<std::uint32_t>(who), static_cast<std::uint8_t>(op.id));
    return true;
  }
};
struct Freeze {
  static constexpr std::string_view kind = "freeze";
  std::string who = "target";
  std::int64_t ticks = 10;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "the agent"),
                      field("ticks", &Self::ticks, between(1, 65'535), "duration in ticks")};
  }
  Op compile(Compiler&) const { return {.who = holder(who), .number = ticks}; }
  void refer(References& found) const { found.freezes = true; }
  static bool apply(const Op& op, auto& s) {
    const std::int32_t who = s.object(op.who);
    if (!s.is_agent(who)) return false;
    if (s.dry()) return true;
    s.w.frozen[who] = static_cast<std::uint16_t>(op.number);
    s.w.mark_dirty(static_cast<std::uint32_t>(who));
    return true;
  }
};
struct Move {
  static constexpr std::string_view kind = "move";
  std::string who = "target", direction;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who moves"),
                      field("direction", &Self::direction, one_of(kCompass), "the direction")};
  }
  Op compile(Compiler&) const;
};
struct Push {
  static constexpr std::string_view kind = "push";
  std::int64_t distance = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("distance", &Self::distance, between(1, 4096), "maximum distance in cells, away from the actor")};
  }
  Op compile(Compiler&) const;
};
struct SwapPlaces {
  static constexpr std::string_view kind = "swap_places";
  template <class Self>
  static auto fields() {
    return std::tuple{};
  }
  Op compile(Compiler&) const { return {}; }
  static bool apply(const Op&, auto& s) {
    const std::int32_t one = s.object(0), other = s.object(1);
    if (one < 0 || other < 0 || one == other) return false;
    if (!s.dry()) swap_places(s.w, static_cast<std::uint32_t>(one), s.w.row[other], s.w.column[other]);
    return true;
  }
};
struct Relocate {
  static constexpr std::string_view kind = "relocate";
  std::string who = "target", to = "random";
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("who", &Self::who, one_of(kSomeone), "who is moved"),
        field("to", &Self::to, one_of({"random", "start"}), "a random cell, or the cell where it started")};
  }
  Op compile(Compiler&) const;
};
struct SpawnObject {
  static constexpr std::string_view kind = "spawn";
  std::string object, near = "target";
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("object", &Self::object, "the type of the new object"),
        field("near", &Self::near, one_of(kSomeone), "where: in its cell if that is free, else beside it")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.spawned.insert(object); }
};
struct Remove {
  static constexpr std::string_view kind = "remove";
  std::string who = "target";
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "the object to remove")};
  }
  Op compile(Compiler&) const;
};
struct Strike {
  static constexpr std::string_view kind = "strike";
  template <class Self>
  static auto fields() {
    return std::tuple{};
  }
  Op compile(Compiler&) const;
};
struct AddStat {
  static constexpr std::string_view kind = "add_stat";
  std::string of = "actor", name;
  double amount = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("of", &Self::of, one_of({"actor", "target", "collective", "game"}), "whose statistic"),
                      field("name", &Self::name, "name of the statistic"),
                      field("amount", &Self::amount, between(-kMostNumber, kMostNumber), "the amount to add")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const {
    (of == "game" ? found.game_stats : of == "collective" ? found.team_stats : found.agent_stats).insert(name);
  }
};

struct Effect {
  OneOf<Give, Take, Transfer, Clear, Add, SetTag, ClearTag, Align, Unalign, ChangeVibe, Freeze, Move, Push, SwapPlaces,
        Relocate, SpawnObject, Remove, Strike, AddStat>
      data;
  Op compile(Compiler&) const;
  static void decode(Effect& out, const Value& value, const std::string& path) { decode_one_of(out.data, value, path); }
};

// ---- where rules stand

struct Rule {
  std::string name;
  std::vector<Condition> when;
  std::vector<Effect> then;
  template <class Self>
  static auto fields() {
    return std::tuple{field("name", &Self::name, "a name for readers"),
                      field("when", &Self::when, "conditions that must all hold"),
                      field("then", &Self::then, "effects, in order")};
  }
};

struct Area {
  std::int64_t radius = 1;
  std::string metric = "chebyshev", affects = "all";
  std::vector<Condition> when;
  OrderedDict<std::int64_t> changes, enter, exit;
  std::vector<Rule> rules, on_enter, on_exit;
  bool territory = false;
  template <class Self>
  static auto fields() {
    const auto change = between(-65'535, 65'535);
    return std::tuple{
        field("radius", &Self::radius, between(0, 4096), "radius in cells"),
        field("metric", &Self::metric, one_of(kMetrics), "how distances are measured"),
        field("affects", &Self::affects, one_of({"friend", "enemy", "all", "self"}), "which agents it affects"),
        field("when", &Self::when, "conditions that must all hold"),
        field("changes", &Self::changes, change, "resource -> change per tick inside"),
        field("enter", &Self::enter, change, "resource -> change on entering"),
        field("exit", &Self::exit, change, "resource -> change on leaving"),
        field("rules", &Self::rules, "rules to run in every tick inside"),
        field("on_enter", &Self::on_enter, "rules to run on entering"),
        field("on_exit", &Self::on_exit, "rules to run on leaving"),
        field("territory", &Self::territory, "acts only on cells that its collective holds")};
  }
  bool gives(const std::string& resource, const std::string&) const {
    return has(changes, resource) || has(enter, resource) || has(exit, resource);
  }
};

struct Event {
  std::vector<std::int64_t> at;
  std::int64_t every = 0, start = 0, until = 1'000'000'000;
  std::string targets;
  std::vector<Condition> when;
  std::vector<Effect> then;
  std::int64_t max_targets = 0;
  std::string fallback;
  std::int64_t priority = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("at", &Self::at, between(0, 1e9), "ticks at which it happens"),
        field("every", &Self::every, between(0, 1e9), "period of further ticks at which it happens; 0: none"),
        field("start", &Self::start, between(0, 1e9), "the first of the periodic ticks"),
        field("until", &Self::until, between(0, 1e9), "no periodic tick after this one"),
        field("targets", &Self::targets, "tag of its targets; empty: no target"),
        field("when", &Self::when, "conditions that a target must meet"),
        field("then", &Self::then, "effects, in order"),
        field("max_targets", &Self::max_targets, between(0, 65'535),
              "maximum number of targets, chosen at random; 0: no limit"),
        field("fallback", &Self::fallback, "event that runs instead if no target was affected"),
        field("priority", &Self::priority, between(-1e6, 1e6), "within a tick, events with higher priority run first")};
  }
  void refer(References& found) const { found.looked_for.insert(targets); }
};

}  // namespace gridmill::grid
