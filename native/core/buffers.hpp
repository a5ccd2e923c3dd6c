// The arrays a batch shares with Python: one aligned allocation, owned by a shared_ptr that every view keeps
// alive, so an array someone holds stays readable after the batch is closed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/memory.hpp"

namespace gridmill {

template <class Obs>
class Buffers {
 public:
  Buffers(std::size_t rows_, std::size_t obs_size_, std::size_t num_actions_, bool with_masks, bool with_scripts,
          bool with_signal, Obs empty)
      : rows(rows_), obs_size(obs_size_), num_actions(num_actions_) {
    std::size_t at = 0;
    const auto place = [&at](std::size_t size) {
      const std::size_t here = at;
      at += (size + 63) / 64 * 64 + 64;  // a spare line between arrays: no false sharing
      return here;
    };
    const std::size_t o = place(rows * obs_size * sizeof(Obs)), f = place(rows * obs_size * sizeof(Obs)),
                      a = place(rows * sizeof(std::int32_t)), r = place(rows * sizeof(float)), t = place(rows),
                      u = place(rows), m = with_masks ? place(rows * num_actions) : 0,
                      n = place(rows * sizeof(std::uint16_t)),
                      d = with_scripts ? place(rows * sizeof(std::int32_t)) : 0,
                      s = with_signal ? place(rows * sizeof(float)) : 0;
    bytes = at;
    pages_ = Pages(at);
    std::byte* base = pages_.data();
    obs = reinterpret_cast<Obs*>(base + o);
    final_obs = reinterpret_cast<Obs*>(base + f);
    actions = reinterpret_cast<std::int32_t*>(base + a);
    rewards = reinterpret_cast<float*>(base + r);
    terminals = reinterpret_cast<bool*>(base + t);
    truncations = reinterpret_cast<bool*>(base + u);
    masks = with_masks ? reinterpret_cast<std::uint8_t*>(base + m) : nullptr;
    used = reinterpret_cast<std::uint16_t*>(base + n);
    decided = with_scripts ? reinterpret_cast<std::int32_t*>(base + d) : nullptr;
    signal = with_signal ? reinterpret_cast<float*>(base + s) : nullptr;
    std::fill_n(obs, rows * obs_size, empty);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  static std::size_t estimate(std::size_t rows, std::size_t obs_size, std::size_t num_actions, bool with_masks,
                              bool with_signal) {
    return rows * (2 * obs_size * sizeof(Obs) + 4 + 4 + 2 + 2 + (with_masks ? num_actions : 0) + (with_signal ? 4 : 0));
  }

  std::size_t rows, obs_size, num_actions, bytes = 0;
  Obs *obs, *final_obs;
  std::int32_t* actions;
  float* rewards;
  bool *terminals, *truncations;
  std::uint8_t* masks;
  std::uint16_t* used;    // how much of each obs row the last observation filled; the core's own
  std::int32_t* decided;  // what the script of each row would do next; nullptr without scripts
  float* signal;          // what is learned from; nullptr unless asked for

 private:
  Pages pages_;
};

// The rows of one world.
template <class Obs>
struct Rows {
  Obs *obs, *final_obs;
  const std::int32_t* actions;
  float* rewards;
  bool *terminals, *truncations;
  std::uint8_t* masks;  // nullptr when masks are off
  std::uint16_t* used;
  float* signal;                  // nullptr when nothing else is learned from
  std::uint8_t* dense = nullptr;  // the same as obs in a game's dense form, wherever someone wants it
};

}  // namespace gridmill
