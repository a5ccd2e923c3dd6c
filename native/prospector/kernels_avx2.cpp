// The kernels for CPUs with AVX2 (the build gives this file its flags); elsewhere they are never called.
#include "prospector/kernels_rows.hpp"

namespace gridmill::prospector {

const Kernels kAvx2Kernels{market, asteroids, normals};

}  // namespace gridmill::prospector
