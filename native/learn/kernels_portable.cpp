// The kernels for any CPU, and the choice between the two sets.
#include "core/isa.hpp"
#include "learn/kernels_body.hpp"

namespace gridmill::learn {

const Kernels kPortable{bag_forward, bag_backward, scan_forward, scan_backward, sample, ppo};

const Kernels& best() {
  if constexpr (kSeveralIsas) return isa() >= Isa::avx512_base ? kWide : kPortable;
  else return kPortable;
}

}  // namespace gridmill::learn
