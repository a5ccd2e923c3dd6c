// Leaving when told so twice. Python hears of a signal between two of its own instructions, so while a call of the core
// runs, or any other that does not come back, nothing it could do about Ctrl-C happens. This listens below Python: the
// first signal is passed on, a second one of its kind is passed on too and ends the process a moment later, if nobody
// else does.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "bind/bindings.hpp"

namespace gridmill {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
constexpr suseconds_t kGrace = 400'000;  // microseconds in which Python may leave in its own way

// Read in signal handlers: plain memory, written while no handler of ours is installed, and lock-free numbers.
struct sigaction g_before[NSIG], g_alarm_before;
std::atomic<int> g_received[NSIG], g_exit_code{0};
std::atomic<bool> g_leaving{false};  // the timer runs, and SIGALRM is ours
bool g_listening = false;

void leave(int) { _exit(g_exit_code); }

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& before = g_before[number];
  if ((before.sa_flags & SA_SIGINFO) != 0) before.sa_sigaction(number, info, context);
  else before.sa_handler(number);
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if (++g_received[number] == 2) {
    g_exit_code = 128 + number;
    struct sigaction alarm{};
    alarm.sa_handler = leave;
    sigaction(SIGALRM, &alarm, g_leaving.exchange(true) ? nullptr : &g_alarm_before);
    const itimerval once{{0, 0}, {0, kGrace}};
    setitimer(ITIMER_REAL, &once, nullptr);
  }
  pass_on(number, info, context);
  errno = kept;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

// Whoever was told twice and came back in time goes on: the timer stops, and SIGALRM is its owner's again.
void stay() {
  if (!g_leaving.exchange(false)) return;
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &g_alarm_before, nullptr);
}

// In front of whoever handles the signals now; one that nobody handles ends the process by itself, or is ignored.
bool leave_on_second_signal(bool on) {
  const bool before = g_listening;
  g_listening = on;
  for (const int number : kSignals) {
    g_received[number] = 0;
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    if (is_ours(now)) {
      sigaction(number, &g_before[number], nullptr);
      now = g_before[number];
    }
    const bool handled = (now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
    if (!on || !handled) continue;
    g_before[number] = now;
    now.sa_flags |= SA_SIGINFO;
    now.sa_sigaction = on_signal;
    sigaction(number, &now, nullptr);
  }
  if (!on) stay();
  return before;
}

}  // namespace

void bind_stop(nanobind::module_& m) {
  m.def("leave_on_second_signal", &leave_on_second_signal, nanobind::arg("on"),
        "start or stop listening before the installed handlers of SIGINT and SIGTERM; returns whether it did");
}

}  // namespace gridmill
