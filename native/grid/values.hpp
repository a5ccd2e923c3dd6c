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
  static auto fields() {
    return std::tuple{field("resource", &InventoryOf::resource, "of what"),
                      field("of", &InventoryOf::of, one_of({"actor", "target", "collective"}), "who holds it"),
                      field("collective", &InventoryOf::collective, "which; empty: the actor's own")};
  }
};
struct StatOf {
  static constexpr std::string_view kind = "stat";
  std::string name, of = "agent", collective;
  static auto fields() {
    return std::tuple{field("name", &StatOf::name, "a statistic of this episode"),
                      field("of", &StatOf::of, one_of({"agent", "collective", "game"}), "whose"),
                      field("collective", &StatOf::collective, "which; empty: the agent's own")};
  }
};
struct CountOf {
  static constexpr std::string_view kind = "count";
  std::string tag, collective, resource;
  static auto fields() {
    return std::tuple{field("tag", &CountOf::tag, "what the counted objects bear"),
                      field("collective", &CountOf::collective, "which they belong to; empty: whatever"),
                      field("resource", &CountOf::resource, "count units of it; empty: count objects")};
  }
};
struct IndexOf {
  static constexpr std::string_view kind = "index";
  std::int64_t every = 0, place = 0;
  static auto fields() {
    return std::tuple{field("every", &IndexOf::every, between(1, 4096), "agents are counted round by this"),
                      field("place", &IndexOf::place, between(0, 4095), "1 for those at this place, else 0")};
  }
};
struct Constant {
  static constexpr std::string_view kind = "constant";
  double value = 0;
  static auto fields() { return std::tuple{field("value", &Constant::value, "a fixed number")}; }
};
template <class Self>
struct Combined {
  std::vector<GameValue> values;
  static auto fields() { return std::tuple{field("values", &Self::values, "what is combined")}; }
};
struct Sum : Combined<Sum> {
  static constexpr std::string_view kind = "sum";
};
struct Ratio : Combined<Ratio> {
  static constexpr std::string_view kind = "ratio";
};  // a / b, 0 where b is 0
struct Least : Combined<Least> {
  static constexpr std::string_view kind = "min";
};
struct Most : Combined<Most> {
  static constexpr std::string_view kind = "max";
};
struct LogOnePlus : Combined<LogOnePlus> {
  static constexpr std::string_view kind = "log";
};  // log(1 + x)

struct GameValue {
  Choice<InventoryOf, StatOf, CountOf, IndexOf, Constant, Sum, Ratio, Least, Most, LogOnePlus> data;
  static void decode(GameValue& out, const Value& value, const std::string& path);
};

}  // namespace gridmill::grid
