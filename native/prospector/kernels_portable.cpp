// The kernels for any CPU, and which ones are used.
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kPortableKernels{market, asteroids, normals};

const Kernels& kernels_for(Isa isa) {
  if (isa >= Isa::avx512_base) return kAvx512Kernels;
  return isa >= Isa::avx2 ? kAvx2Kernels : kPortableKernels;
}

}  // namespace gridmill::prospector
