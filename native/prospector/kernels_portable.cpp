// The kernels for any CPU, and which ones are used.
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kPortableKernels{market, asteroids, normals};

const Kernels& kernels_for([[maybe_unused]] Isa isa) {
  if constexpr (kSeveralIsas) {
    if (isa >= Isa::avx512_base) return kAvx512Kernels;
    if (isa >= Isa::avx2) return kAvx2Kernels;
  }
  return kPortableKernels;
}

}  // namespace gridmill::prospector
