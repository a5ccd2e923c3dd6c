// Ways over a map that is joined at its edges, held against a search without any cleverness: distances that are relaxed
// until nothing changes.
#include <memory>
#include <vector>

#include "check.hpp"
#include "core/random.hpp"
#include "grid/scripts/path.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

enum Cell : std::uint8_t { kOpen, kRock, kPrize };

struct Land {
  Torus torus;
  std::vector<std::uint8_t> cells;
  std::uint16_t start;
  std::uint32_t directions, turn;
  std::vector<std::uint16_t> closed;
};

Land draw_land(std::uint64_t seed) {
  const Stream draw({seed, 0, 0}, 0, 79);
  std::uint32_t at = 0;
  const auto below = [&](std::uint32_t n) { return draw.below(at++, n); };
  Land land{Torus(1 + below(40), 1 + below(40)), {}, 0, below(2) ? 4u : 8u, below(8), {}};
  land.cells.resize(land.torus.size());
  const std::uint32_t rocks = below(60), prizes = below(4);
  for (auto& cell : land.cells) cell = below(100) < rocks ? kRock : kOpen;
  for (std::uint32_t i = 0; i < prizes; ++i) land.cells[below(land.torus.size())] = kPrize;
  land.start = static_cast<std::uint16_t>(below(land.torus.size()));
  for (std::uint32_t i = below(5); i > 0; --i) {
    const auto cell = static_cast<std::uint16_t>(below(land.torus.size()));
    if (cell != land.start) land.closed.push_back(cell);
  }
  return land;
}

bool is_closed(const Land& land, std::uint16_t cell) {
  return std::find(land.closed.begin(), land.closed.end(), cell) != land.closed.end();
}

// The cell a step leads to, by division and remainder.
std::uint16_t stepped(const Torus& torus, std::uint16_t cell, std::uint32_t direction) {
  const auto rows = static_cast<int>(torus.rows()), columns = static_cast<int>(torus.columns());
  const int row = (cell / columns + kDirections[direction].row + rows) % rows;
  const int column = (cell % columns + kDirections[direction].column + columns) % columns;
  return static_cast<std::uint16_t>(row * columns + column);
}

// Steps to the nearest prize, 0 without one: cells are looked at until nothing changes any more, forwards and backwards
// in turns, for ways lead both ways.
std::uint32_t reference_length(const Land& land) {
  constexpr std::uint32_t kFar = 1u << 30;
  std::vector<std::uint32_t> distance(land.torus.size(), kFar);
  distance[land.start] = 0;
  for (bool changed = true, back = false; changed; back = !back) {
    changed = false;
    for (std::uint32_t i = 0; i < land.torus.size(); ++i) {
      const auto from = static_cast<std::uint16_t>(back ? land.torus.size() - 1 - i : i);
      if (distance[from] == kFar || (from != land.start && land.cells[from] != kOpen)) continue;
      for (std::uint32_t d = 0; d < land.directions; ++d) {
        const std::uint16_t to = stepped(land.torus, from, d);
        if (is_closed(land, to) || land.cells[to] == kRock || distance[to] <= distance[from] + 1) continue;
        distance[to] = distance[from] + 1;
        changed = true;
      }
    }
  }
  std::uint32_t nearest = kFar;
  for (std::uint32_t cell = 0; cell < land.torus.size(); ++cell)
    if (land.cells[cell] == kPrize && cell != land.start) nearest = std::min(nearest, distance[cell]);
  return nearest == kFar ? 0 : nearest;
}

Way search(const Land& land, SearchSpace& space) {
  return find_way(
      land.torus, land.start, land.directions, land.turn, land.closed,
      [&](std::uint16_t cell, std::uint32_t) { return land.cells[cell] == kPrize; },
      [&](std::uint16_t cell) { return land.cells[cell] == kOpen; }, space);
}

}  // namespace

TEST(ways_are_as_short_as_the_reference_says_and_lead_there) {
  const auto space = std::make_unique<SearchSpace>();
  std::uint32_t found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Land land = draw_land(seed);
    const Way way = search(land, *space);
    CHECK_EQ(way.length, reference_length(land));
    if (way.length == 0) continue;
    ++found;
    std::uint16_t cell = land.start;
    for (std::uint32_t i = 0; i < way.num_steps(); ++i) {
      CHECK(i == 0 || land.cells[cell] == kOpen);
      cell = stepped(land.torus, cell, way.steps[i]);
      CHECK(!is_closed(land, cell));
    }
    if (way.length <= Way::kMostSteps) {
      CHECK_EQ(cell, way.goal);
      CHECK_EQ(int{land.cells[cell]}, int{kPrize});
    }
  }
  CHECK(found > 100);
}

TEST(a_long_way_is_remembered_by_its_first_steps) {
  // One corridor that winds through 32 x 32 cells: every second row a wall with a hole at alternating ends.
  Land land{Torus(32, 32), std::vector<std::uint8_t>(1024, kRock), 0, 4, 0, {}};
  for (std::uint32_t row = 0; row < 31; ++row)
    for (std::uint32_t column = 0; column < 31; ++column)
      if (row % 2 == 0 || column == (row % 4 == 1 ? 30u : 0u)) land.cells[row * 32 + column] = kOpen;
  land.cells[30 * 32] = kPrize;
  const auto space = std::make_unique<SearchSpace>();
  const Way way = search(land, *space);
  CHECK_EQ(way.length, reference_length(land));
  CHECK_EQ(way.length, 16u * 30 + 30);
  CHECK_EQ(way.num_steps(), Way::kMostSteps);
  std::uint16_t cell = land.start;
  for (std::uint32_t i = 0; i < way.num_steps(); ++i) {
    cell = stepped(land.torus, cell, way.steps[i]);
    CHECK_EQ(int{land.cells[cell]}, int{kOpen});
  }
}

TEST(a_map_joined_at_its_edges) {
  const Torus torus(50, 1000);
  CHECK_EQ(torus.rows(), 64u);
  CHECK_EQ(torus.columns(), kLongestSide);
  CHECK_EQ(torus.at(-1, -1), torus.at(63, 127));
  CHECK_EQ(torus.rows_between(torus.at(1, 0), torus.at(-2, 0)), -3);
  CHECK_EQ(torus.columns_between(torus.at(0, -2), torus.at(0, 5)), 7);
  CHECK_EQ(torus.beside(torus.at(0, 0), 0), torus.at(63, 0));
  CHECK_EQ(torus.beside(torus.at(63, 127), 7), torus.at(0, 0));
}
