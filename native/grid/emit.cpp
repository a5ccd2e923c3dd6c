// What an object shows. Tokens are built once when something about the object changes and kept in its slot as
// ready bytes (location 0, then 0xFF), so that observing it is a copy. Ascending (feature, value), whatever
// happened.
#include <algorithm>
#include <cstring>

#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

class Slot {
 public:
  void add(std::uint8_t feature, std::uint8_t value) {
    keys_[count_++] = static_cast<std::uint16_t>(feature << 8 | value);
  }

  void add_tags(const Program& p, const Type& type, std::uint64_t marks) {
    for (const std::uint8_t tag : type.tags) add(p.tag_feature, tag);
    for (; marks != 0; marks &= marks - 1)
      add(p.tag_feature, p.changeable[static_cast<std::size_t>(__builtin_ctzll(marks))]);
  }

  // Where in the slot the value of a feature stands that occurs once.
  std::uint16_t byte_of(std::uint8_t feature) const {
    std::size_t i = 0;
    while (keys_[i] >> 8 != feature) ++i;
    return static_cast<std::uint16_t>(3 * i + 2);
  }

  void write(const Program& p, World& w, std::uint32_t code) {
    std::sort(keys_, keys_ + count_);
    const std::size_t width = std::size_t{1} << p.slot_shift;
    std::uint8_t* out = w.slots + width * code;
    std::memset(out, 0xFF, width);
    for (std::size_t i = 0; i < count_; ++i) {
      out[3 * i] = 0;
      out[3 * i + 1] = static_cast<std::uint8_t>(keys_[i] >> 8);
      out[3 * i + 2] = static_cast<std::uint8_t>(keys_[i]);
    }
    w.slot_counts[code] = static_cast<std::uint8_t>(count_);
  }

 private:
  std::uint16_t keys_[256];
  std::size_t count_ = 0;
};

}  // namespace

void refresh_object(const Program& p, World& w, std::uint32_t object, std::uint32_t tick) {
  Slot slot;
  const Type& type = p.types[w.type[object]];
  slot.add_tags(p, type, p.changeable.empty() ? 0 : w.marks()[object]);
  if (const std::uint8_t team = w.collective_of(object); team != kNeutral)
    slot.add(p.collective_feature, p.teams[team].word);
  if (type.assembler >= 0) {
    const std::int64_t uses = p.assemblers[static_cast<std::size_t>(type.assembler)].max_uses;
    if (uses > w.conversions[object])
      slot.add(p.uses_feature, static_cast<std::uint8_t>(std::min<std::int64_t>(255, uses - w.conversions[object])));
  }
  if (w.vibe[object]) slot.add(p.vibe_feature, w.vibe[object]);
  if (object < p.num_agents) {
    slot.add(p.group_feature, w.group[object]);
    slot.add(p.id_feature, static_cast<std::uint8_t>(object));
    if (p.shows_facing) slot.add(p.facing_feature, w.facing[object]);
    if (p.can_freeze && w.frozen[object])
      slot.add(p.frozen_feature, static_cast<std::uint8_t>(std::min<std::uint32_t>(255, w.frozen[object])));
  }
  const std::uint16_t* held = w.inventory + std::size_t{object} * p.num_resources;
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    if (held[r] & 0xFF) slot.add(p.resource_feature[r], static_cast<std::uint8_t>(held[r]));
    if (held[r] >> 8) slot.add(p.resource_high_feature[r], static_cast<std::uint8_t>(held[r] >> 8));
  }
  const bool running = p.has_clocks && (w.running[object >> 6] >> (object & 63) & 1);
  if (running)
    slot.add(p.converting_feature, static_cast<std::uint8_t>(std::min<std::uint32_t>(255, w.done_at[object] - tick)));
  slot.write(p, w, object + 1);
  if (p.shows_facing && object < p.num_agents) w.facing_byte[object] = slot.byte_of(p.facing_feature);
  if (running) w.converting_byte[object] = slot.byte_of(p.converting_feature);
}

void refresh_terrain(const Program& p, World& w) {
  for (const Type& type : p.types) {
    if (!type.terrain) continue;
    Slot slot;
    slot.add_tags(p, type, type.marks);
    slot.write(p, w, type.code);
  }
}

}  // namespace gridmill::grid
