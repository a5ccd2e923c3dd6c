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

// No second try for a draw that comes too near: the number of buildings differs from map to map. Their types come from
// a shuffled deck in the proportion of the weights, so that no map is short of one by bad luck.
void place_buildings(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  const auto& config = std::get<BuildingsLayer>(layer.node.data);
  const Box inner = Canvas::clipped(area.top + config.margin, area.left + config.margin,
                                    area.height - 2 * config.margin, area.width - 2 * config.margin, area);
  if (inner.height == 0 || inner.width == 0) return;
  const auto around = [&](std::int32_t r, std::int32_t c, std::int32_t reach, auto&& visit) {
    const Box near = Canvas::clipped(r - reach, c - reach, 2 * reach + 1, 2 * reach + 1, area);
    for (std::int32_t y = near.top; y < near.bottom(); ++y)
      for (std::int32_t x = near.left; x < near.right(); ++x) visit(canvas.at(y, x));
  };
  std::uint32_t deck[64];
  std::copy(layer.quota.begin(), layer.quota.end(), deck);
  for (std::int32_t left = config.draws; left > 0; --left) {
    const std::int32_t r = draws.between(inner.top, inner.bottom() - 1);
    const std::int32_t c = draws.between(inner.left, inner.right() - 1);
    std::uint32_t card = draws.below(static_cast<std::uint32_t>(left)), type = 0;
    for (; card >= deck[type]; ++type) card -= deck[type];
    --deck[type];
    bool crowded = false;
    around(r, c, config.apart, [&](Cell cell) { crowded = crowded || is_thing(cell) || cell == kPad; });
    if (crowded) continue;
    around(r, c, config.clear, [](Cell& cell) { cell = cell == kWall ? kFloor : cell; });
    canvas.at(r, c) = layer.things[type];
  }
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
