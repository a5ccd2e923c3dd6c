// Memory as this machine gives it: large zeroed blocks, and how much of it there is.
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

}  // namespace gridmill
