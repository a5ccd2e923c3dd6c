// Game values: numbers read from the state, for rewards, observations and rules alike. As declared, and as the small
// postfix program that values.cpp makes of them and evaluates.
#pragma once

#include <string>
#include <vector>

#include "core/value.hpp"
#include "grid/rules/references.hpp"

namespace gridmill::grid {

struct GameValue;

// A number of the game's own, and the largest that a ratio can be: whatever is made of them within the levels that
// values may have, and summed up over an episode, stays within the limits of a saved state (check_state.cpp).
constexpr double kMostNumber = 1e12, kMostRatio = 1e100;

struct InventoryOf {
  static constexpr std::string_view kind = "inventory";
  std::string resource, of = "actor", collective;
  template <class Self>
  static auto fields() {
    return std::tuple{field("resource", &Self::resource, "the resource"),
                      field("of", &Self::of, one_of({"actor", "target", "collective"}), "who holds it"),
                      field("collective", &Self::collective, "the collective; empty: the actor's own")};
  }
};
struct StatOf {
  static constexpr std::string_view kind = "stat";
  std::string name, of = "agent", collective;
  template <class Self>
  static auto fields() {
    return std::tuple{field("name", &Self::name, "name of a statistic of this episode"),
                      field("of", &Self::of, one_of({"agent", "collective", "game"}), "whose statistic"),
                      field("collective", &Self::collective, "the collective; empty: the agent's own")};
  }
};
struct CountOf {
  static constexpr std::string_view kind = "count";
  std::string tag, collective, resource;
  template <class Self>
  static auto fields() {
    return std::tuple{field("tag", &Self::tag, "the tag of the objects to count"),
                      field("collective", &Self::collective, "the collective they belong to; empty: any or none"),
                      field("resource", &Self::resource, "count units of this resource; empty: count objects")};
  }
  void refer(References& found) const { found.looked_for.insert(tag); }
};
struct IndexOf {
  static constexpr std::string_view kind = "index";
  std::int64_t every = 0, place = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("every", &Self::every, between(1, 4096), "the divisor of the agent's index"),
        field("place", &Self::place, between(0, 4095), "the remainder for which the value is 1; it is 0 for others")};
  }
};
struct Constant {
  static constexpr std::string_view kind = "constant";
  double value = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{field("value", &Self::value, between(-kMostNumber, kMostNumber), "a fixed number")};
  }
};
struct Combined {
  std::vector<GameValue> values;
  template <class Self>
  static auto fields() {
    return std::tuple{field("values", &Self::values, "the values to combine")};
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

// A game value in postfix order over a small stack.
struct ValueOp {
  enum Code : std::uint8_t {
    inventory,
    action_counter,
    agent_counter,
    resource_counter,
    reward_sum,
    agent_stat,
    team_stat,
    game_stat,
    count,
    index,
    constant,
    sum,
    ratio,
    least,
    most,
    log_one_plus
  };
  Code code;
  std::uint16_t arg = 0;  // resource, counter, statistic, tag, or how many operands
  double number = 0;
  std::uint8_t whose = 0;           // inventory: place in kHolders, or kNamed
  std::uint16_t team = 0xFFFF;      // a collective by name; 0xFFFF: the actor's own, or whatever
  std::uint16_t resource = 0xFFFF;  // count: units of it
};
constexpr std::uint8_t kNamed = 4;
using CompiledValue = std::vector<ValueOp>;
constexpr std::size_t kValueStack = 320;  // 8 levels of at most 32 operands, with room

}  // namespace gridmill::grid
