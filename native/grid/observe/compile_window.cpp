// The window as tables: cells in the order of observation, and what each path of observation looks up per cell.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "grid/compile.hpp"

namespace gridmill::grid {

Window compile_window(const Observation& o, std::uint32_t stride) {
  Window w;
  std::memset(&w, 0, sizeof w);
  w.height = o.height;
  w.width = o.width;
  w.radius_rows = o.height / 2;
  w.radius_columns = o.width / 2;
  for (std::size_t i = 0; i < 256; ++i) w.numbers[i] = static_cast<std::uint8_t>(i);
  std::fill(std::begin(w.rank_of), std::end(w.rank_of), std::uint8_t{255});
  struct Offset {
    int row, column;
  };
  std::vector<Offset> cells;
  const int r = w.radius_rows;
  for (int row = -w.radius_rows; row <= w.radius_rows; ++row)
    for (int column = -w.radius_columns; column <= w.radius_columns; ++column) {
      const int d2 = row * row + column * column;
      const bool rim = r >= 2 && d2 == r * r + 1 && (std::abs(row) == r || std::abs(column) == r);
      if (o.window == "square" || d2 <= r * r || rim) cells.push_back({row, column});
    }
  std::stable_sort(cells.begin(), cells.end(), [](const Offset& a, const Offset& b) {
    return std::abs(a.row) + std::abs(a.column) < std::abs(b.row) + std::abs(b.column);
  });
  w.num_ranks = static_cast<std::uint32_t>(cells.size());
  w.num_words = (w.num_ranks + 63) / 64;
  for (std::size_t byte = 0; byte < 64; ++byte)
    w.spread[byte] = static_cast<std::uint8_t>(byte % 3 == 0 ? byte / 3 : 0x80);
  for (std::size_t rank = 0; rank < cells.size(); ++rank) {
    const auto location =
        static_cast<std::uint8_t>((cells[rank].row + w.radius_rows) << 4 | (cells[rank].column + w.radius_columns));
    w.location[rank] = location;
    w.rank_of[location] = static_cast<std::uint8_t>(rank);
    w.inside[location >> 6] |= std::uint64_t{1} << (location & 63);
    w.picture_byte[rank] = location >> 3;
    w.picture_bit[rank] = static_cast<std::uint8_t>(1u << (location & 7));
    const std::uint32_t row = location >> 4, at = 8 * (row & 3) + 2 * (row >> 2) + (location >> 3 & 1);
    w.half_byte[at >> 4][rank] = static_cast<std::uint8_t>(at & 15);
    w.half_byte[at >> 4 ^ 1][rank] = 0x80;
    w.cell_delta[rank] = cells[rank].row * static_cast<std::int32_t>(stride) + cells[rank].column;
    std::uint8_t pattern[16] = {};
    for (int byte = 0; byte < 16; byte += 3) pattern[byte] = location;
    std::memcpy(w.pattern[rank], pattern, 16);
  }
  return w;
}

}  // namespace gridmill::grid
