// Calls that run without the GIL, and a clean end of the interpreter while threads are in them: a thread that comes
// back to a finalised interpreter is torn down through C++ frames and would abort the process. So shutdown() waits for
// those calls and turns new ones away.
#pragma once

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "core/batch.hpp"

namespace gridmill {

struct GilState {
  std::atomic<bool> shutting_down{false};
  std::atomic<int> calls{0};  // that have released the GIL
};
inline GilState& gil_state() {
  static GilState state;
  // A forked child has only the thread that forked: no other call is under way there.
  static const int hooked = pthread_atfork(nullptr, nullptr, [] { gil_state().calls = 0; });
  (void)hooked;
  return state;
}

// Releases the GIL for the length of a call.
class ReleaseGil {
 public:
  ReleaseGil() {
    if (gil_state().shutting_down) throw UsageError("the interpreter is shutting down; this env can no longer be used");
    ++gil_state().calls;
    state_ = PyEval_SaveThread();
  }
  ~ReleaseGil() {
    PyEval_RestoreThread(state_);
    if (gil_state().calls > 0) --gil_state().calls;  // zeroed if this thread is the child of a fork
  }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// Registered with atexit: lets the calls that run without the GIL come back first, for at most ten seconds.
inline void shutdown() {
  gil_state().shutting_down = true;
  for (int waited = 0; gil_state().calls > 0 && waited < 10'000; ++waited) {
    const nanobind::gil_scoped_release release;
    usleep(1000);
  }
}

}  // namespace gridmill
