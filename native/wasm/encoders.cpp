// The encoders: bag and mlp by kernels, cnn and attend written out.
#include <cmath>

#include "core/tokens.hpp"
#include "learn/lanes.hpp"
#include "wasm/network.hpp"

namespace gridmill::wasm {
namespace {

// Calls found(place, slot, amount) for every token of a row that counts.
template <class Found>
void each_token(const Layout& layout, const std::uint8_t* token, std::size_t tokens, Found found) {
  const learn::BagLayout l = layout.tables();
  for (std::size_t i = 0; i < tokens && token[0] != kNoToken; ++i, token += kTokenBytes) {
    if (l.place[token[0]] < 0 || token[1] >= l.features) continue;
    const std::size_t key = std::size_t{token[1]} * 256 + token[2];
    if (l.slot[key] < 0) continue;
    found(static_cast<std::size_t>(l.place[token[0]]), static_cast<std::size_t>(l.slot[key]), l.amount[key]);
  }
}

class OfTokens : public Encoder {
 public:
  explicit OfTokens(const Spec& spec) : spec_(spec) {}
  void read(const Seen& seen) override {
    layout_ = Layout(spec_, seen);
    tokens_ = seen.obs_size / kTokenBytes;
  }

 protected:
  Spec spec_;
  Layout layout_;
  std::size_t tokens_ = 0;
};

class Bag final : public OfTokens {
 public:
  Bag(const PolicyConfig& config, const Spec& spec, const Tensors& tensors)
      : OfTokens(spec), hidden_(config.size()), bias_(tensors.take("encoder.bias", {hidden_})) {
    const TableSizes sizes(spec);
    const auto height = static_cast<std::size_t>(spec.window[0]), width = static_cast<std::size_t>(spec.window[1]);
    table_ = tensors.take("encoder.table", {sizes.places * sizes.slots, hidden_});
    const auto rows = tensors.take("encoder.rows", {height * sizes.slots, hidden_});
    const auto columns = tensors.take("encoder.columns", {width * sizes.slots, hidden_});
    const std::size_t cell = sizes.slots * hidden_;  // numbers of one place, row or column
    for (std::size_t r = 0; r < height; ++r)
      for (std::size_t c = 0; c < width; ++c)
        for (std::size_t k = 0; k < cell; ++k) {
          float& number = table_[(r * width + c) * cell + k];
          number = (number + rows[r * cell + k]) + columns[c * cell + k];
        }
  }
  void run(const void* obs, float* out) override {
    const learn::BagJob job{layout_.tables(), static_cast<const std::uint8_t*>(obs), 1, tokens_, hidden_};
    learn::best().bag_forward(job, table_.data(), bias_.data(), out);
  }

 private:
  std::size_t hidden_;
  std::vector<float> bias_, table_;
};

class Mlp final : public Encoder {
 public:
  Mlp(const PolicyConfig& config, const Spec& spec, const Tensors& tensors)
      : first_(tensors, "encoder.first", static_cast<std::size_t>(spec.obs_size), config.size(), true) {}
  void run(const void* obs, float* out) override { first_.run(static_cast<const float*>(obs), out); }

 private:
  Dense first_;
};

// A convolution without padding over [channels, height, width], with its ReLU.
class Convolution {
 public:
  Convolution(const Tensors& tensors, const std::string& name, std::size_t inputs, std::size_t outputs,
              std::size_t side, std::size_t stride)
      : inputs_(inputs),
        outputs_(outputs),
        side_(side),
        stride_(stride),
        weight_(tensors.take(name + ".weight", {outputs, inputs, side, side})),
        bias_(tensors.take(name + ".bias", {outputs})) {}

  std::size_t fits(std::size_t length) const { return (length - side_) / stride_ + 1; }
  void run(const std::vector<float>& in, std::size_t height, std::size_t width, std::vector<float>& out) const {
    const std::size_t rows = fits(height), columns = fits(width);
    out.assign(outputs_ * rows * columns, 0.0f);
    for (std::size_t o = 0; o < outputs_; ++o)
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
          out[(o * rows + r) * columns + c] =
              std::max(0.0f, at(in.data() + r * stride_ * width + c * stride_, height, width, o));
  }

 private:
  float at(const float* corner, std::size_t height, std::size_t width, std::size_t output) const {
    float sum = bias_[output];
    const float* weight = weight_.data() + output * inputs_ * side_ * side_;
    for (std::size_t i = 0; i < inputs_; ++i)
      for (std::size_t y = 0; y < side_; ++y)
        for (std::size_t x = 0; x < side_; ++x) sum += *weight++ * corner[(i * height + y) * width + x];
    return sum;
  }

  std::size_t inputs_, outputs_, side_, stride_;
  std::vector<float> weight_, bias_;
};

class Cnn final : public OfTokens {
 public:
  Cnn(const PolicyConfig& config, const Spec& spec, const Tensors& tensors)
      : OfTokens(spec),
        height_(static_cast<std::size_t>(spec.window[0])),
        width_(static_cast<std::size_t>(spec.window[1])),
        slots_(TableSizes(spec).slots),
        wide_(tensors, "encoder.wide", slots_, config.size() / 2, side(spec), 3),
        narrow_(tensors, "encoder.narrow", config.size() / 2, config.size() / 2, small(), 1),
        join_(tensors, "encoder.join", flat(config), config.size()),
        around_(tensors, "encoder.around", slots_, config.size()),
        picture_(slots_ * height_ * width_),
        nowhere_(slots_),
        beside_(config.size()) {}

  void run(const void* obs, float* out) override {
    std::fill(picture_.begin(), picture_.end(), 0.0f);
    std::fill(nowhere_.begin(), nowhere_.end(), 0.0f);
    const std::size_t cells = height_ * width_;
    const auto put = [&](std::size_t place, std::size_t slot, float value) {
      (place < cells ? picture_[slot * cells + place] : nowhere_[slot]) = value;
    };
    const auto* tokens = static_cast<const std::uint8_t*>(obs);
    // All that are there first, then the amounts, as the scatters of the original do.
    each_token(layout_, tokens, tokens_, [&](std::size_t place, std::size_t slot, float) { put(place, slot, 1.0f); });
    each_token(layout_, tokens, tokens_, [&](std::size_t place, std::size_t slot, float amount) {
      if (amount != 0) put(place, slot + 1, amount);
    });
    wide_.run(picture_, height_, width_, seen_);
    narrow_.run(seen_, wide_.fits(height_), wide_.fits(width_), flat_);
    join_.run(flat_.data(), out);
    around_.run(nowhere_.data(), beside_.data());
    for (std::size_t k = 0; k < beside_.size(); ++k) out[k] = std::max(0.0f, out[k] + beside_[k]);
  }

 private:
  static std::size_t side(const Spec& spec) {
    return static_cast<std::size_t>(std::min<std::int64_t>({5, spec.window[0], spec.window[1]}));
  }
  std::size_t small() const { return std::min({std::size_t{3}, wide_.fits(height_), wide_.fits(width_)}); }
  std::size_t flat(const PolicyConfig& config) const {
    return config.size() / 2 * narrow_.fits(wide_.fits(height_)) * narrow_.fits(wide_.fits(width_));
  }

  std::size_t height_, width_, slots_;
  Convolution wide_, narrow_;
  Dense join_, around_;
  std::vector<float> picture_, nowhere_, beside_, seen_, flat_;
};

class Attend final : public OfTokens {
 public:
  Attend(const PolicyConfig& config, const Spec& spec, const Tensors& tensors)
      : OfTokens(spec),
        hidden_(config.size()),
        heads_(static_cast<std::size_t>(config.heads)),
        latents_(static_cast<std::size_t>(config.latents)),
        place_(tensors.take("encoder.place", {TableSizes(spec).places, hidden_})),
        slot_(tensors.take("encoder.slot", {TableSizes(spec).slots, hidden_})),
        query_(tensors.take("encoder.latents", {latents_, hidden_})),
        mix_(tensors, "encoder.mix", hidden_, hidden_, true),
        key_(tensors, "encoder.key", hidden_, hidden_),
        value_(tensors, "encoder.value", hidden_, hidden_),
        join_(tensors, "encoder.join", latents_ * hidden_, hidden_, true),
        found_(latents_ * hidden_) {
    if (hidden_ % heads_ != 0)
      fail_at("$.config.hidden", "expected a multiple of heads = " + std::to_string(heads_) + ", got " +
                                     std::to_string(hidden_));
  }

  void run(const void* obs, float* out) override {
    embedded_.clear();
    each_token(layout_, static_cast<const std::uint8_t*>(obs), tokens_,
               [&](std::size_t place, std::size_t slot, float amount) {
                 const std::size_t next = std::min(slot + 1, slot_.size() / hidden_ - 1);
                 for (std::size_t k = 0; k < hidden_; ++k)
                   embedded_.push_back(place_[place * hidden_ + k] + slot_[slot * hidden_ + k] +
                                       slot_[next * hidden_ + k] * amount);
               });
    std::fill(found_.begin(), found_.end(), 0.0f);
    const std::size_t count = embedded_.size() / hidden_;
    if (count > 0) look(count);
    join_.run(found_.data(), out);
  }

 private:
  void look(std::size_t count) {
    mixed_.resize(count * hidden_);
    keys_.resize(count * hidden_);
    values_.resize(count * hidden_);
    weight_.resize(count);
    mix_.run(embedded_.data(), mixed_.data(), count);
    key_.run(mixed_.data(), keys_.data(), count);
    value_.run(mixed_.data(), values_.data(), count);
    const std::size_t part = hidden_ / heads_;
    for (std::size_t latent = 0; latent < latents_; ++latent)
      for (std::size_t head = 0; head < heads_; ++head) attend(count, latent * hidden_ + head * part, head * part, part);
  }

  // One head of one latent: a mean of values, weighted by how well their keys fit the query.
  void attend(std::size_t count, std::size_t at, std::size_t column, std::size_t part) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(part));
    float top = -std::numeric_limits<float>::infinity(), total = 0.0f;
    for (std::size_t i = 0; i < count; ++i) {
      float score = 0.0f;
      for (std::size_t k = 0; k < part; ++k) score += query_[at + k] * keys_[i * hidden_ + column + k];
      weight_[i] = score * scale;
      top = std::max(top, weight_[i]);
    }
    for (float& weight : weight_) {
      weight = learn::exponential(weight - top);
      total += weight;
    }
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < part; ++k)
        found_[at + k] += weight_[i] / total * values_[i * hidden_ + column + k];
  }

  std::size_t hidden_, heads_, latents_;
  std::vector<float> place_, slot_, query_;
  Dense mix_, key_, value_, join_;
  std::vector<float> found_, embedded_, mixed_, keys_, values_, weight_;
};

}  // namespace

std::unique_ptr<Encoder> make_encoder(const PolicyConfig& config, const Spec& spec, const Tensors& tensors) {
  const bool tokens = spec.kind == "tokens";
  const std::string name = config.encoder == "auto" ? (tokens ? "bag" : "mlp") : config.encoder;
  if (name == "mlp" && !tokens) return std::make_unique<Mlp>(config, spec, tensors);
  if (name == "bag" && tokens) return std::make_unique<Bag>(config, spec, tensors);
  if (name == "cnn" && tokens) return std::make_unique<Cnn>(config, spec, tensors);
  if (name == "attend" && tokens) return std::make_unique<Attend>(config, spec, tensors);
  fail_at("$.config.encoder", std::string("expected ") + (tokens ? "bag, cnn or attend" : "mlp") + " for " +
                                  (tokens ? "tokens" : "a vector") + " in a page, got '" + name.substr(0, 60) + "'");
}

}  // namespace gridmill::wasm
