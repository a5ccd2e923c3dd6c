// Products of rows with packed matrices (layers.hpp), kept in registers tile by tile. Included by files that are
// compiled once per instruction set; kRows and kTileLanes are theirs: how many rows and lanes of a product a tile has.
#pragma once

#include <array>
#include <limits>

#include "learn/lanes.hpp"
#include "learn/layers.hpp"

namespace gridmill::learn {
namespace {

static_assert(padded(1) == kWidth);
constexpr std::size_t kPanel = kTileLanes * kWidth;

// Numbers to be multiplied with a panel: number k of row r is at[r * row + k * step].
struct Factor {
  const float* at;
  std::size_t row, step;
  Factor from(std::size_t r) const { return {at + r * row, row, step}; }
};

// Rows of a result: they begin with what `start` holds (null: 0), and negative sums become 0 with `relu`.
struct ResultRows {
  const float* start;
  std::size_t start_row;
  float* out;
  std::size_t out_row;
  bool relu;
  ResultRows at(std::size_t r, std::size_t column) const {
    return {start ? start + r * start_row + column : nullptr, start_row, out + r * out_row + column, out_row, relu};
  }
};

// Sums are named by constants alone, which keeps them in registers.
template <std::size_t Rows, std::size_t Lanes>
inline void tile(const Factor& a, const float* panel, std::size_t inner, const ResultRows& result, std::size_t there) {
  constexpr std::size_t kColumns = Lanes * kWidth / kFloats;  // registers of a row
  const bool whole = there == Lanes * kWidth;
  const auto bytes = [&](std::size_t j) {
    return there <= j * kFloats ? 0 : std::min(kFloats, there - j * kFloats) * sizeof(float);
  };
  std::array<std::array<Register, kColumns>, Rows> sum;
#pragma GCC unroll 6
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kColumns; ++j) sum[r][j] = Register{};
  if (result.start && whole) {
#pragma GCC unroll 6
    for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kColumns; ++j)
        std::memcpy(&sum[r][j], result.start + r * result.start_row + j * kFloats, sizeof(Register));
  } else if (result.start) {
#pragma GCC unroll 6
    for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kColumns; ++j) {
        Register known{};
        std::memcpy(&known, result.start + r * result.start_row + j * kFloats, bytes(j));
        sum[r][j] = known;
      }
  }
  for (std::size_t first = 0; first < inner; first += kWidth) {
    if (a.step == 1) {  // what the next tile will read
#pragma GCC unroll 6
      for (std::size_t r = 0; r < Rows; ++r) __builtin_prefetch(a.at + (Rows + r) * a.row + first);
    }
    for (std::size_t k = first, end = std::min(inner, first + kWidth); k < end; ++k) {
      std::array<Register, kColumns> b;
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kColumns; ++j)
        std::memcpy(&b[j], panel + (k * kColumns + j) * kFloats, sizeof(Register));
#pragma GCC unroll 6
      for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (std::size_t j = 0; j < kColumns; ++j) sum[r][j] += a.at[r * a.row + k * a.step] * b[j];
    }
  }
  const Register least = Register{} + (result.relu ? 0.0f : -std::numeric_limits<float>::infinity());
#pragma GCC unroll 6
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kColumns; ++j) {
      const Register found = sum[r][j] < least ? least : sum[r][j];  // what is no number stays none
      float* to = result.out + r * result.out_row + j * kFloats;
      if (whole) std::memcpy(to, &found, sizeof found);
      else std::memcpy(to, &found, bytes(j));
    }
}

// The rows that are left when no whole tile fits.
template <std::size_t Rows, std::size_t Lanes>
inline void last_tile(std::size_t rows, const Factor& a, const float* panel, std::size_t inner,
                      const ResultRows& result, std::size_t there) {
  if constexpr (Rows > 0) {
    if (rows == Rows) tile<Rows, Lanes>(a, panel, inner, result, there);
    else last_tile<Rows - 1, Lanes>(rows, a, panel, inner, result, there);
  }
}

// One panel that has `there` columns in whole lanes: as many as a tile has, or fewer.
template <std::size_t Lanes = kTileLanes>
void times_panel(std::size_t rows, const Factor& a, const float* panel, std::size_t inner, const ResultRows& result,
                 std::size_t there) {
  if constexpr (Lanes > 1) {
    if (there <= (Lanes - 1) * kWidth) return times_panel<Lanes - 1>(rows, a, panel, inner, result, there);
  }
  std::size_t r = 0;
  for (; r + kRows <= rows; r += kRows) tile<kRows, Lanes>(a.from(r), panel, inner, result.at(r, 0), there);
  last_tile<kRows - 1, Lanes>(rows - r, a.from(r), panel, inner, result.at(r, 0), there);
}

// In blocks of rows that are read from far away once, and long sums in parts whose panel stays in the first cache. The
// order of additions is the same whatever the parts.
constexpr std::size_t kTogether = 192, kDeep = 160;

inline void times_panels(std::size_t rows, const Factor& a, const float* packed, std::size_t inner, std::size_t columns,
                         const ResultRows& result) {
  const std::size_t parts = std::max((inner + kDeep - 1) / kDeep, std::size_t{1});
  for (std::size_t r = 0; r < rows; r += kTogether)
    for (std::size_t first = 0; first < columns; first += kPanel)
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t there = std::min(kPanel, columns - first), k = inner * part / parts;
        const std::size_t end = inner * (part + 1) / parts;
        const ResultRows whole = result.at(r, first);
        const ResultRows here{part > 0 ? whole.out : whole.start, part > 0 ? whole.out_row : whole.start_row, whole.out,
                              whole.out_row, result.relu && part + 1 == parts};
        times_panel(std::min(kTogether, rows - r), {a.from(r).at + k * a.step, a.row, a.step},
                    packed + first * inner + k * padded(there), end - k, here, there);
      }
}

}  // namespace
}  // namespace gridmill::learn
