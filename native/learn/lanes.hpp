// Sixteen floats at once, and the functions that recurrent kernels share. Included by files that are compiled once per
// instruction set, hence the unnamed namespace.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Rows are functions of their own: only as parameters are the arrays known not to overlap, which vectors need.
#define GRIDMILL_ROW __attribute__((noinline)) void

namespace gridmill::learn {
namespace {

using Lane = float __attribute__((vector_size(64)));
constexpr std::size_t kWidth = 16;

// What fits a register of this CPU: of a wider vector gcc keeps sums in memory.
#if defined(__AVX512F__)
using Register = Lane;
#elif defined(__AVX2__)
using Register = float __attribute__((vector_size(32)));
#else
using Register = float __attribute__((vector_size(16)));
#endif
constexpr std::size_t kFloats = sizeof(Register) / sizeof(float);

// Lanes are no arguments or results, whose form depends on the CPU.
inline void take(Lane& to, const float* from) { std::memcpy(&to, from, sizeof to); }

// Added and taken away again it leaves the nearest whole number: floats of its size have no digits behind the point.
// Any CPU does that for a whole register; SSE2 has no instruction for a floor.
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

// e^x to about one unit in the last place: 2^n times a polynomial on [-ln2/2, ln2/2].
inline float exponential(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);  // in this order what is no number stays none
  const float n = (x * 1.44269504088896341f + kRound) - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}
inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }
inline float tanh_of(float x) { return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f; }

}  // namespace
}  // namespace gridmill::learn
