// How much drawing a map takes, counted before it is drawn: a few layers can ask for a thousand times what others do,
// and every reset pays for them. More than kMostDrawing is refused, with the layer that asks for most; and the more a
// map takes, the fewer attempts it gets if nothing fits on it.
#include <algorithm>
#include <cmath>

#include "grid/compile.hpp"
#include "grid/maps/compile_map.hpp"

namespace gridmill::grid {
namespace {

// Of steps such as a random number and a cell, about 4 ns each.
constexpr double kMostDrawing = 3e7;
constexpr double kMostDrawingTries = 2.4e8;  // of all attempts together
constexpr double kEveryCell = 3;  // of a cell, whatever is drawn: cleared, laid, looked at for what can be reached
constexpr double kFloorPlan = 5;  // of a cell of rooms or a maze
constexpr double kLabelled = 2;   // of a cell of the whole canvas, where floor is looked for
constexpr double kJoined = 20;  // of a cell of an area whose floor is joined, where most searches go far or are in vain
constexpr double kDraw = 6;     // of a building that is drawn, beside what there is to choose from
constexpr double kZone = 20;    // of a zone
constexpr double kMostAttempts = 100, kFewestAttempts = 8;

double cells_of(Size size) { return double{1} * size.height * size.width; }

double sum_of(const std::vector<CompiledLayer>& layers, Size size, double canvas);
double most_of(const std::vector<CompiledLayer>& layers, Size size, double canvas);

// What one layer takes on an area of this size; `canvas`: all cells of the canvas.
struct LayerWork {
  const CompiledLayer& layer;
  const Size size;
  const double canvas, cells = cells_of(size);

  // How many there are, one after so many cells.
  static double along(std::int32_t length, std::int32_t every) { return std::floor(double{1} * length / every) + 1; }
  static double square(std::int32_t reach) { return (2.0 * reach + 1) * (2.0 * reach + 1); }

  double of(const FillLayer&) const { return cells; }
  double of(const RoomsLayer&) const { return kFloorPlan * cells; }
  double of(const MazeLayer&) const { return kFloorPlan * cells; }
  double of(const CavesLayer& caves) const { return (1.0 + caves.rounds) * cells; }
  double of(const BspLayer& bsp) const { return cells + double{1} * bsp.rooms * (size.height + size.width); }
  double of(const RadialLayer& radial) const {
    return double{1} * radial.arms * (size.height + size.width) * (radial.width + radial.wall);
  }
  double of(const ClumpsLayer& clumps) const {
    return along(size.height, clumps.every) * along(size.width, clumps.every) * (2 + square(clumps.largest));
  }
  double of(const DunesLayer&) const { return cells; }
  double of(const BlocksLayer&) const { return cells; }
  double of(const RimLayer& rim) const {
    return 2 * (along(size.height, rim.every) + along(size.width, rim.every)) * rim.deepest * (rim.widest + 1.0);
  }
  double of(const CompoundLayer& compound) const { return cells + static_cast<double>(compound.things.size()); }
  double of(const BuildingsLayer& buildings) const {
    return kFloorPlan * cells + buildings.draws * (kDraw + static_cast<double>(buildings.weights.size()) / 4);
  }
  double of(const ObjectsLayer&) const { return kLabelled * canvas; }
  double of(const ConnectLayer&) const { return kLabelled * canvas + kJoined * cells; }
  double of(const AreaLayer& area) const {
    const std::int32_t height = area.height > 0 ? area.height : size.height - area.top;
    const std::int32_t width = area.width > 0 ? area.width : size.width - area.left;
    return cells + sum_of(layer.parts, {height - 2 * area.border, width - 2 * area.border}, canvas);
  }
  // They lie side by side, each at least so large.
  double of(const ZonesLayer& zones) const {
    const double room = std::floor(size.height / zones.smallest) * std::floor(size.width / zones.smallest);
    const double count = std::min<double>(zones.count, std::max(1.0, room));
    const double side = std::min<double>(zones.largest, std::ceil(std::sqrt(cells / count)));
    const Size box{static_cast<std::int32_t>(side), static_cast<std::int32_t>(side)};
    return cells + count * (kZone + count / 2 + most_of(layer.parts, box, canvas));
  }
  double of(const OneOfLayer&) const { return most_of(layer.parts, size, canvas); }
  double of(const MirrorLayer& mirror) const {
    const std::int32_t height = mirror.axis == "horizontal" ? size.height : (size.height + 1) / 2;
    const std::int32_t width = mirror.axis == "vertical" ? size.width : (size.width + 1) / 2;
    return cells + sum_of(layer.parts, {height, width}, canvas);
  }
};

double work_of(const CompiledLayer& layer, Size size, double canvas) {
  const LayerWork work{layer, size, canvas};
  return std::visit([&](const auto& config) { return work.of(config); }, layer.node.data);
}

double sum_of(const std::vector<CompiledLayer>& layers, Size size, double canvas) {
  double sum = 0;
  for (const auto& layer : layers) sum += work_of(layer, size, canvas);
  return sum;
}

double most_of(const std::vector<CompiledLayer>& layers, Size size, double canvas) {
  double most = 0;
  for (const auto& layer : layers) most = std::max(most, work_of(layer, size, canvas));
  return most;
}

struct DrawingWork {
  double all = 0, most = 0;
  std::string most_at;
};

// Of a map that is drawn so many times.
void add_layers(const CompiledMap& map, double times, DrawingWork& sum) {
  if (map.kind == CompiledMap::canvas) {
    const auto border = static_cast<std::int32_t>(map.border);
    const Size size{static_cast<std::int32_t>(map.height) - 2 * border,
                    static_cast<std::int32_t>(map.width) - 2 * border};
    for (std::size_t i = 0; i < map.layers.size(); ++i) {
      const double work = times * work_of(map.layers[i], size, cells_of(size));
      sum.all += work;
      if (work <= sum.most) continue;
      sum.most = work;
      sum.most_at = map.path + ".layers[" + std::to_string(i) + "]";
    }
  }
  for (std::size_t i = 0; i < map.parts.size(); ++i)
    add_layers(map.parts[i], times * static_cast<double>(times_of_part(map, i)), sum);
}

}  // namespace

void compile_map_work(Program& p) {
  DrawingWork sum;
  add_layers(p.map.root, 1, sum);
  if (sum.all > kMostDrawing)
    fail_at(sum.most_at, "expected layers of at most " + millions(kMostDrawing) + " steps for a map, got " +
                             millions(sum.all) +
                             (sum.most > sum.all / 2 ? ", most of them here" : ", the largest share here") +
                             "; use fewer layers, a smaller area, smaller clumps or narrower arms");
  const double attempt = sum.all + kEveryCell * p.height * p.width;
  p.map.attempts = static_cast<std::uint32_t>(std::clamp(kMostDrawingTries / attempt, kFewestAttempts, kMostAttempts));
}

}  // namespace gridmill::grid
