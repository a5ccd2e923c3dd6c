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

struct Avx512 {
  using Copy = WideCopy;

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

#else

void observe_avx512(const ObserveJob& job) { observe_portable(job); }

#endif

}  // namespace gridmill::grid
