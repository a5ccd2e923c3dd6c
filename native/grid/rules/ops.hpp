// Op: one condition or one effect, compiled: a function and plain numbers. A rule is two ranges of them in the
// program's flat lists, so running one follows no pointers and looks up no names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.hpp"

namespace gridmill::grid {

struct RuleContext;  // who takes part in a rule: rules.hpp
struct World;
struct Program;
struct Condition;
struct Effect;
struct Rule;
struct GameValue;

inline constexpr std::string_view kSomeone[] = {"actor", "target"};
inline constexpr std::string_view kHolders[] = {"actor", "target", "actor_collective", "target_collective"};
inline constexpr std::string_view kMetrics[] = {"chebyshev", "euclid"};

struct Range {
  std::uint32_t first = 0, last = 0;
  bool empty() const { return first == last; }
};

struct Op {
  bool (*run)(const Op&, RuleContext&) = nullptr;  // a condition: does it hold? an effect: could it deliver?
  // An effect that concerns nobody but the agent it happens to: the same without a context.
  void (*alone)(const Op&, const Program&, World&, std::uint32_t who) = nullptr;
  std::uint8_t who = 0, to = 0;  // places in kHolders
  bool sure = false;             // an effect that always delivers to who is there
  bool flag = false;             // euclid, remove_empty, ...
  bool whole = false;            // an effect that changes nothing if it cannot deliver
  std::uint16_t id = 0;          // resource, tag, vibe, collective, type, direction, statistic, value
  std::int64_t number = 0;
  double real = 0;
  Range range{};  // of amounts or of conditions
};

struct Amount {
  std::uint16_t resource;
  std::int32_t by;
};

struct CompiledRule {
  Range conditions, effects;
  bool sure = false;         // nothing to try: every effect delivers if its actor and target are there
  std::uint8_t parties = 0;  // bits: which of them it needs
  bool single = false;       // one effect that delivers or changes nothing: it needs no trial
  bool alone = false;  // no conditions, and all effects can happen without a context to an actor that is its own target
};

// Turns declared names into ids, for one place of the game's tree; refuses with that place's path.
struct Compiler {
  Program& p;
  std::string path;
  std::vector<std::size_t> actors, targets;  // types that may be the actor and the target here

  Compiler inside(const std::string& name) const { return {p, path + name, actors, targets}; }
  std::uint16_t resource(const std::string& name, const char* where) const;
  std::uint16_t tag(const std::string& name, const char* where) const;
  std::uint16_t vibe(const std::string& name, const char* where) const;
  std::uint16_t collective(const std::string& name, const char* where) const;
  std::uint16_t type(const std::string& name, const char* where) const;
  std::uint16_t value(const GameValue& value, const char* where);
  Range amounts(const OrderedDict<std::int64_t>& amounts, const char* where);
  Range resources(const std::vector<std::string>& names, const char* where);  // empty: all
  Range conditions(const std::vector<Condition>& list, const char* where);
  Range effects(const std::vector<Effect>& list, const char* where);
  CompiledRule rule(const std::vector<Condition>& when, const std::vector<Effect>& then);
  Range rules(const std::vector<Rule>& list, const char* where);
  // Somebody may hold these from now on: what it shows must have room for them.
  void receives(std::uint8_t who, Range amounts);
};

std::uint8_t holder(const std::string& name);  // its place in kHolders

}  // namespace gridmill::grid
