// Floor plans: a grid of rooms, rooms of a binary space partition, and arms from a centre.
#include <numeric>

#include "grid/maps/canvas.hpp"

namespace gridmill::grid {
namespace {

// Where room i of n begins and ends (first cell after it) on a line of `length` cells.
struct Line {
  std::int32_t length, n, wall;
  std::int32_t begin(std::int32_t i) const { return i * (length + wall) / n; }
  std::int32_t end(std::int32_t i) const { return begin(i + 1) - wall; }
};

// A door somewhere in the part of the wall that the two rooms share.
void open_door(const RoomsLayer& layer, const Box& area, const Line& down, const Line& across, std::uint32_t room,
               bool south, Canvas& canvas, Draws& draws) {
  const std::int32_t r = static_cast<std::int32_t>(room) / layer.columns;
  const std::int32_t c = static_cast<std::int32_t>(room) % layer.columns;
  if (south) {
    const std::int32_t at = draws.between(across.begin(c), across.end(c) - layer.door);
    canvas.fill({area.top + down.end(r), area.left + at, layer.wall, layer.door}, kFloor);
  } else {
    const std::int32_t at = draws.between(down.begin(r), down.end(r) - layer.door);
    canvas.fill({area.top + at, area.left + across.end(c), layer.door, layer.wall}, kFloor);
  }
}

// A way from one cell to another, first along one axis and then along the other.
void dig(const Box& area, std::int32_t r, std::int32_t c, std::int32_t to_r, std::int32_t to_c, std::int32_t width,
         bool rows_first, Canvas& canvas) {
  const std::int32_t back = (width - 1) / 2, corner_r = rows_first ? to_r : r, corner_c = rows_first ? c : to_c;
  const auto straight = [&](std::int32_t r0, std::int32_t c0, std::int32_t r1, std::int32_t c1) {
    const std::int32_t top = std::min(r0, r1), left = std::min(c0, c1);
    canvas.fill(
        Canvas::clipped(top - back, left - back, std::max(r0, r1) - top + width, std::max(c0, c1) - left + width, area),
        kFloor);
  };
  straight(r, c, corner_r, corner_c);
  straight(corner_r, corner_c, to_r, to_c);
}

struct Point {
  std::int32_t row, column;
};

// The point `along` cells clockwise on the edge of the area, from the middle of its northern side.
Point on_edge(const Box& area, std::int32_t along) {
  const std::int32_t across = area.width - 1, down = area.height - 1;
  std::int32_t at = (along + (area.middle_column() - area.left)) % (2 * (across + down));
  if (at < across) return {area.top, area.left + at};
  at -= across;
  if (at < down) return {area.top + at, area.right() - 1};
  at -= down;
  if (at < across) return {area.bottom() - 1, area.right() - 1 - at};
  return {area.bottom() - 1 - (at - across), area.left};
}

// Squares of `width` cells along a line that moves one cell north, south, west or east at a time.
void stroke(const Box& area, Point from, Point to, std::int32_t width, Cell cell, Canvas& canvas) {
  const std::int32_t rows = std::abs(to.row - from.row), columns = std::abs(to.column - from.column);
  const std::int32_t down = to.row > from.row ? 1 : -1, east = to.column > from.column ? 1 : -1;
  for (std::int32_t r = 0, c = 0; r <= rows && c <= columns;) {
    canvas.fill(Canvas::clipped(from.row - (width - 1) / 2, from.column - (width - 1) / 2, width, width, area), cell);
    if ((1 + 2 * c) * rows < (1 + 2 * r) * columns) {
      ++c;
      from.column += east;
    } else {
      ++r;
      from.row += down;
    }
  }
}

}  // namespace

// A random tree of doors joins all rooms; other walls get a door by chance.
void paint(const RoomsLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  const Line down{area.height, layer.rows, layer.wall}, across{area.width, layer.columns, layer.wall};
  if (down.end(0) < layer.door || across.end(0) < layer.door) return;
  canvas.fill(area, kWall);
  for (std::int32_t r = 0; r < layer.rows; ++r)
    for (std::int32_t c = 0; c < layer.columns; ++c)
      canvas.fill({area.top + down.begin(r), area.left + across.begin(c), down.end(r) - down.begin(r),
                   across.end(c) - across.begin(c)},
                  kFloor);
  auto &walls = canvas.s.list, &root = canvas.s.parent;
  const auto rooms = static_cast<std::uint32_t>(layer.rows * layer.columns);
  std::iota(root.begin(), root.begin() + rooms, 0u);
  const auto find = [&root](std::uint32_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  const auto columns = static_cast<std::uint32_t>(layer.columns);
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < rooms; ++i) {
    if (i + columns < rooms) walls[n++] = 2 * i;
    if (i % columns + 1 < columns) walls[n++] = 2 * i + 1;
  }
  for (; n > 0; --n) {
    std::swap(walls[draws.below(n)], walls[n - 1]);
    const std::uint32_t i = walls[n - 1] / 2;
    const bool south = walls[n - 1] % 2 == 0;
    const std::uint32_t here = find(i), there = find(south ? i + columns : i + 1);
    if (here == there && !draws.chance(layer.extra_doors)) continue;
    root[here] = there;
    open_door(layer, area, down, across, i, south, canvas, draws);
  }
}

// Cuts the part with most cells in two, across its longer side, until there are enough or none can be cut.
Split split_area(const Box& area, std::int32_t count, std::int32_t smallest, Draws& draws) {
  Split split;
  split.parts[0] = area;
  split.came_from[0] = 0;
  split.count = 1;
  while (split.count < count) {
    std::int32_t best = -1;
    for (std::int32_t i = 0; i < split.count; ++i) {
      const Box& part = split.parts[i];
      if (std::max(part.height, part.width) < 2 * smallest) continue;
      if (best < 0 || part.height * part.width > split.parts[best].height * split.parts[best].width) best = i;
    }
    if (best < 0) break;
    Box& kept = split.parts[best];
    Box& cut = split.parts[split.count];
    const bool rows = kept.height >= kept.width;
    const std::int32_t side = rows ? kept.height : kept.width, least = std::max(smallest, side / 3);
    const std::int32_t at = draws.between(least, side - least);
    cut = kept;
    if (rows) {
      cut.top += at;
      cut.height -= at;
      kept.height = at;
    } else {
      cut.left += at;
      cut.width -= at;
      kept.width = at;
    }
    split.came_from[split.count++] = best;
  }
  return split;
}

// A room in every part, joined to the room of the part it was cut off from.
void paint(const BspLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  canvas.fill(area, kWall);
  Split split = split_area(area, layer.rooms, layer.smallest + 1, draws);
  for (std::int32_t i = 0; i < split.count; ++i) {
    Box& room = split.parts[i];
    const auto side = [&](std::int32_t whole) {  // one cell stays wall, so that rooms do not run into each other
      const std::int32_t most = std::max(1, whole - 1);
      return draws.between(std::min(most, std::max(layer.smallest, whole / 2)), most);
    };
    const std::int32_t height = side(room.height), width = side(room.width);
    room.top += draws.between(0, std::max(0, room.height - 1 - height));
    room.left += draws.between(0, std::max(0, room.width - 1 - width));
    room.height = height;
    room.width = width;
    canvas.fill(room, kFloor);
  }
  for (std::int32_t i = 1; i < split.count; ++i) {
    const Box &here = split.parts[i], &there = split.parts[split.came_from[i]];
    dig(area, here.middle_row(), here.middle_column(), there.middle_row(), there.middle_column(), layer.corridor,
        draws.chance(0.5), canvas);
  }
}

void paint(const RadialLayer& layer, const Box& area, Canvas& canvas, Draws&) {
  const std::int32_t edge = 2 * (area.width - 1) + 2 * (area.height - 1);
  const Point centre{area.middle_row(), area.middle_column()};
  if (edge <= 0) return;
  const auto draw = [&](std::int32_t more, Cell cell) {
    for (std::int32_t i = 0; i < layer.arms; ++i)
      stroke(area, centre, on_edge(area, i * edge / layer.arms), layer.width + 2 * more, cell, canvas);
    const std::int32_t reach = layer.hub + more;
    canvas.fill(Canvas::clipped(centre.row - reach, centre.column - reach, 2 * reach + 1, 2 * reach + 1, area), cell);
  };
  if (layer.wall > 0) draw(layer.wall, kWall);
  draw(0, kFloor);
}

}  // namespace gridmill::grid
