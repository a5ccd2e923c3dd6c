// A test runner in forty lines: TEST(name) { CHECK(...); }, collected by static objects, run by main.cpp.
// Enough for the native tests, and nothing to download.
#pragma once

#include <cstdio>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* name;
  void (*run)();
};
inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
struct Register {
  Register(const char* name, void (*run)()) { cases().push_back({name, run}); }
};
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void fail(const char* file, int line, const std::string& what) {
  throw Failure(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

// The message of the exception that `run` throws, or a failure if it throws none.
template <class Exception>
std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Exception& error) {
    return error.what();
  }
  throw Failure("expected an exception, got none");
}

}  // namespace check

#define TEST(name)                                           \
  static void name();                                        \
  static const check::Register register_##name(#name, name); \
  static void name()
#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) check::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)
#define CHECK_EQ(a, b)                                              \
  do {                                                              \
    const auto left_ = (a);                                         \
    const auto right_ = (b);                                        \
    if (!(left_ == right_)) {                                       \
      std::ostringstream text_;                                     \
      text_ << #a " == " #b ": got " << left_ << " and " << right_; \
      check::fail(__FILE__, __LINE__, text_.str());                 \
    }                                                               \
  } while (false)
