// The layers for CPUs with AVX2 (the build gives this file its flags); elsewhere they are never called.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 6, kTileLanes = 1;  // 12 sums, 2 numbers of the panel, 1 of the row: of 16 registers
}
}  // namespace gridmill::learn
#include "learn/dense_body.hpp"
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Layers kAvx2Layers{kPanel, dense_forward, dense_backward, lstm_forward, lstm_backward};

}  // namespace gridmill::learn
