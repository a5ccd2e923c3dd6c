// The fast observation of one world, shared by the portable file and those for AVX2 and AVX-512. Everything here has
// internal linkage on purpose: files compile it for different CPUs, and the linker must not merge them.
// A row is: globals, then for every occupied cell in rank order the cached bytes of what stands there.
// What a file brings, as `Cpu`: see() finds the occupied cells of a window as bits by rank; gather() lists the bytes of
// a table whose bits are set; Copy and Run write the tokens of an object and of many pieces of plain terrain; Boxes
// (dense_rows.hpp) writes a row once more as a dense box.
#pragma once

#include <cstring>

#include "core/bits.hpp"
#include "core/tokens.hpp"
#include "grid/observe/dense_rows.hpp"
#include "grid/observe/window.hpp"

namespace gridmill::grid {
namespace {

typedef std::uint64_t Pair __attribute__((vector_size(16), aligned(1), may_alias));

inline Pair load16(const void* p) { return *static_cast<const Pair*>(p); }
inline void store16(void* p, Pair value) { *static_cast<Pair*>(p) = value; }

constexpr std::uint32_t kWords = 4;                  // of 64 ranks in the largest window
constexpr std::size_t kRankList = kWords * 64 + 64;  // all ranks, and room behind the last for whole vectors

struct RowWriter {
  std::uint8_t* out;
  std::uint8_t* end;
  std::uint32_t dropped;
  std::uint8_t* box;  // the same row in its dense form

  // The careful way: token by token, counting what does not fit.
  void put_slowly(const std::uint8_t* tokens, std::uint32_t count, std::uint8_t location) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (out == end) {
        dropped += count - i;
        return;
      }
      out[0] = tokens[3 * i] | location;
      out[1] = tokens[3 * i + 1];
      out[2] = tokens[3 * i + 2];
      out += 3;
    }
  }
};

// Tokens of an object with their location, in stores of 16 bytes. A file with wider vectors has its own.
struct PairCopy {
  static inline void five(const Window& window, std::uint32_t rank, const std::uint8_t* tokens, std::uint8_t* out) {
    store16(out, load16(tokens) | load16(window.pattern[rank]));
  }
  static inline void ten(const Window& window, std::uint32_t rank, const std::uint8_t* tokens, std::uint8_t* out) {
    const Pair pattern = load16(window.pattern[rank]);
    store16(out, load16(tokens) | pattern);
    store16(out + 15, load16(tokens + 15) | pattern);
  }
};

// More tokens than most objects have, or the end of the row is near.
template <class Copy>
__attribute__((noinline)) void put_rarely(RowWriter& row, const Window& window, std::uint32_t rank,
                                          const std::uint8_t* tokens, std::uint32_t count) {
  if (row.out + (count + 4) / 5 * 15 + 1 > row.end) return row.put_slowly(tokens, count, window.location[rank]);
  std::uint8_t* out = row.out;
  for (std::uint32_t done = 0; done < count; done += 5, out += 15, tokens += 15) Copy::five(window, rank, tokens, out);
  row.out += 3 * count;
}

// What stands in one cell.
template <class Cpu, class Code, bool kWide, bool kBoxes>
struct CellWriter {
  using Copy = typename Cpu::Copy;
  // What most objects fit into is written without asking how many tokens they have: a wrong guess costs more than a
  // store.
  static constexpr std::uint32_t kCommon = kWide ? 10 : 5, kBytes = kWide ? 32 : 16;

  // What is written are bytes, which may be part of anything: what is read again and again is held here.
  CellWriter(const ObserveJob& job, const Window& seen_through, const Code* standing, RowWriter& to)
      : window(seen_through),
        here(standing),
        token_cache(job.token_cache),
        counts(job.token_counts),
        token_at(job.token_at),
        row(to),
        out(to.out),
        safe(to.end - kBytes),
        box(to.box) {}

  __attribute__((always_inline)) inline void put(std::uint32_t rank) {
    // Boxes do not fit the caches, so this one is asked for before it is written, and a line at a time: many at once
    // would keep what is read here waiting.
    if constexpr (kBoxes) {
      __builtin_prefetch(box, 1, 3);
      box += 64;
    }
    const std::uint32_t code = here[window.cell_delta[rank]];
    const std::uint8_t* const tokens = token_cache + token_at[code];
    const std::uint32_t count = counts[code];
    if (__builtin_expect((count > kCommon) | (out > safe), 0)) {
      row.out = out;
      put_rarely<Copy>(row, window, rank, tokens, count);
      out = row.out;
      return;
    }
    if constexpr (kWide) Copy::ten(window, rank, tokens, out);
    else Copy::five(window, rank, tokens, out);
    out += 3 * count;
  }

  const Window& window;
  const Code* const here;
  const std::uint8_t* const token_cache;
  const std::uint8_t* const counts;
  const std::uint32_t* const token_at;
  RowWriter& row;
  std::uint8_t* out;
  const std::uint8_t* const safe;
  const std::uint8_t* box;
};

// The cells of the window that hold something, in the order of their ranks.
template <class Cpu, class Code, bool kWide, bool kBoxes>
__attribute__((always_inline)) inline void put_cells(const ObserveJob& job, const Window& window,
                                                     const std::uint64_t* rows, std::uint32_t shift, const Code* here,
                                                     RowWriter& row) {
  std::uint64_t seen[kWords];
  std::uint8_t ranks[kRankList];
  Cpu::see(window, rows, shift, seen);
  const std::uint8_t* const last = ranks + Cpu::gather(window.numbers, seen, window.num_words, ranks);
  CellWriter<Cpu, Code, kWide, kBoxes> cells(job, window, here, row);
  for (const std::uint8_t* at = ranks; at != last; ++at) cells.put(*at);
  row.out = cells.out;
}

// Pieces of plain terrain at these places, one behind the other.
template <class Run>
__attribute__((always_inline)) inline std::uint8_t* put_run(const Run& run, RowWriter& row, std::uint8_t* out,
                                                            const std::uint8_t* places, const std::uint8_t* last) {
  for (; places < last; places += Run::kTokens) {
    const auto left = static_cast<std::uint32_t>(last - places);
    const std::uint32_t count = left < Run::kTokens ? left : Run::kTokens;
    if (__builtin_expect(out + Run::kBytes <= row.end, 1)) {
      run.store(places, out);
      out += 3 * count;
      continue;
    }
    std::uint8_t tokens[Run::kBytes];
    run.store(places, tokens);
    row.out = out;
    row.put_slowly(tokens, count, 0);
    out = row.out;
  }
  return out;
}

// The same where most of what is seen is plain terrain: its tokens differ only in their location and are written many
// at a time, between those of everything else.
template <class Cpu, class Code, bool kWide, bool kBoxes>
__attribute__((always_inline)) inline void put_runs(const ObserveJob& job, const Window& window,
                                                    const std::uint64_t* rows, std::uint32_t shift, const Code* here,
                                                    RowWriter& row) {
  std::uint64_t seen[kWords], plain[kWords];
  std::uint8_t places[kRankList];
  Cpu::see(window, rows, shift, seen);
  Cpu::see(window, rows + job.plain, shift, plain);
  const std::uint8_t* const last = places + Cpu::gather(window.location, seen, window.num_words, places);
  const typename Cpu::Run run(window);
  CellWriter<Cpu, Code, kWide, kBoxes> cells(job, window, here, row);
  const std::uint8_t *next = places, *of_word = places;
  for (std::uint32_t word = 0; word < window.num_words; ++word) {
    for (std::uint64_t others = seen[word] & ~plain[word]; others != 0; others &= others - 1) {
      const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(others));
      const std::uint8_t* const at = of_word + count_bits(seen[word] & ((std::uint64_t{1} << bit) - 1));
      cells.out = put_run(run, row, cells.out, next, at);
      cells.put(64 * word + bit);
      next = at + 1;
    }
    of_word += count_bits(seen[word]);
  }
  row.out = put_run(run, row, cells.out, next, last);
}

template <class Cpu, class Code, bool kWide, bool kBoxes>
__attribute__((always_inline)) inline void observe_row(const ObserveJob& job, const Window& window, std::uint32_t agent,
                                                       std::size_t row_bytes) {
  std::uint8_t* const begin = job.obs + agent * row_bytes;
  // The same agent's row in the next world: thousands of worlds do not fit the caches.
  __builtin_prefetch(begin + job.num_agents * row_bytes, 1, 2);
  __builtin_prefetch(begin + job.num_agents * row_bytes + 64, 1, 2);
  RowWriter row{begin, begin + row_bytes, 0, kBoxes ? job.boxes + agent * job.dense.bytes : nullptr};
  const std::uint64_t action = job.last_action[agent], reward = job.reward_token[agent];
  const Pair globals = {job.globals_low | job.progress << 16 | action << 40, job.globals_high | reward};
  if (row.out + 16 <= row.end) {
    store16(row.out, globals);
    row.out += 9;
  } else {
    std::uint8_t bytes[16];
    store16(bytes, globals);
    row.put_slowly(bytes, 3, kGlobalLocation);
  }
  if (job.extra != nullptr) {
    const std::uint8_t* const extra = job.extra + std::size_t{agent} * job.extra_stride;
    const std::uint32_t bytes = 3 * job.extra_counts[agent];
    if (row.out + bytes + 16 <= row.end) {
      for (std::uint32_t done = 0; done < bytes; done += 16) store16(row.out + done, load16(extra + done));
      row.out += bytes;
    } else {
      row.put_slowly(extra, job.extra_counts[agent], kGlobalLocation);
    }
  }

  const std::uint32_t column = job.column[agent];
  const std::uint64_t* rows = job.occupied + 1 + std::size_t{column >> 5} * job.plane_rows + job.row[agent];
  const Code* const here = static_cast<const Code*>(job.grid) + job.cell[agent];
  if (job.plain != 0) put_runs<Cpu, Code, kWide, kBoxes>(job, window, rows, column & 31, here, row);
  else put_cells<Cpu, Code, kWide, kBoxes>(job, window, rows, column & 31, here, row);

  // Copies may have left bytes behind the last token: those, and what the last observation used and this one did not,
  // are cleared. Beyond that the row is empty already.
  const auto now = static_cast<std::uint32_t>(row.out - begin);
  const Pair ones = {~std::uint64_t{0}, ~std::uint64_t{0}};
  constexpr std::size_t copied = 32, copied_in_runs = Cpu::Run::kBytes > copied ? Cpu::Run::kBytes : copied;
  std::uint8_t* const touched = row.out + (job.plain != 0 ? copied_in_runs : copied);
  std::uint8_t* const used = begin + std::uint32_t{job.used[agent]} * 3;
  std::uint8_t* const stale = used > touched ? used : touched;
  if (__builtin_expect(stale + 16 <= row.end, 1)) {
    store16(row.out, ones);
    store16(row.out + 16, ones);
    for (std::uint8_t* clear = row.out + 32; clear < stale; clear += 16) store16(clear, ones);
  } else if (row.out < row.end) {
    std::memset(row.out, kNoToken, static_cast<std::size_t>(row.end - row.out));
  }
  const std::uint32_t tokens = now / 3;
  job.used[agent] = static_cast<std::uint16_t>(tokens);
  job.written[agent] += tokens;
  job.dropped[agent] += row.dropped;
  if constexpr (kBoxes) write_box<typename Cpu::Boxes>(job.dense, begin, tokens, job.num_tokens, row.box);
}

template <class Cpu, class Code, bool kWide, bool kBoxes>
inline void observe_agents(const ObserveJob& given) {
  const ObserveJob job = given;  // a copy nobody else can change: its fields may stay in registers
  const std::size_t row_bytes = std::size_t{job.num_tokens} * 3;
  for (std::uint32_t agent = 0; agent < job.num_agents; ++agent)
    observe_row<Cpu, Code, kWide, kBoxes>(job, *job.window, agent, row_bytes);
}

template <class Cpu, class Code, bool kWide>
inline void observe_agents(const ObserveJob& job) {
  job.boxes != nullptr ? observe_agents<Cpu, Code, kWide, true>(job) : observe_agents<Cpu, Code, kWide, false>(job);
}

template <class Cpu>
inline void observe_rows(const ObserveJob& job) {
  if (job.narrow_grid)
    job.wide ? observe_agents<Cpu, std::uint8_t, true>(job) : observe_agents<Cpu, std::uint8_t, false>(job);
  else job.wide ? observe_agents<Cpu, std::uint16_t, true>(job) : observe_agents<Cpu, std::uint16_t, false>(job);
}

}  // namespace
}  // namespace gridmill::grid
