// World: typed pointers into one world's block, made from the program's layout for one tick and thrown away.
// Objects with state come first (agents 0..A-1, then the others); terrain (walls) is only a code in the grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grid/program.hpp"

namespace gridmill::grid {

constexpr std::uint16_t kEmpty = 0, kOutside = 0xFFFF;  // object i has code i + 1, terrain follows

struct World {
  World(const Program& p, std::byte* state) : program(p) {
    const Layout& l = p.layout;
    const auto at = [state]<class T>(std::size_t offset, T*& pointer) { pointer = reinterpret_cast<T*>(state + offset); };
    at(l.grid, grid), at(l.occupied, occupied), at(l.type, type), at(l.cell, cell), at(l.row, row);
    at(l.column, column), at(l.vibe, vibe), at(l.inventory, inventory), at(l.group, group), at(l.facing, facing);
    at(l.last_action, last_action), at(l.reward_token, reward_token), at(l.spawn_row, spawn_row);
    at(l.spawn_column, spawn_column), at(l.visited, visited), at(l.counters, counters), at(l.reward_sum, reward_sum);
    at(l.term_state, term_state), at(l.slots, slots), at(l.slot_counts, slot_counts), at(l.dirty, dirty);
  }

  std::uint32_t cell_at(std::uint32_t r, std::uint32_t c) const { return (r + 1) * program.stride + c + 1; }

  // The occupancy bitmap: overlapping vertical strips of 64 columns, one every 32, so that any window's rows are
  // consecutive words of one strip. Strip -1 exists so that every column lies in two.
  void set_occupied(std::uint32_t r, std::uint32_t c) {
    const std::uint32_t x = c + static_cast<std::uint32_t>(program.window.radius_columns);
    const std::uint32_t y = r + static_cast<std::uint32_t>(program.window.radius_rows);
    const std::uint32_t strip = x >> 5, bit = x & 31;
    occupied[(strip + 1) * program.plane_rows + y] |= std::uint64_t{1} << bit;
    occupied[strip * program.plane_rows + y] |= std::uint64_t{1} << (bit + 32);
  }
  void clear_occupied(std::uint32_t r, std::uint32_t c) {
    const std::uint32_t x = c + static_cast<std::uint32_t>(program.window.radius_columns);
    const std::uint32_t y = r + static_cast<std::uint32_t>(program.window.radius_rows);
    const std::uint32_t strip = x >> 5, bit = x & 31;
    occupied[(strip + 1) * program.plane_rows + y] &= ~(std::uint64_t{1} << bit);
    occupied[strip * program.plane_rows + y] &= ~(std::uint64_t{1} << (bit + 32));
  }
  void mark_dirty(std::uint32_t object) { dirty[object >> 6] |= std::uint64_t{1} << (object & 63); }
  std::uint32_t* counters_of(std::uint32_t agent) const { return counters + agent * program.counters.size; }

  // 1 where the agent had not yet stood on this cell in this episode.
  std::uint32_t visit(std::uint32_t agent, std::uint32_t r, std::uint32_t c) {
    const std::uint32_t index = r * program.width + c;
    std::uint64_t& word = visited[agent * program.visited_words + (index >> 6)];
    const auto seen = static_cast<std::uint32_t>(word >> (index & 63)) & 1u;
    word |= std::uint64_t{1} << (index & 63);
    return seen ^ 1u;
  }

  const Program& program;
  std::uint16_t* grid;       // codes, padded by one cell of kOutside
  std::uint64_t* occupied;
  std::uint16_t* type;       // per object
  std::uint32_t* cell;
  std::uint16_t *row, *column;
  std::uint8_t* vibe;
  std::uint16_t* inventory;  // [object][resource]
  std::uint8_t *group, *facing, *last_action, *reward_token;  // per agent
  std::uint16_t *spawn_row, *spawn_column;
  std::uint64_t* visited;
  std::uint32_t* counters;
  double* reward_sum;
  double* term_state;        // [agent][term][2]: value before, running sum of rises
  std::uint8_t* slots;       // what each code emits, location 0, padded with 0xFF
  std::uint8_t* slot_counts;
  std::uint64_t* dirty;      // objects whose emission must be rebuilt before the next observation
};

}  // namespace gridmill::grid
