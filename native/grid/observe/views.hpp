// Other ways to look at a grid batch: tokens as names, observations as a dense box, a world as a list of
// objects. For people and policies that want them.
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
DenseForm dense_form(const Program& program);
void write_dense(const Program& program, const std::uint8_t* rows, std::size_t num_rows, std::uint8_t* out);

struct SeenNumbers;
bool look_at_cell(const Program& program, const World& world, std::uint32_t row, std::uint32_t column,
                  std::uint32_t tick, SeenNumbers& seen);  // false: there is nothing

// An object by numbers: places in the names of the program (types, resources) and of the batch (vibes, collectives,
// tags). One record serves for a whole world, so that looking at many objects does not ask for memory.
struct SeenNumbers {
  int object = -1;  // its number for as long as it is there; -1: terrain
  int type = 0, row = 0, column = 0;
  int vibe = -1, collective = -1;  // -1: none
  int agent = -1, group = -1, facing = -1, frozen = 0;
  int converting = 0, uses = -1;  // uses: -1 without a limit
  std::vector<int> tags;
  std::vector<std::pair<int, int>> inventory;  // resource, amount
};

template <class Visit>
void each_object(const Program& program, const World& world, std::uint32_t tick, Visit visit) {
  SeenNumbers seen;
  for (std::uint32_t r = 0; r < program.height; ++r)
    for (std::uint32_t c = 0; c < program.width; ++c)
      if (look_at_cell(program, world, r, c, tick, seen)) visit(seen);
}

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
