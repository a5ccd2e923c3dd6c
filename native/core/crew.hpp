// The worker threads of one batch: started once, fed by lanes, asleep while nobody sends.
// A lane is a row of chunks taken from an atomic counter; the caller takes chunks too (worker 0), so a crew
// of one starts no thread. Knows nothing of worlds: it calls the function it was given.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace gridmill {

class Crew {
 public:
  using Work = std::function<void(int worker, int lane, std::uint32_t chunk)>;  // must not throw

  Crew(int threads, int lanes, std::uint32_t chunks_per_lane, Work work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void send(int lane);  // wakes the workers; returns at once
  void recv(int lane);  // helps with what is left, then waits for the rest
  void abandon();       // after fork: the threads do not exist in this process, forget them

 private:
  struct Lane {
    alignas(64) std::atomic<std::uint32_t> next{0};
    alignas(64) std::atomic<std::uint32_t> done{0};
  };
  void end();
  bool work_once(int worker, int lane);
  void live(int worker);

  const std::uint32_t chunks_;
  const Work work_;
  std::deque<Lane> lanes_;
  std::vector<std::thread> threads_;
  alignas(64) std::atomic<std::uint32_t> bell_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace gridmill
