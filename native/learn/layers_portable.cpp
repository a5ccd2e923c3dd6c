// The layers for any CPU, and the choice between them.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 1, kTileLanes = 4;
}
}  // namespace gridmill::learn
#include "core/isa.hpp"
#include "learn/dense_body.hpp"
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Layers kPortableLayers{kPanel, dense_forward, dense_backward, lstm_forward, lstm_backward};

const Layers& best_layers() {
  if constexpr (kSeveralIsas) {
    if (isa() >= Isa::avx512_base) return kWideLayers;
    if (isa() >= Isa::avx2) return kAvx2Layers;
  }
  return kPortableLayers;
}

}  // namespace gridmill::learn
