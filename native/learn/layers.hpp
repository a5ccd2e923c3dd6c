// Layers that are made of matrix products, each in one call: a dense layer with its bias and its ReLU, and an LSTM
// along time. No threads of their own: who calls them splits the rows. A row's numbers do not depend on the rows beside
// it, so acting and learning agree to the bit. Products use fused multiply-adds where the CPU has AVX2, so their last
// bits depend on the CPU, as those of torch's products do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill::learn {

// A matrix [inner, columns] as products read it: columns in panels, each [inner, its width], the last of them as wide
// as whole lanes of 16 make it. Columns that do not exist are 0.
constexpr std::size_t padded(std::size_t columns) { return (columns + 15) / 16 * 16; }

struct DenseShape {
  std::size_t rows, inputs, outputs;
  bool relu;
};

struct LstmShape {
  std::size_t time, rows, hidden;
  const std::uint8_t* start;  // [time, rows]: before such a step h and cell are forgotten
};

// Weights are given packed: `transposed` is the transposed matrix, which a forward multiplies by, `packed` the matrix
// as it is. Weights are [outputs, inputs], those of an LSTM [4 hidden, hidden].
struct Layers {
  std::size_t panel;  // columns of a panel; weights are packed by it
  // The last of the outputs may lie in an array of its own, [rows]: `last` and `d_last`, else null. The others lie side
  // by side in `out` and `d_out`.
  void (*dense_forward)(const DenseShape& s, const float* x, const float* transposed, const float* bias, float* out,
                        float* last);
  // d_x may be null. `out` is looked at for the ReLU alone, which is not for outputs with a last one of their own.
  void (*dense_backward)(const DenseShape& s, const float* x, const float* out, const float* d_out, const float* d_last,
                         const float* packed, float* d_x, float* d_weight, float* d_bias);
  // gates [time, rows, 4 hidden] hold x W + b and become i, f, g, o after their functions; h and cell are [time + 1,
  // rows, hidden], of which the first step is given and the others are written.
  void (*lstm_forward)(const LstmShape& s, const float* transposed, float* gates, float* h, float* cell);
  // d_h [time, rows, hidden] comes from above; d_gates is written.
  void (*lstm_backward)(const LstmShape& s, const float* packed, const float* gates, const float* cell,
                        const float* d_h, float* d_gates);
};

extern const Layers kPortableLayers, kAvx2Layers, kWideLayers;  // the wide ones need Isa::avx512_base
const Layers& best_layers();

// Panels of a row-major matrix [rows, columns], or of its transpose: padded(columns of what is packed) * its rows.
inline void pack(const float* matrix, std::size_t rows, std::size_t columns, bool transposed, std::size_t panel,
                 float* packed) {
  constexpr std::size_t kStep = 16;  // of a transpose, by squares whose lines stay in the cache
  const std::size_t inner = transposed ? columns : rows, wide = transposed ? rows : columns;
  for (std::size_t first = 0; first < wide; first += panel) {
    const std::size_t there = wide - first < panel ? wide - first : panel, width = padded(there);
    for (std::size_t k = 0; k < inner; ++k) {
      for (std::size_t j = there; j < width; ++j) packed[k * width + j] = 0.0f;
      for (std::size_t j = 0; j < there && !transposed; ++j) packed[k * width + j] = matrix[k * columns + first + j];
    }
    for (std::size_t begin = 0; begin < inner && transposed; begin += kStep)
      for (std::size_t j = 0; j < there; ++j)
        for (std::size_t k = begin; k < inner && k < begin + kStep; ++k)
          packed[k * width + j] = matrix[(first + j) * columns + k];
    packed += inner * width;
  }
}

}  // namespace gridmill::learn
