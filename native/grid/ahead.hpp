// Memory asked for before it is needed. Thousands of worlds outgrow the caches, so while a world's agents act, one
// after the other, a share of what the next world's tick will touch is asked for: what every tick touches, and in large
// worlds what the agent of the same number will see. In games with areas the latter waits until those are looked at:
// asked for all at once, it would keep the actions waiting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grid/world.hpp"

namespace gridmill::grid {

class Ahead {
 public:
  Ahead(const Program& p, const std::byte* next)
      : p_(p), next_(next), share_((p.prefetch.lines.size() + p.num_agents - 1) / p.num_agents) {}

  void ask_for(std::uint32_t agent) const {
    if (next_ == nullptr) return;
    const std::size_t end = std::min((agent + 1) * share_, p_.prefetch.lines.size());
    for (std::size_t i = agent * share_; i < end; ++i) ask_for_line(next_ + p_.prefetch.lines[i]);
    if (!p_.prefetch.small && p_.areas.list.empty()) ask_around(agent);
  }

  void ask_in_areas(std::uint32_t agent) const {
    if (next_ != nullptr && !p_.prefetch.small) ask_around(agent);
  }

  // A small world's positions have come by now.
  void ask_at_last() const {
    if (next_ == nullptr || !p_.prefetch.small) return;
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) ask_for_visits(agent);
  }

 private:
  // gcc takes a function that only asks for memory for one that does nothing, and leaves out its calls, unless there is
  // something in it that it must not touch. A test counts what is left in the object file.
  static void ask_for_line(const std::byte* at) {
    __builtin_prefetch(at, 1, 2);
    asm volatile("");
  }
  static void ask_for_bytes(const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 64) ask_for_line(from + at);
    ask_for_line(from + bytes - 1);
  }

  void ask_for_visits(std::uint32_t agent) const {
    const std::uint32_t row = p_.layout.row.in(next_)[agent], column = p_.layout.column.in(next_)[agent];
    const std::size_t tile = (row >> 3) * p_.layout.visited_tiles + (column >> 3);
    ask_for_line(next_ + p_.layout.visited.offset + 8 * (std::size_t{agent} * p_.layout.visited_words + tile));
  }

  void ask_around(std::uint32_t agent) const {
    const StateLayout& l = p_.layout;
    const std::uint32_t row = l.row.in(next_)[agent], column = l.column.in(next_)[agent];
    ask_for_visits(agent);
    if (p_.areas.reach_words != 0) {
      ask_for_line(next_ + l.reach_rows.offset + std::size_t{row} * p_.areas.reach_words * 8);
      ask_for_line(next_ + l.reach_columns.offset + std::size_t{column} * p_.areas.reach_words * 8);
    }
    const std::size_t strip = 8 * (1 + std::size_t{column >> 5} * p_.layout.plane_rows + row);
    const auto rows = static_cast<std::uint32_t>(p_.window.height);
    ask_for_bytes(next_ + l.occupied.offset + strip, 8 * rows);
    if (p_.codes.plain != 0) ask_for_bytes(next_ + l.plain.offset + strip, 8 * rows);
    ask_for_bytes(next_ + l.token_cache.offset + p_.token_cache.at[agent + 1],
                  std::size_t{1} << p_.token_cache.agent_shift);
    const auto cell = l.cell.in(next_)[agent];
    const std::size_t bytes = p_.layout.narrow_grid ? 1 : 2;
    const auto up = static_cast<std::uint32_t>(p_.window.radius_rows) * p_.stride;
    const auto left = static_cast<std::uint32_t>(p_.window.radius_columns);
    // The window may hang over the map's edge; asking for what lies before or behind it does no harm.
    const std::byte* line =
        next_ + l.grid.offset + (static_cast<std::ptrdiff_t>(cell) - up - left) * static_cast<std::ptrdiff_t>(bytes);
    for (std::uint32_t r = 0; r < rows; ++r, line += p_.stride * bytes) ask_for_line(line);
  }

  const Program& p_;
  const std::byte* const next_;
  const std::size_t share_;  // lines an agent asks for
};

}  // namespace gridmill::grid
