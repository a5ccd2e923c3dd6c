// The worker threads of one batch: started once, fed by lanes, asleep while nobody sends.
// A lane is a row of chunks. Every worker has a stretch of it of its own, taken chunk by chunk from an atomic counter,
// so that a world stays in the caches of one core; who has finished helps the others. The caller works too (worker 0),
// so a pool of one starts no thread. Knows nothing of worlds: it calls the function it was given.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "core/threads.hpp"

namespace gridmill {

class ThreadPool {
 public:
  using Work = std::function<void(int worker, int lane, std::uint32_t chunk)>;  // must not throw

  ThreadPool(int threads, int lanes, std::uint32_t chunks_per_lane, Work work);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void send(int lane);  // wakes the workers; returns at once
  void recv(int lane);  // helps with what is left, then waits for the rest
  void abandon();       // after fork: the threads do not exist in this process, forget them

 private:
  struct alignas(64) Stretch {  // a cache line each: workers must not disturb one another
    std::atomic<std::uint32_t> next{0};
  };
  struct Lane {
    std::vector<Stretch> stretches;  // per worker
    alignas(64) std::atomic<std::uint32_t> done{0};
  };
  // The first chunk of a worker's stretch; of the one behind the last, the end.
  std::uint32_t first_of(std::size_t worker) const {
    return static_cast<std::uint32_t>(std::uint64_t{chunks_} * worker / workers_);
  }
  void end();
  bool work_once(int worker, int lane);
  void live(int worker);

  const std::uint32_t chunks_;
  const std::size_t workers_;
  const Work work_;
  std::deque<Lane> lanes_;
  std::vector<Thread> threads_;
  alignas(64) std::atomic<std::uint32_t> bell_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace gridmill
