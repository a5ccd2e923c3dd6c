// Whether there are threads here: the one place that knows. In a WebAssembly module there are none, so a batch has one
// worker, its caller; nothing else changes, since a pool of one starts no thread and nobody waits for a mutex.
#pragma once

#include <cstdint>
#include <mutex>

#if defined(__wasm__)

#include <stdexcept>

namespace gridmill {

constexpr bool kThreads = false;

class Thread {
 public:
  template <class Work>
  explicit Thread(Work&&) {
    throw std::invalid_argument("threads: expected 1, got more; this build has no threads");
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
inline std::int64_t thread_number() { return 0; }

}  // namespace gridmill

#else

#include <pthread.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <thread>

namespace gridmill {

constexpr bool kThreads = true;
using Thread = std::thread;
using Mutex = std::mutex;

inline void call_in_forked_child(void (*call)()) { pthread_atfork(nullptr, nullptr, call); }

// The calling thread by the system's number, as Python's threading.get_native_id() has it; 0 where it has none.
inline std::int64_t thread_number() {
#if defined(__linux__)
  return static_cast<std::int64_t>(syscall(SYS_gettid));
#elif defined(__APPLE__)
  std::uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<std::int64_t>(number);
#else
  return 0;
#endif
}

}  // namespace gridmill

#endif
