// The kernels of kernels.hpp; compiled once per instruction set by the two files that include it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "learn/kernels.hpp"

namespace gridmill::learn {
namespace {

using Lane = float __attribute__((vector_size(64)));
constexpr std::size_t kWidth = 16;

// Sums and copies of a lane at a place in memory; lanes are no arguments or results, whose form depends on the CPU.
inline void take(Lane& to, const float* from) { std::memcpy(&to, from, sizeof to); }
inline void add(Lane& to, const float* from, float weight) {
  Lane lane;
  std::memcpy(&lane, from, sizeof lane);
  to += weight * lane;
}
inline void add_to(float* to, const Lane& lane, float weight) {
  Lane sum;
  std::memcpy(&sum, to, sizeof sum);
  sum += weight * lane;
  std::memcpy(to, &sum, sizeof sum);
}

// Calls found(row of the table, weight) for every table row that the tokens of one observation name.
template <class Found>
inline void each_row(const BagLayout& l, const std::uint8_t* token, std::size_t tokens, Found&& found) {
  for (std::size_t i = 0; i < tokens && token[0] != 255; ++i, token += 3) {
    const std::int32_t place = l.place[token[0]];
    if (place < 0 || token[1] >= l.features) continue;
    const std::size_t key = std::size_t{token[1]} * 256 + token[2];
    if (l.slot[key] < 0) continue;
    const std::size_t row = static_cast<std::size_t>(place * l.slots + l.slot[key]);
    found(row, 1.0f);
    if (l.amount[key] != 0) found(row + 1, l.amount[key]);
  }
}

// Blocks of 128 columns, whose sums stay in registers, then of 16; hidden is a multiple of 16 (checked by the caller).
constexpr std::size_t kBlock = 8;

template <std::size_t Lanes>
void bag_forward_columns(const BagJob& job, const float* table, const float* bias, float* out, std::size_t column) {
  const std::size_t stride = job.tokens * 3;
  for (std::size_t n = 0; n < job.rows; ++n) {
    std::array<Lane, Lanes> sum;
    for (std::size_t k = 0; k < Lanes; ++k) take(sum[k], bias + column + k * kWidth);
    each_row(job.layout, job.obs + n * stride, job.tokens, [&](std::size_t row, float weight) {
      const float* from = table + row * job.hidden + column;
      for (std::size_t k = 0; k < Lanes; ++k) add(sum[k], from + k * kWidth, weight);
    });
    for (std::size_t k = 0; k < Lanes; ++k) {
      sum[k] = sum[k] < 0.0f ? Lane{} : sum[k];  // what is no number stays none
      std::memcpy(out + n * job.hidden + column + k * kWidth, &sum[k], sizeof(Lane));
    }
  }
}

template <std::size_t Lanes>
void bag_backward_columns(const BagJob& job, const float* out, const float* d_out, float* d_table, float* d_bias,
                          std::size_t column) {
  const std::size_t stride = job.tokens * 3;
  std::array<Lane, Lanes> sum{};
  for (std::size_t n = 0; n < job.rows; ++n) {
    std::array<Lane, Lanes> d;
    for (std::size_t k = 0; k < Lanes; ++k) {
      Lane was;
      take(was, out + n * job.hidden + column + k * kWidth);
      take(d[k], d_out + n * job.hidden + column + k * kWidth);
      d[k] = was > 0.0f ? d[k] : Lane{};
      sum[k] += d[k];
    }
    each_row(job.layout, job.obs + n * stride, job.tokens, [&](std::size_t row, float weight) {
      float* to = d_table + row * job.hidden + column;
      for (std::size_t k = 0; k < Lanes; ++k) add_to(to + k * kWidth, d[k], weight);
    });
  }
  for (std::size_t k = 0; k < Lanes; ++k) add_to(d_bias + column + k * kWidth, sum[k], 1.0f);
}

void bag_forward(const BagJob& job, const float* table, const float* bias, float* out) {
  std::size_t column = 0;
  for (; column + kBlock * kWidth <= job.hidden; column += kBlock * kWidth)
    bag_forward_columns<kBlock>(job, table, bias, out, column);
  for (; column < job.hidden; column += kWidth) bag_forward_columns<1>(job, table, bias, out, column);
}

void bag_backward(const BagJob& job, const float* out, const float* d_out, float* d_table, float* d_bias) {
  std::size_t column = 0;
  for (; column + kBlock * kWidth <= job.hidden; column += kBlock * kWidth)
    bag_backward_columns<kBlock>(job, out, d_out, d_table, d_bias, column);
  for (; column < job.hidden; column += kWidth) bag_backward_columns<1>(job, out, d_out, d_table, d_bias, column);
}

// e^x to about one unit in the last place: 2^n times a polynomial on [-ln2/2, ln2/2].
inline float exponential(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);  // in this order what is no number stays none
  const float n = std::floor(x * 1.44269504088896341f + 0.5f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}
inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }
inline float tanh_of(float x) { return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f; }

void scan_forward(const ScanShape& s, float* gates, const float* h0, float* h) {
  const std::size_t step = s.rows * s.hidden;
  for (std::size_t t = 0; t < s.time; ++t)
    for (std::size_t n = 0; n < s.rows; ++n) {
      const std::size_t at = t * step + n * s.hidden;
      const float* __restrict before = t == 0 ? h0 + n * s.hidden : h + at - step;
      float* __restrict z = gates + 2 * at, * __restrict c = gates + 2 * at + s.hidden, * __restrict after = h + at;
      const float keep = s.start[t * s.rows + n] ? 0.0f : 1.0f;
      for (std::size_t k = 0; k < s.hidden; ++k) {
        z[k] = sigmoid(z[k]);
        c[k] = tanh_of(c[k]);
        const float old = keep * before[k];
        after[k] = old + z[k] * (c[k] - old);
      }
    }
}

// Rows are functions of their own: only as parameters are the arrays known not to overlap, which vectors need.
#define GRIDMILL_ROW __attribute__((noinline)) void

GRIDMILL_ROW scan_backward_row(std::size_t hidden, const float* __restrict z, const float* __restrict c,
                               const float* __restrict before, const float* __restrict d_after, float keep,
                               float* __restrict d_z, float* __restrict d_c, float* __restrict flow) {
  for (std::size_t k = 0; k < hidden; ++k) {
    const float d = d_after[k] + flow[k];
    d_z[k] = d * (c[k] - keep * before[k]) * z[k] * (1.0f - z[k]);
    d_c[k] = d * z[k] * (1.0f - c[k] * c[k]);
    flow[k] = keep * (d - d * z[k]);
  }
}

void scan_backward(const ScanShape& s, const float* gates, const float* h0, const float* h, const float* d_h,
                   float* d_gates, float* d_h0) {
  const std::size_t step = s.rows * s.hidden;
  std::fill(d_h0, d_h0 + step, 0.0f);  // what flows from a step to the one before it
  for (std::size_t t = s.time; t-- > 0;)
    for (std::size_t n = 0; n < s.rows; ++n) {
      const std::size_t at = t * step + n * s.hidden;
      const float* before = t == 0 ? h0 + n * s.hidden : h + at - step;
      scan_backward_row(s.hidden, gates + 2 * at, gates + 2 * at + s.hidden, before, d_h + at,
                        s.start[t * s.rows + n] ? 0.0f : 1.0f, d_gates + 2 * at, d_gates + 2 * at + s.hidden,
                        d_h0 + n * s.hidden);
    }
}

GRIDMILL_ROW lstm_forward_row(std::size_t hidden, float* __restrict i, float* __restrict f, float* __restrict g,
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

void lstm_forward(std::size_t rows, std::size_t hidden, float* gates, const float* cell_before, float* cell, float* h) {
  for (std::size_t n = 0; n < rows; ++n) {
    float* row = gates + n * 4 * hidden;
    const std::size_t at = n * hidden;
    lstm_forward_row(hidden, row, row + hidden, row + 2 * hidden, row + 3 * hidden, cell_before + at, cell + at,
                     h + at);
  }
}

GRIDMILL_ROW lstm_backward_row(std::size_t hidden, const float* __restrict i, const float* __restrict f,
                               const float* __restrict g, const float* __restrict o, const float* __restrict before,
                               const float* __restrict after, const float* __restrict d_out, float* __restrict d_state,
                               float* __restrict d_i, float* __restrict d_f, float* __restrict d_g,
                               float* __restrict d_o) {
  for (std::size_t k = 0; k < hidden; ++k) {
    const float bent = tanh_of(after[k]);
    const float d = d_state[k] + d_out[k] * o[k] * (1.0f - bent * bent);
    d_o[k] = d_out[k] * bent * o[k] * (1.0f - o[k]);
    d_i[k] = d * g[k] * i[k] * (1.0f - i[k]);
    d_f[k] = d * before[k] * f[k] * (1.0f - f[k]);
    d_g[k] = d * i[k] * (1.0f - g[k] * g[k]);
    d_state[k] = d * f[k];
  }
}

void lstm_backward(std::size_t rows, std::size_t hidden, const float* gates, const float* cell_before,
                   const float* cell, const float* d_h, float* d_cell, float* d_gates) {
  for (std::size_t n = 0; n < rows; ++n) {
    const float* row = gates + n * 4 * hidden;
    float* d_row = d_gates + n * 4 * hidden;
    const std::size_t at = n * hidden;
    lstm_backward_row(hidden, row, row + hidden, row + 2 * hidden, row + 3 * hidden, cell_before + at, cell + at,
                      d_h + at, d_cell + at, d_row, d_row + hidden, d_row + 2 * hidden, d_row + 3 * hidden);
  }
}
#undef GRIDMILL_ROW

// Inverts the distribution at one uniform number per row, which is a function of (seed, step, row) alone.
void sample(const SampleJob& job, std::int32_t* actions, float* log_probs) {
  std::vector<float> weight(job.actions);
  for (std::size_t n = 0; n < job.rows; ++n) {
    const float* logits = job.logits + n * job.actions;
    const std::uint8_t* mask = job.masks ? job.masks + n * job.actions : nullptr;
    float top = -std::numeric_limits<float>::infinity();
    for (std::size_t a = 0; a < job.actions; ++a)
      if (!mask || mask[a]) top = std::max(top, logits[a]);
    for (std::size_t a = 0; a < job.actions; ++a) weight[a] = exponential(logits[a] - top);
    float total = 0;
    for (std::size_t a = 0; a < job.actions; ++a)
      if (!mask || mask[a]) total += weight[a];
    const Key key{job.seed, static_cast<std::uint32_t>(job.first_row + n), static_cast<std::uint32_t>(job.step >> 32)};
    const std::uint64_t bits = Stream(key, static_cast<std::uint32_t>(job.step), 0).at(0);
    float left = static_cast<float>(static_cast<double>(bits >> 11) * 0x1p-53) * total;
    std::int32_t chosen = -1;
    for (std::size_t a = 0; a < job.actions; ++a) {
      if (mask && !mask[a]) continue;
      chosen = static_cast<std::int32_t>(a);
      left -= weight[a];
      if (left < 0) break;
    }
    // No action allowed, or logits that are no numbers: the guard above sees them; here it is the first action.
    actions[n] = std::max(0, chosen);
    log_probs[n] = logits[actions[n]] - top - std::log(total);
  }
}

}  // namespace
}  // namespace gridmill::learn
