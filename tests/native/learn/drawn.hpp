// Arrays of drawn numbers for the tests of learn/.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/random.hpp"

using gridmill::Stream;
using Arrays = std::vector<std::vector<float>>;
constexpr std::size_t kOdd = 37;  // a size that fills no vector

inline std::vector<float> numbers(std::size_t count, std::uint32_t stream, float scale = 1.0f) {
  const Stream draw({7, 0, 0}, 0, stream);
  std::vector<float> found(count);
  for (std::size_t i = 0; i < count; ++i)
    found[i] = scale * (static_cast<float>(draw.at(i) >> 40) * 0x1p-23f - 1.0f);  // in [-1, 1)
  return found;
}

inline std::vector<std::uint8_t> bytes(std::size_t count, std::uint32_t stream, std::uint32_t bound) {
  const Stream draw({8, 0, 0}, 0, stream);
  std::vector<std::uint8_t> found(count);
  for (std::size_t i = 0; i < count; ++i) found[i] = static_cast<std::uint8_t>(draw.below(i, bound));
  return found;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
