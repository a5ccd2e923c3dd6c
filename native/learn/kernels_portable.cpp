// The kernels for any CPU, and the choice between them.
#include "core/isa.hpp"
#include "learn/kernels_body.hpp"

namespace gridmill::learn {

const Kernels kPortable{bag_forward, bag_backward, scan_forward, scan_backward, sample, ppo};

const Kernels& best() {
  if constexpr (kSeveralIsas) {
    if (isa() >= Isa::avx512_base) return kWide;
    if (isa() >= Isa::avx2) return kAvx2;
  }
  return kPortable;
}

}  // namespace gridmill::learn
