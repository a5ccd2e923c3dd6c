// Counter-based random numbers: fixed values, no shared streams, even spread.
#include <set>

#include "check.hpp"
#include "core/random.hpp"
#include "core/snapshot.hpp"

using namespace gridmill;

TEST(random_is_a_function_of_its_arguments) {
  static_assert(Stream({1, 2, 3}, 4, 5).at(6) == Stream({1, 2, 3}, 4, 5).at(6));
  // Pinned: a change here changes every golden hash and needs a CHANGELOG line.
  CHECK_EQ(Stream({42, 0, 0}, 0, 0).at(0), 8648080843822664309ull);
}

TEST(random_streams_do_not_meet) {
  std::set<std::uint64_t> seen;
  std::size_t draws = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::uint32_t world = 0; world < 8; ++world)
      for (std::uint32_t episode = 0; episode < 4; ++episode)
        for (std::uint32_t tick = 0; tick < 8; ++tick)
          for (std::uint32_t stream = 0; stream < 4; ++stream)
            for (std::uint64_t i = 0; i < 16; ++i, ++draws)
              seen.insert(Stream({seed, world, episode}, tick, stream).at(i));
  CHECK_EQ(seen.size(), draws);
}

TEST(random_below_is_even) {
  int counts[7] = {};
  const Stream stream({9, 9, 9}, 9, 9);
  for (std::uint64_t i = 0; i < 70'000; ++i) ++counts[stream.below(i, 7)];
  for (const int n : counts) CHECK(n > 9'600 && n < 10'400);
}

TEST(hash_sees_every_byte_and_the_length) {
  std::string bytes(100, 'x');
  std::set<std::uint64_t> seen{hash_bytes(bytes.data(), bytes.size())};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 1;
    seen.insert(hash_bytes(bytes.data(), bytes.size()));
    bytes[i] ^= 1;
    seen.insert(hash_bytes(bytes.data(), i));
  }
  CHECK_EQ(seen.size(), std::size_t{201});
}
