// How often this process was forked, counted in the child: a batch notices that it came along without its threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/threads.hpp"

namespace gridmill {

// Bumped in the child of a fork: threads did not come along, so batches of the parent are unusable there.
inline std::atomic<std::uint32_t>& fork_count() {
  static std::atomic<std::uint32_t> count{0};
  static const bool hooked = (call_in_forked_child([] { fork_count().fetch_add(1); }), true);
  (void)hooked;
  return count;
}

}  // namespace gridmill
