// What an agent remembers of a map, from its own rows alone: a byte for every cell it has seen, and where it is. The
// position comes from the row's position tokens, or, in games without them, from the moves that the row says succeeded.
// Plain data without pointers, for the memory of a scripted agent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tokens.hpp"
#include "grid/program.hpp"
#include "grid/scripts/path.hpp"

namespace gridmill::grid {

// What is known of a cell. Agents are not remembered, as they walk: where one stood, the cell is free. A thing keeps
// the kind that the script has made of it for as long as one of the script's kinds is seen there.
using Kind = std::uint8_t;
constexpr Kind kUnknown = 0, kFree = 1, kBlocked = 2, kAgent = 3, kFirstKind = 4;  // from there on a script's own

// Something in view that is more than in the way: where, relative to the agent, what, and its tokens in the row.
struct Thing {
  std::int8_t row, column;
  Kind kind;
  std::uint16_t first, last;  // tokens [first, last)
};

// A row taken apart. Whatever the bytes of the row, everything in here is within bounds.
struct View {
  static constexpr std::size_t kMostThings = 225;
  const std::uint8_t* row = nullptr;
  std::uint32_t first_cell = 0, num_tokens = 0;  // tokens before first_cell are global
  std::uint32_t num_ranks = 0;                   // cells of the window that the row has room for, in its order
  std::uint8_t last_action = 0, progress = 0;
  std::int32_t north = 0, east = 0;  // from the start, in games that show it
  Thing self{0, 0, kAgent, 0, 0};
  std::uint32_t num_things = 0;
  std::array<Thing, kMostThings> things;  // without the agent itself, nearest first
  std::array<Kind, 256> cells;            // by location in the window

  // The value of a feature of something, or of the row as a whole; 0 where it is not shown.
  std::uint8_t value(const Thing& thing, std::uint8_t feature) const { return find(thing.first, thing.last, feature); }
  std::uint8_t global(std::uint8_t feature) const { return find(0, first_cell, feature); }

 private:
  std::uint8_t find(std::uint32_t first, std::uint32_t last, std::uint8_t feature) const {
    for (std::uint32_t i = first; i < last; ++i)
      if (row[kTokenBytes * i + 1] == feature) return row[kTokenBytes * i + 2];
    return 0;
  }
};

// Reads rows of a program and keeps maps of what they show. One object serves all rows.
class MapReader {
 public:
  // What lies in the memory of a row, the cells behind it. All zero: nothing is known yet.
  struct Memory {
    std::uint16_t here = 0;  // the cell the agent is in
    std::uint8_t started = 0;
  };

  // `kinds`: names of object types and what they are to the script; other types are in the way and nothing else.
  MapReader(const Vocabulary& vocabulary, const Program& program,
            const std::vector<std::pair<std::string, Kind>>& kinds);

  const Torus& torus() const { return torus_; }
  const Window& window() const { return *window_; }
  std::size_t memory_bytes() const { return sizeof(Memory) + torus_.size(); }
  std::uint32_t directions() const { return directions_; }
  int move(std::uint32_t direction) const { return moves_[direction]; }  // the action
  int noop() const { return noop_; }
  std::uint8_t feature(const std::string& name) const { return vocabulary_->feature(name); }
  int vibe_action(const std::string& vibe) const;  // -1: agents cannot show it

  static const Memory& memory_at(const std::byte* bytes) { return *reinterpret_cast<const Memory*>(bytes); }
  static const Kind* cells(const std::byte* bytes) { return reinterpret_cast<const Kind*>(bytes + sizeof(Memory)); }
  static Kind* cells(std::byte* bytes) { return reinterpret_cast<Kind*>(bytes + sizeof(Memory)); }
  static std::uint16_t here(const std::byte* bytes) { return memory_at(bytes).here; }
  std::uint16_t cell_of(const std::byte* bytes, const Thing& thing) const {
    return torus_.away(here(bytes), thing.row, thing.column);
  }

  void check_memory(const std::byte* bytes) const {
    expect_state(here(bytes) < torus_.size(), "it is outside the map that it remembers");
  }
  View read(const std::uint8_t* row) const;
  // Moves the agent on the map and notes what is in view. False if what is seen contradicts what was remembered, as
  // after ticks that nobody looked at: then all of it is forgotten, and the map begins anew here.
  bool remember(const View& view, std::byte* bytes) const;

 private:
  std::uint16_t moved_to(const View& view, const Memory& memory, const Kind* cells) const;
  void forget_far(std::uint16_t from, std::uint16_t to, Kind* cells) const;
  bool note(const View& view, std::uint16_t here, Kind* cells) const;

  const Vocabulary* vocabulary_;
  const Window* window_;
  Torus torus_;
  bool scrolls_rows_, scrolls_columns_;  // the map is larger than what is remembered
  bool has_position_;
  std::uint32_t most_tokens_, directions_;
  std::uint8_t centre_;
  std::uint8_t tag_, last_action_, progress_;
  std::array<std::uint8_t, 4> position_;
  std::array<Kind, 256> kind_of_tag_{};
  std::array<int, 8> moves_{};
  std::array<std::int8_t, 256> direction_of_;  // action -> direction, or -1
  int noop_ = 0;
};

// Where agents stand that are at most so many steps away.
struct Crowd {
  std::array<std::uint16_t, View::kMostThings> cells;
  std::uint32_t count = 0;
  operator std::span<const std::uint16_t>() const { return {cells.data(), count}; }
};
Crowd agents_near(const MapReader& map, const std::byte* bytes, const View& view, std::int32_t steps);

// The way to the nearest cell that was never seen, over cells known to be free. Of several that are equally near it is
// the one with most such cells around it, as far as an agent sees.
Way way_to_unknown(const MapReader& map, const std::byte* bytes, std::span<const std::uint16_t> closed,
                   SearchSpace& space);

}  // namespace gridmill::grid
