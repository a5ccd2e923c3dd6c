// Memory as this machine gives it: large zeroed blocks, how much of it there is, and what becomes of it once freed.
#pragma once

#include <cstddef>
#include <utility>

namespace gridmill {

// A block that starts as zeros. Pages nobody touches (final_obs) cost nothing, and large blocks ask for huge pages,
// because thousands of worlds stepped in turn would otherwise miss the TLB all the time.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes);  // std::bad_alloc if there are none
  ~Pages();
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  std::byte* data() const { return data_; }

 private:
  std::byte *mapped_ = nullptr, *data_ = nullptr;
  std::size_t size_ = 0;
};

double memory_of_machine();  // in bytes

// From now on the process keeps what it frees, up to a gigabyte, for its next blocks. The C library gives large blocks
// back to the system, which has to fill every page with zeros when it hands them out again: a trainer, which needs the
// same blocks in every minibatch, would pay that tens of thousands of times an epoch. Elsewhere than glibc nothing
// happens.
void keep_freed_memory();

}  // namespace gridmill
