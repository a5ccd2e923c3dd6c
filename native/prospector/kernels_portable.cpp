// The kernels for any CPU, and which ones are used.
#include "core/isa.hpp"
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kPortableKernels{market, asteroids, normals};

const Kernels& best_kernels() { return isa() >= Isa::avx512_base ? kWideKernels : kPortableKernels; }

}  // namespace gridmill::prospector
