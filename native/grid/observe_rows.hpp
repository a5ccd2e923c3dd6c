// The fast observation of one world, shared by the portable and the AVX-512 file. Everything here has
// internal linkage on purpose: two files compile it for different CPUs, and the linker must not merge them.
// A row is: globals, then for every occupied cell in rank order the cached bytes of what stands there.
#pragma once

#include <cstring>

#include "grid/window.hpp"

namespace gridmill::grid {
namespace {

typedef std::uint64_t Pair __attribute__((vector_size(16), aligned(1), may_alias));

inline Pair load16(const void* p) { return *static_cast<const Pair*>(p); }
inline void store16(void* p, Pair value) { *static_cast<Pair*>(p) = value; }

constexpr std::size_t kRankList = 4 * 64 + 64;  // all ranks of a window, and room behind the last for whole vectors

struct RowWriter {
  std::uint8_t* out;
  std::uint8_t* end;
  std::uint32_t dropped;

  // The careful way: token by token, counting what does not fit.
  void put_slowly(const std::uint8_t* slot, std::uint32_t count, std::uint8_t location) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (out == end) {
        dropped += count - i;
        return;
      }
      out[0] = slot[3 * i] | location;
      out[1] = slot[3 * i + 1];
      out[2] = slot[3 * i + 2];
      out += 3;
    }
  }
};

// Tokens of a slot with their location, in stores of 16 bytes. A file with wider vectors has its own.
struct PairCopy {
  static inline void five(const Window& window, std::uint32_t rank, const std::uint8_t* slot, std::uint8_t* out) {
    store16(out, load16(slot) | load16(window.pattern[rank]));
  }
  static inline void ten(const Window& window, std::uint32_t rank, const std::uint8_t* slot, std::uint8_t* out) {
    const Pair pattern = load16(window.pattern[rank]);
    store16(out, load16(slot) | pattern);
    store16(out + 15, load16(slot + 15) | pattern);
  }
};

// More tokens than most objects have, or the end of the row is near.
template <class Copy>
__attribute__((noinline)) void put_rarely(RowWriter& row, const Window& window, std::uint32_t rank,
                                          const std::uint8_t* slot, std::uint32_t count) {
  if (row.out + (count + 4) / 5 * 15 + 1 > row.end) return row.put_slowly(slot, count, window.location[rank]);
  std::uint8_t* out = row.out;
  for (std::uint32_t done = 0; done < count; done += 5, out += 15, slot += 15) Copy::five(window, rank, slot, out);
  row.out += 3 * count;
}

// The cells of the window that hold something, in the order of their ranks.
template <class Ranks, class Code, bool kWide>
__attribute__((always_inline)) inline void put_cells(const ObserveJob& job, const Window& window,
                                                     const std::uint64_t* rows, std::uint32_t shift, const Code* here,
                                                     RowWriter& row) {
  using Copy = typename Ranks::Copy;
  std::uint8_t ranks[kRankList];
  const std::uint8_t* const last = ranks + Ranks::list(window, rows, shift, ranks);
  // What is written are bytes, which may be part of anything: what the loop reads is held here, not read again.
  const std::uint8_t* const slots = job.slots;
  const std::uint8_t* const counts = job.slot_counts;
  const std::uint32_t* const slot_at = job.slot_at;
  std::uint8_t* out = row.out;
  // What most objects fit into is written without asking how many tokens they have: a wrong guess costs more than a
  // store.
  constexpr std::uint32_t common = kWide ? 10 : 5, bytes = kWide ? 32 : 16;
  const std::uint8_t* const safe = row.end - bytes;
  for (const std::uint8_t* at = ranks; at != last; ++at) {
    const std::uint32_t rank = *at;
    const std::uint32_t code = here[window.cell_delta[rank]];
    const std::uint8_t* const slot = slots + slot_at[code];
    const std::uint32_t count = counts[code];
    if (__builtin_expect((count > common) | (out > safe), 0)) {
      row.out = out;
      put_rarely<Copy>(row, window, rank, slot, count);
      out = row.out;
      continue;
    }
    if constexpr (kWide) Copy::ten(window, rank, slot, out);
    else Copy::five(window, rank, slot, out);
    out += 3 * count;
  }
  row.out = out;
}

template <class Ranks, class Code, bool kWide>
__attribute__((always_inline)) inline void observe_row(const ObserveJob& job, const Window& window, std::uint32_t agent,
                                                       std::size_t row_bytes) {
  std::uint8_t* const begin = job.obs + agent * row_bytes;
  // The same agent's row in the next world: thousands of worlds do not fit the caches.
  __builtin_prefetch(begin + job.num_agents * row_bytes, 1, 2);
  __builtin_prefetch(begin + job.num_agents * row_bytes + 64, 1, 2);
  RowWriter row{begin, begin + row_bytes, 0};
  const std::uint64_t action = job.last_action[agent], reward = job.reward_token[agent];
  const Pair globals = {job.globals_low | job.progress << 16 | action << 40, job.globals_high | reward};
  if (row.out + 16 <= row.end) {
    store16(row.out, globals);
    row.out += 9;
  } else {
    std::uint8_t bytes[16];
    store16(bytes, globals);
    row.put_slowly(bytes, 3, 0xFE);
  }
  if (job.extra != nullptr) {
    const std::uint8_t* const extra = job.extra + std::size_t{agent} * job.extra_stride;
    const std::uint32_t bytes = 3 * job.extra_counts[agent];
    if (row.out + bytes + 16 <= row.end) {
      for (std::uint32_t done = 0; done < bytes; done += 16) store16(row.out + done, load16(extra + done));
      row.out += bytes;
    } else {
      row.put_slowly(extra, job.extra_counts[agent], 0xFE);
    }
  }

  const std::uint32_t column = job.column[agent];
  const std::uint64_t* rows = job.occupied + 1 + std::size_t{column >> 5} * job.plane_rows + job.row[agent];
  const Code* const here = static_cast<const Code*>(job.grid) + job.cell[agent];
  put_cells<Ranks, Code, kWide>(job, window, rows, column & 31, here, row);

  // Copies may have left bytes behind the last token: at most 31. Then clear what the last observation used and this
  // one did not; beyond that the row is empty already.
  const auto now = static_cast<std::uint32_t>(row.out - begin);
  const std::uint32_t before = std::uint32_t{job.used[agent]} * 3;
  const Pair ones = {~std::uint64_t{0}, ~std::uint64_t{0}};
  std::uint8_t* const stale = begin + before;
  if (__builtin_expect(row.out + 32 <= row.end && stale + 16 <= row.end, 1)) {
    store16(row.out, ones);
    store16(row.out + 16, ones);
    for (std::uint8_t* clear = row.out + 32; clear < stale; clear += 16) store16(clear, ones);
  } else if (row.out < row.end) {
    std::memset(row.out, 0xFF, static_cast<std::size_t>(row.end - row.out));
  }
  const std::uint32_t tokens = now / 3;
  job.used[agent] = static_cast<std::uint16_t>(tokens);
  job.written[agent] += tokens;
  job.dropped[agent] += row.dropped;
}

template <class Ranks, class Code, bool kWide>
inline void observe_agents(const ObserveJob& given) {
  const ObserveJob job = given;  // a copy nobody else can change: its fields may stay in registers
  const std::size_t row_bytes = std::size_t{job.num_tokens} * 3;
  for (std::uint32_t agent = 0; agent < job.num_agents; ++agent)
    observe_row<Ranks, Code, kWide>(job, *job.window, agent, row_bytes);
}

template <class Ranks>
inline void observe_rows(const ObserveJob& job) {
  if (job.narrow_grid)
    job.wide ? observe_agents<Ranks, std::uint8_t, true>(job) : observe_agents<Ranks, std::uint8_t, false>(job);
  else job.wide ? observe_agents<Ranks, std::uint16_t, true>(job) : observe_agents<Ranks, std::uint16_t, false>(job);
}

}  // namespace
}  // namespace gridmill::grid
