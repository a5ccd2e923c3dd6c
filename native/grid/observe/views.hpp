// Other ways to look at a grid batch: tokens as names, observations as a dense box, a world as a list of
// objects. For people and policies that want them; the step never calls this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grid/grid.hpp"

namespace gridmill::grid {

struct NamedToken {
  std::optional<int> row, column;  // relative to the agent; none for a global token
  std::string feature;
  int value;
  std::string text;  // the value in words where it has some
};
std::vector<NamedToken> describe_row(const Program& program, const std::uint8_t* row);

// One channel per feature and one per tag; a global token fills its whole plane.
std::vector<std::string> dense_channels(const Vocabulary& vocabulary);
void write_dense(const Program& program, const std::uint8_t* rows, std::size_t num_rows, std::uint8_t* out);

struct SeenObject {
  std::string type, vibe;
  std::string facing;  // agents
  int row = 0, column = 0;
  int agent = -1, group = -1;  // -1: no agent
  int frozen = 0;              // agents: ticks left
  int converting = 0;          // machines: ticks until it is ready
  std::optional<int> uses;     // assemblers with a limit: uses left
  std::optional<std::string> collective;
  std::vector<std::string> tags;
  std::vector<std::pair<std::string, int>> inventory;
};
std::vector<SeenObject> inspect_world(const Program& program, const World& world, std::uint32_t tick);

}  // namespace gridmill::grid
