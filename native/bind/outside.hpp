// Calls that run without the GIL, and a clean end of the interpreter while threads are in them: a thread that comes
// back to a finalised interpreter is torn down through C++ frames and would abort the process. So leaving waits for
// those inside and turns new ones away.
#pragma once

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "core/batch.hpp"

namespace gridmill {

struct Doors {
  std::atomic<bool> leaving{false};
  std::atomic<int> outside{0};
};
inline Doors& doors() {
  static Doors doors;
  // A forked child has only the thread that forked: nobody else is outside there.
  static const int hooked = pthread_atfork(nullptr, nullptr, [] { gridmill::doors().outside = 0; });
  (void)hooked;
  return doors;
}

// Releases the GIL for the length of a call.
class OutsideCall {
 public:
  OutsideCall() {
    if (doors().leaving) throw UsageError("the interpreter is ending; this env can no longer be used");
    ++doors().outside;
    state_ = PyEval_SaveThread();
  }
  ~OutsideCall() {
    PyEval_RestoreThread(state_);
    if (doors().outside > 0) --doors().outside;  // zeroed if this thread is the child of a fork
  }
  OutsideCall(const OutsideCall&) = delete;
  OutsideCall& operator=(const OutsideCall&) = delete;

 private:
  PyThreadState* state_;
};

// Registered with atexit: lets the calls that are outside come back first, for at most ten seconds.
inline void leave() {
  doors().leaving = true;
  for (int waited = 0; doors().outside > 0 && waited < 10'000; ++waited) {
    const nanobind::gil_scoped_release release;
    usleep(1000);
  }
}

}  // namespace gridmill
