// Finished episodes waiting to be taken: one row per agent, in a ring that keeps the newest and counts the
// rest, so that a caller who never asks does not leak memory and one who asks now and then loses nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace gridmill {

struct EpisodeHead {
  std::uint64_t step = 0;  // the lane's step count when it ended; orders records the same for any lanes
  std::uint32_t world = 0, agent = 0, episode = 0, length = 0;
  std::int32_t program = 0;
  bool desynced = false;
};

// Episodes that ended in a step, until they are gathered; grows to the most that ever end at once.
struct EndedEpisodes {
  void clear() {
    heads.clear();
    stats.clear();
  }
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;  // [episode][agent][stat]
};

class EpisodeLog {
 public:
  // Room for what ends in four steps, if that fits into a gigabyte, and for what ends in one anyway.
  EpisodeLog(std::size_t num_stats, std::size_t rows)
      : num_stats_(num_stats),
        capacity_(std::max(rows, std::min(std::max<std::size_t>(4 * rows, 65'536), kMostKept / (num_stats + 1)))) {}

  void add(const EpisodeHead& head, const double* stats) {
    std::size_t at = heads_.size();
    if (at == capacity_) {
      at = oldest_;
      oldest_ = (oldest_ + 1) % capacity_;
      ++dropped_;
    } else {
      heads_.emplace_back();
      stats_.resize(stats_.size() + num_stats_);
    }
    heads_[at] = head;
    std::copy_n(stats, num_stats_, stats_.begin() + static_cast<std::ptrdiff_t>(at * num_stats_));
  }

  // What ended in one step of a chunk of worlds; chunks come in the order of their worlds, so that records do not
  // depend on who did the work.
  void add(const EndedEpisodes& ended, std::uint64_t step, std::size_t agents) {
    const double* stats = ended.stats.data();
    for (EpisodeHead head : ended.heads) {
      head.step = step;
      for (std::size_t agent = 0; agent < agents; ++agent) {
        head.agent = static_cast<std::uint32_t>(agent);
        add(head, stats);
        stats += num_stats_;
      }
    }
  }

  // Moves everything out, ordered by (step, world, agent); stats as rows of num_stats numbers.
  void take(std::vector<EpisodeHead>& heads, std::vector<double>& stats) {
    std::vector<std::size_t> order(heads_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      const auto &x = heads_[a], &y = heads_[b];
      return std::tie(x.step, x.world, x.agent) < std::tie(y.step, y.world, y.agent);
    });
    heads.clear();
    stats.clear();
    for (const std::size_t i : order) {
      heads.push_back(heads_[i]);
      const auto first = stats_.begin() + static_cast<std::ptrdiff_t>(i * num_stats_);
      stats.insert(stats.end(), first, first + static_cast<std::ptrdiff_t>(num_stats_));
    }
    clear();
  }

  void clear() {
    heads_.clear();
    stats_.clear();
    oldest_ = 0;
  }
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::size_t kMostKept = std::size_t{1} << 27;  // numbers
  std::size_t num_stats_, capacity_, oldest_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<EpisodeHead> heads_;
  std::vector<double> stats_;
};

}  // namespace gridmill
