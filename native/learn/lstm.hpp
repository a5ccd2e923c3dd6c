// An LSTM along time, from the gates that its input gives: products with the recurrent weights and the gates' functions
// in one call, so that nothing but a whole sequence costs an interpreter's time. No threads of its own: who calls it
// splits the rows. A row's numbers do not depend on the rows beside it. Products use fused multiply-adds where the CPU
// has AVX-512, so their last bits depend on the CPU, as those of torch's products do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::learn {

struct LstmShape {
  std::size_t time, rows, hidden;
  const std::uint8_t* start;  // [time, rows]: before such a step h and cell are forgotten
};

struct Lstm {
  // gates [time, rows, 4 hidden] hold x W + b and become i, f, g, o after their functions; weight is [4 hidden,
  // hidden]; h and cell are [time + 1, rows, hidden], of which the first step is given and the others are written.
  void (*forward)(const LstmShape& s, const float* weight, float* gates, float* h, float* cell);
  // d_h [time, rows, hidden] comes from above; d_gates is written.
  void (*backward)(const LstmShape& s, const float* weight, const float* gates, const float* cell, const float* d_h,
                   float* d_gates);
};

extern const Lstm kPortableLstm, kWideLstm;
const Lstm& best_lstm();

}  // namespace gridmill::learn
