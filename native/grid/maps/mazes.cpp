// Mazes: a grid of chambers, all joined by a random tree of passages. How the tree is grown is what tells the kinds
// apart: dfs winds in long ways, kruskal is even, prim is full of short dead ends.
#include <numeric>

#include "grid/maps/canvas.hpp"

namespace gridmill::grid {
namespace {

class Maze {
 public:
  Maze(const MazeLayer& layer, const Box& area, Canvas& canvas, Draws& draws)
      : layer_(layer),
        canvas_(canvas),
        draws_(draws),
        step_(layer.corridor + layer.wall),
        rows_((area.height + layer.wall) / step_),
        columns_((area.width + layer.wall) / step_),
        top_(area.top + (area.height - (rows_ * step_ - layer.wall)) / 2),
        left_(area.left + (area.width - (columns_ * step_ - layer.wall)) / 2) {
    canvas.fill(area, kWall);
  }

  void grow() {
    const auto cells = static_cast<std::size_t>(rows_ * columns_);
    if (cells == 0) return;
    for (std::uint32_t i = 0; i < cells; ++i) chamber(i);
    std::fill_n(joined().begin(), cells, 0);  // bit d: open towards direction d
    if (layer_.method == "dfs") wind();
    else if (layer_.method == "prim") spread();
    else merge();
    if (layer_.loops > 0) open_loops();
  }

 private:
  std::vector<std::uint32_t>& joined() { return canvas_.s.seen; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(rows_ * columns_); }
  // The chamber north, south, west or east of i; count() where there is none.
  std::uint32_t beside(std::uint32_t i, std::uint32_t direction) const {
    const auto columns = static_cast<std::uint32_t>(columns_);
    if (direction == 0) return i >= columns ? i - columns : count();
    if (direction == 1) return i + columns < count() ? i + columns : count();
    if (direction == 2) return i % columns > 0 ? i - 1 : count();
    return i % columns + 1 < columns ? i + 1 : count();
  }
  std::int32_t row_of(std::uint32_t i) const { return top_ + static_cast<std::int32_t>(i) / columns_ * step_; }
  std::int32_t column_of(std::uint32_t i) const { return left_ + static_cast<std::int32_t>(i) % columns_ * step_; }
  void chamber(std::uint32_t i) { canvas_.fill({row_of(i), column_of(i), layer_.corridor, layer_.corridor}, kFloor); }

  void open(std::uint32_t i, std::uint32_t direction) {
    const std::int32_t r = row_of(i), c = column_of(i), corridor = layer_.corridor, wall = layer_.wall;
    if (direction == 0) canvas_.fill({r - wall, c, wall, corridor}, kFloor);
    if (direction == 1) canvas_.fill({r + corridor, c, wall, corridor}, kFloor);
    if (direction == 2) canvas_.fill({r, c - wall, corridor, wall}, kFloor);
    if (direction == 3) canvas_.fill({r, c + corridor, corridor, wall}, kFloor);
    joined()[i] |= 1u << direction;
    joined()[beside(i, direction)] |= 1u << (direction ^ 1);
  }

  // One of the neighbours for which `wanted` holds, at random; 4 if there is none.
  template <class Wanted>
  std::uint32_t choose(std::uint32_t i, Wanted wanted) {
    std::uint32_t found[4], n = 0;
    for (std::uint32_t d = 0; d < 4; ++d)
      if (beside(i, d) < count() && wanted(beside(i, d))) found[n++] = d;
    return n == 0 ? 4 : found[draws_.below(n)];
  }

  void wind() {
    auto& stack = canvas_.s.list;
    std::size_t height = 0;
    stack[height++] = draws_.below(count());
    while (height > 0) {
      const std::uint32_t i = stack[height - 1];
      const auto fresh = [&](std::uint32_t next) { return joined()[next] == 0 && next != stack[0]; };
      const std::uint32_t d = choose(i, fresh);
      if (d == 4) {
        --height;
        continue;
      }
      open(i, d);
      stack[height++] = beside(i, d);
    }
  }

  void spread() {
    auto &frontier = canvas_.s.list, &state = canvas_.s.parent;  // state: 0 outside, 1 frontier, 2 inside
    std::fill_n(state.begin(), count(), 0);
    std::uint32_t n = 0;
    const auto enter = [&](std::uint32_t i) {
      state[i] = 2;
      for (std::uint32_t d = 0; d < 4; ++d) {
        const std::uint32_t next = beside(i, d);
        if (next < count() && state[next] == 0) {
          state[next] = 1;
          frontier[n++] = next;
        }
      }
    };
    enter(draws_.below(count()));
    while (n > 0) {
      std::swap(frontier[draws_.below(n)], frontier[n - 1]);
      const std::uint32_t i = frontier[--n];
      open(i, choose(i, [&](std::uint32_t next) { return state[next] == 2; }));
      enter(i);
    }
  }

  void merge() {
    auto &walls = canvas_.s.list, &root = canvas_.s.parent;
    std::iota(root.begin(), root.begin() + count(), 0u);
    const auto find = [&root](std::uint32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < count(); ++i)
      for (const std::uint32_t d : {1u, 3u})
        if (beside(i, d) < count()) walls[n++] = 4 * i + d;
    for (; n > 0; --n) {
      std::swap(walls[draws_.below(n)], walls[n - 1]);
      const std::uint32_t i = walls[n - 1] / 4, d = walls[n - 1] % 4;
      const std::uint32_t here = find(i), there = find(beside(i, d));
      if (here == there) continue;
      root[here] = there;
      open(i, d);
    }
  }

  void open_loops() {
    for (std::uint32_t i = 0; i < count(); ++i)
      for (const std::uint32_t d : {1u, 3u})
        if (beside(i, d) < count() && !(joined()[i] >> d & 1) && draws_.chance(layer_.loops)) open(i, d);
  }

  const MazeLayer& layer_;
  Canvas& canvas_;
  Draws& draws_;
  const std::int32_t step_, rows_, columns_, top_, left_;
};

}  // namespace

void paint(const MazeLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  Maze(layer, area, canvas, draws).grow();
}

}  // namespace gridmill::grid
