// See thread_pool.hpp. Order that makes re-sending a lane safe: `done` is cleared before any `next` is released, and a
// lane is sent again only after all its chunks were done, so a late worker finds in every stretch either no chunk or a
// new one.
#include "core/thread_pool.hpp"

#include "core/phases.hpp"

namespace gridmill {
namespace {

// Long enough to catch back-to-back steps, short enough not to disturb a policy on the same cores.
constexpr std::int64_t kSpinNs = 20'000;

template <class Ready>
bool spin_until(Ready ready) {
  const std::int64_t end = steady_ns() + kSpinNs;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  } while (steady_ns() < end);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads, int lanes, std::uint32_t chunks_per_lane, Work work)
    : chunks_(chunks_per_lane),
      workers_(static_cast<std::size_t>(threads)),
      work_(std::move(work)),
      lanes_(static_cast<std::size_t>(lanes)) {
  for (auto& lane : lanes_) {
    lane.done = chunks_;
    lane.stretches = std::vector<Stretch>(workers_);
    for (std::size_t worker = 0; worker < workers_; ++worker) lane.stretches[worker].next = first_of(worker + 1);
  }
  try {
    for (int worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { live(worker); });
  } catch (...) {  // the machine gave fewer threads than asked for: end those that live, then say so
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  stop_ = true;
  bell_.fetch_add(1, std::memory_order_release);
  bell_.notify_all();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

void ThreadPool::abandon() {
  for (auto& thread : threads_) thread.detach();
  threads_.clear();
}

void ThreadPool::send(int lane) {
  lanes_[lane].done.store(0, std::memory_order_relaxed);
  for (std::size_t worker = 0; worker < workers_; ++worker)
    lanes_[lane].stretches[worker].next.store(first_of(worker), std::memory_order_release);
  if (threads_.empty()) return;
  bell_.fetch_add(1, std::memory_order_release);
  bell_.notify_all();
}

void ThreadPool::recv(int lane) {
  while (work_once(0, lane)) {
  }
  auto& done = lanes_[lane].done;
  const auto finished = [&] { return done.load(std::memory_order_acquire) == chunks_; };
  if (spin_until(finished)) return;
  for (std::uint32_t seen = done.load(std::memory_order_acquire); seen != chunks_;
       seen = done.load(std::memory_order_acquire))
    done.wait(seen, std::memory_order_acquire);
}

bool ThreadPool::work_once(int worker, int index) {
  Lane& lane = lanes_[static_cast<std::size_t>(index)];
  const auto own = static_cast<std::size_t>(worker);
  for (std::size_t i = 0; i < workers_; ++i) {
    const std::size_t whose = own + i < workers_ ? own + i : own + i - workers_;
    auto& next = lane.stretches[whose].next;
    const std::uint32_t end = first_of(whose + 1);
    if (next.load(std::memory_order_relaxed) >= end) continue;
    const std::uint32_t chunk = next.fetch_add(1, std::memory_order_acq_rel);
    if (chunk >= end) continue;
    work_(worker, index, chunk);
    lane.done.fetch_add(1, std::memory_order_acq_rel);
    lane.done.notify_all();
    return true;
  }
  return false;
}

void ThreadPool::live(int worker) {
  std::uint32_t heard = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    bool worked = false;
    for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane)
      while (work_once(worker, lane)) worked = true;
    if (worked) continue;
    if (!spin_until([&] { return bell_.load(std::memory_order_acquire) != heard; }))
      bell_.wait(heard, std::memory_order_acquire);
    heard = bell_.load(std::memory_order_acquire);
  }
}

}  // namespace gridmill
