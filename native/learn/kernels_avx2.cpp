// The kernels for CPUs with AVX2 (the build gives this file its flags); elsewhere they are never called.
#include "learn/kernels_body.hpp"

namespace gridmill::learn {

const Kernels kAvx2{bag_forward, bag_backward, scan_forward, scan_backward, sample, ppo};

}  // namespace gridmill::learn
