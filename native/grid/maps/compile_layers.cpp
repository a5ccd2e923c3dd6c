// Checks of the layers of a canvas, each with its path, and how many objects they can put there.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "grid/maps/compile_map.hpp"

namespace gridmill::grid {
namespace {

constexpr std::size_t kMostParts = 64;  // of a zones, one_of or buildings layer

std::string text(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }

std::string place(std::int32_t row, std::int32_t column) {
  return std::string("row ").append(std::to_string(row)).append(", column ").append(std::to_string(column));
}

void need(bool holds, const std::string& path, const std::string& expected, const std::string& got) {
  if (!holds) fail_at(path, "expected " + expected + ", got " + got);
}

void need_cells(std::int32_t height, std::int32_t width, Size size, const std::string& what, const std::string& path) {
  need(size.height >= height && size.width >= width, path, "at least " + text({height, width}) + " cells for " + what,
       text(size));
}

void need_order(std::int32_t low, std::int32_t high, const std::string& path) {
  need(low <= high, path, "at least " + std::to_string(low), std::to_string(high));
}

// How far the weights up to each one reach, of `whole`; the last reaches all of it.
std::vector<std::uint32_t> reaches(const std::vector<double>& weights, double whole, const std::string& path) {
  double sum = 0, so_far = 0;
  for (const double w : weights) sum += w;
  need(sum > 0 && std::isfinite(sum), path, "weights with a finite sum above 0", "none");
  std::vector<std::uint32_t> up_to;
  for (const double w : weights) up_to.push_back(static_cast<std::uint32_t>((so_far += w) / sum * whole + 0.5));
  return up_to;
}

// One layer on its way from settings to cells: `check` refuses what cannot be drawn in an area of this size.
struct LayerCompiler {
  const Program& p;
  const Size size;
  const std::string& path;
  CompiledLayer& out;

  void wall() const { type_index(p, "wall", path); }
  Cell thing(const std::string& name, const std::string& at) const {
    if (name == "agent") return kPad;
    return name == "wall" ? (type_index(p, name, at), kWall) : static_cast<Cell>(kThing + type_index(p, name, at));
  }
  void parts(const std::vector<LayerNode>& layers, Size inner) const {
    out.parts = compile_layers(p, layers, inner, path + ".layers");
  }

  void check(const FillLayer& layer) const {
    if (layer.what == "wall") wall();
  }
  void check(const RoomsLayer& layer) const {
    wall();
    need_cells(layer.rows * (layer.door + layer.wall) - layer.wall,
               layer.columns * (layer.door + layer.wall) - layer.wall, size, "these rooms", path);
  }
  void check(const MazeLayer& layer) const {
    wall();
    need_cells(layer.corridor, layer.corridor, size, "one chamber", path);
  }
  void check(const CavesLayer&) const { wall(); }
  void check(const BspLayer& layer) const {
    wall();
    need_cells(layer.smallest + 1, layer.smallest + 1, size, "one room and its wall", path);
  }
  void check(const RadialLayer& layer) const {
    if (layer.wall > 0) wall();
  }
  void check(const ClumpsLayer& layer) const {
    wall();
    need_order(layer.smallest, layer.largest, path + ".largest");
  }
  void check(const DunesLayer&) const { wall(); }
  void check(const BlocksLayer&) const { wall(); }
  void check(const RimLayer& layer) const {
    wall();
    need_order(layer.shallowest, layer.deepest, path + ".deepest");
    need_order(layer.narrowest, layer.widest, path + ".widest");
  }
  void check(const CompoundLayer& layer) const {
    if (layer.wall > 0) wall();
    need(layer.side % 2 == 1, path + ".side", "an odd number", std::to_string(layer.side));
    need(layer.gate % 2 == 1 || layer.gate == 0, path + ".gate", "an odd number or 0", std::to_string(layer.gate));
    need_cells(layer.side, layer.side, size, "the compound", path + ".side");
    const std::int32_t half = layer.side / 2, inside = layer.side - 2 * layer.wall;
    need(inside > 0, path + ".wall", "a wall that leaves cells inside", std::to_string(layer.wall));
    need(layer.gate <= inside, path + ".gate", "at most " + std::to_string(inside), std::to_string(layer.gate));
    std::set<std::pair<std::int32_t, std::int32_t>> taken;
    for (std::size_t i = 0; i < layer.things.size(); ++i) {
      const Standing& standing = layer.things[i];
      const std::string at = path + ".things[" + std::to_string(i) + "]";
      const std::string spot = place(standing.row, standing.column);
      need(std::max(std::abs(standing.row), std::abs(standing.column)) <= half, at,
           "an offset of at most " + std::to_string(half), spot);
      if (!taken.insert({standing.row, standing.column}).second) fail_at(at, "two objects at " + spot);
      out.things.push_back(thing(standing.type, at + ".type"));
    }
  }
  void check(const BuildingsLayer& layer) const {
    std::vector<double> weights;
    for (const auto& [name, weight] : layer.weights) {
      out.things.push_back(static_cast<Cell>(kThing + type_index(p, name, path + ".weights." + name)));
      weights.push_back(weight);
    }
    need(weights.size() <= kMostParts, path + ".weights", "at most 64 types", std::to_string(weights.size()));
    out.quota = reaches(weights, layer.draws, path + ".weights");
    std::adjacent_difference(out.quota.begin(), out.quota.end(), out.quota.begin());
  }
  void check(const ObjectsLayer& layer) const {
    std::int64_t wanted = 0;
    for (const auto& [name, count] : layer.counts) {
      out.things.push_back(thing(name, path + ".counts." + name));
      wanted += count;
    }
    const std::int64_t cells = std::int64_t{size.height} * size.width;
    need(wanted <= cells, path + ".counts", "at most " + std::to_string(cells) + " objects on " + text(size) + " cells",
         std::to_string(wanted));
  }
  void check(const ConnectLayer&) const {}
  void check(const AreaLayer& layer) const {
    if (layer.border > 0) wall();
    const std::int32_t height = layer.height > 0 ? layer.height : size.height - layer.top;
    const std::int32_t width = layer.width > 0 ? layer.width : size.width - layer.left;
    need(height > 0 && width > 0 && layer.top + height <= size.height && layer.left + width <= size.width, path,
         "an area inside the available " + text(size) + " cells",
         text({height, width}) + " at " + place(layer.top, layer.left));
    const Size inner{height - 2 * layer.border, width - 2 * layer.border};
    need(inner.height > 0 && inner.width > 0, path + ".border", "at least one cell inside the border", "none");
    parts(layer.layers, inner);
  }
  void check(const ZonesLayer& layer) const {
    check_number_of(layer.layers);
    need_order(layer.smallest, layer.largest, path + ".largest");
    need_cells(layer.smallest, layer.smallest, size, "the smallest zone", path + ".smallest");
    parts(layer.layers, {layer.smallest, layer.smallest});
  }
  void check(const OneOfLayer& layer) const {
    check_number_of(layer.layers);
    need(layer.weights.empty() || layer.weights.size() == layer.layers.size(), path + ".weights",
         std::to_string(layer.layers.size()) + " weights, one per layer", std::to_string(layer.weights.size()));
    out.up_to = reaches(layer.weights.empty() ? std::vector<double>(layer.layers.size(), 1.0) : layer.weights, 0x1p24,
                        path + ".weights");
    parts(layer.layers, size);
  }
  void check(const MirrorLayer& layer) const {
    parts(layer.layers, {layer.axis == "horizontal" ? size.height : (size.height + 1) / 2,
                         layer.axis == "vertical" ? size.width : (size.width + 1) / 2});
  }
  void check_number_of(const std::vector<LayerNode>& layers) const {
    need(!layers.empty() && layers.size() <= kMostParts, path + ".layers", "1 to 64 layers",
         std::to_string(layers.size()));
  }
};

void put(Stock& stock, const Program& p, Cell cell, std::uint64_t n) {
  if (cell == kPad) stock.pads += n;
  if (!is_thing(cell)) return;
  stock.placed[cell - kThing] += n;
  if (!p.types[cell - kThing].terrain) stock.with_state += n;
}

// How often what lies under a layer can be there after it: a mirror copies it together with its own.
std::uint64_t copies(const CompiledLayer& layer) {
  constexpr std::uint64_t kEnough = kMaxCanvas * kMaxCanvas;
  std::uint64_t all = 1, most = 1;
  for (const auto& part : layer.parts) {
    const std::uint64_t n = copies(part);
    all = std::min(all * n, kEnough);
    most = std::max(most, n);
  }
  // Of one_of one part is drawn, and those of zones lie side by side.
  if (std::holds_alternative<OneOfLayer>(layer.node.data) || std::holds_alternative<ZonesLayer>(layer.node.data))
    return most;
  if (const auto* mirror = std::get_if<MirrorLayer>(&layer.node.data)) all *= mirror->axis == "both" ? 4 : 2;
  return std::min(all, kEnough);
}

Stock most_of(const Program& p, const std::vector<CompiledLayer>& layers);

Stock stock_of_one(const Program& p, const CompiledLayer& layer) {
  Stock stock = no_stock(p);
  std::uint64_t times = 1;
  if (const auto* compound = std::get_if<CompoundLayer>(&layer.node.data)) {
    for (std::size_t i = 0; i < compound->things.size(); ++i) put(stock, p, layer.things[i], 1);
  } else if (const auto* objects = std::get_if<ObjectsLayer>(&layer.node.data)) {
    for (std::size_t i = 0; i < objects->counts.size(); ++i)
      put(stock, p, layer.things[i], static_cast<std::uint64_t>(objects->counts[i].second));
  } else if (std::holds_alternative<BuildingsLayer>(layer.node.data)) {
    for (std::size_t i = 0; i < layer.things.size(); ++i) put(stock, p, layer.things[i], layer.quota[i]);
  } else if (std::holds_alternative<OneOfLayer>(layer.node.data)) {
    return most_of(p, layer.parts);
  } else if (const auto* zones = std::get_if<ZonesLayer>(&layer.node.data)) {
    const std::uint64_t n = layer.parts.size();
    times = (static_cast<std::uint64_t>(zones->count) + n - 1) / n;
  } else if (const auto* mirror = std::get_if<MirrorLayer>(&layer.node.data)) {
    times = mirror->axis == "both" ? 4 : 2;
  }
  add(stock, stock_of(p, layer.parts), times);
  return stock;
}

Stock most_of(const Program& p, const std::vector<CompiledLayer>& layers) {
  Stock most = no_stock(p);
  for (const auto& layer : layers) {
    const Stock one = stock_of_one(p, layer);
    for (std::size_t t = 0; t < most.placed.size(); ++t) most.placed[t] = std::max(most.placed[t], one.placed[t]);
    most.with_state = std::max(most.with_state, one.with_state);
    most.pads = std::max(most.pads, one.pads);
  }
  return most;
}

}  // namespace

void LayerNode::decode(LayerNode& out, const Value& value, const std::string& path) {
  int depth = 0;
  for (std::size_t at = path.find(".layers["); at != std::string::npos; at = path.find(".layers[", at + 1)) ++depth;
  if (depth > 8) fail_at(path, "expected layers nested at most 8 levels deep, got more");
  decode_one_of(out.data, value, path);
}

Stock no_stock(const Program& p) { return {std::vector<std::uint64_t>(p.types.size(), 0)}; }

void add(Stock& to, const Stock& more, std::uint64_t times) {
  for (std::size_t t = 0; t < to.placed.size(); ++t) to.placed[t] += times * more.placed[t];
  to.all += times * more.all;
  to.with_state += times * more.with_state;
  to.pads += times * more.pads;
}

std::vector<CompiledLayer> compile_layers(const Program& p, const std::vector<LayerNode>& layers, Size size,
                                          const std::string& path) {
  std::vector<CompiledLayer> out(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    out[i].node = layers[i];
    std::visit([&](const auto& layer) { LayerCompiler{p, size, at, out[i]}.check(layer); }, layers[i].data);
  }
  return out;
}

Stock stock_of(const Program& p, const std::vector<CompiledLayer>& layers) {
  constexpr std::uint64_t kCells = kMaxCanvas * kMaxCanvas;  // no canvas holds more, however layers are nested
  Stock stock = no_stock(p);
  for (const auto& layer : layers) {
    if (const std::uint64_t times = copies(layer); times > 1) add(stock, Stock(stock), times - 1);
    add(stock, stock_of_one(p, layer), 1);
    for (auto& n : stock.placed) n = std::min(n, kCells);
    stock.with_state = std::min(stock.with_state, kCells);
    stock.pads = std::min(stock.pads, kCells);
  }
  return stock;
}

}  // namespace gridmill::grid
