// The kernels of learn/ for Python: functions on arrays (NumPy's or torch's), sizes checked, the GIL released.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/bindings.hpp"
#include "learn/kernels.hpp"
#include "learn/layers.hpp"
#include "learn/visible_agents.hpp"

namespace gridmill {

namespace nb = nanobind;

namespace {

template <class T, class... Shape>
using Cpu = nb::ndarray<T, Shape..., nb::c_contig, nb::device::cpu>;
using Floats2 = Cpu<const float, nb::ndim<2>>;
using Floats3 = Cpu<const float, nb::ndim<3>>;
using Out2 = Cpu<float, nb::ndim<2>>;
using Out3 = Cpu<float, nb::ndim<3>>;
using Bytes2 = Cpu<const std::uint8_t, nb::ndim<2>>;

void expect_size(const char* name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(expected) + " elements, got " +
                                std::to_string(got));
}

// Where tokens find their rows of the table; checked once, so that no observation can lead outside of it.
class TokenBag {
 public:
  TokenBag(const std::vector<std::int32_t>& place, const std::vector<std::int32_t>& slot,
           const std::vector<float>& amount, std::int32_t slots)
      : place_(place), slot_(slot), amount_(amount), slots_(slots) {
    expect_size("place", place.size(), 256);
    expect_size("amount", amount.size(), slot.size());
    if (slots > kMost) throw std::invalid_argument("slots: expected at most 32767");
    if (slots < 1 || slot.empty() || slot.size() % 256 != 0)
      throw std::invalid_argument("slot: expected 256 per feature");
    for (const std::int32_t p : place) {
      if (p > kMost) throw std::invalid_argument("place: expected at most 32767");
      places_ = std::max(places_, p + 1);
    }
    for (std::size_t i = 0; i < slot.size(); ++i)
      if (slot[i] >= slots - (amount[i] != 0)) throw std::invalid_argument("slot: expected less than slots");
  }

  std::size_t table_rows() const { return static_cast<std::size_t>(places_) * static_cast<std::size_t>(slots_); }

  void forward(const Cpu<const std::uint8_t, nb::ndim<3>>& obs, const Floats2& table,
               const Cpu<const float, nb::ndim<1>>& bias, const Out2& out) const {
    const learn::BagJob job = check(obs, table.shape(0), table.shape(1), out.size());
    expect_size("bias", bias.size(), table.shape(1));
    learn::best().bag_forward(job, table.data(), bias.data(), out.data());
  }
  void backward(const Cpu<const std::uint8_t, nb::ndim<3>>& obs, const Floats2& out, const Floats2& d_out,
                const Out2& d_table, const Cpu<float, nb::ndim<1>>& d_bias) const {
    const learn::BagJob job = check(obs, d_table.shape(0), d_table.shape(1), d_out.size());
    expect_size("out", out.size(), d_out.size());
    expect_size("d_bias", d_bias.size(), d_table.shape(1));
    learn::best().bag_backward(job, out.data(), d_out.data(), d_table.data(), d_bias.data());
  }

 private:
  static constexpr std::int32_t kMost = 32767;  // place * slots + slot is no overflow

  template <class Obs>
  learn::BagJob check(const Obs& obs, std::size_t table, std::size_t hidden, std::size_t out) const {
    if (obs.shape(2) != 3) throw std::invalid_argument("obs: expected tokens of 3 bytes");
    if (hidden == 0 || hidden % 16 != 0) throw std::invalid_argument("hidden: expected a multiple of 16");
    expect_size("table rows", table, table_rows());
    expect_size("rows", out, obs.shape(0) * hidden);
    const learn::BagLayout layout{place_.data(), slot_.data(), amount_.data(),
                                  static_cast<std::int32_t>(slot_.size() / 256), slots_};
    return {layout, obs.data(), obs.shape(0), obs.shape(1), hidden};
  }

  std::vector<std::int32_t> place_, slot_;
  std::vector<float> amount_;
  std::int32_t slots_, places_ = 0;
};

learn::ScanShape scan_shape(const Bytes2& start, std::size_t time, std::size_t rows, std::size_t hidden) {
  expect_size("start", start.size(), time * rows);
  return {time, rows, hidden, start.data()};
}

using Floats1 = Cpu<const float, nb::ndim<1>>;
using Out1 = Cpu<float, nb::ndim<1>>;

void pack(const Floats2& matrix, bool transposed, const Out1& packed) {
  const std::size_t inner = matrix.shape(transposed ? 1 : 0), columns = matrix.shape(transposed ? 0 : 1);
  expect_size("packed", packed.size(), inner * learn::padded(columns));
  learn::pack(matrix.data(), matrix.shape(0), matrix.shape(1), transposed, learn::best_layers().panel, packed.data());
}

// With `last` (and d_last) the last output lies there and `out` holds the others.
void dense_forward(const Floats2& x, const Floats1& transposed, const Floats1& bias, bool relu, const Out2& out,
                   const std::optional<Out1>& last) {
  const learn::DenseShape shape{x.shape(0), x.shape(1), bias.size(), relu};
  if (shape.outputs == 0) throw std::invalid_argument("bias: expected at least one output");
  if (last && relu) throw std::invalid_argument("relu: expected none when the last output is separate");
  expect_size("packed", transposed.size(), shape.inputs * learn::padded(shape.outputs));
  expect_size("out", out.size(), shape.rows * (shape.outputs - (last ? 1 : 0)));
  if (last) expect_size("last", last->size(), shape.rows);
  learn::best_layers().dense_forward(shape, x.data(), transposed.data(), bias.data(), out.data(),
                                     last ? last->data() : nullptr);
}

void dense_backward(const Floats2& x, const std::optional<Floats2>& out, const Floats2& d_out,
                    const std::optional<Floats1>& d_last, const std::optional<Floats1>& packed,
                    const std::optional<Out2>& d_x, const Out2& d_weight, const Out1& d_bias) {
  const learn::DenseShape shape{x.shape(0), x.shape(1), d_bias.size(), out.has_value()};
  if (shape.outputs == 0) throw std::invalid_argument("d_bias: expected at least one output");
  if (d_last && out) throw std::invalid_argument("out: expected none when the last output is separate");
  expect_size("d_out", d_out.size(), shape.rows * (shape.outputs - (d_last ? 1 : 0)));
  expect_size("d_weight", d_weight.size(), shape.outputs * shape.inputs);
  if (d_last) expect_size("d_last", d_last->size(), shape.rows);
  if (out) expect_size("out", out->size(), d_out.size());
  if (d_x) {
    expect_size("packed", packed ? packed->size() : 0, shape.outputs * learn::padded(shape.inputs));
    expect_size("d_x", d_x->size(), x.size());
  }
  learn::best_layers().dense_backward(shape, x.data(), out ? out->data() : nullptr, d_out.data(),
                                      d_last ? d_last->data() : nullptr, packed ? packed->data() : nullptr,
                                      d_x ? d_x->data() : nullptr, d_weight.data(), d_bias.data());
}

learn::LstmShape lstm_shape(const Bytes2& start, std::size_t hidden, std::size_t gates, std::size_t cell) {
  const std::size_t time = start.shape(0), rows = start.shape(1);
  expect_size("gates", gates, 4 * time * rows * hidden);
  expect_size("cell", cell, (time + 1) * rows * hidden);
  return {time, rows, hidden, start.data()};
}

void ppo_loss(const Floats2& logits, const Floats1& values, const Cpu<const std::int32_t, nb::ndim<1>>& actions,
              const std::array<Floats1, 5>& rows, const std::optional<Floats1>& acted,
              const std::array<float, 5>& numbers, const Out2& d_logits, const Out1& d_values, const Out1& ratios,
              const Cpu<double, nb::ndim<1>>& means) {
  const auto& [log_probs, advantages, returns, old_values, weights] = rows;
  const std::size_t count = logits.shape(0), num_actions = logits.shape(1);
  for (const std::size_t size : {values.size(), actions.size(), log_probs.size(), advantages.size(), returns.size(),
                                 old_values.size(), d_values.size(), ratios.size()})
    expect_size("rows", size, count);
  expect_size("d_logits", d_logits.size(), logits.size());
  expect_size("means", means.size(), 5);
  if (acted) expect_size("acted", acted->size(), count);
  if (weights.size() == 0 || count % weights.size() != 0)
    throw std::invalid_argument("weights: expected one for each segment");
  for (std::size_t n = 0; n < count; ++n)
    if (actions.data()[n] < 0 || static_cast<std::size_t>(actions.data()[n]) >= num_actions)
      throw std::invalid_argument("actions: expected 0 to " + std::to_string(num_actions - 1) + ", got " +
                                  std::to_string(actions.data()[n]));
  const auto [policy, clip, entropy, value, value_clip] = numbers;
  learn::best().ppo({count, num_actions, weights.size(), logits.data(), actions.data(), values.data(), log_probs.data(),
                     advantages.data(), returns.data(), old_values.data(), weights.data(),
                     acted ? acted->data() : nullptr, policy, clip, entropy, value, value_clip},
                    d_logits.data(), d_values.data(), ratios.data(), means.data());
}

}  // namespace

void bind_learn(nb::module_& m) {
  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TokenBag>(m, "TokenBag")
      .def(nb::init<const std::vector<std::int32_t>&, const std::vector<std::int32_t>&, const std::vector<float>&,
                    std::int32_t>(),
           nb::arg("place"), nb::arg("slot"), nb::arg("amount"), nb::arg("slots"))
      .def_prop_ro("table_rows", &TokenBag::table_rows)
      .def("forward", &TokenBag::forward, nb::arg("obs"), nb::arg("table"), nb::arg("bias"), nb::arg("out").noconvert(),
           Free())
      .def("backward", &TokenBag::backward, nb::arg("obs"), nb::arg("out"), nb::arg("d_out"),
           nb::arg("d_table").noconvert(), nb::arg("d_bias").noconvert(), Free());
  m.def(
      "scan_forward",
      [](const Bytes2& start, const Out3& gates, const Floats2& h0, const Out3& h) {
        const learn::ScanShape shape = scan_shape(start, h.shape(0), h.shape(1), h.shape(2));
        expect_size("gates", gates.size(), 2 * h.size());
        expect_size("h0", h0.size(), shape.rows * shape.hidden);
        learn::best().scan_forward(shape, gates.data(), h0.data(), h.data());
      },
      nb::arg("start"), nb::arg("gates").noconvert(), nb::arg("h0"), nb::arg("h").noconvert(), Free());
  m.def(
      "scan_backward",
      [](const Bytes2& start, const Floats3& gates, const Floats2& h0, const Floats3& h, const Floats3& d_h,
         const Out3& d_gates, const Out2& d_h0) {
        const learn::ScanShape shape = scan_shape(start, h.shape(0), h.shape(1), h.shape(2));
        expect_size("gates", gates.size(), 2 * h.size());
        expect_size("d_gates", d_gates.size(), gates.size());
        expect_size("d_h", d_h.size(), h.size());
        expect_size("h0", h0.size(), shape.rows * shape.hidden);
        expect_size("d_h0", d_h0.size(), h0.size());
        learn::best().scan_backward(shape, gates.data(), h0.data(), h.data(), d_h.data(), d_gates.data(), d_h0.data());
      },
      nb::arg("start"), nb::arg("gates"), nb::arg("h0"), nb::arg("h"), nb::arg("d_h"), nb::arg("d_gates").noconvert(),
      nb::arg("d_h0").noconvert(), Free());
  m.def("fast_products", [] { return &learn::best_layers() != &learn::kPortableLayers; });
  m.def("pack", &pack, nb::arg("matrix"), nb::arg("transposed"), nb::arg("packed").noconvert(), Free());
  m.def("dense_forward", &dense_forward, nb::arg("x"), nb::arg("transposed"), nb::arg("bias"), nb::arg("relu"),
        nb::arg("out").noconvert(), nb::arg("last").noconvert().none(), Free());
  m.def("dense_backward", &dense_backward, nb::arg("x"), nb::arg("out").none(), nb::arg("d_out"),
        nb::arg("d_last").none(), nb::arg("packed").none(), nb::arg("d_x").noconvert().none(),
        nb::arg("d_weight").noconvert(), nb::arg("d_bias").noconvert(), Free());
  m.def(
      "lstm_forward",
      [](const Bytes2& start, const Floats1& transposed, const Out3& gates, const Out3& h, const Out3& cell) {
        const learn::LstmShape shape = lstm_shape(start, h.shape(2), gates.size(), cell.size());
        expect_size("packed", transposed.size(), shape.hidden * learn::padded(4 * shape.hidden));
        expect_size("h", h.size(), cell.size());
        learn::best_layers().lstm_forward(shape, transposed.data(), gates.data(), h.data(), cell.data());
      },
      nb::arg("start"), nb::arg("transposed"), nb::arg("gates").noconvert(), nb::arg("h").noconvert(),
      nb::arg("cell").noconvert(), Free());
  m.def(
      "lstm_backward",
      [](const Bytes2& start, const Floats1& packed, const Floats3& gates, const Floats3& cell, const Floats3& d_h,
         const Out3& d_gates) {
        const learn::LstmShape shape = lstm_shape(start, d_h.shape(2), gates.size(), cell.size());
        expect_size("packed", packed.size(), 4 * shape.hidden * learn::padded(shape.hidden));
        expect_size("d_gates", d_gates.size(), gates.size());
        expect_size("d_h", 4 * d_h.size(), gates.size());
        learn::best_layers().lstm_backward(shape, packed.data(), gates.data(), cell.data(), d_h.data(), d_gates.data());
      },
      nb::arg("start"), nb::arg("packed"), nb::arg("gates"), nb::arg("cell"), nb::arg("d_h"),
      nb::arg("d_gates").noconvert(), Free());
  m.def(
      "sample_actions",
      [](const Floats2& logits, const std::optional<Bytes2>& masks, std::uint64_t seed, std::uint64_t step,
         std::uint64_t first_row, const Cpu<std::int32_t, nb::ndim<1>>& actions,
         const Cpu<float, nb::ndim<1>>& log_probs) {
        if (logits.shape(1) == 0) throw std::invalid_argument("logits: expected at least one action");
        if (masks) expect_size("masks", masks->size(), logits.size());
        expect_size("actions", actions.size(), logits.shape(0));
        expect_size("log_probs", log_probs.size(), logits.shape(0));
        const learn::SampleJob job{
            logits.data(), masks ? masks->data() : nullptr, logits.shape(0), logits.shape(1), seed, step, first_row};
        learn::best().sample(job, actions.data(), log_probs.data());
      },
      nb::arg("logits"), nb::arg("masks").none(), nb::arg("seed"), nb::arg("step"), nb::arg("first_row"),
      nb::arg("actions").noconvert(), nb::arg("log_probs").noconvert(), Free());
  m.def(
      "sum_visible",
      [](const Cpu<const std::uint8_t, nb::ndim<4>>& obs, std::uint8_t feature, std::size_t world_rows,
         const Cpu<const std::int32_t, nb::ndim<1>>& place, const Floats2& numbers, const Out2& out) {
        if (obs.shape(3) != 3) throw std::invalid_argument("obs: expected tokens of 3 bytes");
        if (world_rows == 0 || obs.shape(1) % world_rows != 0)
          throw std::invalid_argument("world_rows: expected a divisor of the rows");
        for (std::size_t i = 0; i < place.size(); ++i)
          if (place.data()[i] < -1 || place.data()[i] >= static_cast<std::int64_t>(world_rows))
            throw std::invalid_argument("place: expected rows of a world, or -1");
        expect_size("numbers", numbers.size(), obs.shape(0) * obs.shape(1));
        expect_size("out", out.size(), numbers.size());
        learn::sum_visible(
            {obs.data(), obs.shape(0), obs.shape(1), obs.shape(2), feature, world_rows, place.data(), place.size()},
            numbers.data(), out.data());
      },
      nb::arg("obs"), nb::arg("feature"), nb::arg("world_rows"), nb::arg("place"), nb::arg("numbers"),
      nb::arg("out").noconvert(), Free());
  m.def("ppo_loss", &ppo_loss, nb::arg("logits"), nb::arg("values"), nb::arg("actions"), nb::arg("rows"),
        nb::arg("acted").none(), nb::arg("numbers"), nb::arg("d_logits").noconvert(), nb::arg("d_values").noconvert(),
        nb::arg("ratios").noconvert(), nb::arg("means").noconvert(), Free());
}

}  // namespace gridmill
