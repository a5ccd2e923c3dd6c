// The LSTM for CPUs with AVX-512 (the build gives this file its flags); elsewhere it is never called.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 6;  // 24 sums, 4 numbers of the panel and 1 of the row, of 32 registers
}
}  // namespace gridmill::learn
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Lstm kWideLstm{lstm_forward, lstm_backward};

}  // namespace gridmill::learn
