// Conditions: what a rule asks. Each is declared by fields() and knows how to compile itself to one Op; conditions.cpp
// holds the questions themselves. A new one costs a struct here, its two functions there, and its model in rules.py.
#pragma once

#include <string>
#include <vector>

#include "grid/rules/ops.hpp"
#include "grid/rules/values.hpp"

namespace gridmill::grid {

struct Condition;

struct Holds {
  static constexpr std::string_view kind = "holds";
  std::string who = "actor";
  OrderedDict<std::int64_t> amounts;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kHolders), "who holds"),
                      field("amounts", &Self::amounts, between(0, 65'535), "resource -> at least")};
  }
  Op compile(Compiler&) const;
};
struct HasVibe {
  static constexpr std::string_view kind = "has_vibe";
  std::string who = "actor", vibe;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "whose vibe"),
                      field("vibe", &Self::vibe, "the vibe it must be")};
  }
  Op compile(Compiler&) const;
};
struct HasTag {
  static constexpr std::string_view kind = "has_tag";
  std::string who = "target", tag;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who bears it"), field("tag", &Self::tag, "the tag")};
  }
  Op compile(Compiler&) const;
};
struct SameCollective {
  static constexpr std::string_view kind = "same_collective";
  template <class Self>
  static auto fields() {
    return std::tuple{};
  }
  Op compile(Compiler&) const;
};
struct OtherCollective {
  static constexpr std::string_view kind = "other_collective";
  template <class Self>
  static auto fields() {
    return std::tuple{};
  }
  Op compile(Compiler&) const;
};
struct Aligned {
  static constexpr std::string_view kind = "aligned";
  std::string who = "target", to;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who belongs"),
                      field("to", &Self::to, "the collective; empty: any")};
  }
  Op compile(Compiler&) const;
};
struct Within {
  static constexpr std::string_view kind = "within";
  std::int64_t distance = 0;
  std::string metric = "chebyshev";
  template <class Self>
  static auto fields() {
    return std::tuple{field("distance", &Self::distance, between(0, 4096), "cells at most between actor and target"),
                      field("metric", &Self::metric, one_of(kMetrics), "how it is measured")};
  }
  Op compile(Compiler&) const;
};
struct Near {
  static constexpr std::string_view kind = "near";
  std::string who = "target", tag;
  std::int64_t radius = 0;
  std::string metric = "chebyshev";
  std::vector<Condition> when;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who it must be near to"),
                      field("tag", &Self::tag, "what the object near bears"),
                      field("radius", &Self::radius, between(0, 4096), "cells at most"),
                      field("metric", &Self::metric, one_of(kMetrics), "how it is measured"),
                      field("when", &Self::when, "conditions in which the object near is the target")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.looked_for.insert(tag); }
};
struct Periodic {
  static constexpr std::string_view kind = "periodic";
  std::int64_t every = 0, start = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(1, 1e9), "ticks of a period"),
                      field("start", &Self::start, between(0, 1e9), "the first tick")};
  }
  Op compile(Compiler&) const;
};
struct Chance {
  static constexpr std::string_view kind = "chance";
  double probability = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("probability", &Self::probability, between(0, 1), "how often it is true")};
  }
  Op compile(Compiler&) const;
};
struct AtLeast {
  static constexpr std::string_view kind = "at_least";
  GameValue value;
  double number = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("value", &Self::value, "what is read"),
                      field("number", &Self::number, "what it must reach")};
  }
  Op compile(Compiler&) const;
};
struct Empty {
  static constexpr std::string_view kind = "empty";
  std::string who = "target";
  std::vector<std::string> resources;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kHolders), "who holds nothing"),
                      field("resources", &Self::resources, "of these; empty: of anything")};
  }
  Op compile(Compiler&) const;
};
struct Not {
  static constexpr std::string_view kind = "not";
  std::vector<Condition> conditions;
  template <class Self>
  static auto fields() {
    return std::tuple{field("conditions", &Self::conditions, "not all of them hold")};
  }
  Op compile(Compiler&) const;
};
struct AnyOf {
  static constexpr std::string_view kind = "any";
  std::vector<Condition> conditions;
  template <class Self>
  static auto fields() {
    return std::tuple{field("conditions", &Self::conditions, "one of them holds")};
  }
  Op compile(Compiler&) const;
};

struct Condition {
  OneOf<Holds, HasVibe, HasTag, SameCollective, OtherCollective, Aligned, Within, Near, Periodic, Chance, AtLeast,
        Empty, Not, AnyOf>
      data;
  Op compile(Compiler&) const;
  static void decode(Condition& out, const Value& value, const std::string& path);
};

}  // namespace gridmill::grid
