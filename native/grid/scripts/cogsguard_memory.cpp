// Entering a row into the memory: ground in view, sites that are new, changed or gone.
#include "grid/scripts/cogsguard_memory.hpp"

#include <cstdlib>

#include "core/snapshot.hpp"

namespace gridmill::grid::cogsguard {

namespace {

// Some columns in a row of bits: those in the word where they begin, and those that run over into the other.
struct Span {
  Span(int middle, int columns) {
    const std::uint64_t bits = (std::uint64_t{1} << (2 * columns + 1)) - 1;
    const int first = (middle - columns) & (kSide - 1);
    word = first >> 6;
    here = bits << (first & 63);
    over = (first & 63) == 0 ? 0 : bits >> (64 - (first & 63));
  }
  int word;
  std::uint64_t here, over;
};

}  // namespace

void Bits::set_around(Place middle, int rows, int columns) {
  const Span span(middle.column, columns);
  for (int r = middle.row - rows; r <= middle.row + rows; ++r) {
    words[r & (kSide - 1)][span.word] |= span.here;
    words[r & (kSide - 1)][span.word ^ 1] |= span.over;
  }
}

void Bits::clear_around(Place middle, int rows, int columns) {
  const Span span(middle.column, columns);
  for (int r = middle.row - rows; r <= middle.row + rows; ++r) {
    words[r & (kSide - 1)][span.word] &= ~span.here;
    words[r & (kSide - 1)][span.word ^ 1] &= ~span.over;
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

Ground Memory::survey() const {
  Ground found{};
  for (std::uint32_t i = 0; i < num_sites; ++i) {
    const Site& site = sites[i];
    if (site.kind != junction && site.kind != hub) continue;
    if (site.owner == ours) found.home.set_around(site.place, kReach, kReach);
    if (site.owner == theirs) found.danger.set_around(site.place, kReach, kReach);
  }
  return found;
}

void Memory::check() const {
  constexpr std::uint32_t kMostTicks = 1'000'000'001;  // no game has longer episodes
  expect_state(num_sites <= kMostSites, "it knows more sites than it can remember");
  expect_state(tick <= kMostTicks, "it has played for too long");
  for (std::uint32_t i = 0; i < num_sites; ++i)
    expect_state(
        sites[i].place.exists() && sites[i].kind < num_kinds && sites[i].owner <= theirs && sites[i].seen <= tick,
        "a site that it knows is impossible");
  expect_state(ground == survey(), "its map of the areas of hub and junctions is wrong");
  expect_state(num_steps <= kMostSteps, "its path is too long");
  expect_state(expected.exists() && target.exists() && goal <= patrol, "it goes to something that does not exist");
}

namespace {

void see_ground(Memory& memory, const Row& row, Place here, const Ids& ids) {
  const int up = ids.height / 2, left = ids.width / 2;
  if (row.seen_to > up + left) {
    memory.known.set_around(here, up, left);
    memory.blocked.clear_around(here, up, left);
    return;
  }
  for (int r = -up; r <= up; ++r)
    for (int c = -left; c <= left; ++c) {
      if (std::abs(r) + std::abs(c) >= row.seen_to) continue;
      memory.known.set(moved(here, r, c));
      memory.blocked.clear(moved(here, r, c));
    }
}

// What stands around every hub, before it was looked at; what is not there is forgotten when it should be in view.
void expect_compound(Memory& memory, Place place) {
  struct Expected {
    int row, column, kind;
  };
  constexpr Expected compound[] = {{-3, 0, junction},      {4, -3, station + 0},   {4, -1, station + 1},
                                   {4, 1, station + 2},    {4, 3, station + 3},    {-8, -8, extractor + 0},
                                   {-8, 8, extractor + 1}, {8, -8, extractor + 2}, {8, 8, extractor + 3}};
  for (const Expected& thing : compound) {
    const Place there = moved(place, thing.row, thing.column);
    if (memory.num_sites == kMostSites || memory.known.get(there)) continue;
    const std::uint16_t stock = thing.kind >= extractor ? 100 : 0;
    memory.sites[memory.num_sites++] = {there, static_cast<Kind>(thing.kind), ours, stock, 0, memory.tick, 0};
  }
}

bool see_site(Memory& memory, const Thing& thing, Place place) {
  Site* site = memory.find(place);
  const bool fresh = !site;
  if (fresh) {
    if (thing.kind == hub) expect_compound(memory, place);
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
  const std::uint32_t before = memory.num_sites;
  for (int i = 0; i < row.num_things; ++i) {
    const Thing& thing = row.things[static_cast<std::size_t>(i)];
    if (thing.kind == other_agent) continue;
    const Place place = moved(here, thing.row, thing.column);
    memory.known.set(place);
    memory.blocked.set(place);
    if (thing.kind != wall) changed |= see_site(memory, thing, place);
  }
  // What is expected around a hub counts, too, where there is no room for the hub itself.
  const bool more = memory.num_sites != before;
  changed |= forget_gone(memory, row, here, ids);
  if (changed || more) memory.ground = memory.survey();
  return changed;
}

}  // namespace gridmill::grid::cogsguard
