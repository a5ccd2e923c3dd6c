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
// once.
class Tunnels {
 public:
  Tunnels(const ConnectLayer& layer, const Box& area, Canvas& canvas, std::uint32_t labels, std::uint32_t main)
      : price_(static_cast<std::uint32_t>(layer.wall_cost)),
        area_(area),
        canvas_(canvas),
        s_(canvas.s),
        main_(main),
        all_(canvas.is_all(area)) {
    for (std::uint32_t k = 0; k <= labels; ++k) joined_[k] = k > 0 && leaves_the_area(k) ? kCut : 0;
    joined_[main] = main;
    std::fill_n(s_.seen.begin(), static_cast<std::size_t>((canvas.height + 2) * canvas.stride), 0);
  }

  void join(std::uint32_t component) {
    if (joined_[component] == main_ || is_lost(component)) return;
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
      if (s_.label[cell] && joined_[s_.label[cell]] == main_) return dig(cell, component);
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
    joined_[component] = (joined_[component] & kCut) | lost_now();
  }

 private:
  // Beside the main component's number, what may be said of a component.
  static constexpr std::uint32_t kLost = 1u << 31;  // nothing leads to the main one, and how much was known then
  static constexpr std::uint32_t kCut = 1u << 30;   // it leaves the area, so inside it may be in several pieces
  std::uint32_t lost_now() const { return kLost | cut_ones_joined_; }
  // Whether every cell of it was come by in vain: there is no way from it either, until a component is joined that goes
  // on outside of the area and comes back.
  bool is_lost(std::uint32_t component) const {
    return std::all_of(s_.order.begin() + s_.begin[component], s_.order.begin() + s_.begin[component + 1],
                       [this](std::uint32_t cell) {
                         const std::uint32_t by = s_.seen[cell];
                         return !inside(cell) || (by != 0 && (joined_[by] & ~kCut) == lost_now());
                       });
  }
  void set_joined(std::uint32_t component) {
    if (joined_[component] & kCut) ++cut_ones_joined_;
    joined_[component] = main_;
  }
  bool leaves_the_area(std::uint32_t component) const {
    return !all_ && !std::all_of(s_.order.begin() + s_.begin[component], s_.order.begin() + s_.begin[component + 1],
                                 [this](std::uint32_t cell) { return inside(cell); });
  }
  bool inside(std::uint32_t cell) const { return all_ || area_.has(canvas_.row(cell), canvas_.column(cell)); }

  // Opens the way back and joins every component it goes through or passes by.
  void dig(std::uint32_t cell, std::uint32_t component) {
    for (; cell != 0; cell = s_.parent[cell]) {
      if (s_.cells[cell] == kWall) {
        s_.cells[cell] = kFloor;
        s_.label[cell] = main_;
      }
      set_joined(s_.label[cell]);
      for (int direction = 0; direction < 4; ++direction)
        if (const std::uint32_t beside = s_.label[canvas_.beside(cell, direction)]) set_joined(beside);
    }
    set_joined(component);
  }

  const std::uint32_t price_;
  const Box& area_;
  Canvas& canvas_;
  CanvasScratch& s_;
  std::vector<std::uint32_t>& joined_ = s_.list;  // of each component, whether it is joined to the main one
  const std::uint32_t main_;
  const bool all_;
  std::uint32_t cut_ones_joined_ = 0;
};

}  // namespace

void connect_floor(const ConnectLayer& layer, const Box& area, Canvas& canvas) {
  const std::uint32_t labels = label_floor(canvas), main = largest_floor(canvas, labels, area);
  if (labels < 2 || main == 0) return;
  Tunnels tunnels(layer, area, canvas, labels, main);
  for (std::uint32_t component = 1; component <= labels; ++component) tunnels.join(component);
}

}  // namespace gridmill::grid
