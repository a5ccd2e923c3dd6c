// Rows with AVX-512 (VBMI): 16 rows of the occupancy strip become a 256-bit picture in four instructions, and one byte
// permute and one bit test per 64 cells bring it into the order of observation. Compiled with its own flags.
#include "grid/observe/observe_rows.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gridmill::grid {

#if defined(__x86_64__) && defined(__AVX512VBMI2__)

namespace {
// Ten tokens in one store; their location is spread from its byte.
struct WideCopy {
  static inline void five(const Window& window, std::uint32_t rank, const std::uint8_t* tokens, std::uint8_t* out) {
    const __m128i location = _mm_maskz_set1_epi8(0x9249, static_cast<char>(window.location[rank]));
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_or_si128(location, bytes));
  }
  static inline void ten(const Window& window, std::uint32_t rank, const std::uint8_t* tokens, std::uint8_t* out) {
    const __m256i location = _mm256_maskz_set1_epi8(0x49249249, static_cast<char>(window.location[rank]));
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tokens));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(location, bytes));
  }
};

// Tokens of the most common tag, as those of walls, become two bit masks and four stores. The others are collected and
// stored one by one.
struct ManyTokens {
  static constexpr std::size_t kVector = 64;
  static constexpr std::size_t kMost = 80;           // at a time: _bzhi_u64 counts no further than 255 bytes
  static constexpr std::uint32_t kPlace = 0xFFFFFF;  // in a box; the byte above it has another meaning

  static inline __m512i all(std::uint32_t number) { return _mm512_set1_epi32(static_cast<int>(number)); }

  // Cells as bits: two words, as a window of up to 128 cells needs them.
  struct Cells {
    __m512i words[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    inline void add(__m512i cells, __mmask16 which) {
      const __m512i one = _mm512_set1_epi64(1), next = _mm512_set1_epi64(64);
      const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(cells));
      const __m512i high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(cells, 1));
      const auto of_low = static_cast<__mmask8>(which), of_high = static_cast<__mmask8>(which >> 8);
      // A shift by more than 63, or by less than 0, leaves nothing.
      words[0] = _mm512_or_si512(words[0], _mm512_maskz_sllv_epi64(of_low, one, low));
      words[0] = _mm512_or_si512(words[0], _mm512_maskz_sllv_epi64(of_high, one, high));
      words[1] = _mm512_or_si512(words[1], _mm512_maskz_sllv_epi64(of_low, one, _mm512_sub_epi64(low, next)));
      words[1] = _mm512_or_si512(words[1], _mm512_maskz_sllv_epi64(of_high, one, _mm512_sub_epi64(high, next)));
    }
    inline std::uint64_t word(int i) const { return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(words[i])); }
  };

  static inline void put_some(const DenseForm& form, const std::uint8_t* token, std::uint32_t count,
                              std::uint8_t* box) {
    alignas(64) std::uint32_t places[kMost + 16], tag_places[kMost + 16];
    std::uint32_t num_places = 0, num_tags = 0, unknown = 0;
    Cells common;
    const __m512i spread = _mm512_load_si512(kSpread), byte = all(255);
    const __m512i features = all(form.features), scale = all(form.plane | form.width << 16);
    for (std::uint32_t done = 0; done < count; done += 16) {
      const auto there = static_cast<__mmask16>(_bzhi_u32(0xFFFF, count - done));
      const __m512i bytes = _mm512_maskz_loadu_epi8(_bzhi_u64(0xFFFFFFFFFFFF, 3 * (count - done)), token + 3 * done);
      const __m512i tokens = _mm512_maskz_permutexvar_epi8(0x7777777777777777, spread, bytes);
      const __m512i feature = _mm512_and_si512(_mm512_srli_epi32(tokens, 8), byte);
      const __m512i value = _mm512_srli_epi32(tokens, 16), column = _mm512_and_si512(tokens, all(15));
      const __m512i row = _mm512_and_si512(_mm512_slli_epi32(tokens, 12), all(0xF0000));  // in the upper half
      const __mmask16 inside =
          _mm512_mask_cmplt_epu32_mask(_mm512_cmplt_epu32_mask(row, all(form.height << 16)), column, all(form.width));
      unknown |= there & ~_mm512_mask_cmplt_epu32_mask(inside, feature, features);
      const __mmask16 tag = _mm512_mask_cmpeq_epi32_mask(there, feature, all(form.tag));
      unknown |= _mm512_mask_cmpge_epu32_mask(tag, value, all(form.tags));
      const __mmask16 is_common = _mm512_mask_cmpeq_epi32_mask(tag, value, all(form.common));
      const auto other_tag = static_cast<__mmask16>(tag & ~is_common),
                 other = static_cast<__mmask16>(there & ~is_common);
      const __m512i cell = _mm512_add_epi32(_mm512_madd_epi16(row, scale), column);
      const __m512i own = _mm512_add_epi32(cell, _mm512_madd_epi16(feature, scale));
      const __m512i of_tag = _mm512_add_epi32(cell, _mm512_madd_epi16(_mm512_add_epi32(features, value), scale));
      common.add(cell, is_common);
      const __m512i put_value = _mm512_or_si512(own, _mm512_slli_epi32(value, 24));
      _mm512_storeu_si512(places + num_places, _mm512_maskz_compress_epi32(other, put_value));
      num_places += count_bits(other);
      const __m512i put_one = _mm512_or_si512(of_tag, _mm512_slli_epi32(cell, 24));
      _mm512_storeu_si512(tag_places + num_tags, _mm512_maskz_compress_epi32(other_tag, put_one));
      num_tags += count_bits(other_tag);
    }
    if (__builtin_expect(unknown != 0, 0)) return put_in_order(form, token, count, box);
    const std::uint64_t seen[2] = {common.word(0), common.word(1)};
    const __m512i ones = _mm512_set1_epi8(1), values = _mm512_set1_epi8(static_cast<char>(form.common));
    for (std::size_t word = 0; word < 2; ++word) {
      _mm512_mask_storeu_epi8(box + form.tag * form.plane + 64 * word, seen[word], values);
      _mm512_mask_storeu_epi8(box + (form.features + form.common) * form.plane + 64 * word, seen[word], ones);
    }
    repeat_last(places, num_places);
    for (std::uint32_t i = 0; i < num_places; i += 8)
#pragma GCC unroll 8
      for (std::uint32_t j = i; j < i + 8; ++j) box[places[j] & kPlace] = static_cast<std::uint8_t>(places[j] >> 24);
    repeat_last(tag_places, num_tags);
    std::uint64_t both = 0;
    for (std::uint32_t i = 0; i < num_tags; i += 8)
#pragma GCC unroll 8
      for (std::uint32_t j = i; j < i + 8; ++j) {
        const std::uint32_t cell = tag_places[j] >> 24;
        box[tag_places[j] & kPlace] = 1;
        both |= seen[cell >> 6] >> (cell & 63);
      }
    // Of several tags in one cell the last is shown: then the order counts.
    if (__builtin_expect(both & 1, 0)) put_in_order(form, token, count, box);
  }

  // So that whole eights can be stored: a wrong guess of their number costs more than a few stores.
  static inline void repeat_last(std::uint32_t* places, std::uint32_t count) {
    if (count == 0) return;
    const __m256i last = _mm256_set1_epi32(static_cast<int>(places[count - 1]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + count), last);
  }

  static void put_in_order(const DenseForm& form, const std::uint8_t* token, std::uint32_t count, std::uint8_t* box) {
    for (std::uint32_t i = 0; i < count; ++i) put_token<kVector>(form, token + 3 * i, box);
  }

  static inline const std::uint8_t* put(const DenseForm& given, const std::uint8_t* token, const std::uint8_t* end,
                                        const std::uint8_t* row_end, std::uint8_t* box) {
    const DenseForm form = given;  // a copy that no store can change
    if (form.plane > 128) return EightTokens<64>::put(form, token, end, row_end, box);
    while (token != end) {
      const auto left = static_cast<std::size_t>(end - token) / 3;
      const std::size_t count = left < kMost ? left : kMost;
      put_some(form, token, static_cast<std::uint32_t>(count), box);
      token += 3 * count;
    }
    return end;
  }

  alignas(64) static constexpr std::uint8_t kSpread[64] = {0,  1,  2,  0, 3,  4,  5,  0, 6,  7,  8,  0, 9,  10, 11, 0,
                                                           12, 13, 14, 0, 15, 16, 17, 0, 18, 19, 20, 0, 21, 22, 23, 0,
                                                           24, 25, 26, 0, 27, 28, 29, 0, 30, 31, 32, 0, 33, 34, 35, 0,
                                                           36, 37, 38, 0, 39, 40, 41, 0, 42, 43, 44, 0, 45, 46, 47, 0};
};

struct Avx512 {
  using Copy = WideCopy;
  using Boxes = ManyTokens;

  struct Run {
    static constexpr std::uint32_t kTokens = 21;
    static constexpr std::size_t kBytes = 64;
    explicit Run(const Window& window)
        : spread(_mm512_load_si512(window.spread)), tokens(_mm512_load_si512(window.plain)) {}
    void store(const std::uint8_t* places, std::uint8_t* out) const {
      const __m512i locations = _mm512_maskz_permutexvar_epi8(0x9249249249249249, spread, _mm512_loadu_si512(places));
      _mm512_storeu_si512(out, _mm512_or_si512(locations, tokens));
    }
    __m512i spread, tokens;
  };

  static inline void see(const Window& window, const std::uint64_t* rows, std::uint32_t shift, std::uint64_t* seen) {
    const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
    const __m128i top = _mm512_cvtepi64_epi16(_mm512_srl_epi64(_mm512_loadu_si512(rows), by));
    const __m128i bottom = _mm512_cvtepi64_epi16(_mm512_srl_epi64(_mm512_loadu_si512(rows + 8), by));
    const __m512i picture = _mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_castsi128_si256(top), bottom, 1));
    for (std::uint32_t word = 0; word < window.num_words; ++word) {
      const __m512i bytes = _mm512_permutexvar_epi8(_mm512_load_si512(window.picture_byte + 64 * word), picture);
      // Ranks beyond the window test bit 0 of their byte, i.e. no bit at all.
      seen[word] = _mm512_test_epi8_mask(bytes, _mm512_load_si512(window.picture_bit + 64 * word));
    }
  }

  static inline std::uint32_t gather(const std::uint8_t* table, const std::uint64_t* seen, std::uint32_t words,
                                     std::uint8_t* out) {
    std::uint32_t count = 0;
    for (std::uint32_t word = 0; word < words; ++word) {
      // What lies behind the chosen bytes does not matter; zeros there come out wrong in the emulator if all are
      // chosen.
      const __m512i bytes = _mm512_load_si512(table + 64 * word);
      _mm512_storeu_si512(out + count, _mm512_mask_compress_epi8(bytes, seen[word], bytes));
      count += count_bits(seen[word]);
    }
    return count;
  }
};
}  // namespace

void observe_avx512(const ObserveJob& job) { observe_rows<Avx512>(job); }

void dense_avx512(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                  std::uint8_t* out) {
  write_boxes<Avx512::Boxes>(form, rows, num_rows, num_tokens, out);
}

#else

void observe_avx512(const ObserveJob& job) { observe_portable(job); }

void dense_avx512(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                  std::uint8_t* out) {
  dense_portable(form, rows, num_rows, num_tokens, out);
}

#endif

}  // namespace gridmill::grid
