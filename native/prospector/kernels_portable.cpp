// The kernels for any CPU, and which ones this CPU should use.
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kPortableKernels{market, asteroids, normals};

bool have_wide() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

const Kernels& best_kernels() { return have_wide() ? kWideKernels : kPortableKernels; }

}  // namespace gridmill::prospector
