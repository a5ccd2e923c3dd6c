// The fast observation of one world, shared by the portable and the AVX-512 file. Everything here has
// internal linkage on purpose: two files compile it for different CPUs, and the linker must not merge them.
// A row is: globals, then for every occupied cell in rank order the cached bytes of what stands there.
#pragma once

#include <algorithm>
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

// More than five tokens: the further ones, 15 bytes (five tokens) at a time.
inline void put_rest(RowWriter& row, const std::uint8_t* slot, std::uint32_t count, Pair pattern) {
  std::uint8_t* out = row.out + 15;
  for (std::uint32_t done = 5; done < count; done += 5, out += 15) {
    slot += 15;
    store16(out, load16(slot) | pattern);
  }
}

template <class Ranks, class Code, bool kWide>
inline void observe_row(const ObserveJob& job, std::uint32_t agent) {
  const Window& window = *job.window;
  std::uint8_t* const begin = job.obs + std::size_t{agent} * job.num_tokens * 3;
  // The same agent's row in the next world: thousands of worlds do not fit the caches.
  __builtin_prefetch(begin + std::size_t{job.num_agents} * job.num_tokens * 3, 1, 2);
  __builtin_prefetch(begin + std::size_t{job.num_agents} * job.num_tokens * 3 + 64, 1, 2);
  RowWriter row{begin, begin + std::size_t{job.num_tokens} * 3, 0};
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
  if (job.extra != nullptr)
    row.put_slowly(job.extra + std::size_t{agent} * job.extra_stride, job.extra_counts[agent], 0xFE);

  std::uint8_t ranks[kRankList];
  const std::uint32_t column = job.column[agent];
  const std::uint64_t* rows = job.occupied + 1 + std::size_t{column >> 5} * job.plane_rows + job.row[agent];
  const std::uint32_t seen = Ranks::list(window, rows, column & 31, ranks);

  const Code* here = static_cast<const Code*>(job.grid) + job.cell[agent];
  const std::uint32_t last_agent = job.num_agents;
  // What most objects fit into is written without asking how many tokens they have: a wrong guess costs more than a
  // store.
  constexpr std::uint32_t common = kWide ? 10 : 5;
  for (std::uint32_t i = 0; i < seen; ++i) {
    const std::uint32_t rank = ranks[i];
    const std::uint32_t code = here[window.cell_delta[rank]];
    const std::uint8_t* const agent_slot = job.slots + (std::size_t{code} << job.agent_slot_shift);
    const std::uint8_t* const other_slot = job.other_slots + (std::size_t{code} << job.slot_shift);
    const std::uint8_t* const slot = code <= last_agent ? agent_slot : other_slot;
    const std::uint32_t count = job.slot_counts[code];
    const std::uint32_t room = count <= common ? common * 3 + 1 : (count + 4) / 5 * 15 + 1;
    if (__builtin_expect(row.out + room > row.end, 0)) {
      row.put_slowly(slot, count, window.location[rank]);
      continue;
    }
    const Pair pattern = load16(window.pattern[rank]);
    store16(row.out, load16(slot) | pattern);
    if constexpr (kWide) store16(row.out + 15, load16(slot + 15) | pattern);
    if (__builtin_expect(count > common, 0)) put_rest(row, slot, count, pattern);
    row.out += 3 * count;
  }

  // Copies may have left bytes behind the last token: at most 31. Then clear what the last observation used and this
  // one did not; beyond that the row is empty already.
  const auto now = static_cast<std::uint32_t>(row.out - begin);
  const std::uint32_t before = std::uint32_t{job.used[agent]} * 3;
  const Pair ones = {~std::uint64_t{0}, ~std::uint64_t{0}};
  std::uint8_t* const stale = begin + before;
  if (__builtin_expect(row.out + 32 <= row.end && stale + 16 <= row.end, 1)) {
    store16(row.out, ones);
    store16(row.out + 16, ones);
    for (std::uint8_t* out = row.out + 32; out < stale; out += 16) store16(out, ones);
  } else if (row.out < row.end) {
    std::memset(row.out, 0xFF, static_cast<std::size_t>(row.end - row.out));
  }
  const std::uint32_t tokens = now / 3;
  job.used[agent] = static_cast<std::uint16_t>(tokens);
  job.written[agent] += tokens;
  job.dropped[agent] += row.dropped;
}

template <class Ranks, class Code, bool kWide>
inline void observe_agents(const ObserveJob& job) {
  for (std::uint32_t agent = 0; agent < job.num_agents; ++agent) observe_row<Ranks, Code, kWide>(job, agent);
}

template <class Ranks>
inline void observe_rows(const ObserveJob& job) {
  const bool wide = std::max(job.agent_slot_shift, job.slot_shift) >= 5;  // some object has more than five tokens
  if (job.narrow_grid)
    wide ? observe_agents<Ranks, std::uint8_t, true>(job) : observe_agents<Ranks, std::uint8_t, false>(job);
  else wide ? observe_agents<Ranks, std::uint16_t, true>(job) : observe_agents<Ranks, std::uint16_t, false>(job);
}

}  // namespace
}  // namespace gridmill::grid
