// What torch has no fast form of on a CPU: sums of token embeddings, the gated scan, drawing actions, and the loss
// with its gradient. Plain loops over rows with no threads of their own: who calls them splits the rows. Results are
// the same bits on every instruction set; the slow and obvious forms stand in src/gridmill/policy/ and tests hold them
// equal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::learn {

// How a token becomes rows of the embedding table: row = place[location] * slots + slot[feature * 256 + value]. Where
// amount is not 0, the row after it counts too, times amount. Negative place or slot: the token is not looked at.
struct BagLayout {
  const std::int32_t* place;  // [256]
  const std::int32_t* slot;   // [features * 256]
  const float* amount;        // [features * 256]
  std::int32_t features, slots;
};

struct BagJob {
  BagLayout layout;
  const std::uint8_t* obs;  // [rows, tokens, 3], ended by kNoToken
  std::size_t rows, tokens, hidden;
};

// h = h + z (c - h) along time, h = 0 before a step that starts an episode; z is the sigmoid of the first half of a row
// of gates [time, rows, 2 hidden], c the tanh of the second. What else is passed is [time, rows, hidden].
struct ScanShape {
  std::size_t time, rows, hidden;
  const std::uint8_t* start;  // [time, rows]
};

struct SampleJob {
  const float* logits;        // [rows, actions]
  const std::uint8_t* masks;  // the same, or null
  std::size_t rows, actions;
  std::uint64_t seed, step, first_row;
};

// PPO's clipped surrogate, entropy bonus and critic for rows of segments that lie side by side: row n is of segment
// n % segments. `losses/ppo.py` has the formulas in plain torch.
struct PpoJob {
  std::size_t rows, num_actions, segments;
  const float* logits;  // [rows, num_actions], of forbidden actions far below all others
  const std::int32_t* actions;
  const float *values, *log_probs, *advantages, *returns, *old_values;  // [rows]
  const float* weights;                                                 // [segments]
  // [rows], or null where all are 1: what a row counts in everything but the critic's loss. One with 0 was acted by
  // somebody else; its ratio is 1.
  const float* acted;
  float policy, clip, entropy, value, value_clip;  // policy, entropy and value are weights, each of its own term
};

struct Kernels {
  // out [rows, hidden] becomes the larger of 0 and the sum of bias [hidden] and the rows
  void (*bag_forward)(const BagJob& job, const float* table, const float* bias, float* out);
  // added to d_table and d_bias, where out was above 0
  void (*bag_backward)(const BagJob& job, const float* out, const float* d_out, float* d_table, float* d_bias);
  void (*scan_forward)(const ScanShape& s, float* gates, const float* h0, float* h);  // gates become z and c
  void (*scan_backward)(const ScanShape& s, const float* gates, const float* h0, const float* h, const float* d_h,
                        float* d_gates, float* d_h0);
  void (*sample)(const SampleJob& job, std::int32_t* actions, float* log_probs);
  // Gradients of the loss by logits and values, the ratio of every row, and the means of: policy loss, value loss,
  // entropy, Schulman's estimate of the KL divergence, ratios beyond the clip.
  void (*ppo)(const PpoJob& job, float* d_logits, float* d_values, float* ratios, double* means);
};

extern const Kernels kPortable, kAvx2, kWide;  // the wide ones need Isa::avx512_base
const Kernels& best();

}  // namespace gridmill::learn
