// Counter-based random numbers: every draw is a function of (seed, world, episode, tick, stream, index).
// Nothing is stored and nothing is shared, so results do not depend on threads, lanes or platforms,
// and two worlds never draw from one stream. Not for cryptography.
#pragma once

#include <cstdint>

namespace gridmill {

// Identifies one episode of one world. A forked world keeps the key of the world it came from.
struct Key {
  std::uint64_t seed = 0;
  std::uint32_t world = 0;
  std::uint32_t episode = 0;
};

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// What mix() made of a number, back to the number.
constexpr std::uint64_t unmix(std::uint64_t x) {
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642B2D24D8EC3ull;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96DE1B173F119089ull;
  return x ^ (x >> 30) ^ (x >> 60);
}

// The seed with which world 0 draws in its first episode what this episode draws: one episode of a batch can be played
// again by a world alone.
constexpr std::uint64_t seed_alone(const Key& key) {
  return unmix(mix(key.seed + kGolden) ^ (std::uint64_t{key.world} << 32 | key.episode)) - kGolden;
}

class Stream {
 public:
  constexpr Stream(const Key& key, std::uint32_t tick, std::uint32_t stream)
      : start_(mix(mix(mix(key.seed + kGolden) ^ (std::uint64_t{key.world} << 32 | key.episode)) ^
                   (std::uint64_t{tick} << 32 | stream))) {}

  constexpr std::uint64_t at(std::uint64_t index) const { return mix(start_ + (index + 1) * kGolden); }

  // Uniform in [0, bound) from 32 random bits; the bias is below bound / 2^32.
  constexpr std::uint32_t below(std::uint64_t index, std::uint32_t bound) const {
    return static_cast<std::uint32_t>((std::uint64_t{static_cast<std::uint32_t>(at(index) >> 32)} * bound) >> 32);
  }

 private:
  std::uint64_t start_;
};

}  // namespace gridmill
