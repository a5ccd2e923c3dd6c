// Counts heap allocations made through C++ `new` in this extension, per process: the proof that a tick
// allocates nothing. Only the extension module is counted; Python's and NumPy's own allocations are not.
#pragma once

#include <cstdint>

namespace gridmill {

std::uint64_t allocation_count();

}  // namespace gridmill
