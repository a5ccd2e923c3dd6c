// Runs every native test, or those whose name contains the first argument. Tests named long_* run only when asked for.
#include <cstdlib>
#include <cstring>

#include "check.hpp"
#include "core/isa.hpp"

int main(int argc, char** argv) {
  try {
    gridmill::cap_isa(std::getenv("GRIDMILL_ISA"));
  } catch (const std::invalid_argument& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
  int passed = 0, failed = 0;
  for (const auto& test : check::cases()) {
    const bool is_long = std::strncmp(test.name, "long_", 5) == 0;
    if (argc > 1 ? std::strstr(test.name, argv[1]) == nullptr : is_long) continue;
    try {
      test.run();
      ++passed;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name, error.what());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}
