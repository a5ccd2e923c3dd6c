// Program: a grid game compiled. Names are ids, the window is tables, the world's bytes have a layout;
// everything was validated, so the step trusts it. Immutable and shared by all worlds that play the game.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "grid/config.hpp"
#include "grid/layout.hpp"
#include "grid/maps/layer.hpp"
#include "grid/observe/window.hpp"
#include "grid/rules/ops.hpp"
#include "grid/rules/values.hpp"
#include "grid/vocabulary.hpp"

namespace gridmill::grid {

struct ActionEntry {
  std::int32_t delta = 0;  // in cells of the padded grid
  std::int8_t row = 0, column = 0;
  std::int8_t facing = -1;  // -1: keeps it
  ActionKind kind = ActionKind::invalid;
  std::uint8_t vibe = 0;             // change_vibe: the new one
  std::uint8_t first = 0, last = 0;  // attack: cells k of the cone it tries, in order
};

enum class RewardMode : std::uint8_t { change, gained, per_tick };
struct CompiledTerm {
  double weight, cap;
  RewardMode mode;
  std::int32_t resource = -1;  // the value is simply what the agent holds of this
  bool by_team = false;        // it is the same for all agents of a collective
  CompiledValue value;
};

struct CompiledConverter {
  std::vector<std::uint16_t> inputs, outputs, store;  // per resource; store: the most inputs it keeps
  std::uint32_t cooldown = 1, max_output = 5, initial = 0;
  std::int64_t max_conversions = -1;
};

// The resources limited together; a resource without a group may reach 65 535.
struct LimitGroup {
  std::vector<std::uint16_t> resources;  // in order of the game's resources
  std::uint32_t base, max;
  std::vector<std::pair<std::uint16_t, std::uint32_t>> bonus;
};

// What the limit of one resource hangs on, read without looking for its group.
struct ResourceLimit {
  bool limited = false;
  std::int32_t least = 65'535;  // the limit is never below, whatever else is held
  std::uint32_t base = 0, max = 0;
  Range bonuses, others;  // others: the rest of its group
  Range dependents;       // what groups hold whose limits hang on this one
};

using GroupMask = std::array<std::uint64_t, 2>;  // there are at most 128 resources, each in one group

// Limits of one kind of holder.
struct LimitSet {
  std::vector<LimitGroup> groups;    // those first that others depend on
  double rounds = 1;                 // through all groups, at most, until nothing more is lost
  std::vector<GroupMask> bonus_for;  // resource -> groups that depend on it
  std::vector<ResourceLimit> of;     // per resource; their ranges point into the three lists
  std::vector<std::pair<std::uint16_t, std::uint32_t>> bonuses;
  std::vector<std::uint16_t> others, dependents;
};

struct CompiledRecipe {
  std::vector<std::pair<std::uint8_t, std::uint32_t>> vibes;  // vibe, how many agents must have it
  std::uint32_t min_agents = 1;
  std::vector<std::uint16_t> inputs, outputs;  // per resource
};
struct CompiledAssembler {
  std::vector<CompiledRecipe> recipes;
  std::uint32_t cooldown = 0;
  bool partial = false;
  std::int64_t max_uses = -1;
};

enum class Affects : std::uint8_t { friends, enemies, all, self };
struct CompiledArea {
  std::uint16_t type = 0;   // of the objects it surrounds
  std::uint16_t place = 0;  // among the areas of its type
  std::int32_t radius = 1;
  bool euclid = false, territory = false;
  Affects affects = Affects::all;
  bool counted = false;  // its changes times the number of its objects around is all there is to it
  Range conditions, changes, enter, exit, rules, on_enter, on_exit;
};

struct CompiledEvent {
  std::vector<std::int64_t> at;  // ascending
  std::int64_t every = 0, start = 0, until = 0;
  std::int32_t tag = -1;  // -1: happens once, to nobody
  CompiledRule rule;
  std::uint32_t max_targets = 0;
  std::int32_t fallback = -1;
};

struct CompiledCollective {
  std::vector<std::uint16_t> inventory;
  std::size_t limits = 0;  // index into Program::limit_sets
  std::uint8_t batch_id = 0;
};
constexpr std::uint8_t kNeutral = 255;  // belongs to no collective

struct TagRules {
  Range added, removed;
};

struct Type {
  std::string name;
  std::vector<std::uint8_t> tags;  // ids, ascending, without those that rules set or clear
  std::bitset<256> tag_set;        // all tags it starts with
  std::uint64_t tag_bits = 0;      // bits: the changeable tags it starts with
  std::size_t limits = 0;          // index into Program::limit_sets
  std::uint8_t collective = kNeutral;
  std::uint16_t counted_as = 0;  // which `aligned.<name>` it counts for
  std::int32_t assembler = -1;   // index into Program::assemblers
  bool use_all = false;
  Range on_use, on_tick, areas;
  std::vector<bool> may_hold;  // per resource: rules or machines can put it here
  std::vector<std::uint16_t> inventory;
  std::uint8_t vibe = 0;
  std::int32_t converter = -1;  // index into Program::converters
  bool pushable = false, swappable = false;
  bool inert = false;      // a move into it only fails, unless it is a frozen agent
  bool terrain = false;    // no state of its own: all cells of this type share one code and one emission
  std::uint16_t code = 0;  // only for terrain
};

struct Placement {
  std::uint16_t row, column;
  std::uint16_t type;
};
struct Spawn {
  std::uint16_t row, column;
  std::uint8_t group;
};

// A map as it will be drawn: a tree of nodes, each in its own rectangle.
struct CompiledMap {
  enum Kind : std::uint8_t { ascii, scatter, instances, canvas } kind = ascii;
  std::uint32_t height = 0, width = 0, agents = 0;
  std::uint32_t border = 0, gap = 0, rows = 1, columns = 1, groups = 1;
  std::vector<Placement> fixed;                                    // ascii: everything but agents
  std::vector<Spawn> spawns;                                       // ascii: at least as many as agents
  std::vector<std::pair<std::uint16_t, std::uint32_t>> scattered;  // scatter: type, how many
  std::vector<CompiledMap> parts;                                  // instances: taken in turn
  std::vector<CompiledLayer> layers;                               // canvas: drawn in order
  std::string path;                                                // canvas: for what a reset has to say about it
};

// One base-256 digit of an amount, shown as a feature of its own.
struct AmountDigit {
  std::uint8_t feature, shift;
  std::uint16_t resource;
};

struct ShownValue {
  CompiledValue value;
  std::uint8_t feature, high_feature;
  int digits;
};

// ---- the parts of a program, each made by the compile_* of its name

struct Actions {
  std::vector<ActionEntry> entries;  // one per action of the batch, and a last one for invalid indices
  std::uint32_t num_counters = 0;    // failed and success of each, and invalid
  std::vector<std::pair<std::uint16_t, std::uint16_t>> move_cost, attack_cost;
  std::int32_t armor = -1;
  std::uint16_t freeze_duration = 0;
  bool has_attack = false;
  bool can_freeze = false;  // by attack or by a rule
  bool shows_facing = false;
  bool interactive = false;  // a move into something may do more than fail
};

struct Machines {
  std::vector<CompiledConverter> converters;
  std::vector<CompiledAssembler> assemblers;
  bool any = false;  // objects that are busy for some ticks
};

struct Tags {
  std::vector<std::string> own;          // names of the game's own, sorted; the batch may have more
  std::vector<std::uint8_t> changeable;  // those that rules set or clear; at most 64
  std::vector<std::int32_t> bit_of;      // tag -> its place there, or -1
  std::vector<TagRules> rules;           // per changeable tag
};

struct Collectives {
  std::vector<CompiledCollective> teams;             // by name, ascending
  std::vector<std::uint8_t> of_agents;               // by group, counted round
  std::vector<std::int32_t> by_batch_id;             // per collective of the batch: this game's, or -1
  std::vector<std::array<std::uint16_t, 2>> credit;  // name -> agent statistics of aligning and scrambling it
};

// Flat lists that ranges point into.
struct Rules {
  std::vector<Op> conditions, effects;
  std::vector<CompiledRule> list;
  std::vector<Amount> amounts;
  std::vector<CompiledValue> values;
  Range on_tick;  // the game's own
  std::size_t num_chances = 0;
  bool objects_tick = false;       // some object has rules for every tick
  bool any_in_tick = false;        // the game, an object or an agent has
  bool agents_tick_alone = false;  // all of the agents' rules for every tick are CompiledRule::alone
  bool can_spawn = false;
  bool reads_rewards = false;  // some rule asks for the sum of an agent's rewards
};

struct Areas {
  std::vector<CompiledArea> list;
  std::uint32_t most_of_type = 0;
  std::vector<std::uint16_t> resources;  // that areas change, ascending
  std::uint32_t reach_words = 0;         // of 64 bits, one for each source that does not walk
  bool all_counted = false;
  bool remembers = false;  // some area acts on entering or leaving
  bool has_territory = false, strongest_territory = false;
};

struct Events {
  std::vector<CompiledEvent> list;   // higher priority first, then by declaration
  std::vector<std::uint64_t> ticks;  // bits: something is due; later ticks are looked at one by one
};

struct Map {
  CompiledMap root;
  std::size_t largest_canvas = 0;     // cells, with a ring around them
  std::vector<std::uint64_t> placed;  // per type: the most pieces the map can have
  std::uint16_t wall = 0;             // the type borders are made of
  std::uint32_t attempts = 1;         // to draw one on which everything has room and can be reached
};

// What stands in a cell: objects with state have their number + 1, terrain the codes behind them.
struct Codes {
  std::uint32_t count = 0;
  std::vector<std::uint16_t> terrain;  // the type of each code of terrain
  // Terrain that is most of what agents see, shows one token and never changes is written in runs; 0: there is none.
  std::uint16_t plain = 0;
  std::uint16_t common_tag = 256;  // of the one-tag terrain there is most of; 256: there is none
};

// Ready tokens of every code. As much room for each as the richest agent needs, or the richest of all others, rounded
// to a power of two.
struct TokenCache {
  std::uint32_t agent_shift = 4, shift = 4;
  std::vector<std::uint32_t> at;  // per code: where its tokens begin
  bool wide = false;              // agents begin with more than five tokens, or others may have many
  std::size_t worst_tokens = 0;   // most tokens one row could need
};

using ObjectFeatures = std::array<std::uint8_t, 16>;  // an id for each entry of the table in object_tokens.cpp

struct Features {
  std::uint8_t tag, progress, action, reward;
  ObjectFeatures of_object{};
  std::array<std::uint8_t, 4> local_position{};       // as kCompass
  std::vector<std::uint8_t> resource, resource_high;  // kNoFeature: one digit is enough
  std::vector<AmountDigit> amount_digits;             // by feature, ascending
  std::vector<ShownValue> shown;
  bool shown_by_team = false;  // all of them are the same for all agents of a collective
};

struct Rewards {
  std::vector<CompiledTerm> terms;
  bool on_change_only = false;  // every term is the change of something an agent holds
  bool any_shared = false;      // some term is the same for all agents of a collective
};

// What ahead.hpp asks for.
struct Prefetch {
  bool small = false;                // few enough lines for all that a tick may touch to be asked for ahead
  std::vector<std::uint32_t> lines;  // of a world's state: offsets of the cache lines that every tick touches
};

struct Program {
  GameConfig config;
  const Vocabulary* vocabulary = nullptr;
  std::vector<Type> types;  // by declaration; the last one is the agent's
  std::size_t agent_type = 0;
  std::map<std::string, std::size_t> type_numbers;  // by name; the agent's has none
  std::vector<LimitSet> limit_sets;                 // the first is the agents', the second has no limits
  std::uint32_t num_agents = 0, num_objects = 0, num_resources = 0;  // room for objects with state, agents first
  std::uint32_t height = 0, width = 0, stride = 0;                   // stride of the padded grid
  std::vector<std::int32_t> resource_by_batch_id;                    // per resource of the batch: this game's, or -1
  bool truncates = true;                                             // the time limit is a truncation
  bool drop_on_overflow = true;
  Actions actions;
  Machines machines;
  Tags tags;
  Collectives collectives;
  Rules rules;
  Areas areas;
  Events events;
  Map map;
  Codes codes;
  TokenCache token_cache;
  Window window;
  Features features;
  Rewards rewards;
  StateLayout layout;
  Prefetch prefetch;
};

Program compile(const Vocabulary& vocabulary, const Value& game);

}  // namespace gridmill::grid
