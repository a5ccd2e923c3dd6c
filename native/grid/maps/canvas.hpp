// The canvas: a rectangle of cells that layers paint on before anything stands in the world. Painters work inside the
// area they are given, whatever its size, and take their memory from a scratch that one worker keeps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "grid/maps/layer.hpp"

namespace gridmill::grid {

// The random numbers of one attempt, taken in turn.
class Draws {
 public:
  explicit Draws(const Stream& stream) : stream_(stream) {}
  std::uint32_t below(std::uint32_t bound) { return stream_.below(next_++, bound); }
  std::int32_t between(std::int32_t low, std::int32_t high) {  // both ends included
    return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low + 1)));
  }
  bool chance(double p) { return static_cast<double>(stream_.at(next_++) >> 11) * 0x1p-53 < p; }
  // The index of the first bound above a number below 2^24.
  std::size_t pick(const std::vector<std::uint32_t>& up_to) {
    const std::uint32_t drawn = below(1u << 24);
    return static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end() - 1, drawn) - up_to.begin());
  }

 private:
  const Stream stream_;
  std::uint64_t next_ = 0;
};

struct Box {
  std::int32_t top, left, height, width;
  std::int32_t bottom() const { return top + height; }  // first row below
  std::int32_t right() const { return left + width; }
  bool has(std::int32_t r, std::int32_t c) const { return r >= top && r < bottom() && c >= left && c < right(); }
  std::int32_t middle_row() const { return top + (height - 1) / 2; }
  std::int32_t middle_column() const { return left + (width - 1) / 2; }
};

// Memory of all canvases of one worker; grown once, to the largest.
struct CanvasScratch {
  std::vector<Cell> cells, other;
  std::vector<std::uint32_t> label, order, begin, parent, seen, cost, near, far, list;
  void fit(std::size_t padded_cells);
};

// Cells in rows of width + 2, with a ring of kOutside around: neighbours need no check.
class Canvas {
 public:
  Canvas(std::int32_t height, std::int32_t width, CanvasScratch& scratch);

  Box all() const { return {0, 0, height, width}; }
  bool is_all(const Box& area) const { return area.height == height && area.width == width; }
  std::uint32_t index(std::int32_t r, std::int32_t c) const {
    return static_cast<std::uint32_t>((r + 1) * stride + c + 1);
  }
  std::int32_t row(std::uint32_t i) const { return static_cast<std::int32_t>(i) / stride - 1; }
  std::int32_t column(std::uint32_t i) const { return static_cast<std::int32_t>(i) % stride - 1; }
  Cell& at(std::int32_t r, std::int32_t c) { return s.cells[index(r, c)]; }
  std::uint32_t beside(std::uint32_t i, int direction) const {
    const std::int32_t steps[] = {-stride, stride, -1, 1};
    return i + static_cast<std::uint32_t>(steps[direction]);
  }
  void fill(const Box& area, Cell cell);
  // The part of a rectangle that lies in the area.
  static Box clipped(std::int32_t top, std::int32_t left, std::int32_t height, std::int32_t width, const Box& area);

  const std::int32_t height, width, stride;
  CanvasScratch& s;
};

// biomes.cpp: patterns of walls on floor
void paint(const CavesLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const ClumpsLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const DunesLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const BlocksLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const RimLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
// mazes.cpp
void paint(const MazeLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
// rooms.cpp: floor plans, and the split of an area that bsp and zones share
void paint(const RoomsLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const BspLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
void paint(const RadialLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
struct Split {
  Box parts[64];
  std::int32_t came_from[64];  // the part that part i was cut off from
  std::int32_t count = 0;
};
Split split_area(const Box& area, std::int32_t count, std::int32_t smallest, Draws& draws);
// objects.cpp: what stands on the floor. place_objects is false where not all of them fit.
void place_compound(const CompiledLayer& layer, const Box& area, Canvas& canvas);
void place_buildings(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
bool place_objects(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws);
// ways.cpp: 4-connected floor. label_floor numbers the components from 1 on (scratch.label) and lists the cells of
// component k in scratch.order[begin[k] .. begin[k + 1]).
std::uint32_t label_floor(Canvas& canvas);
std::uint32_t largest_floor(const Canvas& canvas, std::uint32_t labels, const Box& area);
void connect_floor(const ConnectLayer& layer, const Box& area, Canvas& canvas);

// canvas.cpp: all layers in order; false where something does not fit.
bool paint_layers(const std::vector<CompiledLayer>& layers, const Box& area, Canvas& canvas, Draws& draws);

}  // namespace gridmill::grid
