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

  void add_type(const Program& p, const Type& type) {
    for (const std::uint8_t tag : type.tags) add(p.tag_feature, tag);
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

void refresh_object(const Program& p, World& w, std::uint32_t object) {
  Slot slot;
  slot.add_type(p, p.types[w.type[object]]);
  if (w.vibe[object]) slot.add(p.vibe_feature, w.vibe[object]);
  if (object < p.num_agents) {
    slot.add(p.group_feature, w.group[object]);
    slot.add(p.id_feature, static_cast<std::uint8_t>(object));
  }
  const std::uint16_t* held = w.inventory + std::size_t{object} * p.num_resources;
  for (std::uint32_t r = 0; r < p.num_resources; ++r) {
    if (held[r] & 0xFF) slot.add(p.resource_feature[r], static_cast<std::uint8_t>(held[r]));
    if (held[r] >> 8) slot.add(p.resource_high_feature[r], static_cast<std::uint8_t>(held[r] >> 8));
  }
  slot.write(p, w, object + 1);
}

void refresh_terrain(const Program& p, World& w) {
  for (const Type& type : p.types) {
    if (!type.terrain) continue;
    Slot slot;
    slot.add_type(p, type);
    slot.write(p, w, type.code);
  }
}

}  // namespace gridmill::grid
