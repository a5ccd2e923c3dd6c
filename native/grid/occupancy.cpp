// See occupancy.hpp.
#include "grid/occupancy.hpp"

#include <algorithm>

#include "grid/machines.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

// The object (if the code is one) now stands here; an agent may see the cell for the first time.
void note_place(World& w, std::uint16_t code, std::uint32_t row, std::uint32_t column) {
  if (code > w.program.num_objects) return;
  const std::uint32_t object = code - 1u;
  w.cell[object] = w.cell_at(row, column);
  w.row[object] = static_cast<std::uint16_t>(row);
  w.column[object] = static_cast<std::uint16_t>(column);
  if (object < w.program.num_agents) w.agent_counter(AgentCounter::visited)[object] += w.visit(object, row, column);
  else if (!w.program.types[w.type[object]].areas.empty()) w.forget_reach();
}

// Where the first empty one of so many codes is; `n` if there is none. In blocks, which compilers make vectors of.
template <class Code>
std::uint32_t find_empty(const Code* codes, std::uint32_t n) {
  constexpr std::uint32_t kBlock = 64;
  std::uint32_t at = 0;
  for (; at + kBlock <= n; at += kBlock) {
    Code found = 0;
    for (std::uint32_t i = 0; i < kBlock; ++i) found = static_cast<Code>(found | (codes[at + i] == kEmpty));
    if (found != 0) break;
  }
  return static_cast<std::uint32_t>(std::find(codes + at, codes + n, kEmpty) - codes);
}

}  // namespace

void relocate(World& w, std::uint16_t code, std::uint32_t row, std::uint32_t column, std::uint32_t new_row,
              std::uint32_t new_column) {
  w.set_code(w.cell_at(row, column), kEmpty);
  w.clear_occupied(row, column);
  w.set_code(w.cell_at(new_row, new_column), code);
  w.set_occupied(new_row, new_column);
  note_place(w, code, new_row, new_column);
}

void relocate_object(World& w, std::uint32_t object, std::uint32_t row, std::uint32_t column) {
  relocate(w, static_cast<std::uint16_t>(object + 1), w.row[object], w.column[object], row, column);
}

void swap_places(World& w, std::uint32_t object, std::uint32_t row, std::uint32_t column) {
  const std::uint16_t other = w.code_at(w.cell_at(row, column)), own = static_cast<std::uint16_t>(object + 1);
  const std::uint32_t own_row = w.row[object], own_column = w.column[object];
  w.set_code(w.cell_at(row, column), own);
  w.set_code(w.cell_at(own_row, own_column), other);
  note_place(w, own, row, column);
  note_place(w, other, own_row, own_column);
}

bool inside_map(const Program& p, std::int64_t row, std::int64_t column) {
  return row >= 0 && column >= 0 && row < p.height && column < p.width;
}

bool is_free(const Program& p, const World& w, std::int64_t row, std::int64_t column) {
  return inside_map(p, row, column) &&
         w.code_at(w.cell_at(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column))) == kEmpty;
}

std::int64_t first_empty(const Program& p, const World& w, std::uint32_t start) {
  const std::uint32_t first_row = start / p.width, first_column = start % p.width;
  for (std::uint32_t i = 0; i <= p.height; ++i) {  // at last what comes before the start in its row
    const std::uint32_t row = (first_row + i) % p.height, from = i == 0 ? first_column : 0;
    const std::uint32_t n = (i == p.height ? first_column : p.width) - from, at = w.cell_at(row, from);
    const std::uint32_t found = p.layout.narrow_grid ? find_empty(w.grid8 + at, n) : find_empty(w.grid16 + at, n);
    if (found < n) return std::int64_t{row} * p.width + from + found;
  }
  return -1;
}

void place_object(const Program& p, World& w, std::uint32_t object, std::uint16_t type, std::uint32_t row,
                  std::uint32_t column) {
  const Type& kind = p.types[type];
  w.type[object] = type;
  w.cell[object] = w.cell_at(row, column);
  w.row[object] = static_cast<std::uint16_t>(row);
  w.column[object] = static_cast<std::uint16_t>(column);
  w.vibe[object] = kind.vibe;
  std::copy(kind.inventory.begin(), kind.inventory.end(), w.held(object));
  if (kind.converter >= 0) {
    const CompiledConverter& machine = p.machines.converters[static_cast<std::size_t>(kind.converter)];
    for (std::uint32_t i = 0; i < p.num_resources; ++i)
      w.held(object)[i] = static_cast<std::uint16_t>(
          std::min<std::uint32_t>(65'535, w.held(object)[i] + machine.initial * machine.outputs[i]));
  }
  w.set_code(w.cell[object], static_cast<std::uint16_t>(object + 1));
  w.set_occupied(row, column);
  w.mark_dirty(object);
  w.forget_sources();
}

void place_terrain(const Program& p, World& w, std::uint16_t type, std::uint32_t row, std::uint32_t column) {
  w.set_code(w.cell_at(row, column), p.types[type].code);
  w.set_occupied(row, column);
}

void remove_object(const Program& p, World& w, std::uint32_t object, std::uint32_t tick) {
  set_collective(p, w, object, kNeutral);
  w.set_code(w.cell[object], kEmpty);
  w.clear_occupied(w.row[object], w.column[object]);
  w.cell[object] = 0;
  w.forget_sources();
  if (p.machines.any) w.running[object >> 6] &= ~(std::uint64_t{1} << (object & 63));
  w.dirty[object >> 6] &= ~(std::uint64_t{1} << (object & 63));
  if (p.rules.can_spawn) w.freed_at()[object] = tick;
}

// A place is used again two ticks after it was freed at the earliest: whoever was inside its areas leaves them first,
// and what the areas of a tick remove is left in those of the next.
std::int32_t unused_object(const Program& p, const World& w, std::uint32_t tick) {
  for (std::uint32_t object = p.num_agents; object < p.num_objects; ++object)
    if (!w.on_map(object) && tick - w.freed_at()[object] > 1) return static_cast<std::int32_t>(object);
  return -1;
}

void add_object(const Program& p, World& w, std::int32_t object, std::uint16_t type, std::uint32_t row,
                std::uint32_t column, std::uint32_t tick) {
  if (p.types[type].terrain) return place_terrain(p, w, type, row, column);
  const auto index = static_cast<std::uint32_t>(object);
  place_object(p, w, index, type, row, column);
  begin_object(p, w, index);
  if (p.machines.any) w.conversions[index] = 0;
  if (p.types[type].converter >= 0) try_start(p, w, index, tick);
}

}  // namespace gridmill::grid
