// The kernels for any CPU, and the choice between the two sets.
#include "learn/kernels_body.hpp"

namespace gridmill::learn {

const Kernels kPortable{bag_forward, bag_backward, scan_forward, scan_backward, sample, ppo};

const Kernels& best() {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide ? kWide : kPortable;
#else
  return kPortable;
#endif
}

}  // namespace gridmill::learn
