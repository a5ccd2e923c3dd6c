// Where everything of a world's state lies. StateLayout is the table of its arrays: element, name, how many; their
// order is the order in memory, so a change to what lies before `saved` makes states saved earlier unreadable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "grid/vocabulary.hpp"

namespace gridmill::grid {

// An object that has this area and may affect somebody; kept per world until something about it changes.
struct AreaSource {
  std::uint16_t area, object;
};
constexpr std::uint32_t kSourcesUnknown = 0xFFFF'FFFF;
// Whether the bits of reach are right, and how many sources they are about.
struct AreaReach {
  std::uint32_t known, fixed;
};

// An array of a world's state: where it begins, in bytes from the start of the state.
template <class T>
struct StateArray {
  std::size_t offset = 0;
  T* in(std::byte* state) const { return reinterpret_cast<T*>(state + offset); }
  const T* in(const std::byte* state) const { return reinterpret_cast<const T*>(state + offset); }
  template <class Other>
  StateArray<Other> as() const {
    return {offset};
  }
};

// What the sizes of the arrays hang on. Arrays that a game has no use for are empty. 64 bits on every machine: a
// product of them that does not fit an address is refused, not cut off.
struct StateSizes {
  std::uint64_t num_agents = 0, num_objects = 0, num_resources = 0, num_teams = 0, num_codes = 0, num_names = 0;
  std::uint64_t num_action_counters = 0, num_terms = 0, num_extra_stats = 0;
  std::uint64_t height = 0, width = 0, num_cells = 0;  // cells of the padded grid
  std::uint32_t plane_rows = 0, num_strips = 0;        // of the occupancy bitmap
  std::uint32_t visited_words = 0, visited_tiles = 0;  // words of 8 x 8 cells, words per row of tiles
  std::uint64_t token_cache_bytes = 0;
  std::uint64_t num_areas = 0, areas_of_type = 0, reach_words = 0;
  // Small numbers in few bytes: thousands of worlds are limited by memory, not by arithmetic.
  bool narrow_grid = false;             // codes fit 8 bits
  bool narrow_action_counters = false;  // counts of an episode fit 16 bits
  bool can_freeze = false, shows_facing = false, has_clocks = false, has_tag_bits = false, can_spawn = false;
  bool remembers_areas = false, has_plain = false;
};

struct StateLayout : StateSizes {
  StateLayout() = default;
  explicit StateLayout(const StateSizes& sizes) : StateSizes(sizes) {}

 private:
  // The next array; its element is that of whatever it is assigned to. Aligned to the size of an element.
  struct Next {
    StateLayout& layout;
    std::uint64_t count;
    template <class T>
    operator StateArray<T>() const {
      return {layout.take(count, sizeof(T), sizeof(T))};
    }
  };
  Next next(std::uint64_t count) { return {*this, count}; }
  std::size_t take(std::uint64_t count, std::uint64_t size, std::uint64_t alignment) {
    const std::uint64_t here = (end_ + alignment - 1) / alignment * alignment;
    end_ = here + count * size;
    if (end_ > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()))
      fail_at("$", "expected a world that this machine can address, got one of " + std::to_string(end_) + " bytes");
    return static_cast<std::size_t>(here);
  }
  std::size_t whole_lines() {
    end_ = (end_ + 63) / 64 * 64;
    return static_cast<std::size_t>(end_);
  }
  std::uint64_t end_ = 0;

 public:
  // What every tick touches, side by side and in few lines; Batch asks for it ahead.
  StateArray<std::uint32_t> cell = next(num_objects);
  StateArray<std::uint16_t> row = next(num_objects);
  StateArray<std::uint16_t> column = next(num_objects);
  StateArray<std::uint64_t> dirty = next((num_objects + 63) / 64);
  StateArray<std::uint8_t> last_action = next(num_agents);
  StateArray<std::uint8_t> reward_token = next(num_agents);
  StateArray<std::uint8_t> facing = next(num_agents);
  StateArray<std::uint8_t> token_counts = next(num_codes);
  StateArray<std::uint64_t> occupied = next(1 + std::size_t{num_strips} * plane_rows + 16);  // vectors read 16 rows
  StateArray<std::uint8_t> token_cache{take(token_cache_bytes + 32, 1, 16)};  // copies read up to 31 bytes too far
  StateArray<std::uint8_t> grid{take(num_cells, narrow_grid ? 1 : 2, narrow_grid ? 1 : 2)};
  StateArray<std::uint16_t> action_counters{
      take(num_agents * num_action_counters, narrow_action_counters ? 2 : 4, narrow_action_counters ? 2 : 4)};
  StateArray<std::uint16_t> frozen = next(can_freeze ? num_agents : 0);
  StateArray<std::uint16_t> facing_byte = next(shows_facing ? num_agents : 0);
  StateArray<std::uint64_t> touched = next((num_agents + 63) / 64);
  StateArray<std::uint32_t> done_at = next(has_clocks ? num_objects : 0);
  StateArray<std::uint64_t> running = next(has_clocks ? (num_objects + 63) / 64 : 0);
  StateArray<std::uint16_t> converting_byte = next(has_clocks ? num_objects : 0);
  StateArray<std::uint64_t> agent_counters = next(num_agents * kAgentCounters);
  std::size_t hot = agent_counters.offset + num_agents * kHotAgentCounters * 8;  // end of what every tick touches
  StateArray<std::uint64_t> visited = next(num_agents * visited_words);
  StateArray<std::uint64_t> resource_counters = next(num_agents * num_resources * kResourceCounters);
  StateArray<std::uint32_t> conversions = next(has_clocks ? num_objects : 0);
  StateArray<double> reward_sum = next(num_agents);
  StateArray<double> term_state = next(num_agents * num_terms * 2);
  StateArray<std::uint16_t> type = next(num_objects);
  StateArray<std::uint16_t> inventory = next((num_objects + num_teams) * num_resources);
  StateArray<std::uint8_t> collective = next(num_teams == 0 ? 0 : num_objects);
  StateArray<std::uint64_t> tag_bits = next(has_tag_bits ? num_objects : 0);
  StateArray<std::uint32_t> freed_at = next(can_spawn ? num_objects : 0);
  StateArray<std::uint64_t> inside = next(remembers_areas ? num_agents * ((num_objects * areas_of_type + 63) / 64) : 0);
  StateArray<std::uint32_t> num_sources = next(num_areas == 0 ? 0 : 1);
  StateArray<AreaSource> sources = next(num_objects * areas_of_type);
  StateArray<std::uint64_t> team_counts = next(num_teams * num_names * kTeamCounts);
  StateArray<std::uint64_t> team_resource_counters = next(num_teams * num_resources * kTeamResourceCounters);
  StateArray<double> extra_stats = next(num_extra_stats);
  StateArray<std::uint8_t> vibe = next(num_objects);
  StateArray<std::uint8_t> group = next(num_agents);
  StateArray<std::uint16_t> spawn_row = next(num_agents);
  StateArray<std::uint16_t> spawn_column = next(num_agents);
  std::size_t saved = whole_lines();
  // What follows from the above.
  StateArray<std::uint64_t> plain_known = next(has_plain ? 1 : 0);
  StateArray<std::uint64_t> plain = next(has_plain ? token_cache.offset / 8 - occupied.offset / 8 : 0);
  StateArray<std::uint64_t> changes = next(num_agents);
  StateArray<std::uint8_t> digit_places = next(num_agents * num_resources * 2);
  StateArray<AreaReach> reach = next(num_areas == 0 ? 0 : 1);
  StateArray<std::uint32_t> first_source = next(num_areas == 0 ? 0 : num_areas + 1);
  StateArray<std::uint64_t> reach_rows = next(height * reach_words);
  StateArray<std::uint64_t> reach_columns = next(width * reach_words);
  StateArray<std::uint64_t> concerned = next((num_teams + 1) * reach_words);
  std::size_t bytes = whole_lines();
};

}  // namespace gridmill::grid
