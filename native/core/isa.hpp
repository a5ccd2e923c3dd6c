// Which kernels run: one scale of instruction sets, and one place that says how far up it we are. Every kernel that
// comes in several forms asks `isa() >= Isa::...` and nothing else. Plain data without the standard library: files
// with compiler flags of their own include it and must not instantiate shared templates.
#pragma once

namespace gridmill {

// Each has all that those before it have.
enum class Isa {
  portable,     // what the compiler assumes of any CPU of this kind
  avx2,         // with FMA, BMI, BMI2, POPCNT and LZCNT
  avx512_base,  // F, DQ, BW and VL, as CPUs since Skylake-SP: learning and Prospector
  avx512,       // with VBMI and VBMI2, as CPUs since Ice Lake and Zen 4: observation too
};

// Whether there is anything to choose: elsewhere only the portable kernels need to be there.
#if defined(__x86_64__)
constexpr bool kSeveralIsas = true;
#else
constexpr bool kSeveralIsas = false;
#endif

Isa isa_of_cpu();  // the most that this CPU and its operating system can
Isa isa();         // what is in force: the same, unless capped
const char* name_of(Isa isa);

// Go no further than `word`, one of the names above; null or empty takes a cap away. Whoever hosts the core calls it
// before any kernel is chosen, with GRIDMILL_ISA. Throws std::invalid_argument for what is no name of ours or more than
// this CPU can.
void cap_isa(const char* word);

}  // namespace gridmill
