// The LSTM of layers.hpp; compiled once per instruction set by the two files that include it.
#pragma once

#include <vector>

#include "learn/product.hpp"

namespace gridmill::learn {
namespace {

// ---- gates of one row

GRIDMILL_ROW forward_row(std::size_t hidden, float* __restrict i, float* __restrict f, float* __restrict g,
                         float* __restrict o, const float* __restrict before, float* __restrict after,
                         float* __restrict out) {
  for (std::size_t k = 0; k < hidden; ++k) {
    i[k] = sigmoid(i[k]);
    f[k] = sigmoid(f[k]);
    g[k] = tanh_of(g[k]);
    o[k] = sigmoid(o[k]);
    after[k] = f[k] * before[k] + i[k] * g[k];
    out[k] = o[k] * tanh_of(after[k]);
  }
}

GRIDMILL_ROW backward_row(std::size_t hidden, const float* __restrict i, const float* __restrict f,
                          const float* __restrict g, const float* __restrict o, const float* __restrict before,
                          const float* __restrict after, const float* __restrict d_above,
                          const float* __restrict d_later, float* __restrict d_state, float* __restrict d_i,
                          float* __restrict d_f, float* __restrict d_g, float* __restrict d_o) {
  for (std::size_t k = 0; k < hidden; ++k) {
    const float bent = tanh_of(after[k]), d_out = d_above[k] + d_later[k];
    const float d = d_state[k] + d_out * o[k] * (1.0f - bent * bent);
    d_o[k] = d_out * bent * o[k] * (1.0f - o[k]);
    d_i[k] = d * g[k] * i[k] * (1.0f - i[k]);
    d_f[k] = d * before[k] * f[k] * (1.0f - f[k]);
    d_g[k] = d * i[k] * (1.0f - g[k] * g[k]);
    d_state[k] = d * f[k];
  }
}

// ---- along time

void lstm_forward(const LstmShape& s, const float* transposed, float* gates, float* h, float* cell) {
  const std::size_t size = s.hidden, step = s.rows * size;
  const std::vector<float> nothing(size, 0.0f);
  std::vector<float> kept;  // h before a step in which some rows begin anew
  for (std::size_t t = 0; t < s.time; ++t) {
    const std::uint8_t* start = s.start + t * s.rows;
    const float* before = h + t * step;
    if (std::any_of(start, start + s.rows, [](std::uint8_t x) { return x != 0; })) {
      kept.assign(before, before + step);
      for (std::size_t n = 0; n < s.rows; ++n)
        if (start[n]) std::fill_n(kept.data() + n * size, size, 0.0f);
      before = kept.data();
    }
    float* row = gates + 4 * t * step;
    times_panels(s.rows, {before, size, 1}, transposed, size, 4 * size, {row, 4 * size, row, 4 * size, false});
    for (std::size_t n = 0; n < s.rows; ++n, row += 4 * size) {
      const std::size_t at = t * step + n * size;
      forward_row(size, row, row + size, row + 2 * size, row + 3 * size, start[n] ? nothing.data() : cell + at,
                  cell + at + step, h + at + step);
    }
  }
}

void lstm_backward(const LstmShape& s, const float* packed, const float* gates, const float* cell, const float* d_h,
                   float* d_gates) {
  const std::size_t size = s.hidden, step = s.rows * size;
  const std::vector<float> nothing(size, 0.0f);
  std::vector<float> d_later(step, 0.0f), d_state(step, 0.0f);  // what flows from a step to the one before it
  for (std::size_t t = s.time; t-- > 0;) {
    const std::uint8_t* start = s.start + t * s.rows;
    for (std::size_t n = 0; n < s.rows; ++n) {
      const std::size_t at = t * step + n * size;
      const float* row = gates + 4 * at;
      float* d_row = d_gates + 4 * at;
      backward_row(size, row, row + size, row + 2 * size, row + 3 * size, start[n] ? nothing.data() : cell + at,
                   cell + at + step, d_h + at, d_later.data() + n * size, d_state.data() + n * size, d_row,
                   d_row + size, d_row + 2 * size, d_row + 3 * size);
    }
    if (t == 0) break;
    times_panels(s.rows, {d_gates + 4 * t * step, 4 * size, 1}, packed, 4 * size, size,
                 {nullptr, 0, d_later.data(), size, false});
    for (std::size_t n = 0; n < s.rows; ++n)
      if (start[n]) {
        std::fill_n(d_later.data() + n * size, size, 0.0f);
        std::fill_n(d_state.data() + n * size, size, 0.0f);
      }
  }
}

}  // namespace
}  // namespace gridmill::learn
