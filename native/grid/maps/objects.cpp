// What stands on a canvas: compounds, buildings that clear their surroundings, and objects that close no way.
#include "grid/maps/canvas.hpp"

namespace gridmill::grid {
namespace {

// True if floor stays in one piece without this cell, and everything beside it can still be walked up to.
bool closes_nothing(const Canvas& canvas, std::uint32_t i) {
  const auto& cells = canvas.s.cells;
  const auto stride = static_cast<std::uint32_t>(canvas.stride);
  const std::uint32_t ring[] = {i - stride, i - stride + 1, i + 1, i + stride + 1,
                                i + stride, i + stride - 1, i - 1, i - stride - 1};
  bool open[9];
  for (int k = 0; k < 8; ++k) open[k] = is_open(cells[ring[k]]);
  open[8] = open[0];
  // How many separate pieces of floor meet here, and whether there is any at all.
  int pieces = 0;
  for (int k = 0; k < 8; k += 2) pieces += open[k] && !(open[k + 1] && open[k + 2]);
  if (pieces > 1 || (pieces == 0 && !open[0])) return false;
  for (int direction = 0; direction < 4; ++direction) {
    const std::uint32_t thing = canvas.beside(i, direction);
    if (!is_thing(cells[thing])) continue;
    bool reachable = false;
    for (int d = 0; d < 4; ++d)
      reachable = reachable || (canvas.beside(thing, d) != i && is_open(cells[canvas.beside(thing, d)]));
    if (!reachable) return false;
  }
  return true;
}

}  // namespace

void place_compound(const CompiledLayer& layer, const Box& area, Canvas& canvas) {
  const auto& config = std::get<CompoundLayer>(layer.node.data);
  const std::int32_t half = config.side / 2, r = area.middle_row(), c = area.middle_column();
  const auto square = [&](std::int32_t reach) {
    return Canvas::clipped(r - reach, c - reach, 2 * reach + 1, 2 * reach + 1, area);
  };
  canvas.fill(square(half + config.clear), kFloor);
  canvas.fill(square(half), kWall);
  canvas.fill(square(half - config.wall), kFloor);
  const std::int32_t gate = config.gate / 2;
  canvas.fill(Canvas::clipped(r - half, c - gate, config.side, config.gate, area), kFloor);
  canvas.fill(Canvas::clipped(r - gate, c - half, config.gate, config.side, area), kFloor);
  for (std::size_t i = 0; i < config.things.size(); ++i) {
    const Standing& thing = config.things[i];
    if (area.has(r + thing.row, c + thing.column)) canvas.at(r + thing.row, c + thing.column) = layer.things[i];
  }
}

// Marks, in scratch.seen, every cell of an area that has a wanted one at most so many rows and columns away: sums over
// rectangles (scratch.near), so that it takes as long for any distance.
template <class Wanted>
void mark_near(Canvas& canvas, const Box& area, std::int32_t reach, Wanted wanted) {
  auto& sums = canvas.s.near;
  const auto sum = [&](std::int32_t rows, std::int32_t columns) -> std::uint32_t& {
    return sums[static_cast<std::size_t>(rows) * static_cast<std::size_t>(area.width + 1) +
                static_cast<std::size_t>(columns)];
  };
  for (std::int32_t c = 0; c <= area.width; ++c) sum(0, c) = 0;
  for (std::int32_t r = 0; r < area.height; ++r) {
    std::uint32_t of_row = sum(r + 1, 0) = 0;
    for (std::int32_t c = 0; c < area.width; ++c) {
      of_row += wanted(canvas.index(area.top + r, area.left + c));
      sum(r + 1, c + 1) = sum(r, c + 1) + of_row;
    }
  }
  for (std::int32_t r = 0; r < area.height; ++r)
    for (std::int32_t c = 0; c < area.width; ++c) {
      const std::int32_t top = std::max(r - reach, 0), bottom = std::min(r + reach + 1, area.height);
      const std::int32_t left = std::max(c - reach, 0), right = std::min(c + reach + 1, area.width);
      const std::uint32_t count = sum(bottom, right) - sum(top, right) - sum(bottom, left) + sum(top, left);
      canvas.s.seen[canvas.index(area.top + r, area.left + c)] = count > 0;
    }
}

// No second try for a draw that comes too near: the number of buildings differs from map to map. Their types come from
// a shuffled deck in the proportion of the weights, so that no map is short of one by bad luck. Whether a draw is kept
// is one look at its cell, however many there are and however far apart they must be; the ground is cleared at the end,
// which is the same, since walls crowd nobody.
void place_buildings(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  const auto& config = std::get<BuildingsLayer>(layer.node.data);
  const Box inner = Canvas::clipped(area.top + config.margin, area.left + config.margin,
                                    area.height - 2 * config.margin, area.width - 2 * config.margin, area);
  if (inner.height == 0 || inner.width == 0) return;
  auto &crowded = canvas.s.seen, &kept = canvas.s.far;
  const auto crowds = [&](std::uint32_t i) { return is_thing(canvas.s.cells[i]) || canvas.s.cells[i] == kPad; };
  mark_near(canvas, area, config.apart, crowds);
  const auto each = [&](const Box& box, auto&& visit) {
    for (std::int32_t r = box.top; r < box.bottom(); ++r)
      for (std::int32_t c = box.left; c < box.right(); ++c) visit(canvas.index(r, c));
  };
  each(area, [&](std::uint32_t i) { kept[i] = 0; });
  std::uint32_t deck[64];
  std::copy(layer.quota.begin(), layer.quota.end(), deck);
  for (std::int32_t left = config.draws; left > 0; --left) {
    const std::int32_t r = draws.between(inner.top, inner.bottom() - 1);
    const std::int32_t c = draws.between(inner.left, inner.right() - 1);
    std::uint32_t card = draws.below(static_cast<std::uint32_t>(left)), type = 0;
    for (; card >= deck[type]; ++type) card -= deck[type];
    --deck[type];
    const std::uint32_t here = canvas.index(r, c);
    if (crowded[here]) continue;
    canvas.s.cells[here] = layer.things[type];
    kept[here] = 1;
    if (!crowds(here)) continue;
    const std::int32_t side = 2 * config.apart + 1;  // those kept are so far apart that their squares hardly overlap
    each(Canvas::clipped(r - config.apart, c - config.apart, side, side, area),
         [&](std::uint32_t i) { crowded[i] = 1; });
  }
  mark_near(canvas, area, config.clear, [&](std::uint32_t i) { return kept[i] != 0; });
  each(area, [&](std::uint32_t i) {
    if (crowded[i] && canvas.s.cells[i] == kWall) canvas.s.cells[i] = kFloor;
  });
}

// On the largest floor of the area, at random cells where nothing is closed off.
bool place_objects(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  const auto& config = std::get<ObjectsLayer>(layer.node.data);
  const std::uint32_t labels = label_floor(canvas), floor = largest_floor(canvas, labels, area);
  auto& free = canvas.s.list;
  std::uint32_t n = 0;
  for (std::int32_t r = area.top; r < area.bottom(); ++r)
    for (std::int32_t c = area.left; c < area.right(); ++c)
      if (canvas.at(r, c) == kFloor && canvas.s.label[canvas.index(r, c)] == floor) free[n++] = canvas.index(r, c);
  for (std::size_t i = 0; i < config.counts.size(); ++i)
    for (std::int64_t left = config.counts[i].second; left > 0;) {
      if (n == 0) return false;
      std::swap(free[draws.below(n)], free[n - 1]);
      const std::uint32_t cell = free[--n];
      if (layer.things[i] != kPad && !closes_nothing(canvas, cell)) continue;
      canvas.s.cells[cell] = layer.things[i];
      --left;
    }
  return true;
}

}  // namespace gridmill::grid
