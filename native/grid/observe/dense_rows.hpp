// A row of tokens as a dense box, shared by the files that write rows and with internal linkage for the same reason as
// observe_rows.hpp. put_token() says what a token means; EightTokens does the same for many at a time.
// What a file brings, as `Boxes`: kVector, the bytes of its widest store, and put(), which writes tokens as long as
// whole vectors fit the row and returns the first one it left.
#pragma once

#include <cstring>

#include "core/tokens.hpp"
#include "grid/observe/window.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gridmill::grid {
namespace {

// With kAhead the same number of bytes behind them is asked for: the next box, while this one is written.
template <std::size_t kVector, bool kAhead = false>
__attribute__((always_inline)) inline void fill_bytes(std::uint8_t* out, std::uint8_t value, std::size_t bytes) {
  typedef std::uint8_t Vector __attribute__((vector_size(kVector), aligned(1), may_alias));
  if (bytes < kVector) {
    std::memset(out, value, bytes);
    return;
  }
  asm("" : "+r"(value));  // what is known to be 0 becomes a call of memset, whose `rep stosb` is slower for a box
  const Vector all = value - Vector{};
  std::uint8_t* const last = out + bytes - kVector;
  for (; out < last; out += kVector) {
    *reinterpret_cast<Vector*>(out) = all;
    if constexpr (kAhead) __builtin_prefetch(out + bytes, 1, 2);
  }
  *reinterpret_cast<Vector*>(last) = all;
}

// Rows are memory that Python can write to: whatever is no token of this window is passed over.
template <std::size_t kVector>
__attribute__((always_inline)) inline void put_token(const DenseForm& form, const std::uint8_t* token,
                                                     std::uint8_t* box) {
  const std::uint32_t feature = token[1], value = token[2], row = token[0] >> 4, column = token[0] & 15;
  if (feature >= form.features) return;
  std::uint8_t* const plane = box + feature * form.plane;
  if (token[0] == kGlobalLocation) return fill_bytes<kVector>(plane, token[2], form.plane);
  if (row >= form.height || column >= form.width) return;
  const std::uint32_t cell = row * form.width + column;
  plane[cell] = token[2];
  if (feature == form.tag && value < form.tags) box[(form.features + value) * form.plane + cell] = 1;
}

struct TokenByToken {
  static constexpr std::size_t kVector = 16;
  static const std::uint8_t* put(const DenseForm&, const std::uint8_t* token, const std::uint8_t*, const std::uint8_t*,
                                 std::uint8_t*) {
    return token;
  }
};

#if defined(__AVX2__)

// Every token is two stores, whether it is a tag or not: what is none writes its own byte again, which costs less than
// a wrong guess. For the same reason the last eight are always eight, the last token several times.
template <std::size_t kBytes>
struct EightTokens {
  static constexpr std::size_t kVector = kBytes;
  static constexpr std::uint32_t kPlace = 0xFFFFFF;  // in a box; the byte above it is what is written there

  static inline __m256i all(std::uint32_t number) { return _mm256_set1_epi32(static_cast<int>(number)); }

  // Location, feature and value of eight tokens as a 32-bit number each, from 28 bytes.
  static inline __m256i load(const std::uint8_t* tokens) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens + 12));
    const __m256i spread =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), spread);
  }

  static inline const std::uint8_t* put(const DenseForm& given, const std::uint8_t* token, const std::uint8_t* end,
                                        const std::uint8_t* row_end, std::uint8_t* box) {
    const DenseForm form = given;  // a copy that no store can change
    const __m256i count_up = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), byte = all(255);
    const __m256i features = all(form.features), tags = all(form.tags), tag = all(form.tag);
    const __m256i height = all(form.height << 16), width = all(form.width);
    const __m256i scale = all(form.plane | form.width << 16);
    for (; token < end && token + 28 <= row_end; token += 24) {
      const auto left = static_cast<int>((end - token) / 3);
      const __m256i lanes = _mm256_min_epi32(count_up, _mm256_set1_epi32(left - 1));
      const __m256i tokens = _mm256_permutevar8x32_epi32(load(token), lanes);
      const __m256i feature = _mm256_and_si256(_mm256_srli_epi32(tokens, 8), byte);
      const __m256i value = _mm256_srli_epi32(tokens, 16), column = _mm256_and_si256(tokens, all(15));
      const __m256i row = _mm256_and_si256(_mm256_slli_epi32(tokens, 12), all(0xF0000));  // in the upper half
      const __m256i inside = _mm256_and_si256(_mm256_cmpgt_epi32(height, row), _mm256_cmpgt_epi32(width, column));
      const __m256i known = _mm256_and_si256(inside, _mm256_cmpgt_epi32(features, feature));
      if (__builtin_expect(_mm256_movemask_epi8(known) != -1, 0)) {
        for (int i = 0; i < 8 && i < left; ++i) put_token<kVector>(form, token + 3 * i, box);
        continue;
      }
      // plane * feature + width * row + column
      const __m256i own = _mm256_add_epi32(_mm256_madd_epi16(_mm256_or_si256(row, feature), scale), column);
      const __m256i of_tag = _mm256_or_si256(row, _mm256_add_epi32(features, value));
      const __m256i tagged = _mm256_add_epi32(_mm256_madd_epi16(of_tag, scale), column);
      const __m256i is_tag = _mm256_and_si256(_mm256_cmpeq_epi32(feature, tag), _mm256_cmpgt_epi32(tags, value));
      const __m256i first = _mm256_or_si256(own, _mm256_slli_epi32(value, 24));
      const __m256i second = _mm256_blendv_epi8(first, _mm256_or_si256(tagged, all(1 << 24)), is_tag);
      alignas(32) std::uint32_t places[2][8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(places[0]), first);
      _mm256_store_si256(reinterpret_cast<__m256i*>(places[1]), second);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        box[places[0][i] & kPlace] = static_cast<std::uint8_t>(places[0][i] >> 24);
        box[places[1][i] & kPlace] = static_cast<std::uint8_t>(places[1][i] >> 24);
      }
    }
    return token < end ? token : end;
  }
};

#endif

// One row of `count` tokens and room for `num_tokens`.
template <class Boxes>
__attribute__((noinline)) void write_box(const DenseForm& form, const std::uint8_t* row, std::uint32_t count,
                                         std::uint32_t num_tokens, std::uint8_t* box) {
  fill_bytes<Boxes::kVector, true>(box, 0, form.bytes);
  const std::uint8_t *token = row, *const end = row + 3 * std::size_t{count};
  for (; token != end && token[0] == kGlobalLocation; token += 3) put_token<Boxes::kVector>(form, token, box);
  token = Boxes::put(form, token, end, row + 3 * std::size_t{num_tokens}, box);
  for (; token != end; token += 3) put_token<Boxes::kVector>(form, token, box);
}

template <class Boxes>
inline void write_boxes(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                        std::uint8_t* out) {
  for (std::size_t i = 0; i < num_rows; ++i, rows += 3 * std::size_t{num_tokens}, out += form.bytes) {
    std::uint32_t count = 0;
    while (count < num_tokens && rows[3 * count] != kNoToken) ++count;
    write_box<Boxes>(form, rows, count, num_tokens, out);
  }
}

}  // namespace
}  // namespace gridmill::grid
