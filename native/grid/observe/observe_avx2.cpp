// Rows with AVX2: 16 rows of the occupancy strip become a 256-bit picture, and two byte shuffles and a comparison per
// 32 cells bring it into the order of observation. Compiled with its own flags.
#include "grid/observe/observe_rows.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gridmill::grid {

#if defined(__x86_64__) && defined(__AVX2__)

namespace {

__m256i load32(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
__m256i repeat(std::uint32_t byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

// For every choice among eight bytes the places of those chosen, one behind the other.
struct Chosen {
  constexpr Chosen() {
    for (std::uint32_t choice = 0; choice < 256; ++choice) {
      std::uint32_t count = 0;
      for (std::uint32_t bit = 0; bit < 8; ++bit)
        if ((choice >> bit & 1) != 0) places[choice] |= std::uint64_t{bit} << (8 * count++);
    }
  }
  std::uint64_t places[256 + 1] = {};  // loads of 16 bytes go beyond the last
};
constexpr Chosen kChosen;

// Ten tokens in one store; their location is spread from its byte.
struct WideCopy : PairCopy {
  static inline void ten(const Window& window, std::uint32_t rank, const std::uint8_t* tokens, std::uint8_t* out) {
    const __m256i places = load32(kEveryThird);
    const __m256i location = _mm256_and_si256(repeat(window.location[rank]), places);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(location, load32(tokens)));
  }
  alignas(32) static constexpr std::uint8_t kEveryThird[32] = {255, 0,   0,   255, 0,   0,   255, 0,   0,   255, 0,
                                                               0,   255, 0,   0,   255, 0,   0,   255, 0,   0,   255,
                                                               0,   0,   255, 0,   0,   255, 0,   0,   255, 0};
};

struct Avx2 {
  using Copy = WideCopy;
  using Boxes = EightTokens<32>;

  struct Run {
    static constexpr std::uint32_t kTokens = 10;
    static constexpr std::size_t kBytes = 32;
    explicit Run(const Window& window) : spread(load32(window.spread)), tokens(load32(window.plain)) {}
    void store(const std::uint8_t* places, std::uint8_t* out) const {
      const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(places)));
      const __m256i locations = _mm256_shuffle_epi8(twice, spread);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(locations, tokens));
    }
    __m256i spread, tokens;
  };

  // Four rows of the strip at a time: row i goes into 16-bit word i / 4 of 64-bit lane i % 4, as Window::half_byte
  // expects it.
  static inline void see(const Window& window, const std::uint64_t* rows, std::uint32_t shift, std::uint64_t* seen) {
    const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
    const __m256i first = _mm256_srl_epi64(load32(rows), by);
    const __m256i second = _mm256_slli_epi64(_mm256_srl_epi64(load32(rows + 4), by), 16);
    const __m256i third = _mm256_slli_epi64(_mm256_srl_epi64(load32(rows + 8), by), 32);
    const __m256i fourth = _mm256_slli_epi64(_mm256_srl_epi64(load32(rows + 12), by), 48);
    const __m256i upper = _mm256_blend_epi16(first, second, 0x22), lower = _mm256_blend_epi16(third, fourth, 0x88);
    const __m256i picture = _mm256_blend_epi16(upper, lower, 0xCC);
    const __m256i low = _mm256_permute2x128_si256(picture, picture, 0x00);
    const __m256i high = _mm256_permute2x128_si256(picture, picture, 0x11);
    const auto half = [&](std::uint32_t rank) {
      const __m256i bytes = _mm256_or_si256(_mm256_shuffle_epi8(low, load32(window.half_byte[0] + rank)),
                                            _mm256_shuffle_epi8(high, load32(window.half_byte[1] + rank)));
      // Ranks beyond the window have no bit at all.
      const __m256i bits = _mm256_and_si256(bytes, load32(window.picture_bit + rank));
      const __m256i none = _mm256_cmpeq_epi8(bits, _mm256_setzero_si256());
      return static_cast<std::uint32_t>(~_mm256_movemask_epi8(none));
    };
    for (std::uint32_t word = 0; word < window.num_words; ++word)
      seen[word] = half(64 * word) | std::uint64_t{half(64 * word + 32)} << 32;
  }

  static inline std::uint32_t gather(const std::uint8_t* table, const std::uint64_t* seen, std::uint32_t words,
                                     std::uint8_t* out) {
    std::uint32_t count = 0;
    for (std::uint32_t word = 0; word < words; ++word) {
      std::uint64_t left = seen[word];
      const std::uint8_t* const of_word = table + 64 * word;
#pragma GCC unroll 8
      for (std::uint32_t eight = 0; eight < 8; ++eight) {
        const std::uint32_t choice = left & 255;
        left >>= 8;
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(of_word + 8 * eight));
        const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kChosen.places + choice));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(out + count), _mm_shuffle_epi8(bytes, places));
        count += count_bits(choice);
      }
    }
    return count;
  }
};

}  // namespace

void observe_avx2(const ObserveJob& job) { observe_rows<Avx2>(job); }

void dense_avx2(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                std::uint8_t* out) {
  write_boxes<Avx2::Boxes>(form, rows, num_rows, num_tokens, out);
}

#else

void observe_avx2(const ObserveJob& job) { observe_portable(job); }

void dense_avx2(const DenseForm& form, const std::uint8_t* rows, std::size_t num_rows, std::uint32_t num_tokens,
                std::uint8_t* out) {
  dense_portable(form, rows, num_rows, num_tokens, out);
}

#endif

}  // namespace gridmill::grid
