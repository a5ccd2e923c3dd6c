// The scale of instruction sets: a cap is kept, taken away, and refused in one line; kernels follow it.
#include <cstdlib>
#include <string>

#include "check.hpp"
#include "core/isa.hpp"
#include "learn/kernels.hpp"
#include "learn/layers.hpp"
#include "prospector/state.hpp"

using namespace gridmill;

namespace {

struct Uncapped {  // the other tests run as they were asked to
  ~Uncapped() { cap_isa(std::getenv("GRIDMILL_ISA")); }
};

std::string refused(const char* word) {
  return check::message_of<std::invalid_argument>([&] { cap_isa(word); });
}

}  // namespace

TEST(isa_is_what_the_cpu_can_or_the_cap) {
  const Uncapped after;
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    cap_isa(none);
    CHECK(isa() == isa_of_cpu());
  }
  for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512_base, Isa::avx512}) {
    if (level > isa_of_cpu()) continue;
    cap_isa(name_of(level));
    CHECK(isa() == level);
    CHECK(&learn::best() == (level >= Isa::avx512_base ? &learn::kWide
                             : level >= Isa::avx2      ? &learn::kAvx2
                                                       : &learn::kPortable));
    CHECK(&learn::best_layers() == (level >= Isa::avx512_base ? &learn::kWideLayers
                                    : level >= Isa::avx2      ? &learn::kAvx2Layers
                                                              : &learn::kPortableLayers));
    CHECK(prospector::Program(prospector::Config{}).kernels == &prospector::kernels_for(level));
  }
}

TEST(isa_refuses_what_it_does_not_know_and_what_the_cpu_cannot) {
  const Uncapped after;
  std::string names;
  for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512_base, Isa::avx512})
    if (level <= isa_of_cpu()) names += (names.empty() ? "" : ", ") + std::string(name_of(level));
  const auto told = [&](const std::string& word) {
    return "GRIDMILL_ISA: expected one of " + names + " on this CPU, got `" + word + "`; unset it to use the best one";
  };
  CHECK_EQ(refused("avx9"), told("avx9"));
  if (isa_of_cpu() < Isa::avx512) CHECK_EQ(refused("avx512"), told("avx512"));
  const Isa before = isa();
  CHECK_EQ(refused("AVX2"), told("AVX2"));
  CHECK(isa() == before);
}
