// Memory asked for before it is needed. Thousands of worlds outgrow the caches, so while a world's agents act, one
// agent after the other, a share of what the next world's tick will touch is asked for. Small worlds are asked for
// whole; of large ones what the agent of the same number will touch and see. Where that is, must have come by then: it
// is asked for one world earlier.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grid/world.hpp"

namespace gridmill::grid {

class Ahead {
 public:
  Ahead(const Program& p, const std::byte* next, const std::byte* after_next) : p_(p), next_(next) {
    if (next == nullptr) return;
    const Layout& l = p.layout;
    const std::size_t n = p.num_agents, window_rows = static_cast<std::uint32_t>(p.window.height);
    small_ = l.hot <= kSmallPerAgent * n;
    if (small_) {
      share_ = (l.hot / 64 + n) / n * 64;
      return;
    }
    const std::size_t grid = std::size_t{p.height + 2} * p.stride * code_bytes();
    if (grid / 64 <= n * window_rows) share_ = (grid / n + 64) / 64 * 64;
    if (after_next == nullptr) return;
    ask(after_next + l.cell, n * 4);
    ask(after_next + l.row, n * 2);
    ask(after_next + l.column, n * 2);
    ask(after_next + l.dirty, l.slot_counts + p.num_slots - l.dirty);
  }

  void ask_for(std::uint32_t agent) const {
    if (next_ == nullptr) return;
    if (small_) ask(next_ + agent * share_, share_);
    else ask_around(agent);
  }

  // A small world's positions have come by now.
  void ask_at_last() const {
    if (next_ == nullptr || !small_) return;
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) ask_for_visits(agent);
  }

 private:
  static constexpr std::size_t kSmallPerAgent = 640;

  // gcc takes a function that only asks for memory for one that does nothing, and leaves out its calls, unless there is
  // something in it that it must not touch. A test counts what is left in the object file.
  static void ask(const std::byte* from, std::size_t bytes) {
    const std::byte* const end = from + bytes;
    for (const std::byte* at = from; at < end; at += 64) __builtin_prefetch(at, 1, 2);
    __builtin_prefetch(end - 1, 1, 2);
    asm volatile("");
  }

  std::size_t code_bytes() const { return p_.narrow_grid ? 1 : 2; }
  std::uint32_t number(std::size_t array, std::uint32_t agent) const {
    return reinterpret_cast<const std::uint16_t*>(next_ + array)[agent];
  }

  void ask_for_visits(std::uint32_t agent) const {
    const World next(p_, const_cast<std::byte*>(next_));
    __builtin_prefetch(next.visited_word(agent, next.row[agent], next.column[agent]), 1, 2);
    asm volatile("");
  }

  void ask_around(std::uint32_t agent) const {
    const Layout& l = p_.layout;
    const std::uint32_t row = number(l.row, agent), column = number(l.column, agent);
    const std::size_t tile = (row >> 3) * p_.visited_tiles + (column >> 3);
    __builtin_prefetch(next_ + l.visited + 8 * (std::size_t{agent} * p_.visited_words + tile), 1, 2);
    if (p_.reach_words != 0) {
      __builtin_prefetch(next_ + l.reach_rows + std::size_t{row} * p_.reach_words * 8, 0, 2);
      __builtin_prefetch(next_ + l.reach_columns + std::size_t{column} * p_.reach_words * 8, 0, 2);
    }
    const std::size_t strip = 8 * (1 + std::size_t{column >> 5} * p_.plane_rows + row);
    const std::size_t strip_bytes = 8 * static_cast<std::size_t>(p_.window.height);
    ask(next_ + l.occupied + strip, strip_bytes);
    if (p_.plain_code != 0) ask(next_ + l.plain + strip, strip_bytes);
    ask(next_ + l.slots + p_.slot_at[agent + 1], std::size_t{1} << p_.agent_slot_shift);
    __builtin_prefetch(next_ + l.outcomes + std::size_t{agent} * p_.num_outcomes * (p_.narrow_outcomes ? 2 : 4), 1, 2);
    if (p_.num_resources != 0) ask_for_amounts(agent);
    if (share_ != 0) ask(next_ + l.grid + agent * share_, share_);
    else ask_for_window(agent);
    asm volatile("");
  }

  void ask_for_amounts(std::uint32_t agent) const {
    const Layout& l = p_.layout;
    __builtin_prefetch(next_ + l.inventory + std::size_t{agent} * p_.num_resources * 2, 1, 2);
    if (p_.has_tick_rules || p_.reach_words != 0)
      ask(next_ + l.flows + std::size_t{agent} * p_.num_resources * kFlows * 8, 160);
  }

  void ask_for_window(std::uint32_t agent) const {
    const auto cell = reinterpret_cast<const std::uint32_t*>(next_ + p_.layout.cell)[agent];
    const auto rows = static_cast<std::uint32_t>(p_.window.radius_rows),
               columns = static_cast<std::uint32_t>(p_.window.radius_columns);
    const std::ptrdiff_t first = std::ptrdiff_t{cell} - std::ptrdiff_t{rows} * p_.stride - columns;
    for (std::uint32_t r = 0; r <= 2 * rows; ++r) {
      const std::ptrdiff_t at = first + std::ptrdiff_t{r} * p_.stride;
      __builtin_prefetch(next_ + p_.layout.grid + at * static_cast<std::ptrdiff_t>(code_bytes()), 0, 2);
    }
  }

  const Program& p_;
  const std::byte* const next_;
  bool small_ = false;
  std::size_t share_ = 0;  // bytes an agent asks for: of all, or of the map if that is less than all windows
};

}  // namespace gridmill::grid
