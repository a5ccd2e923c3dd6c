// Shortest ways over a map of bytes that is joined at its edges, its sides powers of two: the nearest cell that is a
// goal, by breadth-first search. Work is bounded by the number of cells; nothing is allocated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>

#include "core/snapshot.hpp"
#include "grid/directions.hpp"

namespace gridmill::grid {

constexpr std::uint32_t kLongestSide = 128;
constexpr std::uint32_t kMostCells = kLongestSide * kLongestSide;

// The cells of a map that is joined at its edges; a cell is row * columns + column.
class Torus {
 public:
  // At least so many rows and columns, as long as the longest side allows.
  Torus(std::uint32_t rows, std::uint32_t columns)
      : row_bits_(bits(rows)), column_bits_(bits(columns)), column_mask_((1u << column_bits_) - 1) {}
  std::uint32_t rows() const { return 1u << row_bits_; }
  std::uint32_t columns() const { return 1u << column_bits_; }
  std::uint32_t size() const { return 1u << (row_bits_ + column_bits_); }
  // Any whole numbers are a place on it.
  std::uint16_t at(std::int32_t row, std::int32_t column) const {
    const std::uint32_t r = static_cast<std::uint32_t>(row) & (rows() - 1);
    const std::uint32_t c = static_cast<std::uint32_t>(column) & column_mask_;
    return static_cast<std::uint16_t>(r << column_bits_ | c);
  }
  std::uint16_t away(std::uint16_t cell, std::int32_t rows, std::int32_t columns) const {
    return at((cell >> column_bits_) + rows, static_cast<std::int32_t>(cell & column_mask_) + columns);
  }
  std::uint16_t beside(std::uint16_t cell, std::uint32_t direction) const {
    return away(cell, kDirections[direction].row, kDirections[direction].column);
  }
  // How far `to` lies from `from`, the shorter way around.
  std::int32_t rows_between(std::uint16_t from, std::uint16_t to) const {
    return around((to >> column_bits_) - (from >> column_bits_), rows());
  }
  std::int32_t columns_between(std::uint16_t from, std::uint16_t to) const {
    return around((to & column_mask_) - (from & column_mask_), columns());
  }
  // In four directions, with nothing in between.
  std::int32_t steps_between(std::uint16_t from, std::uint16_t to) const {
    return std::abs(rows_between(from, to)) + std::abs(columns_between(from, to));
  }

 private:
  static std::uint32_t bits(std::uint32_t n) {
    return static_cast<std::uint32_t>(std::bit_width(std::clamp(n, 2u, kLongestSide) - 1));
  }
  static std::int32_t around(std::uint32_t distance, std::uint32_t side) {
    const auto within = static_cast<std::int32_t>(distance & (side - 1));
    return within < static_cast<std::int32_t>(side / 2) ? within : within - static_cast<std::int32_t>(side);
  }
  std::uint32_t row_bits_, column_bits_, column_mask_;
};

// A way as it is remembered: its first steps, as places in kDirections. Whoever goes further looks again.
struct Way {
  static constexpr std::uint32_t kMostSteps = 60;
  std::uint16_t goal = 0, length = 0;  // length: steps up to and into the goal; 0: there is no way
  std::uint8_t steps[kMostSteps] = {};
  std::uint32_t num_steps() const { return std::min<std::uint32_t>(length, kMostSteps); }
};

// Somebody on a way. Plain data, all zero: on none.
struct Walk {
  Way way;
  std::uint16_t from = 0, next = 0;  // the cell where the next step begins, and which step that is

  void begin(const Way& chosen, std::uint16_t here) {
    way = chosen;
    from = here;
    next = 0;
  }
  bool going() const { return way.length > 0; }
  std::uint8_t direction() const { return way.steps[next]; }
  std::uint16_t ahead(const Torus& torus) const { return torus.beside(from, direction()); }
  // Throws BadState unless it can be followed on this map.
  void check(const Torus& torus) const {
    expect_state(way.goal < torus.size() && from < torus.size(), "its path leaves the map");
    expect_state(!going() || next < way.num_steps(), "it is past the end of its path");
    expect_state(std::all_of(std::begin(way.steps), std::end(way.steps),
                             [](std::uint8_t step) { return step < std::size(kDirections); }),
                 "a step of its path has no direction");
  }
  // Whoever has left the way, as when somebody else acts for the row, is on none.
  void follow(const Torus& torus, std::uint16_t here) {
    if (!going() || from == here) return;
    from = ahead(torus);
    if (from != here || ++next >= way.num_steps()) way.length = 0;
  }
};

// What a search needs while it runs: on the stack of who calls it.
struct SearchSpace {
  std::uint8_t came_by[kMostCells];  // 1 + the direction of the step that reached it first; 0: not reached
  std::uint16_t queue[kMostCells];
};

// The way of so many steps by which a search from `start` reached `goal`.
inline Way way_found(const Torus& torus, std::uint16_t start, std::uint16_t goal, std::uint32_t steps,
                     const SearchSpace& space) {
  constexpr std::uint32_t kOpposite[] = {1, 0, 3, 2, 7, 6, 5, 4};
  Way way;
  way.goal = goal;
  way.length = static_cast<std::uint16_t>(steps);
  std::uint16_t cell = goal;
  for (std::uint32_t place = steps; place > 0 && cell != start; --place) {
    const auto direction = static_cast<std::uint8_t>(space.came_by[cell] - 1);
    if (place <= Way::kMostSteps) way.steps[place - 1] = direction;
    cell = torus.beside(cell, kOpposite[direction]);
  }
  return way;
}

// The shortest way from `start` to the nearest cell, other than `start`, where is_goal(cell, steps) holds, over cells
// where may_enter(cell) does; the goal itself need not. Cells in `closed` are neither. `directions`: 4 or 8. Neighbours
// are tried from direction `turn` on, which decides between ways of equal length.
template <class IsGoal, class MayEnter>
Way find_way(const Torus& torus, std::uint16_t start, std::uint32_t directions, std::uint32_t turn,
             std::span<const std::uint16_t> closed, IsGoal is_goal, MayEnter may_enter, SearchSpace& space) {
  constexpr std::uint8_t kClosed = 255;
  std::memset(space.came_by, 0, torus.size());
  for (const std::uint16_t cell : closed) space.came_by[cell] = kClosed;
  space.came_by[start] = kClosed;
  space.queue[0] = start;
  std::uint32_t steps = 1, end_of_shell = 1;
  for (std::uint32_t first = 0, last = 1; first < last; ++first) {
    const std::uint16_t from = space.queue[first];
    if (first == end_of_shell) {
      ++steps;
      end_of_shell = last;
    }
    for (std::uint32_t i = 0; i < directions; ++i) {
      const std::uint32_t direction = (i + turn) % directions;
      const std::uint16_t to = torus.beside(from, direction);
      if (space.came_by[to] != 0) continue;
      const bool goal = is_goal(to, steps);
      if (!goal && !may_enter(to)) continue;
      space.came_by[to] = static_cast<std::uint8_t>(1 + direction);
      if (goal) return way_found(torus, start, to, steps, space);
      space.queue[last++] = to;
    }
  }
  return Way{};
}

}  // namespace gridmill::grid
