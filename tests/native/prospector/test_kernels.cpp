// The kernels against the C library: errors far below what the guards allow, and whole games equal to the bit whether
// every number comes from the exact path or from any set of kernels this CPU can run.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "check.hpp"
#include "core/isa.hpp"
#include "core/random.hpp"
#include "prospector/prospector.hpp"

using namespace gridmill::prospector;
using gridmill::Isa;
using gridmill::isa_of_cpu;
using gridmill::Stream;

namespace {

// Sure of nothing: the caller takes every value from the exact path.
std::uint32_t unsure_market(const MarketJob&, float* prices) {
  prices[6] = prices[7] = 1;
  return ~0u;
}
std::uint32_t unsure_asteroids(std::uint64_t, const Asteroids&) { return ~0u; }
void exact_normals(const std::uint32_t* first, const std::uint32_t* second, double* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = standard_normal(first[i], second[i]);
}
const Kernels kExact{unsure_market, unsure_asteroids, exact_normals};

// All this CPU can run, also where GRIDMILL_ISA caps what is in force.
std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all;
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512_base})
    if (isa <= isa_of_cpu()) all.push_back(&kernels_for(isa));
  return all;
}

double worst_normal(const Kernels& kernels, std::uint64_t rounds) {
  double worst = 0;
  std::uint32_t first[16], second[16];
  double found[16];
  const Stream draw({1, 2, 3}, 0, 0);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      first[i] = static_cast<std::uint32_t>(draw.at(32 * round + i));
      second[i] = static_cast<std::uint32_t>(draw.at(32 * round + 16 + i));
    }
    // The ends of the range, where a polynomial is worst.
    if (round % 7 == 0) {
      first[0] = 0;
      second[0] = 0;
    }
    if (round % 7 == 1) {
      first[1] = ~0u;
      second[1] = ~0u;
    }
    if (round % 7 == 2) {
      first[2] = 1u << 31;
      second[2] = (1u << 29) - 1;
    }
    if (round % 7 == 3) {
      first[3] = 3037000500u;
      second[3] = 1u << 29;
    }
    kernels.normals(first, second, found, 16);
    for (int i = 0; i < 16; ++i) worst = std::max(worst, std::abs(found[i] - standard_normal(first[i], second[i])));
  }
  return worst;
}

// Plays the same random actions with both, a new world whenever one ends; states must be equal bytes after each step.
void play_both(const Program& one, const Program& other, std::uint64_t seed, int steps) {
  auto a = std::make_unique<State>(), b = std::make_unique<State>();
  reset_alone(one, *a, &seed);
  reset_alone(other, *b, &seed);
  const Stream draw({seed, 0, 0}, 0, 1);
  for (int step = 0; step < steps; ++step) {
    const auto at = static_cast<std::uint64_t>(step);
    std::int64_t action = static_cast<std::int64_t>(draw.below(2 * at, 74)) - 2;
    if (draw.below(2 * at + 1, 3) == 0) action = a->selected < 0 ? 12 : 28 + static_cast<std::int64_t>(at % 3);
    step_alone(one, *a, action);
    step_alone(other, *b, action);
    if (a->terminated || a->truncated) {
      reset_alone(one, *a, nullptr);
      reset_alone(other, *b, nullptr);
    }
    CHECK(std::memcmp(static_cast<const void*>(a.get()), static_cast<const void*>(b.get()), sizeof(State)) == 0);
  }
}

void play_all(int seeds, int steps) {
  const Config config;
  const Program exact(config, kExact);
  std::uint64_t first = 0;
  for (const Kernels* kernels : all_kernels()) {
    const Program fast(config, *kernels);
    for (int seed = 0; seed < seeds; ++seed) play_both(exact, fast, first + static_cast<std::uint64_t>(seed), steps);
    first += 1000;
  }
}

}  // namespace

TEST(prospector_random_numbers_are_the_recorded_ones) {
  Pcg32 rng;
  rng.seed(42);
  CHECK_EQ(rng.state, 0x185706b82c2e03f8ull);
  CHECK_EQ(rng.next(), 2707161783u);
  CHECK_EQ(rng.next(), 2068313097u);
  Pcg32 walked{rng.state};
  for (int i = 0; i < 20; ++i) walked.next();
  CHECK_EQ(jump(20)(rng.state), walked.state);
}

TEST(prospector_normals_are_ten_times_better_than_their_guard) {
  for (const Kernels* kernels : all_kernels()) CHECK(worst_normal(*kernels, 20'000) < kNormalError / 10);
}

TEST(prospector_guards_trip_where_they_must) {
  float rounded;
  const double border = 1.0 + 0x1p-24;  // half way between two floats
  CHECK(!rounds_surely(border, 1e-13, rounded));
  CHECK(rounds_surely(border, 0, rounded));
  CHECK(rounds_surely(1.0 + 0x1p-25, 1e-13, rounded));
  CHECK_EQ(rounded, 1.0f);
}

TEST(prospector_is_the_same_game_on_every_path) { play_all(4, 3'000); }

TEST(long_prospector_is_the_same_game_on_every_path) { play_all(100, 20'000); }

TEST(prospector_refuses_wrong_constants_with_their_path) {
  using gridmill::Value;
  const auto told = [](const char* name, double value) {
    return check::message_of<std::invalid_argument>([&] { (void)compile(Value{Value::Dict{{name, Value{value}}}}); });
  };
  CHECK_EQ(told("time_max", 0), std::string("expected finite number in [1, 1000000000], got 0 - at `$.time_max`"));
  CHECK_EQ(told("time_maks", 9), std::string("unknown field `time_maks`; did you mean `time_max`? - at `$`"));
}
