// A token of an observation is three bytes: location (row nibble, column nibble), feature, value. Shared by the grid,
// which writes them, and learning, which reads them. Plain data without the standard library, as kernels need it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill {

constexpr std::size_t kTokenBytes = 3;
constexpr std::uint8_t kGlobalLocation = 0xFE;  // of a token that belongs to no cell
constexpr std::uint8_t kNoToken = 0xFF;         // every byte behind a row's last token

}  // namespace gridmill
