// PCG32 (XSH-RR 64/32, O'Neill 2014) on stream 54 and the draws the game makes from it, with the C library's own log,
// cos and exp: the exact path. Its state lives in the world, because an unseeded reset goes on where the last episode
// stopped. Jumps ahead are affine maps of the state.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace gridmill::prospector {

constexpr std::uint64_t kMultiplier = 6364136223846793005ull, kIncrement = 54 << 1 | 1;
constexpr double kTwoPi = 2.0 * std::numbers::pi;
constexpr double kLeast = 1e-8;  // what a uniform draw is raised to before its logarithm is taken

// state -> state * multiply + add: n draws at once.
struct Jump {
  std::uint64_t multiply = 1, add = 0;
  constexpr std::uint64_t operator()(std::uint64_t state) const { return state * multiply + add; }
};
constexpr Jump jump(unsigned draws) {
  Jump all;
  for (unsigned i = 0; i < draws; ++i) all = {all.multiply * kMultiplier, all.add * kMultiplier + kIncrement};
  return all;
}

constexpr std::uint32_t output(std::uint64_t old) {
  const auto mixed = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
  const auto turn = static_cast<std::uint32_t>(old >> 59);
  return mixed >> turn | mixed << (-turn & 31);
}

// The uniform draw of 32 bits, in [0, 1).
inline double unit(std::uint32_t bits) { return bits / 4294967296.0; }
// The normal draw (Box and Muller 1958) of two.
inline double standard_normal(std::uint32_t first, std::uint32_t second) {
  const double u1 = unit(first), magnitude = std::sqrt(-2.0 * std::log(u1 < kLeast ? kLeast : u1));
  return magnitude * std::cos(kTwoPi * unit(second));
}

struct Pcg32 {
  std::uint64_t state = 0;

  void seed(std::uint64_t value) {
    state = 0;
    next();
    state += value;
    next();
  }
  std::uint32_t next() {
    const std::uint64_t old = state;
    state = old * kMultiplier + kIncrement;
    return output(old);
  }
  int below(int low, int high) { return low + static_cast<int>(next() % static_cast<std::uint32_t>(high - low)); }
  double uniform() { return unit(next()); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double exponential() {
    const double u = uniform();
    return -std::log(u < kLeast ? kLeast : u);
  }
  double normal(double mean, double sigma) {
    const std::uint32_t first = next(), second = next();
    return mean + sigma * standard_normal(first, second);
  }
};

}  // namespace gridmill::prospector
