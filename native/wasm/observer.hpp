// What those who play a world must know of it: the words of its observations, and when they are asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gridmill::wasm {

struct Seen {
  bool tokens = false;  // else vectors
  std::size_t num_agents = 0, obs_size = 0;  // obs_size: numbers of a row
  std::vector<std::string> actions;
  // Of tokens.
  std::int32_t window_height = 0, window_width = 0;
  std::vector<std::string> features;
  std::vector<double> normalizers;
  std::vector<std::string> tags, vibes;
};

// When somebody who remembers is asked: `moves` counts every change of the world, `story` those after which nothing
// that was seen before belongs to it (a new episode, a reset, a restored state).
struct Moment {
  std::uint64_t moves = 1, story = 1;
  bool operator==(const Moment&) const = default;
};

}  // namespace gridmill::wasm
