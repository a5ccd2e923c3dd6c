// The settings of a grid game: what Python's `Game` looks like after it crossed as a plain tree.
// fields() is the only description here; tests/contracts/test_schema.py holds it equal to the Python models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/value.hpp"
#include "grid/maps/config.hpp"
#include "grid/rules/effects.hpp"
#include "grid/rules/values.hpp"

namespace gridmill::grid {

// ---- the game

struct RewardTerm {
  double weight = 1;
  GameValue value;
  double cap = 1e9;
  std::string mode = "change";
  template <class Self>
  static auto fields() {
    return std::tuple{field("weight", &Self::weight, "reward per unit"),
                      field("value", &Self::value, "the game value that is rewarded"),
                      field("cap", &Self::cap, at_least(0), "the value is counted only up to this limit"),
                      field("mode", &Self::mode, one_of({"change", "gained", "per_tick"}),
                            "what is rewarded: changes, increases, or the value in every tick")};
  }
};

struct ObservedValue {
  std::string name;
  GameValue value;
  std::int32_t digits = 1;
  template <class Self>
  static auto fields() {
    return std::tuple{field("name", &Self::name, "name of the global feature"),
                      field("value", &Self::value, "the game value to show"),
                      field("digits", &Self::digits, between(1, 2), "number of base-256 digits to show")};
  }
};

struct Observation {
  std::string window = "square";
  std::int32_t height = 11, width = 11, num_tokens = 200;
  bool local_position = false;
  double reward_scale = 100;
  std::string overflow = "warn";
  std::vector<ObservedValue> values;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("window", &Self::window, one_of({"square", "disc"}), "shape of the window that an agent sees"),
        field("height", &Self::height, between(1, 15), "rows of the window; an odd number"),
        field("width", &Self::width, between(1, 15), "columns of the window; an odd number"),
        field("num_tokens", &Self::num_tokens, between(1, 4096), "tokens per observation"),
        field("local_position", &Self::local_position, "show the distance from the spawn cell"),
        field("reward_scale", &Self::reward_scale, "scale of the last_reward token"),
        field("overflow", &Self::overflow, one_of({"warn", "drop", "error"}), "what happens when tokens do not fit"),
        field("values", &Self::values, "game values shown as global tokens")};
  }
};

// At most min(max, max(base, sum of bonus x held)) of these resources together.
struct Limit {
  std::vector<std::string> resources;
  std::int64_t base = 65'535, max = 65'535;
  OrderedDict<std::int64_t> bonus;
  template <class Self>
  static auto fields() {
    return std::tuple{field("resources", &Self::resources, "the resources that share this limit"),
                      field("base", &Self::base, between(0, 65'535), "limit without any bonus"),
                      field("max", &Self::max, between(0, 65'535), "the limit never exceeds this"),
                      field("bonus", &Self::bonus, between(0, 65'535), "resource -> limit per unit held")};
  }
};

struct AgentType {
  std::vector<std::string> tags;
  OrderedDict<std::int64_t> inventory;
  std::string vibe;
  std::vector<Limit> limits;
  std::vector<std::string> collectives;
  std::string use = "first";
  std::vector<Rule> on_use, on_tick;
  std::vector<Area> areas;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("tags", &Self::tags, "tags in addition to type:agent"),
        field("inventory", &Self::inventory, between(0, 65'535), "held at the start"),
        field("vibe", &Self::vibe, "vibe at the start; empty: the game's first vibe"),
        field("limits", &Self::limits, "how much it can hold"),
        field("collectives", &Self::collectives, "collectives by group; group i gets number i modulo their count"),
        field("use", &Self::use, one_of({"first", "all"}), "run the first matching rule of on_use, or all"),
        field("on_use", &Self::on_use, "rules for a bump into an agent"),
        field("on_tick", &Self::on_tick, "rules to run in every tick"),
        field("areas", &Self::areas, "areas in which it affects agents around it")};
  }
};

struct Collective {
  OrderedDict<std::int64_t> inventory;
  std::vector<Limit> limits;
  template <class Self>
  static auto fields() {
    return std::tuple{field("inventory", &Self::inventory, between(0, 65'535), "held at the start"),
                      field("limits", &Self::limits, "how much it can hold")};
  }
};

// Works at once for the agents around it; recipes are chosen by their vibes.
struct Recipe {
  std::vector<std::string> vibes;
  std::int64_t min_agents = 1;
  OrderedDict<std::int64_t> inputs, outputs;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("vibes", &Self::vibes, "vibes that the adjacent agents must show"),
        field("min_agents", &Self::min_agents, between(1, 8), "minimum number of adjacent agents"),
        field("inputs", &Self::inputs, between(0, 65'535), "resource -> units taken from all of them together"),
        field("outputs", &Self::outputs, between(0, 65'535), "resource -> units given to the agent that bumps")};
  }
  bool gives(const std::string& resource, const std::string&) const { return has(outputs, resource); }
};
struct Assembler {
  std::vector<Recipe> recipes;
  std::int64_t cooldown = 0;
  bool partial = false;
  std::int64_t max_uses = -1;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("recipes", &Self::recipes, "recipes; the first one that is possible is used"),
        field("cooldown", &Self::cooldown, between(0, 1'000'000), "ticks it rests after each use"),
        field("partial", &Self::partial, "can be used while resting, for the share of the cooldown that has passed"),
        field("max_uses", &Self::max_uses, between(-1, 1'000'000'000), "maximum number of uses; -1: no limit")};
  }
};

// A machine: takes inputs, and `cooldown` ticks after it started leaves outputs to be fetched.
struct Converter {
  OrderedDict<std::int64_t> inputs, outputs;
  std::int64_t cooldown = 1, max_output = 5, max_input = 5, initial_resource_count = 0, max_conversions = -1;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("inputs", &Self::inputs, between(1, 65'535), "resource -> units consumed when it starts"),
        field("outputs", &Self::outputs, between(1, 65'535), "resource -> units produced when it finishes"),
        field("cooldown", &Self::cooldown, between(1, 1'000'000), "ticks from start to outputs"),
        field("max_output", &Self::max_output, between(1, 65'535),
              "does not start while it holds this many units of output"),
        field("max_input", &Self::max_input, between(1, 65'535), "stores inputs for at most this many conversions"),
        field("initial_resource_count", &Self::initial_resource_count, between(0, 65'535),
              "how many times its outputs it holds at the start"),
        field("max_conversions", &Self::max_conversions, between(-1, 1'000'000'000),
              "maximum number of conversions; -1: no limit")};
  }
};

struct ObjectType {
  std::vector<std::string> tags;
  OrderedDict<std::int64_t> inventory;
  std::string vibe;
  std::vector<Limit> limits;
  std::string collective, counts_as;
  std::optional<Converter> converter;
  std::optional<Assembler> assembler;
  bool pushable = false, swappable = false;
  std::string use = "first";
  std::vector<Rule> on_use, on_tick;
  std::vector<Area> areas;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("tags", &Self::tags, "tags in addition to type:<name>"),
        field("inventory", &Self::inventory, between(0, 65'535), "held at the start"),
        field("vibe", &Self::vibe, "vibe at the start; empty: the game's first vibe"),
        field("limits", &Self::limits, "how much it can hold"),
        field("collective", &Self::collective, "the collective it belongs to at the start"),
        field("counts_as", &Self::counts_as, "the type it is shown and counted as"),
        field("converter", &Self::converter, "makes this object a machine"),
        field("assembler", &Self::assembler, "makes this object an assembler"),
        field("pushable", &Self::pushable, "a move into it pushes it one cell"),
        field("swappable", &Self::swappable, "the action `swap` can swap places with it"),
        field("use", &Self::use, one_of({"first", "all"}), "run the first matching rule of on_use, or all"),
        field("on_use", &Self::on_use, "rules for a bump into it"),
        field("on_tick", &Self::on_tick, "rules to run in every tick"),
        field("areas", &Self::areas, "areas in which it affects agents around it")};
  }
};

// The laser: what a shot costs, what stops it, how long a hit freezes.
struct Attack {
  OrderedDict<std::int64_t> cost;
  std::string armor;
  std::int64_t freeze_duration = 10;
  std::string aim = "nearest";
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("cost", &Self::cost, between(0, 65'535), "resource -> units paid per hit or blocked hit"),
        field("armor", &Self::armor, "resource of which one unit stops a hit; empty: none"),
        field("freeze_duration", &Self::freeze_duration, between(1, 65'535), "ticks that a hit freezes an agent"),
        field("aim", &Self::aim, one_of({"nearest", "cells", "both"}), "which attack actions exist")};
  }
  void refer(References& found) const { found.freezes = true; }
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
  OrderedDict<std::int64_t> move_cost;
  AgentType agent;
  OrderedDict<Collective> collectives;
  OrderedDict<ObjectType> objects;
  std::vector<Rule> on_tick;
  OrderedDict<std::vector<Rule>> on_tag_added, on_tag_removed;
  OrderedDict<Event> events;
  std::string territory = "nearest";
  std::int64_t spawn_room = 64;
  MapNode map;
  Observation observation;
  std::vector<RewardTerm> rewards;
  double reward_sharing = 0;
  template <class Self>
  static auto fields() {
    return std::tuple{
        field("name", &Self::name, "name of the game"),
        field("num_agents", &Self::num_agents, between(1, kMaxAgents), "agents per world"),
        field("max_steps", &Self::max_steps, between(1, 1'000'000'000), "maximum ticks of an episode"),
        field("time_limit", &Self::time_limit, one_of({"truncation", "termination"}),
              "how an episode ends at max_steps"),
        field("moves", &Self::moves, between(0, 8), "number of directions: 0, 4 or 8"),
        field("resources", &Self::resources, "resource names, in order"),
        field("vibes", &Self::vibes, "vibe names; the first is the default; two or more add actions change_vibe_*"),
        field("attack", &Self::attack, "the laser, if agents have one"),
        field("swap", &Self::swap, "agents can swap places with the object they face"),
        field("move_cost", &Self::move_cost, between(0, 65'535),
              "resource -> units that a successful move or use costs"),
        field("agent", &Self::agent, "properties of all agents"),
        field("collectives", &Self::collectives, "teams by name"),
        field("objects", &Self::objects, "object types by name"),
        field("on_tick", &Self::on_tick, "rules of the game itself, run in every tick"),
        field("on_tag_added", &Self::on_tag_added, "tag -> rules to run for an object that gets the tag"),
        field("on_tag_removed", &Self::on_tag_removed, "tag -> rules to run for an object that loses the tag"),
        field("events", &Self::events, "events at set times"),
        field("territory", &Self::territory, one_of({"nearest", "strongest"}),
              "who holds cells that several collectives claim"),
        field("spawn_room", &Self::spawn_room, between(0, kMaxObjects),
              "how many objects can be spawned in addition to those of the map"),
        field("map", &Self::map, "the map"),
        field("observation", &Self::observation, "what agents see"),
        field("rewards", &Self::rewards, "reward terms; their sum is the reward"),
        field("reward_sharing", &Self::reward_sharing, between(0, 1),
              "how much of the reward is the mean of the group")};
  }
};

// Decodes and checks everything that needs no other game: names used exist, sizes are odd, maps are legal.
GameConfig decode_game(const Value& value);
// Resources known, as many operands as it takes, at most 8 levels.
void check_value(const GameValue& value, const GameConfig& game, const std::string& path, int depth = 1);

}  // namespace gridmill::grid
