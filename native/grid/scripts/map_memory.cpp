// Reading rows into views, and views into the map.
#include "grid/scripts/map_memory.hpp"

#include <cstdlib>
#include <cstring>

namespace gridmill::grid {
namespace {

Kind kind_of(const std::string& name, const std::vector<std::pair<std::string, Kind>>& kinds) {
  for (const auto& [known, kind] : kinds)
    if (known == name) return kind;
  return kBlocked;
}

}  // namespace

MapReader::MapReader(const Vocabulary& vocabulary, const Program& program,
                     const std::vector<std::pair<std::string, Kind>>& kinds)
    : vocabulary_(&vocabulary),
      window_(&program.window),
      // With room for what is seen beyond the map's edges, which looks free: there it hides nothing of the map.
      torus_(program.height + 2 * static_cast<std::uint32_t>(program.window.radius_rows),
             program.width + 2 * static_cast<std::uint32_t>(program.window.radius_columns)),
      scrolls_rows_(torus_.rows() < program.height + 2 * static_cast<std::uint32_t>(program.window.radius_rows)),
      scrolls_columns_(torus_.columns() <
                       program.width + 2 * static_cast<std::uint32_t>(program.window.radius_columns)),
      has_position_(program.config.observation.local_position),
      most_tokens_(static_cast<std::uint32_t>(program.config.observation.num_tokens)),
      directions_(static_cast<std::uint32_t>(program.config.moves)),
      centre_(static_cast<std::uint8_t>(program.window.radius_rows << 4 | program.window.radius_columns)),
      tag_(program.features.tag),
      last_action_(program.features.action),
      progress_(program.features.progress),
      position_(program.features.local_position) {
  kind_of_tag_[vocabulary.tag("type:agent")] = kAgent;
  for (const auto& [name, type] : program.config.objects)
    kind_of_tag_[vocabulary.tag("type:" + shown_name(name, type))] = kind_of(name, kinds);
  direction_of_.fill(-1);
  for (std::size_t action = 0; action < vocabulary.actions.size(); ++action) {
    const Action& a = vocabulary.actions[action];
    if (a.kind == ActionKind::noop) noop_ = static_cast<int>(action);
    if (a.kind != ActionKind::move) continue;
    moves_[a.which] = static_cast<int>(action);
    if (action < direction_of_.size() && a.which < directions_)
      direction_of_[action] = static_cast<std::int8_t>(a.which);
  }
}

int MapReader::vibe_action(const std::string& vibe) const {
  for (std::size_t action = 0; action < vocabulary_->actions.size(); ++action) {
    const Action& a = vocabulary_->actions[action];
    if (a.kind == ActionKind::change_vibe && vocabulary_->vibes[a.which] == vibe) return static_cast<int>(action);
  }
  return -1;
}

View MapReader::read(const std::uint8_t* row) const {
  View view;
  view.row = row;
  view.cells.fill(kFree);
  std::uint32_t i = 0;
  for (; i < most_tokens_ && row[kTokenBytes * i] == kGlobalLocation; ++i) {
    const std::uint8_t feature = row[kTokenBytes * i + 1], value = row[kTokenBytes * i + 2];
    if (feature == last_action_) view.last_action = value;
    if (feature == progress_) view.progress = value;
    if (!has_position_) continue;
    if (feature == position_[0]) view.north = value;
    if (feature == position_[1]) view.north = -value;
    if (feature == position_[2]) view.east = -value;
    if (feature == position_[3]) view.east = value;
  }
  view.first_cell = i;
  std::uint8_t location = 0;
  while (i < most_tokens_ && row[kTokenBytes * i] != kNoToken) {
    location = row[kTokenBytes * i];
    Thing thing{static_cast<std::int8_t>((location >> 4) - window_->radius_rows),
                static_cast<std::int8_t>((location & 15) - window_->radius_columns), kBlocked,
                static_cast<std::uint16_t>(i), 0};
    for (; i < most_tokens_ && row[kTokenBytes * i] == location; ++i) {
      const Kind kind = row[kTokenBytes * i + 1] == tag_ ? kind_of_tag_[row[kTokenBytes * i + 2]] : kUnknown;
      if (kind != kUnknown) thing.kind = kind;
    }
    thing.last = static_cast<std::uint16_t>(i);
    view.cells[location] = thing.kind == kAgent ? kFree : thing.kind;
    if (location == centre_) view.self = thing;
    else if (thing.kind != kBlocked && view.num_things < View::kMostThings) view.things[view.num_things++] = thing;
  }
  view.num_tokens = i;
  // A full row may have no room for the cells behind its last token.
  const std::uint32_t rank = window_->rank_of[location];
  view.num_ranks = i < most_tokens_ ? window_->num_ranks : std::min(rank, window_->num_ranks);
  return view;
}

std::uint16_t MapReader::moved_to(const View& view, const Memory& memory, const Kind* cells) const {
  if (has_position_) return torus_.at(-view.north, view.east);
  const std::int8_t direction = direction_of_[view.last_action];
  if (direction < 0 || memory.started == 0) return memory.here;
  const std::uint16_t ahead = torus_.beside(memory.here, static_cast<std::uint32_t>(direction));
  // A move into a thing that succeeded has used it.
  const bool stays = cells[ahead] == kBlocked || cells[ahead] >= kFirstKind;
  return stays ? memory.here : ahead;
}

// Of a map larger than what is remembered: what now lies beyond the far edge is forgotten as the edge moves on.
void MapReader::forget_far(std::uint16_t from, std::uint16_t to, Kind* cells) const {
  const std::int32_t down = torus_.rows_between(from, to), right = torus_.columns_between(from, to);
  const auto half_rows = static_cast<std::int32_t>(torus_.rows() / 2);
  const auto half_columns = static_cast<std::int32_t>(torus_.columns() / 2);
  if (scrolls_rows_)
    for (std::int32_t k = 0; k < std::abs(down); ++k) {
      const std::int32_t far = down > 0 ? half_rows - 1 - k : k - half_rows;
      const std::uint16_t begin = torus_.away(to, far, 0) & static_cast<std::uint16_t>(~(torus_.columns() - 1));
      std::memset(cells + begin, kUnknown, torus_.columns());
    }
  if (scrolls_columns_)
    for (std::int32_t k = 0; k < std::abs(right); ++k) {
      const std::int32_t far = right > 0 ? half_columns - 1 - k : k - half_columns;
      const std::uint16_t top = torus_.away(to, 0, far) & static_cast<std::uint16_t>(torus_.columns() - 1);
      for (std::uint32_t r = 0; r < torus_.rows(); ++r) cells[top + r * torus_.columns()] = kUnknown;
    }
}

// False as soon as something is in the way where nothing was, or the other way round.
bool MapReader::note(const View& view, std::uint16_t here, Kind* cells) const {
  for (std::uint32_t rank = 0; rank < view.num_ranks; ++rank) {
    const std::uint8_t location = window_->location[rank];
    Kind& known =
        cells[torus_.away(here, (location >> 4) - window_->radius_rows, (location & 15) - window_->radius_columns)];
    const Kind seen = view.cells[location];
    if (!has_position_ && known != kUnknown && (known == kBlocked) != (seen == kBlocked)) return false;
    if (known < kFirstKind || seen < kFirstKind) known = seen;
  }
  return true;
}

bool MapReader::remember(const View& view, std::byte* bytes) const {
  auto& memory = *reinterpret_cast<Memory*>(bytes);
  Kind* cells = reinterpret_cast<Kind*>(bytes + sizeof(Memory));
  const std::uint16_t here = moved_to(view, memory, cells);
  if (memory.started != 0) forget_far(memory.here, here, cells);
  memory.here = here;
  memory.started = 1;
  if (note(view, here, cells)) return true;
  std::memset(cells, kUnknown, torus_.size());
  note(view, here, cells);
  return false;
}

Crowd agents_near(const MapReader& map, const std::byte* bytes, const View& view, std::int32_t steps) {
  Crowd crowd;
  for (std::uint32_t i = 0; i < view.num_things; ++i) {
    const Thing& thing = view.things[i];
    if (thing.kind == kAgent && std::abs(thing.row) + std::abs(thing.column) <= steps)
      crowd.cells[crowd.count++] = map.cell_of(bytes, thing);
  }
  return crowd;
}

Way way_to_unknown(const MapReader& map, const std::byte* bytes, std::span<const std::uint16_t> closed,
                   SearchSpace& space) {
  const Torus& torus = map.torus();
  const Kind* cells = MapReader::cells(bytes);
  const std::uint16_t here = MapReader::here(bytes);
  const std::int32_t down = map.window().radius_rows, right = map.window().radius_columns;
  const auto unknown_around = [&](std::uint16_t cell) {
    std::int32_t count = 0;
    for (std::int32_t row = -down; row <= down; ++row)
      for (std::int32_t column = -right; column <= right; ++column)
        count += cells[torus.away(cell, row, column)] == kUnknown;
    return count;
  };
  std::uint32_t nearest = 0;
  std::int32_t most = 0;
  std::uint16_t goal = 0;
  // Ends one step behind the nearest, when all that are as near have been compared.
  find_way(
      torus, here, map.directions(), 0, closed,
      [&](std::uint16_t cell, std::uint32_t steps) {
        if (nearest > 0 && steps > nearest) return true;
        if (cells[cell] != kUnknown) return false;
        nearest = steps;
        const std::int32_t count = unknown_around(cell);
        if (count > most) {
          most = count;
          goal = cell;
        }
        return false;
      },
      [&](std::uint16_t cell) { return cells[cell] == kFree || cells[cell] == kUnknown; }, space);
  return nearest == 0 ? Way{} : way_found(torus, here, goal, nearest, space);
}

}  // namespace gridmill::grid
