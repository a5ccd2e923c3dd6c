// Patterns of walls on floor: caves, clumps (plains, forest), dunes (desert), blocks (city) and a jagged rim. All but
// caves, which decide about every cell of their area, only add walls to what is there.
#include "grid/maps/canvas.hpp"

namespace gridmill::grid {
namespace {

void wall_at(const Box& area, Canvas& canvas, std::int32_t r, std::int32_t c) {
  if (area.has(r, c)) canvas.at(r, c) = kWall;
}

// Deals the numbers from low to high in a random order, each once before any comes again: mixed, but never all deep.
class Bag {
 public:
  Bag(std::int32_t low, std::int32_t high) : low_(low), size_(static_cast<std::uint32_t>(high - low + 1)) {}
  std::int32_t deal(Draws& draws) {
    if (left_ == 0)
      for (; left_ < size_; ++left_) items_[left_] = low_ + static_cast<std::int32_t>(left_);
    std::swap(items_[draws.below(left_)], items_[left_ - 1]);
    return items_[--left_];
  }

 private:
  std::int32_t low_, items_[65];
  std::uint32_t size_, left_ = 0;
};

}  // namespace

// Random walls, then rounds in which a cell becomes what most of its nine are; beyond the area all is wall.
void paint(const CavesLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  for (std::int32_t r = area.top; r < area.bottom(); ++r)
    for (std::int32_t c = area.left; c < area.right(); ++c) canvas.at(r, c) = draws.chance(layer.fill) ? kWall : kFloor;
  auto& before = canvas.s.other;
  for (std::int32_t round = 0; round < layer.rounds; ++round) {
    for (std::int32_t r = area.top; r < area.bottom(); ++r)
      std::copy_n(canvas.s.cells.begin() + canvas.index(r, area.left), area.width,
                  before.begin() + canvas.index(r, area.left));
    for (std::int32_t r = area.top; r < area.bottom(); ++r)
      for (std::int32_t c = area.left; c < area.right(); ++c) {
        int walls = 0;
        for (std::int32_t y = r - 1; y <= r + 1; ++y)
          for (std::int32_t x = c - 1; x <= c + 1; ++x) walls += !area.has(y, x) || before[canvas.index(y, x)] == kWall;
        canvas.at(r, c) = walls >= 5 ? kWall : kFloor;
      }
  }
}

void paint(const ClumpsLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  for (std::int32_t y = area.top + layer.every / 2; y < area.bottom(); y += layer.every)
    for (std::int32_t x = area.left + layer.every / 2; x < area.right(); x += layer.every) {
      if (!draws.chance(layer.chance)) continue;
      const std::int32_t r = y + draws.between(-layer.jitter, layer.jitter);
      const std::int32_t c = x + draws.between(-layer.jitter, layer.jitter);
      const std::int32_t radius = draws.between(layer.smallest, layer.largest);
      for (std::int32_t dr = -radius; dr <= radius; ++dr)
        for (std::int32_t dc = -radius; dc <= radius; ++dc)
          if (dr * dr + dc * dc <= radius * radius && draws.chance(layer.fill)) wall_at(area, canvas, r + dr, c + dc);
    }
}

// Ridges from west to east that bend up and down and break off now and then.
void paint(const DunesLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  constexpr std::int32_t kStretch = 6;  // a ridge is open or closed for about this many cells
  for (std::int32_t start = area.top + layer.every / 2; start < area.bottom(); start += layer.every) {
    std::int32_t r = start, left = 0;
    bool open = false;
    for (std::int32_t c = area.left; c < area.right(); ++c, --left) {
      if (left == 0) {
        open = draws.chance(layer.gap);
        left = draws.between(kStretch / 2, kStretch);
      }
      if (draws.chance(layer.drift)) {
        const std::int32_t next =
            std::clamp(r + draws.between(-1, 1), start - layer.every / 2, start + layer.every / 2);
        if (!open) wall_at(area, canvas, next, c);
        r = next;
      } else if (!open) {
        wall_at(area, canvas, r, c);
      }
    }
  }
}

void paint(const BlocksLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  const std::int32_t step = layer.side + layer.road;
  for (std::int32_t r = area.top + layer.road / 2; r < area.bottom(); r += step)
    for (std::int32_t c = area.left + layer.road / 2; c < area.right(); c += step) {
      if (!draws.chance(layer.chance)) continue;
      const std::int32_t height = draws.between((layer.side + 1) / 2, layer.side);
      const std::int32_t width = draws.between((layer.side + 1) / 2, layer.side);
      canvas.fill(Canvas::clipped(r, c, height, width, area), kWall);
    }
}

// Teeth of wall that point inwards from all four edges.
void paint(const RimLayer& layer, const Box& area, Canvas& canvas, Draws& draws) {
  Bag depths(layer.shallowest, layer.deepest), halves(layer.narrowest, layer.widest);
  for (int edge = 0; edge < 4; ++edge) {
    const std::int32_t along = edge < 2 ? area.width : area.height;
    auto places = static_cast<std::uint32_t>((along + layer.every - 1) / layer.every);
    auto teeth = static_cast<std::uint32_t>(layer.share * places + 0.5);
    for (std::int32_t at = 0; at < along; at += layer.every) {
      if (draws.below(places--) >= teeth) continue;
      --teeth;
      const std::int32_t depth = depths.deal(draws);
      const std::int32_t half = halves.deal(draws);
      for (std::int32_t d = 0; d < depth; ++d) {
        const std::int32_t reach = half * (depth - d) / depth;
        for (std::int32_t x = at - reach; x <= at + reach; ++x) {
          if (edge == 0) wall_at(area, canvas, area.top + d, area.left + x);
          if (edge == 1) wall_at(area, canvas, area.bottom() - 1 - d, area.left + x);
          if (edge == 2) wall_at(area, canvas, area.top + x, area.left + d);
          if (edge == 3) wall_at(area, canvas, area.top + x, area.right() - 1 - d);
        }
      }
    }
  }
}

}  // namespace gridmill::grid
