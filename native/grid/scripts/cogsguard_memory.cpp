#include "grid/scripts/cogsguard_memory.hpp"

#include <algorithm>
#include <cstdlib>

namespace gridmill::grid::cogsguard {

int chebyshev(Place a, Place b) {
  return std::max(std::abs(offset(a.row, b.row)), std::abs(offset(a.column, b.column)));
}
int manhattan(Place a, Place b) { return std::abs(offset(a.row, b.row)) + std::abs(offset(a.column, b.column)); }

void Bits::set_square(Place middle, int radius) {
  const std::uint64_t span = (std::uint64_t{1} << (2 * radius + 1)) - 1;
  const int first = (middle.column - radius) & (kSide - 1), word = first >> 6, bit = first & 63;
  const std::uint64_t here = span << bit, next = bit == 0 ? 0 : span >> (64 - bit);
  for (int r = -radius; r <= radius; ++r) {
    std::uint64_t* row = words[(middle.row + r) & (kSide - 1)];
    row[word] |= here;
    row[word ^ 1] |= next;
  }
}

Site* Memory::find(Place place) {
  for (std::uint32_t i = 0; i < num_sites; ++i)
    if (sites[i].place == place) return &sites[i];
  return nullptr;
}

const Site* Memory::nearest(Kind kind, Place from) const {
  const Site* best = nullptr;
  for (std::uint32_t i = 0; i < num_sites; ++i)
    if (sites[i].kind == kind && (!best || chebyshev(sites[i].place, from) < chebyshev(best->place, from)))
      best = &sites[i];
  return best;
}

namespace {

void see_ground(Memory& memory, const Row& row, Place here, const Ids& ids) {
  const int up = ids.height / 2, left = ids.width / 2;
  for (int r = -up; r <= up; ++r)
    for (int c = -left; c <= left; ++c) {
      if (std::abs(r) + std::abs(c) >= row.seen_to) continue;
      memory.known.set(moved(here, r, c));
      memory.blocked.clear(moved(here, r, c));
    }
}

bool see_site(Memory& memory, const Thing& thing, Place place) {
  Site* site = memory.find(place);
  const bool fresh = !site;
  if (fresh) {
    if (memory.num_sites == kMostSites) return false;
    site = &memory.sites[memory.num_sites++];
    *site = {place, thing.kind, thing.owner, 0, 0, 0, 0};
  }
  const bool changed = fresh || site->owner != thing.owner || site->kind != thing.kind;
  site->kind = thing.kind;
  site->owner = thing.owner;
  site->stock = thing.stock;
  site->seen = memory.tick;
  return changed;
}

// Forgets sites in view that are not there any more: empty extractors leave the map.
bool forget_gone(Memory& memory, const Row& row, Place here, const Ids& ids) {
  bool changed = false;
  for (std::uint32_t i = 0; i < memory.num_sites;) {
    const Site& site = memory.sites[i];
    const int r = std::abs(offset(here.row, site.place.row)), c = std::abs(offset(here.column, site.place.column));
    const bool shown = r <= ids.height / 2 && c <= ids.width / 2 && r + c < row.seen_to;
    if (shown && site.seen != memory.tick) {
      memory.sites[i] = memory.sites[--memory.num_sites];
      changed = true;
    } else ++i;
  }
  return changed;
}

}  // namespace

bool remember(Memory& memory, const Row& row, Place here, const Ids& ids) {
  see_ground(memory, row, here, ids);
  bool changed = false;
  for (int i = 0; i < row.num_things; ++i) {
    const Thing& thing = row.things[static_cast<std::size_t>(i)];
    if (thing.kind == other_agent) continue;
    const Place place = moved(here, thing.row, thing.column);
    memory.known.set(place);
    memory.blocked.set(place);
    if (thing.kind != wall) changed |= see_site(memory, thing, place);
  }
  return forget_gone(memory, row, here, ids) || changed;
}

}  // namespace gridmill::grid::cogsguard
