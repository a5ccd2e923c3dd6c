// Phase timing. The step exists twice, timed and untimed, and Batch picks one per step, so being off costs
// nothing. Timed, a chunk of worlds goes through the tick phase by phase: one clock read per phase and chunk.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gridmill {

inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Raw marks are cheap (about 8 ns on x86); Batch turns them into ns when someone asks.
inline std::int64_t clock_mark() {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__rdtsc());
#else
  return steady_ns();
#endif
}

// Marks per ns since the process began to look; exact enough after a millisecond.
class ClockRate {
 public:
  ClockRate() : ns0_(steady_ns()), mark0_(clock_mark()) {}
  double ns_per_mark() const {
    std::int64_t ns = steady_ns() - ns0_;
    while (ns < 1'000'000) ns = steady_ns() - ns0_;  // only right after construction
    return static_cast<double>(ns) / static_cast<double>(clock_mark() - mark0_);
  }

 private:
  std::int64_t ns0_, mark0_;
};

// One slot per phase of a game and a last one for auto-resets.
template <std::size_t NumPhases>
struct PhaseMarks {
  std::array<std::int64_t, NumPhases + 1> marks{};
};

}  // namespace gridmill
