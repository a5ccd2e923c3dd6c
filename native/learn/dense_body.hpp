// The dense layer of layers.hpp; compiled once per instruction set by the files that include it.
#pragma once

#include <vector>

#include "learn/product.hpp"

namespace gridmill::learn {
namespace {

struct alignas(64) CacheLine {
  float at[kWidth];
};

void dense_forward(const DenseShape& s, const float* x, const float* transposed, const float* bias, float* out,
                   float* last) {
  if (!last)
    return times_panels(s.rows, {x, s.inputs, 1}, transposed, s.inputs, s.outputs, {bias, 0, out, s.outputs, s.relu});
  const std::size_t others = s.outputs - 1;
  std::vector<CacheLine> lines(kTogether * padded(s.outputs) / kWidth);
  float* const both = lines.data()->at;
  for (std::size_t first = 0; first < s.rows; first += kTogether) {
    const std::size_t rows = std::min(kTogether, s.rows - first);
    times_panels(rows, {x + first * s.inputs, s.inputs, 1}, transposed, s.inputs, s.outputs,
                 {bias, 0, both, s.outputs, s.relu});
    for (std::size_t n = 0; n < rows; ++n) {
      std::copy_n(both + n * s.outputs, others, out + (first + n) * others);
      last[first + n] = both[n * s.outputs + others];
    }
  }
}

GRIDMILL_ROW through_relu(std::size_t size, const float* __restrict out, const float* __restrict d_out,
                          float* __restrict d, float* __restrict d_bias) {
  for (std::size_t k = 0; k < size; ++k) {
    d[k] = out[k] <= 0.0f ? 0.0f : d_out[k];
    d_bias[k] += d[k];
  }
}

GRIDMILL_ROW through(std::size_t size, const float* __restrict d_out, float* __restrict d, float* __restrict d_bias) {
  for (std::size_t k = 0; k < size; ++k) {
    d[k] = d_out[k];
    d_bias[k] += d[k];
  }
}

// Rows that stay near the core while all three gradients are made of them; 16 tiles, and a strip fits the first cache.
constexpr std::size_t kBlockRows = 96;

// sums += d [rows, outputs] transposed x x [rows, inputs], a strip of x's columns at a time; sums are panels of
// [outputs, width], so that no line of the cache is cut.
void add_weight_gradient(const DenseShape& s, const float* d, std::size_t apart, const float* x, float* strip,
                         float* sums) {
  for (std::size_t first = 0; first < s.inputs; first += kPanel) {
    const std::size_t there = std::min(kPanel, s.inputs - first), width = padded(there);
    for (std::size_t n = 0; n < s.rows; ++n) {
      std::memcpy(strip + n * width, x + n * s.inputs + first, there * sizeof(float));
      std::fill(strip + n * width + there, strip + (n + 1) * width, 0.0f);
    }
    float* to = sums + first * s.outputs;
    times_panel(s.outputs, {d, 1, apart}, strip, s.rows, {to, width, to, width, false}, width);
  }
}

void dense_backward(const DenseShape& s, const float* x, const float* out, const float* d_out, const float* d_last,
                    const float* packed, float* d_x, float* d_weight, float* d_bias) {
  const std::size_t given = s.outputs - (d_last ? 1 : 0);
  const std::size_t apart = padded(s.outputs) + kWidth;  // a column's numbers fall into different sets of the cache
  std::vector<CacheLine> lines((kBlockRows * (apart + kPanel) + s.outputs * padded(s.inputs)) / kWidth);
  float *const d = lines.data()->at, *const strip = d + kBlockRows * apart, *const sums = strip + kBlockRows * kPanel;
  std::fill_n(d_bias, s.outputs, 0.0f);
  for (std::size_t first = 0; first < s.rows; first += kBlockRows) {
    const DenseShape block{std::min(kBlockRows, s.rows - first), s.inputs, s.outputs, s.relu};
    for (std::size_t n = 0; n < block.rows; ++n) {
      const std::size_t at = (first + n) * given;
      if (s.relu) through_relu(given, out + at, d_out + at, d + n * apart, d_bias);
      else through(given, d_out + at, d + n * apart, d_bias);
      if (d_last) through(1, d_last + first + n, d + n * apart + given, d_bias + given);
    }
    if (d_x)
      times_panels(block.rows, {d, apart, 1}, packed, s.outputs, s.inputs,
                   {nullptr, 0, d_x + first * s.inputs, s.inputs, false});
    add_weight_gradient(block, d, apart, x + first * s.inputs, strip, sums);
  }
  for (std::size_t first = 0; first < s.inputs; first += kPanel) {
    const std::size_t there = std::min(kPanel, s.inputs - first), width = padded(there);
    for (std::size_t j = 0; j < s.outputs; ++j)
      std::copy_n(sums + first * s.outputs + j * width, there, d_weight + j * s.inputs + first);
  }
}

}  // namespace
}  // namespace gridmill::learn
