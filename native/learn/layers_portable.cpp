// The layers for any CPU, and the choice between the two.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 1;
}
}  // namespace gridmill::learn
#include "core/isa.hpp"
#include "learn/dense_body.hpp"
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Layers kPortableLayers{dense_forward, dense_backward, lstm_forward, lstm_backward};

const Layers& best_layers() {
  if constexpr (kSeveralIsas) return isa() >= Isa::avx512_base ? kWideLayers : kPortableLayers;
  else return kPortableLayers;
}

}  // namespace gridmill::learn
