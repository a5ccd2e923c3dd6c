// Floor that hangs together: components of open cells, and tunnels that join them.
#include <algorithm>

#include "grid/maps/canvas.hpp"

namespace gridmill::grid {

std::uint32_t label_floor(Canvas& canvas) {
  CanvasScratch& s = canvas.s;
  std::fill_n(s.label.begin(), static_cast<std::size_t>((canvas.height + 2) * canvas.stride), 0);
  std::uint32_t labels = 0, head = 0, tail = 0;
  for (std::int32_t r = 0; r < canvas.height; ++r)
    for (std::int32_t c = 0; c < canvas.width; ++c) {
      const std::uint32_t start = canvas.index(r, c);
      if (!is_open(s.cells[start]) || s.label[start]) continue;
      s.begin[++labels] = tail;
      s.order[tail++] = start;
      s.label[start] = labels;
      while (head < tail) {
        const std::uint32_t cell = s.order[head++];
        for (int direction = 0; direction < 4; ++direction) {
          const std::uint32_t next = canvas.beside(cell, direction);
          if (is_open(s.cells[next]) && !s.label[next]) {
            s.label[next] = labels;
            s.order[tail++] = next;
          }
        }
      }
    }
  s.begin[labels + 1] = tail;
  return labels;
}

std::uint32_t largest_floor(const Canvas& canvas, std::uint32_t labels, const Box& area) {
  const CanvasScratch& s = canvas.s;
  std::uint32_t best = 0;
  std::ptrdiff_t most = 0;
  for (std::uint32_t k = 1; k <= labels; ++k) {
    const auto first = s.order.begin() + s.begin[k], last = s.order.begin() + s.begin[k + 1];
    const std::ptrdiff_t cells =
        canvas.is_all(area) ? last - first : std::count_if(first, last, [&](std::uint32_t cell) {
          return area.has(canvas.row(cell), canvas.column(cell));
        });
    if (cells > most) {
      best = k;
      most = cells;
    }
  }
  return best;
}

namespace {

// Cheapest ways from one component to the main one. What entering a cell costs depends on the cell alone, and there are
// two prices; so two first-in-first-out lists, one per price, are always sorted, and every cell enters one of them
// once. Most searches end soon; where many go far or in vain, one search from the main component joins what is left.
class Tunnels {
 public:
  Tunnels(const ConnectLayer& layer, const Box& area, Canvas& canvas, std::uint32_t labels, std::uint32_t main)
      : price_(static_cast<std::uint32_t>(layer.wall_cost)),
        area_(area),
        canvas_(canvas),
        s_(canvas.s),
        labels_(labels),
        main_(main),
        all_(canvas.is_all(area)) {
    std::fill_n(joined_.begin(), labels + 1, 0);
    joined_[main] = 1;
    forget_seen();
  }

  void join_all() {
    const std::size_t most = kSearchesOfAll * static_cast<std::size_t>(area_.height * area_.width) + kOfASmallArea;
    for (std::uint32_t component = 1; component <= labels_; ++component) {
      if (searched_ > most) return join_the_rest();
      if (!joined_[component]) join(component);
    }
  }

 private:
  // Cells that may be looked at: the whole area so often, and some more. Maps of games need a third of it.
  static constexpr std::size_t kSearchesOfAll = 4, kOfASmallArea = 4000;

  void join(std::uint32_t component) {
    std::uint32_t near_head = 0, near_tail = 0, far_head = 0, far_tail = 0;
    for (std::uint32_t k = s_.begin[component]; k < s_.begin[component + 1]; ++k) {
      const std::uint32_t cell = s_.order[k];
      if (!inside(cell)) continue;
      s_.seen[cell] = component;
      s_.cost[cell] = 0;
      s_.parent[cell] = 0;
      s_.near[near_tail++] = cell;
    }
    while (near_head < near_tail || far_head < far_tail) {
      const bool take_near =
          far_head == far_tail || (near_head < near_tail && s_.cost[s_.near[near_head]] <= s_.cost[s_.far[far_head]]);
      const std::uint32_t cell = take_near ? s_.near[near_head++] : s_.far[far_head++];
      ++searched_;
      if (joined_[s_.label[cell]]) return dig(cell, component);
      for (int direction = 0; direction < 4; ++direction) {
        const std::uint32_t next = canvas_.beside(cell, direction);
        const Cell what = s_.cells[next];
        if (s_.seen[next] == component || (what != kWall && !is_open(what)) || !inside(next)) continue;
        s_.seen[next] = component;
        s_.parent[next] = cell;
        s_.cost[next] = s_.cost[cell] + (what == kWall ? price_ : 1);
        if (what == kWall) s_.far[far_tail++] = next;
        else s_.near[near_tail++] = next;
      }
    }
  }

  // Opens the way back and joins every component it goes through or passes by.
  void dig(std::uint32_t cell, std::uint32_t component) {
    for (; cell != 0; cell = s_.parent[cell]) {
      if (s_.cells[cell] == kWall) {
        s_.cells[cell] = kFloor;
        s_.label[cell] = main_;
      }
      joined_[s_.label[cell]] = 1;
      for (int direction = 0; direction < 4; ++direction)
        if (const std::uint32_t beside = s_.label[canvas_.beside(cell, direction)]) joined_[beside] = 1;
    }
    joined_[component] = 1;
  }

  // From all floor that is joined through ever more walls: what it meets is joined, and the search goes on from there
  // too.
  void join_the_rest() {
    forget_seen();
    for (std::int32_t r = area_.top; r < area_.bottom(); ++r)
      for (std::int32_t c = area_.left; c < area_.right(); ++c)
        if (const std::uint32_t cell = canvas_.index(r, c); joined_[s_.label[cell]]) list_walls_beside(cell);
    for (std::uint32_t head = 0; head < walls_; ++head) {
      const std::uint32_t wall = s_.near[head];
      for (int direction = 0; direction < 4; ++direction) {
        const std::uint32_t beside = canvas_.beside(wall, direction), component = s_.label[beside];
        if (component != 0 && !joined_[component] && inside(beside)) dig_back(wall);
      }
      list_walls_beside(wall);
    }
  }

  void list_walls_beside(std::uint32_t cell) {
    for (int direction = 0; direction < 4; ++direction) {
      const std::uint32_t next = canvas_.beside(cell, direction);
      if (s_.cells[next] != kWall || s_.seen[next] || !inside(next)) continue;
      s_.seen[next] = main_;
      s_.parent[next] = cell;
      s_.near[walls_++] = next;
    }
  }

  void dig_back(std::uint32_t wall) {
    for (std::uint32_t cell = wall; s_.cells[cell] == kWall; cell = s_.parent[cell]) {
      s_.cells[cell] = kFloor;
      s_.label[cell] = main_;
      for (int direction = 0; direction < 4; ++direction) {
        const std::uint32_t component = s_.label[canvas_.beside(cell, direction)];
        if (component == 0 || joined_[component]) continue;
        joined_[component] = 1;
        for (std::uint32_t k = s_.begin[component]; k < s_.begin[component + 1]; ++k)
          if (inside(s_.order[k])) list_walls_beside(s_.order[k]);
      }
    }
  }

  bool inside(std::uint32_t cell) const { return all_ || area_.has(canvas_.row(cell), canvas_.column(cell)); }
  std::size_t padded_cells() const { return static_cast<std::size_t>((canvas_.height + 2) * canvas_.stride); }
  void forget_seen() { std::fill_n(s_.seen.begin(), padded_cells(), 0); }

  const std::uint32_t price_;
  const Box& area_;
  Canvas& canvas_;
  CanvasScratch& s_;
  std::vector<std::uint32_t>& joined_ = s_.list;  // of each component, whether it is joined to the main one
  const std::uint32_t labels_, main_;
  const bool all_;
  std::size_t searched_ = 0;  // cells
  std::uint32_t walls_ = 0;   // in the list of walls to look at, in the search for the rest
};

}  // namespace

void connect_floor(const ConnectLayer& layer, const Box& area, Canvas& canvas) {
  const std::uint32_t labels = label_floor(canvas), main = largest_floor(canvas, labels, area);
  if (labels < 2 || main == 0) return;
  Tunnels(layer, area, canvas, labels, main).join_all();
}

}  // namespace gridmill::grid
