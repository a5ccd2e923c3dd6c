// The parts of a policy (src/gridmill/policy/) for one row at a time: tensors by name, dense layers, encoders and
// cores. Bag, scan, LSTM, dense layers and the draw of an action are the portable kernels of learn/, so their numbers
// are those of GRIDMILL_ISA=portable to the bit; `cnn`, `attend` and `gru`, which have no kernel, are written out here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wasm/layout.hpp"

namespace gridmill::wasm {

struct PolicyConfig {
  std::string encoder = "auto", core = "scan", init_from;
  std::int64_t hidden = 128, layers = 1, latents = 8, heads = 4;
  bool name_agents = false;
  double actor_gain = 0.01;  // of the initial weights
  template <class Self>
  static auto fields() {
    return std::tuple{field("encoder", &Self::encoder, "kind of encoder"),
                      field("core", &Self::core, "kind of memory over time"),
                      field("hidden", &Self::hidden, between(16, 4096), "width of the layers"),
                      field("layers", &Self::layers, between(0, 8), "dense layers after the encoder's first"),
                      field("latents", &Self::latents, between(1, 64), "latents of the encoder `attend`"),
                      field("heads", &Self::heads, between(1, 64), "heads of the encoder `attend`"),
                      field("name_agents", &Self::name_agents, "whether agents have words of their own"),
                      field("actor_gain", &Self::actor_gain, "gain of the actor's initial weights"),
                      field("init_from", &Self::init_from, "where its weights came from")};
  }
  std::size_t size() const { return static_cast<std::size_t>(hidden); }
  void check(const std::string& path) const;
};

// The weights of a file by name, taken with the shape that the network wants.
class Tensors {
 public:
  // `list`: [[name, [side, ...]], ...], whose numbers lie one behind the other.
  Tensors(const Value& list, const std::string& path, const float* data, std::size_t count);
  std::vector<float> take(const std::string& name, const std::vector<std::size_t>& shape) const;

 private:
  struct Tensor {
    std::vector<std::size_t> shape;
    const float* data;
    std::size_t count;
  };
  std::map<std::string, Tensor> all_;
};

class Dense {
 public:
  Dense(const Tensors& tensors, const std::string& name, std::size_t inputs, std::size_t outputs, bool relu = false);
  Dense(const std::vector<float>& weight, std::vector<float> bias, std::size_t inputs, bool relu);
  void run(const float* x, float* out, std::size_t rows = 1) const;
  std::size_t outputs() const { return bias_.size(); }

 private:
  std::size_t inputs_;
  bool relu_;
  std::vector<float> packed_, bias_;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual void read(const Seen&) {}  // from now on the bytes of this world
  virtual void run(const void* obs, float* out) = 0;
};
std::unique_ptr<Encoder> make_encoder(const PolicyConfig& config, const Spec& spec, const Tensors& tensors);

class Core {
 public:
  virtual ~Core() = default;
  virtual std::size_t state_size() const { return 0; }
  // x becomes what the heads see; state is replaced by the next one.
  virtual void run(std::vector<float>& x, float* state) = 0;
};
std::unique_ptr<Core> make_core(const PolicyConfig& config, const Tensors& tensors);

}  // namespace gridmill::wasm
