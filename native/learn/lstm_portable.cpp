// The LSTM for any CPU, and the choice between the two.
namespace gridmill::learn {
namespace {
constexpr unsigned long kRows = 1;
}
}  // namespace gridmill::learn
#include "learn/kernels.hpp"
#include "learn/lstm_body.hpp"

namespace gridmill::learn {

const Lstm kPortableLstm{lstm_forward, lstm_backward};

const Lstm& best_lstm() { return &best() == &kWide ? kWideLstm : kPortableLstm; }

}  // namespace gridmill::learn
