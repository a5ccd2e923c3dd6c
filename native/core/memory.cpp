#include "core/memory.hpp"

#include <new>

#if defined(__wasm__)
#include <cstdlib>
#include <cstring>
#else
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace gridmill {

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as large as it may be: a mapping of its own is always given back
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

#if defined(__wasm__)

// No pages to ask for: one memory that grows.
Pages::Pages(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  if (bytes > static_cast<std::size_t>(memory_of_machine())) throw std::bad_alloc();
  size_ = bytes / kLine * kLine + kLine;
  mapped_ = static_cast<std::byte*>(std::aligned_alloc(kLine, size_));
  if (mapped_ == nullptr) throw std::bad_alloc();
  std::memset(mapped_, 0, size_);
  data_ = mapped_;
}

Pages::~Pages() { std::free(mapped_); }

// Of one world: a page has two of it, and saved states beside them, and files of a few kilobytes come from anywhere.
double memory_of_machine() { return 128.0 * (1 << 20); }

#else

// Straight from the kernel.
Pages::Pages(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const bool huge = bytes >= kHuge;
  size_ = (bytes + kHuge + 4095) / 4096 * 4096;
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mapped_ = static_cast<std::byte*>(p);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(mapped_) % kHuge;
  data_ = mapped_ + (huge && misaligned ? kHuge - misaligned : 0);
#ifdef MADV_HUGEPAGE
  if (huge) madvise(data_, bytes / kHuge * kHuge, MADV_HUGEPAGE);  // a wish; without it everything still works
#endif
}

Pages::~Pages() {
  if (mapped_) munmap(mapped_, size_);
}

double memory_of_machine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

#endif

}  // namespace gridmill
