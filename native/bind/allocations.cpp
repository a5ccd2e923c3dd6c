// See allocations.hpp. Python loads this object privately, so its own calls of `new` find these operators and nobody
// else's do. Over-aligned types and a sanitizer's allocator are not counted.
#include "bind/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> count{0};

void* counted(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
}  // namespace

namespace gridmill {
std::uint64_t allocation_count() { return count.load(std::memory_order_relaxed); }
}  // namespace gridmill

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

#if defined(__APPLE__)
// The other forms, which nobody counts. A C++ library that is linked in has them too: taken from there, they would
// bring its own of those above along, which everybody in the process sees.
namespace {
void* aligned(std::size_t size, std::align_val_t alignment) noexcept {
  const auto line = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(line, (size + line) / line * line);
}
void* aligned_or_throw(std::size_t size, std::align_val_t alignment) {
  if (void* p = aligned(size, alignment)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size ? size : 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size ? size : 1); }
void* operator new(std::size_t size, std::align_val_t a) { return aligned_or_throw(size, a); }
void* operator new[](std::size_t size, std::align_val_t a) { return aligned_or_throw(size, a); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
#endif
