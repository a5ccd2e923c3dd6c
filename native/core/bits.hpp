// Counting bits. Internal to every file that includes it: files compiled for different CPUs must not share it.
#pragma once

#include <cstdint>

namespace gridmill {
namespace {

// Without an instruction of its own, which not every x86-64 has, the compiler calls a function.
[[maybe_unused]] inline std::uint32_t count_bits(std::uint64_t bits) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  bits -= bits >> 1 & 0x5555'5555'5555'5555;
  bits = (bits & 0x3333'3333'3333'3333) + (bits >> 2 & 0x3333'3333'3333'3333);
  bits = (bits + (bits >> 4)) & 0x0F0F'0F0F'0F0F'0F0F;
  return static_cast<std::uint32_t>(bits * 0x0101'0101'0101'0101 >> 56);
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(bits));
#endif
}

}  // namespace
}  // namespace gridmill
