// The source of the kernels, compiled for any CPU, for AVX2 and for AVX-512; everything here is internal to the file
// that includes it (no inline function of a shared header, which the linker could take from the wrong one). Plain loops
// of constant length over plain arithmetic, which compilers turn into vectors, with fused multiply-adds where the CPU
// has them: the guards decide whether a result is sure, not its last bits.
#pragma once

#include <cmath>

#include "prospector/kernels.hpp"
#include "prospector/random.hpp"

namespace gridmill::prospector {
namespace {

#define GRIDMILL_LANE [[gnu::always_inline]] inline

constexpr double kMagic = 0x1.8p52;  // adding it rounds to an integer and leaves that in the low bits

GRIDMILL_LANE double as_double(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }
GRIDMILL_LANE std::uint64_t as_bits(double x) { return __builtin_bit_cast(std::uint64_t, x); }
GRIDMILL_LANE double small_int(std::uint64_t x) { return as_double(as_bits(kMagic) + x) - kMagic; }
GRIDMILL_LANE double from_u32(std::uint32_t x) { return as_double(0x4330000000000000ull + x) - 0x1p52; }

// x = m * 2^e with m around 1; log m = 2 atanh((m - 1) / (m + 1)).
GRIDMILL_LANE double lane_log(double x) {
  const std::uint64_t bits = as_bits(x), root_half = 0x3FE6A09E667F3BCDull;
  const std::uint64_t exponent = ((bits - root_half + (1024ull << 52)) >> 52) - 1024;
  const double m = as_double(bits - (exponent << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
  // In pairs of pairs (Estrin), so that one product need not wait for the other.
  const double z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
  const double p0 = 1.0 / 3 + z * (1.0 / 5), p1 = 1.0 / 7 + z * (1.0 / 9), p2 = 1.0 / 11 + z * (1.0 / 13);
  const double p3 = 1.0 / 15 + z * (1.0 / 17), p4 = 1.0 / 19 + z * (1.0 / 21);
  const double p = (p0 + z2 * p1) + z4 * (p2 + z2 * p3) + z8 * p4;
  return small_int(exponent) * std::numbers::ln2 + 2.0 * (s + s * (z * p));
}

// Taylor polynomials on [-pi/4, pi/4].
GRIDMILL_LANE double short_sin(double a) {
  const double z = a * a;
  double p = -1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return a + a * (z * p);
}
GRIDMILL_LANE double short_cos(double a) {
  const double z = a * a;
  double p = 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  p = p * z - 0.5;
  return 1.0 + z * p;
}
// sin(quarter * pi/2 + a)
GRIDMILL_LANE double turned_sin(std::uint64_t quarter, double a) {
  const double value = (quarter & 1) != 0 ? short_cos(a) : short_sin(a);
  return as_double(as_bits(value) ^ ((quarter & 2) << 62));
}
// cos(2 pi u) of a raw draw: the quarter is in its top bits.
GRIDMILL_LANE double lane_cos_turn(std::uint32_t raw) {
  const std::uint32_t quarter = (raw + (1u << 29)) >> 30, rest = raw - (quarter << 30);
  const double a = (from_u32(rest ^ 0x80000000u) - 0x1p31) * (kTwoPi / 4294967296.0);
  return turned_sin(quarter + 1, a);
}
// Good for 0 <= x < 2^26: pi/2 in three parts, so that the first two products are exact.
GRIDMILL_LANE double lane_sin(double x) {
  const double shifted = x * (2.0 / std::numbers::pi) + kMagic, n = shifted - kMagic;
  const double a = ((x - n * 0x1.921fb54p+0) - n * 0x1.10b46p-30) - n * 0x1.1a62633145c07p-54;
  return turned_sin(as_bits(shifted), a);
}
GRIDMILL_LANE double lane_exp(double x) {
  const double shifted = x * std::numbers::log2e + kMagic, n = shifted - kMagic;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return as_double(as_bits(p) + (as_bits(shifted) << 52));
}

GRIDMILL_LANE double lane_unit(std::uint32_t raw) { return from_u32(raw) * (1.0 / 4294967296.0); }
GRIDMILL_LANE double at_least_least(double u) { return u < kLeast ? kLeast : u; }
GRIDMILL_LANE std::uint32_t lane_output(std::uint64_t old) {
  const auto mixed = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
  const auto turn = static_cast<std::uint32_t>(old >> 59);
  return mixed >> turn | mixed << (-turn & 31);
}
GRIDMILL_LANE double lane_normal(std::uint32_t first, std::uint32_t second) {
  return std::sqrt(-2.0 * lane_log(at_least_least(lane_unit(first)))) * lane_cos_turn(second);
}
// 1 where values this near could round to different floats.
GRIDMILL_LANE std::uint32_t torn(double x, double margin) {
  return static_cast<float>(x - margin) != static_cast<float>(x + margin) ? 1 : 0;
}

template <std::size_t N>
std::uint32_t bits_of(const std::uint32_t (&flags)[N]) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < N; ++i) bits |= (flags[i] & 1) << i;
  return bits;
}

// The jumps to each of N places, `every` draws apart.
template <std::size_t N>
struct Jumps {
  std::uint64_t multiply[N], add[N];
  constexpr explicit Jumps(unsigned every, unsigned first = 0) : multiply(), add() {
    for (unsigned i = 0; i < N; ++i)
      multiply[i] = jump(first + every * i).multiply, add[i] = jump(first + every * i).add;
  }
};

std::uint32_t market(const MarketJob& job, float* prices) {
  static constexpr Jumps<8> kFirst(2), kSecond(2, 1);
  std::uint32_t first[8], second[8], unsure[8];
  for (int c = 0; c < 8; ++c) first[c] = lane_output(job.rng * kFirst.multiply[c] + kFirst.add[c]);
  for (int c = 0; c < 8; ++c) second[c] = lane_output(job.rng * kSecond.multiply[c] + kSecond.add[c]);
  double price[8], margin[8];
  for (int c = 0; c < 8; ++c) {
    const double amp = job.amp[c], turn = kTwoPi * (job.t / job.period[c]) + job.phase[c];
    const double noise = job.noise[c] * job.root_dt * lane_normal(first[c], second[c]);
    const double stock = job.inventory_pressure * job.stock[c], sales = job.sales_pressure * job.sales[c];
    price[c] = job.base[c] + amp * lane_sin(turn) - stock - sales + noise;
    margin[c] = kNormalError * (job.base[c] + amp + stock + sales + job.noise[c] * job.root_dt);
  }
  for (int c = 0; c < 8; ++c) {
    unsure[c] = torn(price[c], margin[c]);
    const double raised = price[c] > job.low[c] ? price[c] : job.low[c];
    prices[c] = static_cast<float>(raised < job.high[c] ? raised : job.high[c]);
  }
  return bits_of(unsure);
}

// Where in an asteroid's twenty draws each part begins.
constexpr int kTruth = 0, kRichness = 6, kStability = 8, kNoise = 13, kEstimate = 14, kDraws = 20;

GRIDMILL_LANE void shares(const double (*parts)[16], float (*out)[16], std::uint32_t* unsure) {
  double total[16] = {};
  for (int c = 0; c < 6; ++c)
    for (int s = 0; s < 16; ++s) total[s] += parts[c][s];
  for (int c = 0; c < 6; ++c)
    for (int s = 0; s < 16; ++s) {
      const double share = parts[c][s] / total[s];
      unsure[s] |= torn(share, share * kNormalError);
      out[c][s] = static_cast<float>(share);
    }
}

std::uint32_t asteroids(std::uint64_t rng, const Asteroids& out) {
  static constexpr Jumps<16> kPlaces(kDraws);
  std::uint64_t state[16];
  std::uint32_t raw[kDraws][16], unsure[16] = {};
  for (int s = 0; s < 16; ++s) state[s] = rng * kPlaces.multiply[s] + kPlaces.add[s];
  for (int d = 0; d < kDraws; ++d)
    for (int s = 0; s < 16; ++s) {
      raw[d][s] = lane_output(state[s]);
      state[s] = state[s] * kMultiplier + kIncrement;
    }
  double part[kDraws][16];  // exponential draws; the few that are something else are not read
  for (int d = 0; d < kDraws; ++d)
    for (int s = 0; s < 16; ++s) part[d][s] = -lane_log(at_least_least(lane_unit(raw[d][s])));
  shares(part + kTruth, out.truth, unsure);
  shares(part + kEstimate, out.estimate, unsure);
  for (int s = 0; s < 16; ++s) {
    const double z = std::sqrt(2.0 * part[kRichness][s]) * lane_cos_turn(raw[kRichness + 1][s]);
    const double rich = lane_exp(-0.2 + 0.65 * z);
    unsure[s] |= torn(rich, rich * kNormalError);
    const double raised = rich > 0.2 ? rich : 0.2;
    out.richness[s] = static_cast<float>(raised < 4.0 ? raised : 4.0);
  }
  for (int s = 0; s < 16; ++s) {
    const double a = part[kStability][s] + part[kStability + 1][s] + part[kStability + 2][s];
    const double b = part[kStability + 3][s] + part[kStability + 4][s], stability = a / (a + b);
    unsure[s] |= torn(stability, stability * kNormalError);
    out.stability[s] = static_cast<float>(stability);
  }
  // No guard looks at this one, so it must be rounded as the exact path does, after the product and after the sum.
  double spread[16];
  for (int s = 0; s < 16; ++s) spread[s] = (0.22 - 0.04) * lane_unit(raw[kNoise][s]);
  asm volatile("" : "+m"(spread));
  for (int s = 0; s < 16; ++s) out.noise[s] = static_cast<float>(0.04 + spread[s]);
  return bits_of(unsure);
}

void normals(const std::uint32_t* first, const std::uint32_t* second, double* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8)
    for (std::size_t k = i; k < i + 8; ++k) out[k] = lane_normal(first[k], second[k]);
}

#undef GRIDMILL_LANE

}  // namespace
}  // namespace gridmill::prospector
