// Runs every native test, or those whose name contains one of the arguments. Tests named long_* run only when asked for
// by that beginning.
#include <cstdlib>
#include <cstring>

#include "check.hpp"
#include "core/isa.hpp"

namespace {

bool chosen(const char* name, int argc, char** argv) {
  const bool is_long = std::strncmp(name, "long_", 5) == 0;
  if (argc == 1) return !is_long;
  for (int i = 1; i < argc; ++i)
    if (std::strstr(name, argv[i]) != nullptr && (!is_long || std::strncmp(argv[i], "long_", 5) == 0)) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    gridmill::cap_isa(std::getenv("GRIDMILL_ISA"));
  } catch (const std::invalid_argument& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
  int passed = 0, failed = 0;
  for (const auto& test : check::cases()) {
    if (!chosen(test.name, argc, argv)) continue;
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
