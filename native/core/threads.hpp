// Whether there are threads here: the one place that knows. In a WebAssembly module there are none, so a batch has one
// worker, its caller; nothing else changes, since a pool of one starts no thread and nobody waits for a mutex.
#pragma once

#include <mutex>

#if defined(__wasm__)

#include <stdexcept>

namespace gridmill {

constexpr bool kThreads = false;

class Thread {
 public:
  template <class Work>
  explicit Thread(Work&&) {
    throw std::invalid_argument("threads: expected 1, got more; there are no threads here");
  }
  bool joinable() const { return false; }
  void join() {}
  void detach() {}
};

struct Mutex {
  void lock() {}
  void unlock() {}
};

// No process is ever forked here.
inline void call_in_forked_child(void (*)()) {}

}  // namespace gridmill

#else

#include <pthread.h>

#include <thread>

namespace gridmill {

constexpr bool kThreads = true;
using Thread = std::thread;
using Mutex = std::mutex;

inline void call_in_forked_child(void (*call)()) { pthread_atfork(nullptr, nullptr, call); }

}  // namespace gridmill

#endif
