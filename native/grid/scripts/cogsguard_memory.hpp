// What an agent of CogsGuard remembers: which cells it saw and which of them are blocked, the sites that stand there
// with whose they were and when it last looked, and the way it is on.
//
// Places count from where the agent began, modulo kSide: a map of up to kSide x kSide cells fits without knowing where
// on it the agent is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "grid/scripts/cogsguard_row.hpp"

namespace gridmill::grid::cogsguard {

constexpr int kSide = 128, kCells = kSide * kSide;
constexpr int kReach = 10;  // how far hub and junctions act

struct Place {
  std::uint8_t row = 0, column = 0;
  bool operator==(const Place&) const = default;
  bool exists() const { return row < kSide && column < kSide; }
  int cell() const { return row * kSide + column; }
};
inline Place place_of(int row, int column) {
  return {static_cast<std::uint8_t>(row & (kSide - 1)), static_cast<std::uint8_t>(column & (kSide - 1))};
}
inline Place place_of(int cell) { return place_of(cell / kSide, cell % kSide); }
inline Place moved(Place from, int rows, int columns) { return place_of(from.row + rows, from.column + columns); }
// From one place to another the short way round: -64 to 63.
inline int offset(int from, int to) { return ((to - from + kSide / 2) & (kSide - 1)) - kSide / 2; }
inline int chebyshev(Place a, Place b) {
  return std::max(std::abs(offset(a.row, b.row)), std::abs(offset(a.column, b.column)));
}
inline int manhattan(Place a, Place b) { return std::abs(offset(a.row, b.row)) + std::abs(offset(a.column, b.column)); }

// A bit for each cell.
struct Bits {
  std::uint64_t words[kSide][2];
  bool operator==(const Bits&) const = default;
  bool get(int cell) const { return words[cell >> 7][cell >> 6 & 1] >> (cell & 63) & 1; }
  bool get(Place p) const { return get(p.cell()); }
  void set(Place p) { words[p.row][p.column >> 6] |= std::uint64_t{1} << (p.column & 63); }
  void clear(Place p) { words[p.row][p.column >> 6] &= ~(std::uint64_t{1} << (p.column & 63)); }
  // All cells at most so many rows and columns (31 at most) away.
  void set_around(Place middle, int rows, int columns);
  void clear_around(Place middle, int rows, int columns);
};

struct Site {
  Place place;
  Kind kind;
  Owner owner;
  std::uint16_t stock;
  std::uint16_t padding;
  std::uint32_t seen;         // tick
  std::uint32_t avoid_until;  // tick
};

// Where hub and junctions act, as far as the agent knows.
struct Ground {
  Bits home, danger;
  bool operator==(const Ground&) const = default;
};

enum Goal : std::uint8_t { rest, retreat, get_gear, get_heart, deposit, mine, align, scramble, patrol };

constexpr int kMostSites = 400, kMostSteps = 128;

struct Memory {
  Bits known, blocked;
  Ground ground;  // what follows from the sites, kept until they change
  Site sites[kMostSites];
  std::uint32_t num_sites;
  std::uint32_t tick;
  // The way: directions two bits each, and where the agent should be now.
  std::uint8_t steps[kMostSteps / 4];
  std::uint8_t num_steps, at_step;
  Place expected;
  Place target;
  Goal goal;
  std::uint8_t has_target;
  std::uint8_t tries;      // failed moves in a row that energy does not explain
  std::uint8_t converted;  // a miner that fights while the store is full
  std::uint32_t planned;   // tick
  std::uint32_t padding;

  int step(int i) const { return steps[i / 4] >> (i % 4 * 2) & 3; }
  Site* find(Place place);
  Ground survey() const;
  const Site* nearest(Kind kind, Place from) const;
  void check() const;  // throws BadState unless it could be an agent's
};
static_assert(sizeof(Memory) % 8 == 0);

// Enters what a row shows; true if a site is new, gone or has another owner.
bool remember(Memory& memory, const Row& row, Place here, const Ids& ids);

}  // namespace gridmill::grid::cogsguard
