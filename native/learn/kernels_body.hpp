// The kernels of kernels.hpp; compiled once per instruction set by the files that include it.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "core/tokens.hpp"
#include "learn/kernels.hpp"
#include "learn/lanes.hpp"

namespace gridmill::learn {
namespace {

// For lanes and for registers.
template <class Vector>
inline void add(Vector& to, const float* from, float weight) {
  Vector found;
  std::memcpy(&found, from, sizeof found);
  to += weight * found;
}
inline void add_to(float* to, const Register& from, float weight) {
  Register sum;
  std::memcpy(&sum, to, sizeof sum);
  sum += weight * from;
  std::memcpy(to, &sum, sizeof sum);
}

// A row of the embedding table that a token names, and what it counts.
struct WeightedRow {
  std::size_t row;
  float weight;
};

// Calls found(row, weight) for each that one observation names.
template <class Found>
inline void rows_of_tokens(const BagLayout& l, const std::uint8_t* token, std::size_t tokens, Found&& found) {
  for (std::size_t i = 0; i < tokens && token[0] != kNoToken; ++i, token += kTokenBytes) {
    const std::int32_t place = l.place[token[0]];
    if (place < 0 || token[1] >= l.features) continue;
    const std::size_t key = std::size_t{token[1]} * 256 + token[2];
    if (l.slot[key] < 0) continue;
    const std::size_t row = static_cast<std::size_t>(place * l.slots + l.slot[key]);
    found(row, 1.0f);
    if (l.amount[key] != 0) found(row + 1, l.amount[key]);
  }
}

// Columns in blocks of eight registers, then of one; hidden is a multiple of 16 (checked by the caller). A column's sum
// does not depend on its block. The first block is computed while the tokens are read, so that the CPU waits for the
// table's rows and decodes tokens at the same time; the others, if there are any, use a list that it leaves, with room
// for two rows a token. block(registers, rows, first column), where rows(found) calls found(row, weight).
constexpr std::size_t kBlock = 8;

template <class Block>
inline void each_block(const BagJob& job, std::size_t n, WeightedRow* list, Block&& block) {
  const std::uint8_t* const token = job.obs + n * job.tokens * kTokenBytes;
  std::size_t count = 0;
  const auto of_tokens = [&](auto&& found) { rows_of_tokens(job.layout, token, job.tokens, found); };
  const auto of_tokens_listed = [&](auto&& found) {
    rows_of_tokens(job.layout, token, job.tokens, [&](std::size_t row, float weight) {
      list[count++] = {row, weight};
      found(row, weight);
    });
  };
  const auto of_list = [&](auto&& found) {
    for (std::size_t i = 0; i < count; ++i) found(list[i].row, list[i].weight);
  };
  const auto columns = [&](auto registers, std::size_t column) {
    if (column > 0) block(registers, of_list, column);
    else if (registers() * kFloats == job.hidden) block(registers, of_tokens, column);
    else block(registers, of_tokens_listed, column);
  };
  std::size_t column = 0;
  for (; column + kBlock * kFloats <= job.hidden; column += kBlock * kFloats)
    columns(std::integral_constant<std::size_t, kBlock>{}, column);
  for (; column < job.hidden; column += kFloats) columns(std::integral_constant<std::size_t, 1>{}, column);
}

void bag_forward(const BagJob& job, const float* table, const float* bias, float* out) {
  std::vector<WeightedRow> list(2 * job.tokens);
  for (std::size_t n = 0; n < job.rows; ++n, out += job.hidden)
    each_block(job, n, list.data(), [&](auto registers, auto&& rows, std::size_t column) {
      std::array<Register, registers()> sum;
      for (std::size_t k = 0; k < sum.size(); ++k) std::memcpy(&sum[k], bias + column + k * kFloats, sizeof sum[k]);
      const float* const from = table + column;
      rows([&](std::size_t row, float weight) {
        for (std::size_t k = 0; k < sum.size(); ++k) add(sum[k], from + row * job.hidden + k * kFloats, weight);
      });
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] = sum[k] < 0.0f ? Register{} : sum[k];  // what is no number stays none
        std::memcpy(out + column + k * kFloats, &sum[k], sizeof sum[k]);
      }
    });
}

// What of a gradient goes through the ReLU.
template <std::size_t Count>
inline std::array<Register, Count> passed(const float* out, const float* d_out) {
  std::array<Register, Count> d;
  for (std::size_t k = 0; k < Count; ++k) {
    Register was;
    std::memcpy(&was, out + k * kFloats, sizeof was);
    std::memcpy(&d[k], d_out + k * kFloats, sizeof d[k]);
    d[k] = was > 0.0f ? d[k] : Register{};
  }
  return d;
}

template <std::size_t Count, class Rows>
inline void scatter(const std::array<Register, Count>& d, Rows&& rows, float* d_table, std::size_t hidden) {
  rows([&](std::size_t row, float weight) {
    for (std::size_t k = 0; k < Count; ++k) add_to(d_table + row * hidden + k * kFloats, d[k], weight);
  });
}

// One block: the bias's sums stay in registers. In memory they made some runs up to twice as slow, most likely because
// they waited for stores to the table whose addresses end in the same bits.
void bag_backward_in_one_block(const BagJob& job, const float* out, const float* d_out, float* d_table, float* d_bias) {
  std::array<Register, kBlock> sum{};
  for (std::size_t n = 0; n < job.rows; ++n) {
    const auto d = passed<kBlock>(out + n * job.hidden, d_out + n * job.hidden);
    for (std::size_t k = 0; k < kBlock; ++k) sum[k] += d[k];
    const std::uint8_t* const token = job.obs + n * job.tokens * kTokenBytes;
    scatter(d, [&](auto&& found) { rows_of_tokens(job.layout, token, job.tokens, found); }, d_table, job.hidden);
  }
  for (std::size_t k = 0; k < kBlock; ++k) add_to(d_bias + k * kFloats, sum[k], 1.0f);
}

void bag_backward(const BagJob& job, const float* out, const float* d_out, float* d_table, float* d_bias) {
  if (job.hidden == kBlock * kFloats) return bag_backward_in_one_block(job, out, d_out, d_table, d_bias);
  std::vector<WeightedRow> list(2 * job.tokens);
  std::vector<Register> sum(job.hidden / kFloats);
  for (std::size_t n = 0; n < job.rows; ++n, out += job.hidden, d_out += job.hidden)
    each_block(job, n, list.data(), [&](auto registers, auto&& rows, std::size_t column) {
      const auto d = passed<registers()>(out + column, d_out + column);
      for (std::size_t k = 0; k < d.size(); ++k) sum[column / kFloats + k] += d[k];
      scatter(d, rows, d_table + column, job.hidden);
    });
  for (std::size_t k = 0; k < sum.size(); ++k) add_to(d_bias + k * kFloats, sum[k], 1.0f);
}

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

// ---- rows of numbers, padded to whole lanes: sixteen sums at once, then always in the same order

inline std::size_t lanes_of(std::size_t count) { return (count + kWidth - 1) / kWidth * kWidth; }

// One number of a lane's sixteen: halves are joined until one is left.
template <class Join>
inline float folded(const Lane& lane, Join&& join) {
  std::array<float, kWidth> part;
  std::memcpy(part.data(), &lane, sizeof lane);
#pragma GCC unroll 4
  for (std::size_t half = kWidth / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < half; ++i) part[i] = join(part[i], part[i + half]);
  return part[0];
}

inline float sum_of(const float* x, std::size_t count) {
  Lane sum{};
  for (std::size_t i = 0; i < count; i += kWidth) add(sum, x + i, 1.0f);
  return folded(sum, [](float a, float b) { return a + b; });
}

inline float top_of(const float* x, std::size_t count) {
  Lane top = Lane{} - std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < count; i += kWidth) {
    Lane next;
    take(next, x + i);
    top = next > top ? next : top;
  }
  return folded(top, [](float a, float b) { return a > b ? a : b; });
}

constexpr float kNever = -1e30f;  // as a logit: no chance, and no infinity that makes 0 times it no number

// The action whose part of [0, total) holds `left`; lanes that lie below it are passed over whole.
inline std::int32_t drawn(const float* weight, std::size_t count, const std::uint8_t* mask, float left) {
  for (std::size_t first = 0; first < count; first += kWidth) {
    const std::size_t end = std::min(count, first + kWidth);
    const float here = sum_of(weight + first, kWidth);
    if (left >= here) left -= here;
    else
      for (std::size_t a = first; a < end; ++a) {
        left -= weight[a];
        if (left < 0) return static_cast<std::int32_t>(a);
      }
  }
  // Rounding left a rest, or there are no numbers, which the guard above sees: the last action that is allowed.
  std::size_t last = count;
  while (last > 0 && mask && !mask[last - 1]) --last;
  return static_cast<std::int32_t>(last > 0 ? last - 1 : 0);
}

// Inverts the distribution at one uniform number per row, which is a function of (seed, step, row) alone.
void sample(const SampleJob& job, std::int32_t* actions, float* log_probs) {
  const std::size_t wide = lanes_of(job.actions);
  std::vector<float> z(wide, kNever), weight(wide, 0.0f);
  for (std::size_t n = 0; n < job.rows; ++n) {
    const float* logits = job.logits + n * job.actions;
    const std::uint8_t* mask = job.masks ? job.masks + n * job.actions : nullptr;
    for (std::size_t a = 0; a < job.actions; ++a) z[a] = mask && !mask[a] ? kNever : logits[a];
    const float top = top_of(z.data(), wide);
    for (std::size_t a = 0; a < wide; ++a) weight[a] = z[a] == kNever ? 0.0f : exponential(z[a] - top);
    const float total = sum_of(weight.data(), wide);
    const Key key{job.seed, static_cast<std::uint32_t>(job.first_row + n), static_cast<std::uint32_t>(job.step >> 32)};
    const std::uint64_t bits = Stream(key, static_cast<std::uint32_t>(job.step), 0).at(0);
    const float left = static_cast<float>(static_cast<double>(bits >> 11) * 0x1p-53) * total;
    actions[n] = drawn(weight.data(), job.actions, mask, left);
    log_probs[n] = logits[actions[n]] - top - std::log(total);
  }
}

// The larger of the two squared errors counts, and its slope; where both are one, they agree.
inline void critic_row(const PpoJob& job, std::size_t n, double& loss, float& d_value) {
  const float error = job.values[n] - job.returns[n], weight = job.weights[n % job.segments];
  float worst = error, slope = 1.0f;
  if (job.value_clip > 0) {
    const float moved = job.values[n] - job.old_values[n];
    const float near = job.old_values[n] + std::min(std::max(moved, -job.value_clip), job.value_clip) - job.returns[n];
    if (near * near > error * error) {
      worst = near;
      slope = std::abs(moved) > job.value_clip ? 0.0f : 1.0f;
    }
  }
  loss += 0.5 * static_cast<double>(worst * worst * weight);
  d_value = job.value / static_cast<float>(job.rows) * worst * slope * weight;
}

// With z the logits, p their softmax and H its entropy: d log p[a] / d z[j] = [a = j] - p[j], d H / d z[j] = -p[j] (log
// p[j] + H). A ratio beyond the clip in the direction of its advantage has no slope.
void ppo(const PpoJob& job, float* d_logits, float* d_values, float* ratios, double* means) {
  std::array<double, 5> sum{};
  const std::size_t wide = lanes_of(job.num_actions);
  std::vector<float> z(wide, kNever), p(wide), log_p(wide), surprise(wide);
  const float share = job.policy / static_cast<float>(job.rows), bonus = job.entropy / static_cast<float>(job.rows);
  for (std::size_t n = 0; n < job.rows; ++n) {
    critic_row(job, n, sum[1], d_values[n]);
    float* d = d_logits + n * job.num_actions;
    const float acted = job.acted ? job.acted[n] : 1.0f;
    if (acted == 0.0f) {
      std::fill_n(d, job.num_actions, 0.0f);
      ratios[n] = 1.0f;
      continue;
    }
    std::copy_n(job.logits + n * job.num_actions, job.num_actions, z.begin());
    const float top = top_of(z.data(), wide);
    for (std::size_t a = 0; a < wide; ++a)  // a forbidden action has no part in anything
      p[a] = z[a] - top < -87.0f ? 0.0f : exponential(z[a] - top);
    const float total = sum_of(p.data(), wide), whole = std::log(total), part = 1.0f / total;
    for (std::size_t a = 0; a < wide; ++a) {
      p[a] *= part;
      log_p[a] = z[a] - top - whole;
      surprise[a] = p[a] * log_p[a];
    }
    const float entropy = -sum_of(surprise.data(), wide);
    const std::size_t chosen = static_cast<std::size_t>(job.actions[n]);
    const float log_ratio = log_p[chosen] - job.log_probs[n], ratio = std::exp(log_ratio);
    const float advantage = job.advantages[n], weight = acted * job.weights[n % job.segments];
    const float free = advantage * ratio;
    const float held = advantage * std::min(std::max(ratio, 1.0f - job.clip), 1.0f + job.clip);
    const float slope = held < free ? 0.0f : share * weight * free;
    for (std::size_t a = 0; a < job.num_actions; ++a) d[a] = p[a] * (slope + bonus * acted * (log_p[a] + entropy));
    d[chosen] -= slope;
    ratios[n] = ratio;
    sum[0] -= static_cast<double>((held < free ? held : free) * weight);
    sum[2] += static_cast<double>(entropy * acted);
    sum[3] += static_cast<double>((ratio - 1.0f - log_ratio) * acted);
    sum[4] += std::abs(ratio - 1.0f) > job.clip ? static_cast<double>(acted) : 0.0;
  }
  for (std::size_t k = 0; k < sum.size(); ++k) means[k] = sum[k] / static_cast<double>(job.rows);
}

}  // namespace
}  // namespace gridmill::learn
