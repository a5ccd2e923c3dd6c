// See machines.hpp.
#include "grid/machines.hpp"

#include "grid/inventory.hpp"

namespace gridmill::grid {
namespace {

const CompiledConverter& machine_of(const Program& p, const World& w, std::uint32_t object) {
  return p.machines.converters[static_cast<std::size_t>(p.types[w.type[object]].converter)];
}

bool is_running(const World& w, std::uint32_t object) { return w.running[object >> 6] >> (object & 63) & 1; }

}  // namespace

void try_start(const Program& p, World& w, std::uint32_t object, std::uint32_t tick) {
  const CompiledConverter& machine = machine_of(p, w, object);
  if (is_running(w, object)) return;
  if (machine.max_conversions >= 0 && w.conversions[object] >= machine.max_conversions) return;
  std::uint16_t* held = w.held(object);
  std::uint32_t waiting = 0;
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    if (held[r] < machine.inputs[r]) return;
    if (machine.outputs[r]) waiting += held[r];
  }
  if (waiting >= machine.max_output) return;
  for (std::uint32_t r = 0; r < p.num_resources; ++r) held[r] = static_cast<std::uint16_t>(held[r] - machine.inputs[r]);
  ++w.conversions[object];
  w.done_at[object] = tick + machine.cooldown;
  w.running[object >> 6] |= std::uint64_t{1} << (object & 63);
  w.mark_dirty(object);
}

void advance_machines(const Program& p, World& w, std::uint32_t tick) {
  for (std::uint32_t word = 0; word < (p.num_objects + 63) / 64; ++word)
    for (std::uint64_t left = w.running[word]; left != 0; left &= left - 1) {
      const std::uint32_t object = 64 * word + static_cast<std::uint32_t>(__builtin_ctzll(left));
      if (w.done_at[object] != tick) {
        // The ticks left are shown; everything else about the object stays, so only that byte changes.
        const std::uint32_t remaining = std::min<std::uint32_t>(255, w.done_at[object] - tick);
        w.cached_tokens(object + 1)[w.converting_byte[object]] = static_cast<std::uint8_t>(remaining);
        continue;
      }
      w.running[word] &= ~(std::uint64_t{1} << (object & 63));
      w.mark_dirty(object);
      if (p.types[w.type[object]].converter < 0) continue;  // an assembler has rested
      const CompiledConverter& machine = machine_of(p, w, object);
      std::uint16_t* held = w.held(object);
      for (std::uint32_t r = 0; r < p.num_resources; ++r)
        held[r] =
            static_cast<std::uint16_t>(std::min<std::uint32_t>(65'535, held[r] + std::uint32_t{machine.outputs[r]}));
      try_start(p, w, object, tick);
    }
}

bool use_machine(RuleContext& s) {
  const Program& p = s.p;
  World& w = s.w;
  const auto agent = static_cast<std::uint32_t>(s.actor), object = static_cast<std::uint32_t>(s.target);
  const CompiledConverter& machine = machine_of(p, w, object);
  const std::uint16_t* mine = s.held(s.actor);
  std::uint16_t* its = w.held(object);
  std::uint32_t moved = 0;
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    if (!machine.outputs[r]) continue;
    const std::uint32_t fits = std::min<std::uint32_t>(its[r], room_in(p.limit_sets[0], mine, r));
    moved += fits;
    if (s.dry() || fits == 0) continue;
    its[r] = static_cast<std::uint16_t>(its[r] - fits);
    change_amount(p, w, agent, r, static_cast<std::int32_t>(fits));
    w.resource_counter(agent, r, ResourceCounter::get) += fits;
  }
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    if (!machine.inputs[r] || its[r] >= machine.store[r]) continue;
    const std::uint32_t given = std::min<std::uint32_t>(mine[r], machine.store[r] - its[r]);
    moved += given;
    if (s.dry() || given == 0) continue;
    its[r] = static_cast<std::uint16_t>(its[r] + given);
    change_amount(p, w, agent, r, -static_cast<std::int32_t>(given));
    w.resource_counter(agent, r, ResourceCounter::put) += given;
  }
  if (s.dry() || moved == 0) return moved > 0;
  w.mark_dirty(object);
  try_start(p, w, object, s.header.tick);
  return true;
}

}  // namespace gridmill::grid
