// The first process of the machine that scripts/test_avx512.sh emulates: runs /native_tests with its own arguments and
// environment, says how it ended, switches the machine off.
#include <sys/reboot.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>

int main(int, char** arguments) {
  const pid_t child = fork();
  if (child == 0) {
    execv("/native_tests", arguments);
    std::perror("/native_tests");
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("native_tests: ended by signal %d\n", WTERMSIG(status));
  else std::printf("native_tests: exit code %d\n", WEXITSTATUS(status));
  std::fflush(stdout);
  tcdrain(STDOUT_FILENO);
  reboot(RB_POWER_OFF);
}
