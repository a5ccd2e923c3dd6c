// Tensors, dense layers and the cores.
#include "wasm/network.hpp"

#include "learn/lanes.hpp"
#include "learn/layers.hpp"

namespace gridmill::wasm {

void PolicyConfig::check(const std::string& path) const {
  if (hidden % 16 != 0) fail_at(path + ".hidden", "expected a multiple of 16, got " + std::to_string(hidden));
}

// ---- tensors

namespace {

std::string text_of(const std::vector<std::size_t>& shape) {
  std::string text;
  for (const auto side : shape) text += (text.empty() ? "" : ", ") + std::to_string(side);
  return "[" + text + "]";
}

}  // namespace

Tensors::Tensors(const Value& list, const std::string& path, const float* data, std::size_t count) {
  std::size_t used = 0;
  const auto& items = expect_list(list, path);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    const auto& pair = expect_list(items[i], at);
    if (pair.size() != 2) fail_at(at, "expected a name and a shape, got a list of " + std::to_string(pair.size()));
    Tensor tensor{{}, data + used, 1};
    for (const auto& side : expect_list(pair[1], at + "[1]")) {
      const std::int64_t size = decode_int(side, at + "[1]", between(0, 1 << 30));
      tensor.shape.push_back(static_cast<std::size_t>(size));
      if (size != 0 && tensor.count > count / static_cast<std::size_t>(size))
        fail_at(at, "expected at most the " + std::to_string(count) + " numbers in the file, got more");
      tensor.count *= static_cast<std::size_t>(size);
    }
    if (tensor.count > count - used)
      fail_at(at, "expected at most the " + std::to_string(count) + " numbers in the file, got more");
    used += tensor.count;
    all_[decode_text(pair[0], at + "[0]", {})] = std::move(tensor);
  }
  if (used != count)
    fail_at(path, "expected tensors of " + std::to_string(count) + " numbers, got " + std::to_string(used));
}

std::vector<float> Tensors::take(const std::string& name, const std::vector<std::size_t>& shape) const {
  const auto found = all_.find(name);
  if (found == all_.end()) fail_at("$.tensors", "expected a tensor `" + name + "`, got none");
  if (found->second.shape != shape)
    fail_at("$.tensors",
            "expected `" + name + "` of shape " + text_of(shape) + ", got " + text_of(found->second.shape));
  return {found->second.data, found->second.data + found->second.count};
}

// ---- a dense layer

Dense::Dense(const std::vector<float>& weight, std::vector<float> bias, std::size_t inputs, bool relu)
    : inputs_(inputs), relu_(relu), packed_(inputs * learn::padded(bias.size())), bias_(std::move(bias)) {
  learn::pack(weight.data(), bias_.size(), inputs, true, learn::best_layers().panel, packed_.data());
}

Dense::Dense(const Tensors& tensors, const std::string& name, std::size_t inputs, std::size_t outputs, bool relu)
    : Dense(tensors.take(name + ".weight", {outputs, inputs}), tensors.take(name + ".bias", {outputs}), inputs, relu) {}

void Dense::run(const float* x, float* out, std::size_t rows) const {
  learn::best_layers().dense_forward({rows, inputs_, bias_.size(), relu_}, x, packed_.data(), bias_.data(), out,
                                     nullptr);
}

// ---- cores

namespace {

constexpr std::uint8_t kGoesOn = 0;  // no step begins an episode: who asks clears the state

class NoCore final : public Core {
 public:
  void run(std::vector<float>&, float*) override {}
};

class Scan final : public Core {
 public:
  Scan(const Tensors& tensors, std::size_t hidden)
      : hidden_(hidden), into_(tensors, "core.into", hidden, 2 * hidden), gates_(2 * hidden), h_(hidden) {}
  std::size_t state_size() const override { return hidden_; }
  void run(std::vector<float>& x, float* state) override {
    into_.run(x.data(), gates_.data());
    learn::best().scan_forward({1, 1, hidden_, &kGoesOn}, gates_.data(), state, h_.data());
    for (std::size_t k = 0; k < hidden_; ++k) {
      x[k] += h_[k];
      state[k] = h_[k];
    }
  }

 private:
  std::size_t hidden_;
  Dense into_;
  std::vector<float> gates_, h_;
};

class Lstm final : public Core {
 public:
  Lstm(const Tensors& tensors, std::size_t hidden)
      : hidden_(hidden),
        into_(tensors, "core.into", hidden, 4 * hidden),
        back_(hidden * learn::padded(4 * hidden)),
        gates_(4 * hidden),
        h_(2 * hidden),
        cell_(2 * hidden) {
    learn::pack(tensors.take("core.back", {4 * hidden, hidden}).data(), 4 * hidden, hidden, true,
                learn::best_layers().panel, back_.data());
  }
  std::size_t state_size() const override { return 2 * hidden_; }
  void run(std::vector<float>& x, float* state) override {
    into_.run(x.data(), gates_.data());
    std::copy_n(state, hidden_, h_.data());
    std::copy_n(state + hidden_, hidden_, cell_.data());
    learn::best_layers().lstm_forward({1, 1, hidden_, &kGoesOn}, back_.data(), gates_.data(), h_.data(), cell_.data());
    std::copy_n(h_.data() + hidden_, hidden_, state);
    std::copy_n(cell_.data() + hidden_, hidden_, state + hidden_);
    std::copy_n(state, hidden_, x.data());
  }

 private:
  std::size_t hidden_;
  Dense into_;
  std::vector<float> back_, gates_, h_, cell_;
};

class Gru final : public Core {
 public:
  Gru(const Tensors& tensors, std::size_t hidden)
      : hidden_(hidden),
        into_(tensors, "core.into", hidden, 3 * hidden),
        back_(tensors, "core.back", hidden, 3 * hidden),
        in_(3 * hidden),
        from_(3 * hidden) {}
  std::size_t state_size() const override { return hidden_; }
  void run(std::vector<float>& x, float* h) override {
    into_.run(x.data(), in_.data());
    back_.run(h, from_.data());
    const float *reset = in_.data(), *update = reset + hidden_, *fresh = update + hidden_;
    const float *back_reset = from_.data(), *back_update = back_reset + hidden_, *back_fresh = back_update + hidden_;
    for (std::size_t k = 0; k < hidden_; ++k) {
      const float z = learn::sigmoid(update[k] + back_update[k]);
      const float open = learn::sigmoid(reset[k] + back_reset[k]);
      h[k] = z * h[k] + (1.0f - z) * learn::tanh_of(fresh[k] + open * back_fresh[k]);
      x[k] = h[k];
    }
  }

 private:
  std::size_t hidden_;
  Dense into_, back_;
  std::vector<float> in_, from_;
};

}  // namespace

std::unique_ptr<Core> make_core(const PolicyConfig& config, const Tensors& tensors) {
  const std::size_t hidden = config.size();
  if (config.core == "none") return std::make_unique<NoCore>();
  if (config.core == "scan") return std::make_unique<Scan>(tensors, hidden);
  if (config.core == "lstm") return std::make_unique<Lstm>(tensors, hidden);
  if (config.core == "gru") return std::make_unique<Gru>(tensors, hidden);
  fail_at("$.config.core", "expected none, scan, lstm or gru in a page, got '" + config.core.substr(0, 60) + "'");
}

}  // namespace gridmill::wasm
