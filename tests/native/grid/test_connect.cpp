// Tunnels against the plain search for the cheapest way, one component after the other, on random canvases and on parts
// of them: the same cells are dug.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "check.hpp"
#include "grid/maps/canvas.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

// Cheapest first; at one price what was floor, then what was wall, each in the order in which it was found.
using Found = std::tuple<std::uint32_t, bool, std::uint32_t, std::uint32_t>;  // cost, wall, number, cell

class Obvious {
 public:
  Obvious(std::uint32_t wall_cost, const Box& area, Canvas& canvas)
      : wall_cost_(wall_cost), area_(area), canvas_(canvas) {}

  void connect() {
    const std::uint32_t labels = label_floor(canvas_), main = largest_floor(canvas_, labels, area_);
    if (main == 0) return;
    joined_ = {main};
    for (std::uint32_t component = 1; component <= labels; ++component)
      if (!joined_.contains(component)) search(component, main);
  }

 private:
  bool inside(std::uint32_t cell) const { return area_.has(canvas_.row(cell), canvas_.column(cell)); }

  void search(std::uint32_t component, std::uint32_t main) {
    std::map<std::uint32_t, std::uint32_t> parent;
    std::set<Found> open;
    std::uint32_t number = 0;
    for (std::uint32_t k = canvas_.s.begin[component]; k < canvas_.s.begin[component + 1]; ++k) {
      const std::uint32_t cell = canvas_.s.order[k];
      if (!inside(cell)) continue;
      parent[cell] = 0;
      open.insert({0, false, number++, cell});
    }
    while (!open.empty()) {
      const auto [cost, wall, order, cell] = *open.begin();
      open.erase(open.begin());
      if (const std::uint32_t label = canvas_.s.label[cell]; label && joined_.contains(label))
        return dig(cell, parent, component, main);
      for (int direction = 0; direction < 4; ++direction) {
        const std::uint32_t next = canvas_.beside(cell, direction);
        const Cell what = canvas_.s.cells[next];
        if (parent.contains(next) || (what != kWall && !is_open(what)) || !inside(next)) continue;
        parent[next] = cell;
        open.insert({cost + (what == kWall ? wall_cost_ : 1), what == kWall, number++, next});
      }
    }
  }

  void dig(std::uint32_t cell, std::map<std::uint32_t, std::uint32_t>& parent, std::uint32_t component,
           std::uint32_t main) {
    for (; cell != 0; cell = parent[cell]) {
      if (canvas_.s.cells[cell] == kWall) {
        canvas_.s.cells[cell] = kFloor;
        canvas_.s.label[cell] = main;
      }
      joined_.insert(canvas_.s.label[cell]);
      for (int direction = 0; direction < 4; ++direction)
        if (const std::uint32_t label = canvas_.s.label[canvas_.beside(cell, direction)]) joined_.insert(label);
    }
    joined_.insert(component);
  }

  const std::uint32_t wall_cost_;
  const Box area_;
  Canvas& canvas_;
  std::set<std::uint32_t> joined_;
};

}  // namespace

TEST(tunnels_are_dug_where_a_plain_search_digs_them) {
  std::uint32_t dug = 0, left_over = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Draws draws(Stream({seed, 0, 0}, 0, 79));
    const std::int32_t height = draws.between(1, 14), width = draws.between(1, 14);
    CanvasScratch one, other;
    for (auto* scratch : {&one, &other}) scratch->fit(static_cast<std::size_t>((height + 2) * (width + 2)));
    Canvas fast(height, width, one), plain(height, width, other);
    const std::uint32_t things = draws.below(60), walls = draws.below(100);
    for (std::int32_t r = 0; r < height; ++r)
      for (std::int32_t c = 0; c < width; ++c) {
        const bool thing = draws.below(100) < things, wall = draws.below(100) < walls;
        fast.at(r, c) = plain.at(r, c) = thing ? kThing : wall ? kWall : draws.below(20) == 0 ? kPad : kFloor;
      }
    Box area = fast.all();
    if (seed % 2 == 1) {
      area.top = draws.between(0, height - 1);
      area.left = draws.between(0, width - 1);
      area.height = draws.between(1, height - area.top);
      area.width = draws.between(1, width - area.left);
    }
    ConnectLayer layer;
    layer.wall_cost = draws.between(1, 30);
    const std::vector<Cell> before = one.cells;
    connect_floor(layer, area, fast);
    Obvious(static_cast<std::uint32_t>(layer.wall_cost), area, plain).connect();
    CHECK(one.cells == other.cells);
    dug += one.cells != before;
    left_over += label_floor(fast) > 1;
  }
  CHECK(dug > 2000);
  CHECK(left_over > 2000);
}

// What hangs together through floor and walls inside the area has at most one component of floor.
bool is_all_joined(Canvas& canvas, const Box& area) {
  const std::uint32_t labels = label_floor(canvas), main = largest_floor(canvas, labels, area);
  const auto& s = canvas.s;
  std::vector<std::uint32_t> reached;
  std::set<std::uint32_t> seen;
  const auto reach = [&](std::uint32_t cell) {
    const bool passable = is_open(s.cells[cell]) || s.cells[cell] == kWall;
    if (passable && area.has(canvas.row(cell), canvas.column(cell)) && seen.insert(cell).second)
      reached.push_back(cell);
  };
  for (std::uint32_t k = s.begin[main]; k < s.begin[main + 1]; ++k) reach(s.order[k]);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (const std::uint32_t label = s.label[reached[i]]; label && label != main) return false;
    for (int direction = 0; direction < 4; ++direction) reach(canvas.beside(reached[i], direction));
  }
  return true;
}

TEST(where_many_searches_are_in_vain_all_that_can_be_joined_is_joined) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Draws draws(Stream({seed, 0, 0}, 0, 80));
    const std::int32_t size = draws.between(80, 120);
    CanvasScratch scratch;
    scratch.fit(static_cast<std::size_t>((size + 2) * (size + 2)));
    Canvas canvas(size, size, scratch);
    const std::uint32_t floor = 5 + draws.below(30);
    for (std::int32_t r = 0; r < size; ++r)
      for (std::int32_t c = 0; c < size; ++c)
        canvas.at(r, c) = c == size / 2 ? kThing : draws.below(100) < floor ? kFloor : kWall;
    Box area = canvas.all();
    if (seed % 2 == 1) {  // floor outside of it goes around the fence
      area = {4, 0, size - 8, size};
      canvas.fill({size - 6, 0, 6, 2}, kFloor);
      canvas.fill({size - 1, 0, 1, size}, kFloor);
      canvas.fill({size - 6, size - 2, 6, 2}, kFloor);
    }
    const auto walls = [&] { return std::count(scratch.cells.begin(), scratch.cells.end(), kWall); };
    const auto before = walls();
    connect_floor(ConnectLayer(), area, canvas);
    CHECK(walls() < before);
    CHECK(is_all_joined(canvas, area));
  }
}

TEST(floor_that_leaves_the_area_and_comes_back_is_joined_where_it_can_be) {
  // The area is the three columns on the left. What is alone in the corner reaches one piece of the floor that comes
  // in from the right, and no way on; the other piece of it lies beside the largest floor.
  const char* picture[] = {".#...",  //
                           "bbbb.",  //
                           "##...",  //
                           "..#..",  //
                           "..#.."};
  CanvasScratch scratch;
  scratch.fit(7 * 7);
  Canvas canvas(5, 5, scratch);
  for (std::int32_t r = 0; r < 5; ++r)
    for (std::int32_t c = 0; c < 5; ++c)
      canvas.at(r, c) = picture[r][c] == '.' ? kFloor : picture[r][c] == '#' ? kWall : kThing;
  ConnectLayer layer;
  layer.wall_cost = 3;
  connect_floor(layer, {0, 0, 5, 3}, canvas);
  label_floor(canvas);
  CHECK_EQ(scratch.label[canvas.index(2, 2)], scratch.label[canvas.index(3, 0)]);
}
