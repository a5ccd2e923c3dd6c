// The layers for CPUs with AVX-512 (the build gives this file its flags); elsewhere they are never called.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 6, kTileLanes = 4;  // 24 sums, 4 numbers of the panel, 1 of the row: of 32 registers
}
}  // namespace gridmill::learn
#include "learn/dense_body.hpp"
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Layers kWideLayers{kPanel, dense_forward, dense_backward, lstm_forward, lstm_backward};

}  // namespace gridmill::learn
