// What the C interface keeps between calls: open worlds and policies by number, and the one buffer that results are
// left in. A call that fails leaves its one-line message there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "wasm/policy.hpp"
#include "wasm/world.hpp"

#if defined(__wasm__)
#define GRIDMILL_EXPORT(name) extern "C" __attribute__((export_name(#name)))
#else  // native tests call it too
#define GRIDMILL_EXPORT(name) extern "C"
#endif

namespace gridmill::wasm {

struct Module {
  std::string result;
  std::map<std::int32_t, std::unique_ptr<World>> worlds;
  std::map<std::int32_t, std::unique_ptr<Policy>> policies;
  std::int32_t next = 1;
};

inline Module& module() {
  static Module all;
  return all;
}

template <class T>
std::int32_t keep(std::map<std::int32_t, std::unique_ptr<T>>& all, std::unique_ptr<T> item) {
  const std::int32_t number = module().next++;
  all[number] = std::move(item);
  return number;
}

template <class T>
T& find(std::map<std::int32_t, std::unique_ptr<T>>& all, std::int32_t number, const char* what) {
  const auto found = all.find(number);
  if (found == all.end()) throw std::invalid_argument(std::string("this ") + what + " is closed");
  return *found->second;
}
inline World& world_at(std::int32_t number) { return find(module().worlds, number, "world"); }
inline Policy& policy_at(std::int32_t number) { return find(module().policies, number, "policy"); }

inline std::int32_t failed(const char* message, std::int32_t answer) {
  constexpr std::size_t kLongest = 2'000;
  module().result = std::string(message).substr(0, kLongest);
  return answer;
}

// Runs a call and turns what it throws into a message: nothing leaves the module but numbers.
template <class Call>
std::int32_t guarded(std::int32_t on_failure, Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed("not enough memory for this in the page", on_failure);
  } catch (const std::exception& error) {
    return failed(error.what(), on_failure);
  } catch (...) {
    return failed("an exception that is not a std::exception", on_failure);
  }
}

template <class T>
void leave(const std::vector<T>& items) {
  module().result.assign(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

const char* version();  // of the package, and the commit

inline std::string_view text(const char* data, std::size_t size) { return {data, size}; }

}  // namespace gridmill::wasm
