// Effects: what a rule does. Each is declared by fields() and knows how to compile itself to one Op; effects.cpp holds
// the deeds. A new one costs a struct here, its two functions there, and its model in rules.py.
#pragma once

#include "grid/conditions.hpp"

namespace gridmill::grid {

struct Give {
  static constexpr std::string_view kind = "give";
  std::string who = "actor";
  Named<std::int64_t> amounts;
  static auto fields() {
    return std::tuple{field("who", &Give::who, one_of(kHolders), "who gets them"),
                      field("amounts", &Give::amounts, between(0, 65'535), "resource -> units, as far as they fit")};
  }
  Op compile(Compiler&) const;
};
struct Take {
  static constexpr std::string_view kind = "take";
  std::string who = "actor";
  Named<std::int64_t> amounts;
  static auto fields() {
    return std::tuple{field("who", &Take::who, one_of(kHolders), "who loses them"),
                      field("amounts", &Take::amounts, between(0, 65'535), "resource -> units, or what there is")};
  }
  Op compile(Compiler&) const;
};
struct Transfer {
  static constexpr std::string_view kind = "transfer";
  std::string source = "target", to = "actor";
  Named<std::int64_t> amounts;
  bool remove_empty = false;
  static auto fields() {
    return std::tuple{field("source", &Transfer::source, one_of(kHolders), "who gives"),
                      field("to", &Transfer::to, one_of(kHolders), "who gets"),
                      field("amounts", &Transfer::amounts, between(0, 65'535), "resource -> units at most"),
                      field("remove_empty", &Transfer::remove_empty, "the source goes when it holds nothing more")};
  }
  Op compile(Compiler&) const;
};
struct Clear {
  static constexpr std::string_view kind = "clear";
  std::string who = "actor";
  std::vector<std::string> resources;
  static auto fields() {
    return std::tuple{field("who", &Clear::who, one_of(kHolders), "who loses them"),
                      field("resources", &Clear::resources, "all of these; empty: everything")};
  }
  Op compile(Compiler&) const;
};
struct Add {
  static constexpr std::string_view kind = "add";
  std::string who = "actor", resource;
  GameValue value;
  static auto fields() {
    return std::tuple{field("who", &Add::who, one_of(kHolders), "who gets it"),
                      field("resource", &Add::resource, "of what"),
                      field("value", &Add::value, "how much, rounded; negative takes")};
  }
  Op compile(Compiler&) const;
};
struct SetTag {
  static constexpr std::string_view kind = "set_tag";
  std::string who = "target", tag;
  static auto fields() {
    return std::tuple{field("who", &SetTag::who, one_of(kSomeone), "who bears it"),
                      field("tag", &SetTag::tag, "the tag")};
  }
  Op compile(Compiler&) const;
};
struct ClearTag {
  static constexpr std::string_view kind = "clear_tag";
  std::string who = "target", tag;
  static auto fields() {
    return std::tuple{field("who", &ClearTag::who, one_of(kSomeone), "who no longer bears it"),
                      field("tag", &ClearTag::tag, "the tag")};
  }
  Op compile(Compiler&) const;
};
struct Align {
  static constexpr std::string_view kind = "align";
  std::string who = "target", to;
  static auto fields() {
    return std::tuple{field("who", &Align::who, one_of(kSomeone), "who joins"),
                      field("to", &Align::to, "the collective; empty: the actor's")};
  }
  Op compile(Compiler&) const;
};
struct Unalign {
  static constexpr std::string_view kind = "unalign";
  std::string who = "target";
  static auto fields() { return std::tuple{field("who", &Unalign::who, one_of(kSomeone), "who leaves")}; }
  Op compile(Compiler&) const;
};
struct ChangeVibe {
  static constexpr std::string_view kind = "change_vibe";
  std::string who = "target", vibe;
  static auto fields() {
    return std::tuple{field("who", &ChangeVibe::who, one_of(kSomeone), "whose vibe"),
                      field("vibe", &ChangeVibe::vibe, "the new one")};
  }
  Op compile(Compiler&) const;
};
struct Freeze {
  static constexpr std::string_view kind = "freeze";
  std::string who = "target";
  std::int64_t ticks = 10;
  static auto fields() {
    return std::tuple{field("who", &Freeze::who, one_of(kSomeone), "which agent"),
                      field("ticks", &Freeze::ticks, between(1, 65'535), "for how long")};
  }
  Op compile(Compiler&) const;
};
struct Move {
  static constexpr std::string_view kind = "move";
  std::string who = "target", direction;
  static auto fields() {
    return std::tuple{field("who", &Move::who, one_of(kSomeone), "who moves"),
                      field("direction", &Move::direction, one_of({"north", "south", "west", "east"}), "where to")};
  }
  Op compile(Compiler&) const;
};
struct Push {
  static constexpr std::string_view kind = "push";
  std::int64_t distance = 1;
  static auto fields() {
    return std::tuple{field("distance", &Push::distance, between(1, 4096), "cells at most, away from the actor")};
  }
  Op compile(Compiler&) const;
};
struct SwapPlaces {
  static constexpr std::string_view kind = "swap_places";
  static auto fields() { return std::tuple{}; }
  Op compile(Compiler&) const;
};
struct Relocate {
  static constexpr std::string_view kind = "relocate";
  std::string who = "target", to = "random";
  static auto fields() {
    return std::tuple{field("who", &Relocate::who, one_of(kSomeone), "who is moved"),
                      field("to", &Relocate::to, one_of({"random", "start"}), "a random cell, or where it started")};
  }
  Op compile(Compiler&) const;
};
struct SpawnObject {
  static constexpr std::string_view kind = "spawn";
  std::string object, near = "target";
  static auto fields() {
    return std::tuple{field("object", &SpawnObject::object, "the type of the new object"),
                      field("near", &SpawnObject::near, one_of(kSomeone), "in its cell if that is free, or beside it")};
  }
  Op compile(Compiler&) const;
};
struct Remove {
  static constexpr std::string_view kind = "remove";
  std::string who = "target";
  static auto fields() { return std::tuple{field("who", &Remove::who, one_of(kSomeone), "which object goes")}; }
  Op compile(Compiler&) const;
};
struct Strike {
  static constexpr std::string_view kind = "strike";
  static auto fields() { return std::tuple{}; }
  Op compile(Compiler&) const;
};
struct AddStat {
  static constexpr std::string_view kind = "add_stat";
  std::string of = "actor", name;
  double amount = 1;
  static auto fields() {
    return std::tuple{field("of", &AddStat::of, one_of({"actor", "target", "collective", "game"}), "whose statistic"),
                      field("name", &AddStat::name, "its name"), field("amount", &AddStat::amount, "what is added")};
  }
  Op compile(Compiler&) const;
};

struct Effect {
  Choice<Give, Take, Transfer, Clear, Add, SetTag, ClearTag, Align, Unalign, ChangeVibe, Freeze, Move, Push, SwapPlaces,
         Relocate, SpawnObject, Remove, Strike, AddStat>
      data;
  static void decode(Effect& out, const Value& value, const std::string& path) { decode_choice(out.data, value, path); }
};

// ---- where rules stand

struct Rule {
  std::string name;
  std::vector<Condition> when;
  std::vector<Effect> then;
  static auto fields() {
    return std::tuple{field("name", &Rule::name, "for people"), field("when", &Rule::when, "all of these hold"),
                      field("then", &Rule::then, "what happens, in order")};
  }
};

struct Area {
  std::int64_t radius = 1;
  std::string metric = "chebyshev", affects = "all";
  std::vector<Condition> when;
  Named<std::int64_t> changes, enter, exit;
  std::vector<Rule> rules, on_enter, on_exit;
  bool territory = false;
  static auto fields() {
    const auto change = between(-65'535, 65'535);
    return std::tuple{field("radius", &Area::radius, between(0, 4096), "cells it reaches"),
                      field("metric", &Area::metric, one_of(kMetrics), "how it is measured"),
                      field("affects", &Area::affects, one_of({"friend", "enemy", "all", "self"}), "which agents"),
                      field("when", &Area::when, "all of these hold"),
                      field("changes", &Area::changes, change, "resource -> units per tick inside"),
                      field("enter", &Area::enter, change, "resource -> units on entering"),
                      field("exit", &Area::exit, change, "resource -> units on leaving"),
                      field("rules", &Area::rules, "run in every tick inside"),
                      field("on_enter", &Area::on_enter, "run on entering"),
                      field("on_exit", &Area::on_exit, "run on leaving"),
                      field("territory", &Area::territory, "acts only where its collective holds the ground")};
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
  static auto fields() {
    return std::tuple{field("at", &Event::at, between(0, 1e9), "ticks at which it happens"),
                      field("every", &Event::every, between(0, 1e9), "and every so many ticks; 0: not"),
                      field("start", &Event::start, between(0, 1e9), "the first of these"),
                      field("until", &Event::until, between(0, 1e9), "the last tick of these"),
                      field("targets", &Event::targets, "tag of what it happens to; empty: to nobody"),
                      field("when", &Event::when, "which of them"),
                      field("then", &Event::then, "what happens, in order"),
                      field("max_targets", &Event::max_targets, between(0, 65'535), "drawn by lot; 0: all"),
                      field("fallback", &Event::fallback, "event that runs instead if it happened to none"),
                      field("priority", &Event::priority, between(-1e6, 1e6), "higher first in one tick")};
  }
};

}  // namespace gridmill::grid
