// Game values as declared: numbers read from the state, for rewards, observations and rules alike. rewards.cpp
// evaluates them; program.cpp turns them into a small postfix program.
#pragma once

#include <string>
#include <vector>

#include "core/value.hpp"

namespace gridmill::grid {

struct GameValue;

struct InventoryOf {
  static constexpr std::string_view kind = "inventory";
  std::string resource, of = "actor", collective;
  template <class Self>
  static auto fields() {
    return std::tuple{field("resource", &Self::resource, "of what"),
                      field("of", &Self::of, one_of({"actor", "target", "collective"}), "who holds it"),
                      field("collective", &Self::collective, "which; empty: the actor's own")};
  }
};
struct StatOf {
  static constexpr std::string_view kind = "stat";
  std::string name, of = "agent", collective;
  template <class Self>
  static auto fields() {
    return std::tuple{field("name", &Self::name, "a statistic of this episode"),
                      field("of", &Self::of, one_of({"agent", "collective", "game"}), "whose"),
                      field("collective", &Self::collective, "which; empty: the agent's own")};
  }
};
struct CountOf {
  static constexpr std::string_view kind = "count";
  std::string tag, collective, resource;
  template <class Self>
  static auto fields() {
    return std::tuple{field("tag", &Self::tag, "what the counted objects bear"),
                      field("collective", &Self::collective, "which they belong to; empty: whatever"),
                      field("resource", &Self::resource, "count units of it; empty: count objects")};
  }
};
struct IndexOf {
  static constexpr std::string_view kind = "index";
  std::int64_t every = 0, place = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("every", &Self::every, between(1, 4096), "agents are counted round by this"),
                      field("place", &Self::place, between(0, 4095), "1 for those at this place, else 0")};
  }
};
struct Constant {
  static constexpr std::string_view kind = "constant";
  double value = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("value", &Self::value, "a fixed number")};
  }
};
struct Combined {
  std::vector<GameValue> values;
  template <class Self>
  static auto fields() {
    return std::tuple{field("values", &Self::values, "what is combined")};
  }
};
struct Sum : Combined {
  static constexpr std::string_view kind = "sum";
};
struct Ratio : Combined {
  static constexpr std::string_view kind = "ratio";
};  // a / b, 0 where b is 0
struct Least : Combined {
  static constexpr std::string_view kind = "min";
};
struct Most : Combined {
  static constexpr std::string_view kind = "max";
};
struct LogOnePlus : Combined {
  static constexpr std::string_view kind = "log";
};  // log(1 + x)

struct GameValue {
  OneOf<InventoryOf, StatOf, CountOf, IndexOf, Constant, Sum, Ratio, Least, Most, LogOnePlus> data;
  static void decode(GameValue& out, const Value& value, const std::string& path);
};

}  // namespace gridmill::grid
