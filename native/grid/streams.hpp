// The random streams of the grid engine: one number per use, so that two uses never draw the same numbers.
#pragma once

#include <cstdint>

namespace gridmill::grid {

constexpr std::uint32_t kMapStream = 1, kShuffleStream = 2, kChanceStream = 3, kEventStream = 4, kRelocateStream = 5;

}  // namespace gridmill::grid
