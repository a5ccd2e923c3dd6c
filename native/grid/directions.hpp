// The directions of the grid, in the one order that actions, facing and rules share.
#pragma once

#include <cstdint>
#include <string_view>

namespace gridmill::grid {

struct Direction {
  std::string_view name;
  std::int32_t row, column;
  std::uint8_t facing;  // a diagonal sets its north or south part
};
constexpr Direction kDirections[] = {
    {"north", -1, 0, 0},      {"south", 1, 0, 1},      {"west", 0, -1, 2},      {"east", 0, 1, 3},
    {"northwest", -1, -1, 0}, {"northeast", -1, 1, 0}, {"southwest", 1, -1, 1}, {"southeast", 1, 1, 1},
};
constexpr std::uint8_t kSouth = 1;
constexpr std::uint8_t kLeftOf[] = {2, 3, 1, 0};  // of the first four

// The names of the first four.
constexpr std::string_view kCompass[] = {kDirections[0].name, kDirections[1].name, kDirections[2].name,
                                         kDirections[3].name};

}  // namespace gridmill::grid
