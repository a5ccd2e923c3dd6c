// The portable and the wide kernels give the same bytes; what the bytes should be is tested against torch in Python.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "core/isa.hpp"
#include "learn/drawn.hpp"
#include "learn/kernels.hpp"

using namespace gridmill;
using namespace gridmill::learn;

namespace {

// Hidden sizes of one lane, several, one block, and a block with a lane after it; kOdd only where any size goes.
constexpr std::array<std::size_t, 4> kHidden{16, 48, 128, 144};

// What this CPU can beside the portable ones, also where GRIDMILL_ISA caps what is in force.
std::vector<const Kernels*> others() {
  std::vector<const Kernels*> found;
  if (isa_of_cpu() >= Isa::avx2) found.push_back(&kAvx2);
  if (isa_of_cpu() >= Isa::avx512_base) found.push_back(&kWide);
  return found;
}

// Runs `work` with every set of kernels; every array it gives must be equal bytes.
template <class Work>
void all_equal(Work&& work) {
  const auto portable = work(kPortable);
  for (const auto& array : portable) {
    bool any = false;
    for (const float x : array) any = any || x != 0;
    CHECK(any);
  }
  for (const Kernels* kernels : others()) {
    const auto found = work(*kernels);
    CHECK_EQ(portable.size(), found.size());
    for (std::size_t i = 0; i < portable.size(); ++i) CHECK(same(portable[i], found[i]));
  }
}

void compare_bags(std::size_t hidden) {
  constexpr std::size_t kRows = 29, kTokens = 11, kPlaces = 6, kFeatures = 3;
  constexpr std::int32_t kSlots = 9;
  std::vector<std::int32_t> place(256, -1), slot(kFeatures * 256, -1);
  std::vector<float> amount = numbers(kFeatures * 256, 1);
  for (std::size_t i = 0; i < 200; ++i) place[i] = static_cast<std::int32_t>(i % kPlaces);
  for (std::size_t i = 0; i < slot.size(); ++i)
    if (i % 5 != 0) slot[i] = static_cast<std::int32_t>(i % (kSlots - 1));
  for (std::size_t i = 0; i < amount.size(); i += 2) amount[i] = 0;
  std::vector<std::uint8_t> obs = bytes(kRows * kTokens * 3, 2, 256);
  for (std::size_t i = 1; i < obs.size(); i += 3) obs[i] %= kFeatures + 1;  // one feature has no word
  for (std::size_t i = 0; i < kTokens * 3; ++i) obs[i] = 255;               // a row that is empty
  const BagJob job{{place.data(), slot.data(), amount.data(), static_cast<std::int32_t>(kFeatures), kSlots},
                   obs.data(),
                   kRows,
                   kTokens,
                   hidden};
  const auto table = numbers(kPlaces * kSlots * hidden, 3), d_out = numbers(kRows * hidden, 4);
  const auto bias = numbers(hidden, 17);
  all_equal([&](const Kernels& k) {
    Arrays found{std::vector<float>(kRows * hidden, 9.0f), numbers(table.size(), 5),
                 numbers(hidden, 18)};  // gradients are added to
    k.bag_forward(job, table.data(), bias.data(), found[0].data());
    k.bag_backward(job, found[0].data(), d_out.data(), found[1].data(), found[2].data());
    CHECK_EQ(found[0][0], std::max(0.0f, bias[0]));
    return found;
  });
}

void compare_scans(std::size_t hidden) {
  constexpr std::size_t kTime = 5, kRows = 7;
  const std::size_t step = kRows * hidden, all = kTime * step;
  const auto start = bytes(kTime * kRows, 6, 2);
  const ScanShape shape{kTime, kRows, hidden, start.data()};
  const auto gates = numbers(2 * all, 7, 4.0f), h0 = numbers(step, 9), d_h = numbers(all, 10);
  all_equal([&](const Kernels& k) {
    Arrays found{std::vector<float>(all), gates, std::vector<float>(2 * all), std::vector<float>(step)};
    k.scan_forward(shape, found[1].data(), h0.data(), found[0].data());
    k.scan_backward(shape, found[1].data(), h0.data(), found[0].data(), d_h.data(), found[2].data(), found[3].data());
    return found;
  });
}

void compare_losses(std::size_t actions, float value_clip, bool led) {
  constexpr std::size_t kRows = 60, kSegments = 12;
  const auto logits = numbers(kRows * actions, 20, 3.0f);
  const auto drawn = bytes(kRows, 21, static_cast<std::uint32_t>(actions));
  const std::vector<std::int32_t> chosen(drawn.begin(), drawn.end());
  const auto values = numbers(kRows, 22), log_probs = numbers(kRows, 23), advantages = numbers(kRows, 24);
  const auto returns = numbers(kRows, 25), old = numbers(kRows, 26), weights = numbers(kSegments, 27);
  const auto who = bytes(kRows, 28, 2);  // 0: somebody else acted
  const std::vector<float> acted(who.begin(), who.end());
  const PpoJob job{kRows,
                   actions,
                   kSegments,
                   logits.data(),
                   chosen.data(),
                   values.data(),
                   log_probs.data(),
                   advantages.data(),
                   returns.data(),
                   old.data(),
                   weights.data(),
                   led ? acted.data() : nullptr,
                   1.0f,
                   0.2f,
                   0.01f,
                   0.5f,
                   value_clip};
  all_equal([&](const Kernels& k) {
    Arrays found{std::vector<float>(kRows * actions), std::vector<float>(kRows), std::vector<float>(kRows)};
    std::array<double, 5> means;
    k.ppo(job, found[0].data(), found[1].data(), found[2].data(), means.data());
    found.emplace_back(means.begin(), means.end());
    return found;
  });
}

void compare_samples(std::size_t actions, bool masked) {
  constexpr std::size_t kRows = 500;
  const auto logits = numbers(kRows * actions, 15, 8.0f);
  auto masks = bytes(kRows * actions, 16, 2);
  for (std::size_t n = 0; n < kRows; ++n) masks[n * actions] = 1;
  const SampleJob job{logits.data(), masked ? masks.data() : nullptr, kRows, actions, 3, (1ull << 33) + 5, 11};
  std::vector<std::int32_t> first(kRows, -1);
  std::vector<float> first_log(kRows);
  kPortable.sample(job, first.data(), first_log.data());
  for (const Kernels* kernels : others()) {
    std::vector<std::int32_t> second(kRows, -1);
    std::vector<float> second_log(kRows);
    kernels->sample(job, second.data(), second_log.data());
    CHECK(same(first, second));
    CHECK(same(first_log, second_log));
  }
  for (std::size_t n = 0; n < kRows; ++n) {
    CHECK(first[n] >= 0 && static_cast<std::size_t>(first[n]) < actions);
    CHECK(!masked || masks[n * actions + static_cast<std::size_t>(first[n])]);
    CHECK(first_log[n] <= 1e-6f);
  }
}

}  // namespace

TEST(learn_bags_are_the_same_bytes_on_every_cpu) {
  for (const std::size_t hidden : kHidden) compare_bags(hidden);
}

TEST(learn_scans_are_the_same_bytes_on_every_cpu) {
  for (const std::size_t hidden : kHidden) compare_scans(hidden);
  compare_scans(kOdd);
}

TEST(learn_losses_are_the_same_bytes_on_every_cpu) {
  for (const std::size_t actions : {2, 9, 16, 69})
    for (const float value_clip : {0.0f, 0.1f})
      for (const bool led : {false, true}) compare_losses(actions, value_clip, led);
}

TEST(learn_samples_are_the_same_bytes_on_every_cpu) {
  for (const std::size_t actions : {1, 2, 9, 16, 69}) {
    compare_samples(actions, false);
    compare_samples(actions, true);
  }
}
