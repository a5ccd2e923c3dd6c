// What a row of CogsGuard shows, as numbers: the agent itself, its team's store, and what stands in the window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gridmill::grid {
struct Program;
struct Vocabulary;
}  // namespace gridmill::grid

namespace gridmill::grid::cogsguard {

constexpr int kElements = 4, kGears = 4;
enum Gear : std::int8_t { no_gear = -1, aligner, scrambler, miner, scout };
enum Kind : std::uint8_t {
  nothing,
  wall,
  other_agent,
  hub,
  junction,
  station,  // and the stations of the other gears behind it
  extractor = station + kGears,
  num_kinds = extractor + kElements
};
enum Owner : std::uint8_t { nobody, ours, theirs };

// The numbers that features, tags and actions have in the batch.
struct Ids {
  std::uint8_t tag, collective, agent_id, action, hp, hp_high, heart, influence, energy, solar;
  std::array<std::uint8_t, 4> local_position;  // north, south, west, east
  std::array<std::uint8_t, kElements> cargo, store, store_high;
  std::array<std::uint8_t, kGears> gear;
  std::array<Kind, 256> kind_of_tag;
  std::array<int, 4> move;  // north, south, west, east
  int noop = 0;
  int num_tokens = 0, height = 0, width = 0;
};
// Whether a game shows and has all that the script reads and uses.
bool plays(const Program& program);
Ids ids_of(const Vocabulary& vocabulary, const Program& program);

// An object in the window; row and column count from the agent.
struct Thing {
  std::int8_t row = 0, column = 0;
  Kind kind = nothing;
  Owner owner = nobody;
  std::int8_t gear = no_gear;
  std::uint8_t stock = 0;  // of an extractor its element, of the hub and of agents hearts
};

struct Row {
  int north = 0, west = 0;  // of where the agent began
  int hp = 0, energy = 0, hearts = 0, influence = 0, solar = 0, id = 0, gear = no_gear;
  bool failed = false;  // the last action
  std::array<int, kElements> cargo{}, store{};
  int seen_to = 0;  // cells less far than this (rows + columns) are shown; a full row leaves out the farthest
  int num_things = 0;
  std::array<Thing, 225> things;
};
void read_row(const Ids& ids, const std::uint8_t* tokens, Row& row);

}  // namespace gridmill::grid::cogsguard
