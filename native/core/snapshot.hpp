// State <-> bytes. World blocks hold no pointers, so saving is copying; this room has the byte writer and
// reader (every read is bounds-checked), the one hash that golden tests, replays and save files use, and the refusal of
// a state that no game could have left.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/random.hpp"

namespace gridmill {

// What is wrong with a saved state. Bytes from outside are checked once, when they are put back, so that a tick need
// not check anything: a hash finds damage, but whoever changes bytes on purpose can write the hash as well.
struct BadState : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
inline void expect_state(bool right, const char* what) {
  if (!right) throw BadState(what);
}
// All of `count` numbers are finite and lie within these bounds.
template <class T>
void expect_within(const T* numbers, std::size_t count, double low, double high, const char* what) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(numbers[i]);
    if (!(x >= low && x <= high))
      throw BadState(std::string(what) + ": expected " + std::to_string(low) + " to " + std::to_string(high) +
                     ", got " + std::to_string(x));
  }
}
template <class T>
void expect_finite(const T* numbers, std::size_t count, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(numbers[i]))
      throw BadState(std::string(what) + ": expected finite numbers, got " + std::to_string(numbers[i]));
}

// Little-endian 64-bit words, two mixing lanes; the length is part of the hash.
inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed = 0) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t a = mix(seed + kGolden), b = mix(size + 2 * kGolden);
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16) {
    std::uint64_t x, y;
    std::memcpy(&x, bytes + i, 8);
    std::memcpy(&y, bytes + i + 8, 8);
    a = (a ^ x) * 0xD6E8FEB86659FD93ull;
    b = (b ^ y) * 0xA0761D6478BD642Full;
    a ^= a >> 32;
    b ^= b >> 29;
  }
  for (; i < size; ++i) a = mix(a ^ bytes[i]);
  return mix(a ^ mix(b));
}

class ByteWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* data, std::size_t size) { out_.append(static_cast<const char*>(data), size); }
  void put_text(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }
  std::string take() { return std::move(out_); }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

class ByteReader {
 public:
  ByteReader(const char* data, std::size_t size) : data_(data), size_(size) {}
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    get_bytes(&value, sizeof value);
    return value;
  }
  void get_bytes(void* out, std::size_t size) { std::memcpy(out, view(size), size); }
  const char* view(std::size_t size) {
    if (size > size_ - at_)
      throw std::invalid_argument("the saved state is too short: expected " + std::to_string(size) + " bytes at byte " +
                                  std::to_string(at_) + ", but it has " + std::to_string(size_) + " in total");
    const char* here = data_ + at_;
    at_ += size;
    return here;
  }
  std::string get_text() {
    const auto size = get<std::uint32_t>();
    const char* text = view(size);
    return {text, size};
  }
  std::size_t left() const { return size_ - at_; }

 private:
  const char* data_;
  std::size_t size_, at_ = 0;
};

}  // namespace gridmill
