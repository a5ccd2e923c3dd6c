// The transcendental work of the game, many values at a time. Kernels approximate log, cos, sin and exp with
// polynomials far below the spacing of float32, where every result ends; where an approximation lies so near the border
// between two float32 values that the exact path could fall on the other side, they say so and the caller asks the
// exact path. So results equal the exact path's bit for bit, whatever the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/isa.hpp"

namespace gridmill::prospector {

// Bound of the absolute error of a normal draw. The polynomials are good to about 1e-15; the rest is safety.
constexpr double kNormalError = 1e-13;

struct MarketJob {
  std::uint64_t rng;                                  // state before the twelve draws
  double t, root_dt;                                  // ticks after this step; root of its length
  double inventory_pressure, sales_pressure;          // per unit
  const double *base, *low, *high, *noise;            // [8], the last two unused; noise is market_noise * base
  const float *amp, *period, *phase, *stock, *sales;  // [8], likewise
};

struct Asteroids {                      // [16] slots; what belongs to no asteroid is noise
  float (*truth)[16], (*estimate)[16];  // [6][16]
  float *richness, *stability, *noise;
};

struct Kernels {
  // New prices; the set bits of the answer are the lanes the exact path must decide.
  std::uint32_t (*market)(const MarketJob& job, float* prices);
  // Sixteen asteroids of twenty draws each from a state on; set bits as above.
  std::uint32_t (*asteroids)(std::uint64_t rng, const Asteroids& out);
  // count (a multiple of 8) normal draws from pairs of raw draws, each within kNormalError.
  void (*normals)(const std::uint32_t* first, const std::uint32_t* second, double* out, std::size_t count);
};

// For any CPU, and for those of at least Isa::avx2 and Isa::avx512_base.
extern const Kernels kPortableKernels, kAvx2Kernels, kAvx512Kernels;
const Kernels& kernels_for(Isa isa);

}  // namespace gridmill::prospector
