// A scripted agent: one action from one row of observations and a memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridmill {

template <class Obs>
class Script {
 public:
  virtual ~Script() = default;
  // Bytes that each row remembers; zeroed when its episode begins. Plain data without pointers, aligned to 8.
  virtual std::size_t memory_bytes() const = 0;
  // `draw`: 64 random bits of this row and tick. Const and reentrant: one object serves all rows and all threads; it
  // allocates nothing.
  virtual int act(const Obs* row, std::byte* memory, std::uint64_t draw) const = 0;
};

}  // namespace gridmill
