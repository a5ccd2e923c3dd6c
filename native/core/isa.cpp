#include "core/isa.hpp"

#include <stdexcept>
#include <string>

namespace gridmill {
namespace {

constexpr Isa kAll[]{Isa::portable, Isa::avx2, Isa::avx512_base, Isa::avx512};

Isa ask_cpu() {
#if defined(__x86_64__)
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("lzcnt")))
    return Isa::portable;
  if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")))
    return Isa::avx2;
  if (!(__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2"))) return Isa::avx512_base;
  return Isa::avx512;
#else
  return Isa::portable;
#endif
}

Isa& in_force() {
  static Isa found = isa_of_cpu();
  return found;
}

}  // namespace

Isa isa_of_cpu() {
  static const Isa found = ask_cpu();
  return found;
}

Isa isa() { return in_force(); }

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512_base:
      return "avx512_base";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

void cap_isa(const char* word) {
  const std::string wanted = word == nullptr ? "" : word;
  if (wanted.empty()) {
    in_force() = isa_of_cpu();
    return;
  }
  std::string names;
  for (const Isa known : kAll) {
    if (known > isa_of_cpu()) break;
    if (wanted == name_of(known)) {
      in_force() = known;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(name_of(known));
  }
  throw std::invalid_argument("GRIDMILL_ISA: expected one of " + names + " on this CPU, got `" + wanted +
                              "`; unset it for the best of them");
}

}  // namespace gridmill
