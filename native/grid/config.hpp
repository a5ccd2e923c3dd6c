// The native words of a grid game: what Python's `Game` looks like after it crossed as a plain tree.
// fields() is the only description here; tests/contracts/test_schema.py holds it equal to the Python models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/value.hpp"
#include "grid/map_config.hpp"

namespace gridmill::grid {

// ---- game values: numbers read from the state, for rewards and observations alike

struct GameValue;

struct InventoryOf {
  static constexpr std::string_view kind = "inventory";
  std::string resource;
  static auto fields() { return std::tuple{field("resource", &InventoryOf::resource, "what the agent holds")}; }
};
struct StatOf {
  static constexpr std::string_view kind = "stat";
  std::string name;
  static auto fields() { return std::tuple{field("name", &StatOf::name, "the agent's statistic of this episode")}; }
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
  Choice<InventoryOf, StatOf, Constant, Sum, Ratio, Least, Most, LogOnePlus> data;
  static void decode(GameValue& out, const Value& value, const std::string& path);
};

// ---- the game

struct RewardTerm {
  double weight = 1;
  GameValue value;
  double cap = 1e9;
  std::string mode = "change";
  static auto fields() {
    return std::tuple{field("weight", &RewardTerm::weight, "reward per unit"),
                      field("value", &RewardTerm::value, "the game value that pays"),
                      field("cap", &RewardTerm::cap, at_least(0), "the value counts up to here"),
                      field("mode", &RewardTerm::mode, one_of({"change", "gained", "per_tick"}), "when it pays")};
  }
};

struct ObservedValue {
  std::string name;
  GameValue value;
  std::int32_t digits = 1;
  static auto fields() {
    return std::tuple{field("name", &ObservedValue::name, "name of the global feature"),
                      field("value", &ObservedValue::value, "the game value shown"),
                      field("digits", &ObservedValue::digits, between(1, 2), "base-256 digits shown")};
  }
};

struct Observation {
  std::string window = "square";
  std::int32_t height = 11, width = 11, num_tokens = 200;
  bool local_position = false;
  double reward_scale = 100;
  std::string overflow = "warn";
  std::vector<ObservedValue> values;
  static auto fields() {
    return std::tuple{
        field("window", &Observation::window, one_of({"square", "disc"}), "shape of what an agent sees"),
        field("height", &Observation::height, between(1, 15), "rows of the window, odd"),
        field("width", &Observation::width, between(1, 15), "columns of the window, odd"),
        field("num_tokens", &Observation::num_tokens, between(1, 4096), "tokens per row of obs"),
        field("local_position", &Observation::local_position, "show the distance from the spawn cell"),
        field("reward_scale", &Observation::reward_scale, "scale of the last_reward token"),
        field("overflow", &Observation::overflow, one_of({"warn", "drop", "error"}), "when tokens do not fit"),
        field("values", &Observation::values, "game values shown as global tokens")};
  }
};

// At most min(max, max(base, sum of bonus x held)) of these resources together.
struct Limit {
  std::vector<std::string> resources;
  std::int64_t base = 65'535, max = 65'535;
  Named<std::int64_t> bonus;
  static auto fields() {
    return std::tuple{field("resources", &Limit::resources, "what is limited together"),
                      field("base", &Limit::base, between(0, 65'535), "limit without any bonus"),
                      field("max", &Limit::max, between(0, 65'535), "never more than this"),
                      field("bonus", &Limit::bonus, between(0, 65'535), "resource -> limit per unit held")};
  }
};

struct AgentType {
  std::vector<std::string> tags;
  Named<std::int64_t> inventory;
  std::string vibe;
  std::vector<Limit> limits;
  static auto fields() {
    return std::tuple{field("tags", &AgentType::tags, "beside type:agent"),
                      field("inventory", &AgentType::inventory, between(0, 65'535), "held at the start"),
                      field("vibe", &AgentType::vibe, "vibe at the start; empty: the first"),
                      field("limits", &AgentType::limits, "how much fits")};
  }
};

// A machine: takes inputs, and `cooldown` ticks after it started leaves outputs to be fetched.
struct Converter {
  Named<std::int64_t> inputs, outputs;
  std::int64_t cooldown = 1, max_output = 5, max_input = 5, initial_resource_count = 0, max_conversions = -1;
  static auto fields() {
    return std::tuple{
        field("inputs", &Converter::inputs, between(1, 65'535), "resource -> units consumed at the start"),
        field("outputs", &Converter::outputs, between(1, 65'535), "resource -> units left at the end"),
        field("cooldown", &Converter::cooldown, between(1, 1'000'000), "ticks from start to outputs"),
        field("max_output", &Converter::max_output, between(1, 65'535), "does not start while this many units wait"),
        field("max_input", &Converter::max_input, between(1, 65'535), "recipes' worth of inputs it stores"),
        field("initial_resource_count", &Converter::initial_resource_count, between(0, 65'535), "outputs at the start"),
        field("max_conversions", &Converter::max_conversions, between(-1, 1'000'000'000), "-1: no limit")};
  }
};

struct ObjectType {
  std::vector<std::string> tags;
  Named<std::int64_t> inventory;
  std::string vibe;
  std::optional<Converter> converter;
  bool pushable = false, swappable = false;
  static auto fields() {
    return std::tuple{field("tags", &ObjectType::tags, "beside type:<name>"),
                      field("inventory", &ObjectType::inventory, between(0, 65'535), "held at the start"),
                      field("vibe", &ObjectType::vibe, "vibe at the start; empty: the first"),
                      field("converter", &ObjectType::converter, "the machine it is, if any"),
                      field("pushable", &ObjectType::pushable, "a move into it pushes it one cell"),
                      field("swappable", &ObjectType::swappable, "`swap` changes places with it")};
  }
};

// The laser: what a shot costs, what stops it, how long a hit freezes.
struct Attack {
  Named<std::int64_t> cost;
  std::string armor;
  std::int64_t freeze_duration = 10;
  std::string aim = "nearest";
  static auto fields() {
    return std::tuple{field("cost", &Attack::cost, between(0, 65'535), "resource -> units paid per hit or blocked hit"),
                      field("armor", &Attack::armor, "a unit of it stops a hit; empty: nothing does"),
                      field("freeze_duration", &Attack::freeze_duration, between(1, 65'535), "ticks a hit freezes"),
                      field("aim", &Attack::aim, one_of({"nearest", "cells", "both"}), "which attack actions exist")};
  }
};

struct GameConfig {
  std::string name;
  std::int32_t num_agents = 1;
  std::int64_t max_steps = 1000;
  std::string time_limit = "truncation";
  std::int32_t moves = 8;
  std::vector<std::string> resources;
  std::vector<std::string> vibes;
  std::optional<Attack> attack;
  bool swap = false;
  Named<std::int64_t> move_cost;
  AgentType agent;
  Named<ObjectType> objects;
  MapNode map;
  Observation observation;
  std::vector<RewardTerm> rewards;
  double reward_sharing = 0;
  static auto fields() {
    return std::tuple{
        field("name", &GameConfig::name, "name of the game"),
        field("num_agents", &GameConfig::num_agents, between(1, kMaxAgents), "agents per world"),
        field("max_steps", &GameConfig::max_steps, between(1, 1'000'000'000), "ticks of an episode"),
        field("time_limit", &GameConfig::time_limit, one_of({"truncation", "termination"}), "how the limit ends it"),
        field("moves", &GameConfig::moves, between(0, 8), "directions: 0, 4 or 8"),
        field("resources", &GameConfig::resources, "resource names, in order"),
        field("vibes", &GameConfig::vibes, "vibe names; the first is the default; two or more give change_vibe_*"),
        field("attack", &GameConfig::attack, "the laser, if agents have one"),
        field("swap", &GameConfig::swap, "agents can change places with what they face"),
        field("move_cost", &GameConfig::move_cost, between(0, 65'535),
              "resource -> units a successful move or use costs"),
        field("agent", &GameConfig::agent, "what every agent is"),
        field("objects", &GameConfig::objects, "object types by name"),
        field("map", &GameConfig::map, "where things are"),
        field("observation", &GameConfig::observation, "what agents see"),
        field("rewards", &GameConfig::rewards, "terms added up"),
        field("reward_sharing", &GameConfig::reward_sharing, between(0, 1), "share of the group's mean reward")};
  }
};

// Decodes and checks everything that needs no other game: names used exist, sizes are odd, maps are legal.
GameConfig decode_game(const Value& value);

}  // namespace gridmill::grid
