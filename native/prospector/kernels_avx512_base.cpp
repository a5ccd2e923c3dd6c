// The kernels for CPUs with AVX-512 (the build gives this file its flags); elsewhere they are never called.
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kAvx512Kernels{market, asteroids, normals};

}  // namespace gridmill::prospector
