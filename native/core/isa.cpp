#include "core/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace gridmill {
namespace {

constexpr Isa kAll[]{Isa::portable, Isa::avx2, Isa::avx512_base, Isa::avx512};

#if defined(__x86_64__)
// What the CPU says of itself (leaves of `cpuid`), and which registers the system saves (`xgetbv`). Not by
// __builtin_cpu_supports: its table is a part of gcc's runtime, which other compilers do not bring.
struct Cpu {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  explicit Cpu(unsigned leaf) { __get_cpuid_count(leaf, 0, &eax, &ebx, &ecx, &edx); }  // zeros if there is no such leaf
};

bool has(unsigned word, std::initializer_list<int> bits) {
  return std::ranges::all_of(bits, [&](int bit) { return (word >> bit & 1U) != 0; });
}

unsigned saved_registers() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

Isa ask_cpu() {
  const Cpu basic(1), more(7), extended(0x80000001);
  const bool words = has(basic.ecx, {12, 23, 27, 28}) && has(more.ebx, {3, 5, 8}) && has(extended.ecx, {5});
  if (!words) return Isa::portable;  // fma, popcnt, osxsave, avx; bmi, avx2, bmi2; lzcnt
  const unsigned saved = saved_registers();
  if (!has(saved, {1, 2})) return Isa::portable;                                     // xmm, ymm
  if (!has(saved, {5, 6, 7}) || !has(more.ebx, {16, 17, 30, 31})) return Isa::avx2;  // zmm; avx512f, dq, bw, vl
  return has(more.ecx, {1, 6}) ? Isa::avx512 : Isa::avx512_base;                     // vbmi, vbmi2
}
#else
Isa ask_cpu() { return Isa::portable; }
#endif

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
                              "`; unset it to use the best one");
}

}  // namespace gridmill
