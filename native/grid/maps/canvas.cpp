// The canvas itself, and the layers that are made of other layers: area, zones, one_of, mirror.
#include "grid/maps/canvas.hpp"

namespace gridmill::grid {

void CanvasScratch::fit(std::size_t padded) {
  for (auto* each : {&cells, &other}) each->resize(std::max(each->size(), padded));
  for (auto* each : {&label, &order, &parent, &seen, &cost, &near, &far}) each->resize(std::max(each->size(), padded));
  begin.resize(std::max(begin.size(), padded + 2));
  list.resize(std::max(list.size(), 2 * padded));
}

Canvas::Canvas(std::int32_t h, std::int32_t w, CanvasScratch& scratch)
    : height(h), width(w), stride(w + 2), s(scratch) {
  std::fill_n(s.cells.begin(), static_cast<std::size_t>(h + 2) * static_cast<std::size_t>(stride), kOutside);
  fill(all(), kFloor);
}

void Canvas::fill(const Box& area, Cell cell) {
  for (std::int32_t r = area.top; r < area.bottom(); ++r)
    std::fill_n(s.cells.begin() + index(r, area.left), area.width, cell);
}

Box Canvas::clipped(std::int32_t top, std::int32_t left, std::int32_t height, std::int32_t width, const Box& area) {
  const std::int32_t first_row = std::max(top, area.top), first_column = std::max(left, area.left);
  return {first_row, first_column, std::max(0, std::min(top + height, area.bottom()) - first_row),
          std::max(0, std::min(left + width, area.right()) - first_column)};
}

namespace {

bool paint_one(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws);

bool paint_area(const CompiledLayer& layer, const AreaLayer& config, const Box& area, Canvas& canvas, Draws& draws) {
  const std::int32_t height = config.height > 0 ? config.height : area.height - config.top;
  const std::int32_t width = config.width > 0 ? config.width : area.width - config.left;
  const Box whole = Canvas::clipped(area.top + config.top, area.left + config.left, height, width, area);
  if (config.border > 0) canvas.fill(whole, kWall);
  const Box inner = Canvas::clipped(whole.top + config.border, whole.left + config.border,
                                    whole.height - 2 * config.border, whole.width - 2 * config.border, whole);
  if (config.border > 0) canvas.fill(inner, kFloor);
  return paint_layers(layer.parts, inner, canvas, draws);
}

// A shuffled deck of layers is dealt to the parts, a shuffled choice of which is drawn.
bool paint_zones(const CompiledLayer& layer, const ZonesLayer& config, const Box& area, Canvas& canvas, Draws& draws) {
  Split split = split_area(area, config.count, config.smallest, draws);
  const auto wanted = static_cast<std::int32_t>(config.share * split.count);
  std::uint32_t deck[64];
  std::size_t left = 0;
  for (std::int32_t i = 0; i < std::max(1, wanted); ++i) {
    std::swap(split.parts[i], split.parts[draws.between(i, split.count - 1)]);
    if (left == 0)
      for (; left < layer.parts.size(); ++left) deck[left] = static_cast<std::uint32_t>(left);
    std::swap(deck[left - 1], deck[draws.below(static_cast<std::uint32_t>(left))]);
    const Box& part = split.parts[i];
    const std::int32_t height = std::min(part.height, config.largest), width = std::min(part.width, config.largest);
    const Box box{part.top + (part.height - height) / 2, part.left + (part.width - width) / 2, height, width};
    if (!paint_one(layer.parts[deck[--left]], box, canvas, draws)) return false;
  }
  return true;
}

bool paint_mirror(const CompiledLayer& layer, const MirrorLayer& config, const Box& area, Canvas& canvas,
                  Draws& draws) {
  const bool across = config.axis != "vertical", down = config.axis != "horizontal";
  const Box drawn{area.top, area.left, down ? (area.height + 1) / 2 : area.height,
                  across ? (area.width + 1) / 2 : area.width};
  if (!paint_layers(layer.parts, drawn, canvas, draws)) return false;
  if (across)
    for (std::int32_t r = drawn.top; r < drawn.bottom(); ++r)
      for (std::int32_t c = 0; c < area.width / 2; ++c)
        canvas.at(r, area.right() - 1 - c) = canvas.at(r, area.left + c);
  if (down)
    for (std::int32_t r = 0; r < area.height / 2; ++r)
      std::copy_n(canvas.s.cells.begin() + canvas.index(area.top + r, area.left), area.width,
                  canvas.s.cells.begin() + canvas.index(area.bottom() - 1 - r, area.left));
  return true;
}

bool paint_one(const CompiledLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  return std::visit(
      [&](const auto& config) {
        using T = std::decay_t<decltype(config)>;
        if constexpr (std::is_same_v<T, FillLayer>) {
          canvas.fill(area, config.what == "wall" ? kWall : kFloor);
        } else if constexpr (std::is_same_v<T, CompoundLayer>) {
          place_compound(layer, area, canvas);
        } else if constexpr (std::is_same_v<T, BuildingsLayer>) {
          place_buildings(layer, area, canvas, draws);
        } else if constexpr (std::is_same_v<T, ObjectsLayer>) {
          return place_objects(layer, area, canvas, draws);
        } else if constexpr (std::is_same_v<T, ConnectLayer>) {
          connect_floor(config, area, canvas);
        } else if constexpr (std::is_same_v<T, AreaLayer>) {
          return paint_area(layer, config, area, canvas, draws);
        } else if constexpr (std::is_same_v<T, ZonesLayer>) {
          return paint_zones(layer, config, area, canvas, draws);
        } else if constexpr (std::is_same_v<T, OneOfLayer>) {
          return paint_one(layer.parts[draws.pick(layer.up_to)], area, canvas, draws);
        } else if constexpr (std::is_same_v<T, MirrorLayer>) {
          return paint_mirror(layer, config, area, canvas, draws);
        } else {
          paint(config, area, canvas, draws);
        }
        return true;
      },
      layer.node.data);
}

}  // namespace

bool paint_layers(const std::vector<CompiledLayer>& layers, const Box& area, Canvas& canvas, Draws& draws) {
  return std::all_of(layers.begin(), layers.end(),
                     [&](const CompiledLayer& layer) { return paint_one(layer, area, canvas, draws); });
}

}  // namespace gridmill::grid
