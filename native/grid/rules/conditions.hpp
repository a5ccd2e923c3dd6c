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
                      field("amounts", &Self::amounts, between(0, 65'535), "resource -> minimum amount")};
  }
  Op compile(Compiler&) const;
};
struct HasVibe {
  static constexpr std::string_view kind = "has_vibe";
  std::string who = "actor", vibe;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "whose vibe"),
                      field("vibe", &Self::vibe, "the required vibe")};
  }
  Op compile(Compiler&) const;
};
struct HasTag {
  static constexpr std::string_view kind = "has_tag";
  std::string who = "target", tag;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who must have the tag"),
                      field("tag", &Self::tag, "the tag")};
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
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who must belong to it"),
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
    return std::tuple{
        field("distance", &Self::distance, between(0, 4096), "maximum distance between actor and target in cells"),
        field("metric", &Self::metric, one_of(kMetrics), "how distances are measured")};
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
    return std::tuple{field("who", &Self::who, one_of(kSomeone), "who must be near such an object"),
                      field("tag", &Self::tag, "the tag of the object nearby"),
                      field("radius", &Self::radius, between(0, 4096), "maximum distance in cells"),
                      field("metric", &Self::metric, one_of(kMetrics), "how distances are measured"),
                      field("when", &Self::when, "conditions in which the object nearby is the target")};
  }
  Op compile(Compiler&) const;
  void refer(References& found) const { found.looked_for.insert(tag); }
};
struct Periodic {
  static constexpr std::string_view kind = "periodic";
  std::int64_t every = 0, start = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(1, 1e9), "period in ticks"),
                      field("start", &Self::start, between(0, 1e9), "the first tick")};
  }
  Op compile(Compiler&) const;
};
struct Chance {
  static constexpr std::string_view kind = "chance";
  double probability = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("probability", &Self::probability, between(0, 1), "probability that it is true")};
  }
  Op compile(Compiler&) const;
};
struct AtLeast {
  static constexpr std::string_view kind = "at_least";
  GameValue value;
  double number = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("value", &Self::value, "the game value to compare"),
                      field("number", &Self::number, "the minimum")};
  }
  Op compile(Compiler&) const;
};
struct Empty {
  static constexpr std::string_view kind = "empty";
  std::string who = "target";
  std::vector<std::string> resources;
  template <class Self>
  static auto fields() {
    return std::tuple{field("who", &Self::who, one_of(kHolders), "who must hold nothing"),
                      field("resources", &Self::resources, "the resources; empty: all of them")};
  }
  Op compile(Compiler&) const;
};
struct Not {
  static constexpr std::string_view kind = "not";
  std::vector<Condition> conditions;
  template <class Self>
  static auto fields() {
    return std::tuple{field("conditions", &Self::conditions, "at least one of these must be false")};
  }
  Op compile(Compiler&) const;
};
struct AnyOf {
  static constexpr std::string_view kind = "any";
  std::vector<Condition> conditions;
  template <class Self>
  static auto fields() {
    return std::tuple{field("conditions", &Self::conditions, "at least one of these must hold")};
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
