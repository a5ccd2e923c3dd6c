// Phase timing. The step of a world exists twice, timed and untimed, and Batch picks one, so being off costs nothing.
// Timed, it is the same step in the same order, with the clock read once a phase.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gridmill {

inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Raw marks are cheap; Batch turns them into ns when someone asks.
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
  // A mark as steady_ns() would have shown it, at a rate of ns_per_mark(): marks that are to be compared take the same.
  std::int64_t ns_at(std::int64_t mark, double rate) const {
    return ns0_ + static_cast<std::int64_t>(static_cast<double>(mark - mark0_) * rate);
  }
  double ns_per_mark() const {
    std::int64_t ns = steady_ns() - ns0_;
    while (ns < 1'000'000) ns = steady_ns() - ns0_;  // only right after construction
    return static_cast<double>(ns) / static_cast<double>(clock_mark() - mark0_);
  }

 private:
  std::int64_t ns0_, mark0_;
};

// Raw marks per phase of a game, then of auto-resets, players and the teacher; one per worker and lane.
template <std::size_t NumPhases>
using PhaseMarks = std::array<std::int64_t, NumPhases + 3>;

// One phase of one world's step, for a trace: when, in raw marks or in ns.
struct TracedPhase {
  std::int64_t begin = 0, end = 0;
  std::uint32_t world = 0, phase = 0;
};

// What one worker did, phase by phase, while somebody traces. Its memory is taken when tracing starts, never in a tick:
// what finds no room is counted.
class PhaseTrace {
 public:
  void start(std::size_t room) {
    list = {};
    list.reserve(room);
    room_ = room;
    dropped = 0;
  }
  bool on() const { return room_ != 0; }
  void add(const TracedPhase& phase) {
    if (list.size() < room_) list.push_back(phase);
    else ++dropped;
  }

  std::vector<TracedPhase> list;
  std::uint64_t dropped = 0;
  std::int64_t thread = 0;  // whoever worked last, by the system's number

 private:
  std::size_t room_ = 0;
};

// The times of a batch: of the last step and since the beginning. Adds raw marks; turning them into ns waits until
// someone asks.
template <std::size_t NumPhases>
class StepTimes {
 public:
  using Nanoseconds = std::array<std::int64_t, NumPhases + 4>;  // as PhaseMarks, then the wall clock

  void begin() { last_ = {}; }
  void add(PhaseMarks<NumPhases>& marks) {
    for (std::size_t p = 0; p < marks.size(); ++p) {
      last_[p] += marks[p];
      total_[p] += marks[p];
    }
    marks = {};
  }
  void end(std::int64_t start_mark) {
    last_wall_ = clock_mark() - start_mark;
    total_wall_ += last_wall_;
    ++steps_;
  }
  Nanoseconds last() const { return in_ns(last_, last_wall_); }
  Nanoseconds total() const { return in_ns(total_, total_wall_); }
  std::uint64_t steps() const { return steps_; }
  double ns_per_mark() const { return rate_.ns_per_mark(); }
  std::int64_t ns_at(std::int64_t mark, double rate) const { return rate_.ns_at(mark, rate); }

 private:
  Nanoseconds in_ns(const PhaseMarks<NumPhases>& marks, std::int64_t wall) const {
    const double rate = rate_.ns_per_mark();
    Nanoseconds out{};
    for (std::size_t p = 0; p < marks.size(); ++p)
      out[p] = static_cast<std::int64_t>(static_cast<double>(marks[p]) * rate);
    out[marks.size()] = static_cast<std::int64_t>(static_cast<double>(wall) * rate);
    return out;
  }

  ClockRate rate_;
  PhaseMarks<NumPhases> last_{}, total_{};
  std::int64_t last_wall_ = 0, total_wall_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace gridmill
