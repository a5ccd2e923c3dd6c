// The pool on its own: every chunk of every send is done exactly once, whoever does it; who has finished helps the
// others; a worker that sleeps holds up nobody; a pool may end whenever nothing is under way.
#include <chrono>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "core/thread_pool.hpp"

using namespace gridmill;

namespace {

using namespace std::chrono_literals;

// What was done, by lane and chunk. The counts are plain numbers on purpose: a chunk done twice at a time, or read
// before it was handed back, is something the thread sanitizer sees.
struct Ledger {
  Ledger(int lanes, std::uint32_t chunks) : done(static_cast<std::size_t>(lanes), std::vector<int>(chunks)) {}
  void note(int lane, std::uint32_t chunk) { ++done[static_cast<std::size_t>(lane)].at(chunk); }
  void check(int lane, int times) const {
    for (const int n : done[static_cast<std::size_t>(lane)]) CHECK_EQ(n, times);
  }
  std::vector<std::vector<int>> done;
};

// Some chunks take long, so that some stretches are finished before others.
void dawdle(std::uint32_t chunk, std::uint32_t uneven) {
  volatile std::uint32_t spins = uneven == 0 ? 0 : chunk % uneven * 200;
  while (spins > 0) spins = spins - 1;
}

void send_many(int workers, int lanes, std::uint32_t chunks, int sends, std::uint32_t uneven) {
  Ledger ledger(lanes, chunks);
  ThreadPool pool(workers, lanes, chunks, [&](int worker, int lane, std::uint32_t chunk) {
    CHECK(worker >= 0 && worker < workers);
    dawdle(chunk, uneven);
    ledger.note(lane, chunk);
  });
  for (int send = 1; send <= sends; ++send) {
    for (int lane = 0; lane < lanes; ++lane) pool.send(lane);
    for (int i = 0; i < lanes; ++i) {
      const int lane = send % 2 == 0 ? i : lanes - 1 - i;
      pool.recv(lane);
      ledger.check(lane, send);
    }
  }
}

}  // namespace

TEST(thread_pool_does_every_chunk_of_every_send_once) {
  for (const int workers : {1, 2, 3, 5, 8})
    for (const int lanes : {1, 2, 4})
      for (const std::uint32_t chunks : {1u, 2u, 3u, 7u, 64u}) send_many(workers, lanes, chunks, 60, 0);
}

TEST(thread_pool_does_every_chunk_once_where_work_is_uneven) {
  for (const int workers : {2, 4, 8})
    for (const std::uint32_t uneven : {2u, 7u, 33u}) send_many(workers, 3, 40, 80, uneven);
}

TEST(thread_pool_lanes_may_run_ahead_of_one_another) {  // one is sent and received while another is under way
  Ledger ledger(2, 9);
  ThreadPool pool(4, 2, 9, [&](int, int lane, std::uint32_t chunk) { ledger.note(lane, chunk); });
  for (int send = 1; send <= 100; ++send) {
    pool.send(1);
    for (int more = 1; more <= 3; ++more) {
      pool.send(0);
      pool.recv(0);
      ledger.check(0, 3 * (send - 1) + more);
    }
    pool.recv(1);
    ledger.check(1, send);
  }
}

// Whoever comes first sleeps, in a stretch of eight chunks; all other chunks are done meanwhile, those of the sleeper's
// own stretch among them.
TEST(thread_pool_helps_a_worker_that_sleeps) {
  for (const int workers : {2, 3, 4}) {
    const auto chunks = static_cast<std::uint32_t>(8 * workers);
    std::atomic<std::uint32_t> begun{0}, others{0};
    std::atomic<bool> alone{false};
    Ledger ledger(1, chunks);
    ThreadPool pool(workers, 1, chunks, [&](int, int lane, std::uint32_t chunk) {
      if (begun.fetch_add(1) == 0) {
        const auto patience = std::chrono::steady_clock::now() + 20s;
        while (others.load() + 1 < chunks && std::chrono::steady_clock::now() < patience)
          std::this_thread::sleep_for(1ms);
        alone = others.load() + 1 < chunks;
      } else {
        others.fetch_add(1);
      }
      ledger.note(lane, chunk);
    });
    pool.send(0);
    pool.recv(0);
    ledger.check(0, 1);
    CHECK(!alone);
  }
}

// As long as all work at the same pace and none of them waits, each does its own stretch: that is what keeps a world in
// the caches of one core. A pool of one does everything in order.
TEST(thread_pool_of_one_works_in_order) {
  std::vector<std::uint32_t> order;
  ThreadPool pool(1, 1, 50, [&](int, int, std::uint32_t chunk) { order.push_back(chunk); });
  pool.send(0);
  CHECK(order.empty());
  pool.recv(0);
  CHECK_EQ(order.size(), std::size_t{50});
  for (std::uint32_t i = 0; i < 50; ++i) CHECK_EQ(order[i], i);
}

TEST(thread_pool_workers_begin_with_their_own_stretch) {
  const std::uint32_t each = 6;
  for (const int workers : {2, 3}) {
    std::vector<std::uint32_t> first(static_cast<std::size_t>(workers), ~0u);  // a worker writes only its own
    std::atomic<int> here{0};
    ThreadPool pool(workers, 1, each * static_cast<std::uint32_t>(workers), [&](int worker, int, std::uint32_t chunk) {
      auto& mine = first[static_cast<std::size_t>(worker)];
      if (mine != ~0u) return;
      mine = chunk;
      here.fetch_add(1);
      const auto patience = std::chrono::steady_clock::now() + 20s;  // until all have come
      while (here.load() < workers && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    });
    pool.send(0);
    pool.recv(0);
    for (int worker = 0; worker < workers; ++worker)
      CHECK_EQ(first[static_cast<std::size_t>(worker)], static_cast<std::uint32_t>(worker) * each);
  }
}

TEST(thread_pool_ends_while_idle) {
  for (int round = 0; round < 30; ++round) {
    const ThreadPool never_sent(1 + round % 8, 2, 5, [](int, int, std::uint32_t) {});
    std::atomic<int> done{0};
    ThreadPool pool(1 + round % 8, 2, 5, [&](int, int, std::uint32_t) { done.fetch_add(1); });
    pool.send(0);
    pool.recv(0);
    if (round % 3 == 0) std::this_thread::sleep_for(1ms);  // long enough for workers to fall asleep
    CHECK_EQ(done.load(), 5);
  }
}

TEST(thread_pool_wakes_after_a_rest) {
  Ledger ledger(1, 6);
  ThreadPool pool(4, 1, 6, [&](int, int lane, std::uint32_t chunk) { ledger.note(lane, chunk); });
  for (int send = 1; send <= 10; ++send) {
    std::this_thread::sleep_for(1ms);
    pool.send(0);
    std::this_thread::sleep_for(1ms);  // others may have done all of it
    pool.recv(0);
    ledger.check(0, send);
  }
}
