// Whether bytes that claim to be a saved world may be put back: what all games have in common, and a place to try it.
// The rest is said by the game (check_state in core/game.hpp) and by each script (check_memory in core/script.hpp).
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/buffers.hpp"
#include "core/game.hpp"
#include "core/snapshot.hpp"

namespace gridmill {

// Worlds are saved between steps: those that ended have begun anew, and a batch with one that failed saves none.
// `full`: ticks of a whole episode; 0: no limit.
inline void check_header(const WorldHeader& h, std::uint32_t full) {
  expect_state(h.ended == 0, "its episode has ended");
  expect_state(h.failed == 0, "it failed in the middle of a tick");
  expect_state(h.desynced <= 1, "desynced is neither 0 nor 1");
  if (full == 0) return;
  if (h.max_steps == 0 || h.max_steps > full || (h.desynced != 0) != (h.max_steps < full))
    throw BadState("its episode has " + std::to_string(h.max_steps) + " ticks, but episodes of its game have " +
                   std::to_string(full));
  if (h.tick >= h.max_steps)
    throw BadState("tick " + std::to_string(h.tick) + " is after the last tick, " + std::to_string(h.max_steps));
}

template <class Obs>
void check_rows(const Rows<Obs>& rows, const Shape& shape) {
  const auto only_bits = [](const void* from, std::size_t count, const char* what) {
    const auto* bytes = static_cast<const unsigned char*>(from);
    expect_state(std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte <= 1; }), what);
  };
  only_bits(rows.terminals, shape.num_agents, "terminals contain a value that is neither 0 nor 1");
  only_bits(rows.truncations, shape.num_agents, "truncations contain a value that is neither 0 nor 1");
  if (rows.masks != nullptr)
    only_bits(rows.masks, shape.num_agents * shape.num_actions, "masks contain a value that is neither 0 nor 1");
  expect_finite(rows.rewards, shape.num_agents, "rewards");
  if constexpr (std::is_floating_point_v<Obs>) {
    expect_finite(rows.obs, shape.num_agents * shape.obs_size(), "observations");
    expect_finite(rows.final_obs, shape.num_agents * shape.obs_size(), "final observations");
  }
}

// Room for one world beside those of a batch.
template <class G>
class TrialWorld {
 public:
  TrialWorld(std::size_t bytes, const Shape& shape, bool with_masks)
      : bytes_(bytes),
        block_(bytes),
        buffers_(shape.num_agents, shape.obs_size(), shape.num_actions, with_masks, false, false, G::empty_obs) {}

  Rows<typename G::Obs> rows() const {
    const auto& b = buffers_;
    return {b.obs, b.final_obs, b.actions, b.rewards, b.terminals, b.truncations, b.masks, b.used, nullptr};
  }
  // A block as a world has it: zeros behind what is saved.
  std::byte* take(const char* saved, std::size_t size) {
    std::memset(block_.data(), 0, bytes_);
    std::memcpy(block_.data(), saved, size);
    return block_.data();
  }

 private:
  std::size_t bytes_;
  Pages block_;
  Buffers<typename G::Obs> buffers_;
};

}  // namespace gridmill
