// How a policy reads the bytes of token observations: src/gridmill/policy/spec.py, in C++. Spec is what a policy was
// trained on, by name; Layout reads the bytes of a world in the words of the policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.hpp"
#include "learn/kernels.hpp"
#include "wasm/observer.hpp"

namespace gridmill::wasm {

struct Spec {
  std::string kind;
  std::vector<std::string> actions, features, tags, vibes;
  std::int64_t obs_size = 0, num_tokens = 0;
  std::vector<std::int64_t> window;
  std::vector<double> normalizers;
  template <class Self>
  static auto fields() {
    return std::tuple{field("kind", &Self::kind, one_of({"tokens", "vector"}), "format of an observation"),
                      field("actions", &Self::actions, "names of the actions"),
                      field("obs_size", &Self::obs_size, between(0, 1 << 24), "numbers in a vector"),
                      field("num_tokens", &Self::num_tokens, between(0, 4096), "tokens per observation"),
                      field("window", &Self::window, between(0, 15), "rows and columns of the window"),
                      field("features", &Self::features, "names of the features"),
                      field("normalizers", &Self::normalizers, "normalizers of the features"),
                      field("tags", &Self::tags, "names of the tags"),
                      field("vibes", &Self::vibes, "names of the vibes")};
  }
  void check(const std::string& path) const;  // what decoding cannot see
};

// Tables from bytes to rows of an embedding, as learn::BagLayout reads them.
struct Layout {
  Layout() = default;
  Layout(const Spec& own, const Seen& seen);
  learn::BagLayout tables() const {
    return {place.data(), slot.data(), amount.data(), static_cast<std::int32_t>(slot.size() / 256), slots};
  }

  std::vector<std::int32_t> place, slot;
  std::vector<float> amount;
  std::int32_t places = 0, slots = 0;
};

// The sizes of a policy's own tables.
struct TableSizes {
  explicit TableSizes(const Spec& own);
  std::size_t places, slots;
};

}  // namespace gridmill::wasm
