// The portable layers and those for wider CPUs are near each other (products round differently with fused
// multiply-adds), the dense one is the sum it says, and rows do not depend on their neighbours.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "check.hpp"
#include "core/isa.hpp"
#include "learn/drawn.hpp"
#include "learn/layers.hpp"

using namespace gridmill;
using namespace gridmill::learn;

namespace {

// All that this CPU can, also where GRIDMILL_ISA caps what is in force.
std::vector<const Layers*> forms() {
  std::vector<const Layers*> found{&kPortableLayers};
  if (isa_of_cpu() >= Isa::avx2) found.push_back(&kAvx2Layers);
  if (isa_of_cpu() >= Isa::avx512_base) found.push_back(&kWideLayers);
  return found;
}

std::vector<float> packed_of(const Layers& form, const std::vector<float>& matrix, std::size_t rows,
                             std::size_t columns, bool transposed) {
  std::vector<float> packed((transposed ? columns : rows) * padded(transposed ? rows : columns), 9.0f);
  pack(matrix.data(), rows, columns, transposed, form.panel, packed.data());
  return packed;
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  bool all = a.size() == b.size();
  for (std::size_t k = 0; all && k < a.size(); ++k)
    all = std::abs(a[k] - b[k]) < 2e-4f * std::max(1.0f, std::abs(a[k]));
  return all;
}

std::vector<float> part(const std::vector<float>& x, std::size_t at, std::size_t size) {
  return {x.begin() + static_cast<std::ptrdiff_t>(at), x.begin() + static_cast<std::ptrdiff_t>(at + size)};
}

struct Dense {
  std::size_t rows, inputs, outputs;
  bool relu, last;
  std::vector<float> x = numbers(rows * inputs, 1), weight = numbers(outputs * inputs, 2), bias = numbers(outputs, 3);
  std::vector<float> d = numbers(rows * (outputs - last), 4), d_last = numbers(rows, 5);

  // out, last, d_x, d_weight, d_bias
  Arrays by(const Layers& form) const {
    const DenseShape shape{rows, inputs, outputs, relu};
    Arrays found{std::vector<float>(d.size()), std::vector<float>(rows), std::vector<float>(x.size(), 9.0f),
                 std::vector<float>(weight.size(), 9.0f), std::vector<float>(outputs, 9.0f)};
    form.dense_forward(shape, x.data(), packed_of(form, weight, outputs, inputs, true).data(), bias.data(),
                       found[0].data(), last ? found[1].data() : nullptr);
    form.dense_backward(shape, x.data(), found[0].data(), d.data(), last ? d_last.data() : nullptr,
                        packed_of(form, weight, outputs, inputs, false).data(), found[2].data(), found[3].data(),
                        found[4].data());
    return found;
  }

  // The same by loops in double precision; `out` decides where the ReLU was open.
  Arrays plainly(const std::vector<float>& out) const {
    const std::size_t others = outputs - last;
    std::vector<double> sum(rows * outputs), d_x(x.size()), d_weight(weight.size()), d_bias(outputs);
    for (std::size_t n = 0; n < rows; ++n)
      for (std::size_t j = 0; j < outputs; ++j) {
        double& here = sum[n * outputs + j];
        here = bias[j];
        for (std::size_t k = 0; k < inputs; ++k)
          here += static_cast<double>(x[n * inputs + k]) * static_cast<double>(weight[j * inputs + k]);
        double slope = j < others ? d[n * others + j] : d_last[n];
        if (relu && out[n * outputs + j] <= 0) slope = 0;
        d_bias[j] += slope;
        for (std::size_t k = 0; k < inputs; ++k) {
          d_x[n * inputs + k] += slope * static_cast<double>(weight[j * inputs + k]);
          d_weight[j * inputs + k] += slope * static_cast<double>(x[n * inputs + k]);
        }
        if (relu) here = std::max(0.0, here);
      }
    Arrays found(2);
    for (std::size_t n = 0; n < rows; ++n) {
      for (std::size_t j = 0; j < others; ++j) found[0].push_back(static_cast<float>(sum[n * outputs + j]));
      found[1].push_back(last ? static_cast<float>(sum[n * outputs + others]) : 0.0f);
    }
    for (const auto* exact : {&d_x, &d_weight, &d_bias}) found.emplace_back(exact->begin(), exact->end());
    return found;
  }
};

// Sizes around whole tiles, panels, blocks of rows and parts of long sums.
constexpr std::array<std::array<std::size_t, 3>, 9> kSizes{{{1, 1, 1},
                                                            {6, 16, 16},
                                                            {7, 37, 5},
                                                            {97, 64, 128},
                                                            {95, 260, 69},
                                                            {193, 161, 70},
                                                            {200, 7, 17},
                                                            {13, 330, 33},
                                                            {30, 128, 512}}};

void compare_lstms(std::size_t hidden, std::size_t rows, float scale) {
  constexpr std::size_t kTime = 4;
  const std::size_t step = rows * hidden;
  const auto start = bytes(kTime * rows, 17, 3);
  const LstmShape shape{kTime, rows, hidden, start.data()};
  const auto weight = numbers(4 * hidden * hidden, 18, 0.3f), gates = numbers(4 * kTime * step, 11, scale);
  const auto first = numbers((kTime + 1) * step, 12), d_h = numbers(kTime * step, 13);
  const auto work = [&](const Layers& form) {
    const auto transposed = packed_of(form, weight, 4 * hidden, hidden, true),
               packed = packed_of(form, weight, 4 * hidden, hidden, false);
    Arrays found{gates, first, first, std::vector<float>(4 * kTime * step)};
    form.lstm_forward(shape, transposed.data(), found[0].data(), found[1].data(), found[2].data());
    form.lstm_backward(shape, packed.data(), found[0].data(), found[2].data(), d_h.data(), found[3].data());
    return found;
  };
  const Arrays portable = work(kPortableLayers);
  for (const Layers* form : forms()) {
    const Arrays here = work(*form);
    for (std::size_t i = 0; i < portable.size(); ++i) CHECK(near(portable[i], here[i]));
  }
}

// A row's numbers are the same bits whichever rows are beside it, so that pieces of any size give the same.
void compare_lstm_rows(const Layers& form, std::size_t hidden) {
  constexpr std::size_t kRows = 9;
  const std::vector<std::uint8_t> start(kRows, 0);
  const auto weight = numbers(4 * hidden * hidden, 18, 0.3f), gates = numbers(4 * kRows * hidden, 11);
  const auto first = numbers(2 * kRows * hidden, 12), transposed = packed_of(form, weight, 4 * hidden, hidden, true);
  Arrays all{gates, first, first};
  form.lstm_forward({1, kRows, hidden, start.data()}, transposed.data(), all[0].data(), all[1].data(), all[2].data());
  for (std::size_t n = 0; n < kRows; ++n) {
    auto own_gates = part(gates, n * 4 * hidden, 4 * hidden), h = part(first, n * hidden, hidden), cell = h;
    h.resize(2 * hidden);
    cell.resize(2 * hidden);
    form.lstm_forward({1, 1, hidden, start.data()}, transposed.data(), own_gates.data(), h.data(), cell.data());
    CHECK(same(own_gates, part(all[0], n * 4 * hidden, 4 * hidden)));
    CHECK(same(part(h, hidden, hidden), part(all[1], (kRows + n) * hidden, hidden)));
  }
}

void compare_dense_rows(const Layers& form, std::size_t inputs, std::size_t outputs) {
  constexpr std::size_t kRows = 200;
  const auto x = numbers(kRows * inputs, 1), weight = numbers(outputs * inputs, 2), bias = numbers(outputs, 3);
  const auto transposed = packed_of(form, weight, outputs, inputs, true);
  std::vector<float> all(kRows * outputs), one(outputs);
  form.dense_forward({kRows, inputs, outputs, true}, x.data(), transposed.data(), bias.data(), all.data(), nullptr);
  for (std::size_t n = 0; n < kRows; ++n) {
    form.dense_forward({1, inputs, outputs, true}, x.data() + n * inputs, transposed.data(), bias.data(), one.data(),
                       nullptr);
    CHECK(same(one, part(all, n * outputs, outputs)));
  }
}

}  // namespace

TEST(learn_dense_layers_are_the_sums_they_say) {
  for (const auto& [rows, inputs, outputs] : kSizes)
    for (const bool last : {false, true}) {
      const Dense layer{rows, inputs, outputs, !last, last};
      for (const Layers* form : forms()) {
        const Arrays found = layer.by(*form), expected = layer.plainly(found[0]);
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(near(expected[i], found[i]));
      }
    }
}

TEST(learn_a_row_of_a_dense_layer_does_not_depend_on_its_neighbours) {
  for (const Layers* form : forms()) {
    compare_dense_rows(*form, 260, 128);
    compare_dense_rows(*form, kOdd, 69);
  }
}

TEST(learn_lstms_are_near_each_other_on_every_cpu) {
  for (const std::size_t hidden : {16, 48, 128, 144}) compare_lstms(hidden, 13, 4.0f);
  compare_lstms(kOdd, 1, 4.0f);
  compare_lstms(kOdd, 6, 200.0f);  // beyond where the exponential is cut off
}

TEST(learn_a_row_of_an_lstm_does_not_depend_on_its_neighbours) {
  for (const std::size_t hidden : {std::size_t{16}, kOdd, std::size_t{128}})
    for (const Layers* form : forms()) compare_lstm_rows(*form, hidden);
}
