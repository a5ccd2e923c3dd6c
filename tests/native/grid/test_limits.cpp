// What is lost with a bonus: groups looked at in turns leave what following each loss to its end leaves, one call
// inside the other, also where limits hang on each other in a circle.
#include "check.hpp"
#include "core/random.hpp"
#include "grid/compile.hpp"
#include "grid/inventory.hpp"
#include "grid/maps/canvas.hpp"

using namespace gridmill;
using namespace gridmill::grid;

namespace {

using Held = std::vector<std::uint16_t>;

// As deep as there are losses.
void follow(const LimitSet& limits, Held& held, std::uint32_t resource) {
  for (const LimitGroup& group : limits.groups) {
    if (std::none_of(group.bonus.begin(), group.bonus.end(), [&](auto& b) { return b.first == resource; })) continue;
    for (auto r = group.resources.rbegin(); r != group.resources.rend(); ++r) {
      std::uint32_t total = 0;
      for (const auto each : group.resources) total += held[each];
      const std::uint32_t limit = group_limit(group, held.data());
      if (total <= limit || held[*r] == 0) continue;
      held[*r] = static_cast<std::uint16_t>(held[*r] - std::min<std::uint32_t>(held[*r], total - limit));
      follow(limits, held, *r);
    }
  }
}

GameConfig with_resources(std::size_t count) {
  GameConfig game;
  for (std::size_t r = 0; r < count; ++r) game.resources.push_back("r" + std::to_string(r));
  return game;
}

Limit limit_of(const GameConfig& game, std::vector<std::size_t> resources, std::int64_t base,
               std::vector<std::pair<std::size_t, std::int64_t>> bonus) {
  Limit limit;
  limit.base = base;
  for (const auto r : resources) limit.resources.push_back(game.resources[r]);
  for (const auto& [r, n] : bonus) limit.bonus.emplace_back(game.resources[r], n);
  return limit;
}

std::uint32_t change(const LimitSet& limits, Held& held, std::uint32_t resource, std::int32_t by) {
  std::uint32_t losses = 0;
  change_held(limits, held.data(), resource, by, [&](std::uint32_t r, std::uint32_t amount) {
    ++losses;
    held[r] = static_cast<std::uint16_t>(amount);
  });
  return losses;
}

}  // namespace

TEST(what_a_lost_bonus_leaves_is_what_following_each_loss_leaves) {
  std::uint32_t cascades = 0;
  for (std::uint64_t seed = 0; seed < 50'000; ++seed) {
    Draws draws(Stream({seed, 0, 0}, 0, 81));
    const std::size_t count = 2 + draws.below(7);
    const GameConfig game = with_resources(count);
    std::vector<Limit> declared(1 + draws.below(4));
    for (Limit& limit : declared) {
      limit.base = draws.below(4);
      limit.max = draws.below(4) == 0 ? draws.below(20) : 65'535;
      for (std::uint32_t n = draws.below(4); n > 0; --n) {
        const std::string& name = game.resources[draws.below(static_cast<std::uint32_t>(count))];
        if (std::none_of(limit.bonus.begin(), limit.bonus.end(), [&](auto& b) { return b.first == name; }))
          limit.bonus.emplace_back(name, draws.below(3));
      }
    }
    for (const auto& name : game.resources)
      if (draws.below(4) != 0)
        declared[draws.below(static_cast<std::uint32_t>(declared.size()))].resources.push_back(name);
    const LimitSet limits = compile_limits(game, declared);
    Held held(count);
    for (auto& amount : held) amount = static_cast<std::uint16_t>(draws.below(12));
    Held plain = held;
    const std::uint32_t resource = draws.below(static_cast<std::uint32_t>(count));
    const std::int32_t by = -1 - static_cast<std::int32_t>(draws.below(4));
    const std::uint32_t losses = change(limits, held, resource, by);
    if (losses > 0) {
      const std::int32_t most = static_cast<std::int32_t>(most_of(limits, plain.data(), resource));
      plain[resource] = static_cast<std::uint16_t>(std::min(std::max(plain[resource] + by, 0), most));
      follow(limits, plain, resource);
    }
    CHECK(held == plain);
    CHECK(losses <= limits.rounds * static_cast<double>(count));
    cascades += losses > 1;
  }
  CHECK(cascades > 2000);
}

TEST(limits_that_hang_on_each_other_lose_a_hundred_thousand_units_one_by_one) {
  const GameConfig game = with_resources(3);  // it was a call inside a call for each unit
  const LimitSet limits = compile_limits(game, {limit_of(game, {0, 1}, 0, {{2, 1}}), limit_of(game, {2}, 0, {{1, 1}})});
  Held held{1, 65'535, 65'535};
  CHECK_EQ(change(limits, held, 1, -1), 131'071u);
  CHECK(held == Held({0, 0, 0}));
  CHECK(limits.rounds > 65'000);
}

TEST(limits_that_hang_on_all_before_them_are_looked_at_once) {
  const std::size_t count = 16;  // declared last to first: it was 16 384 losses
  const GameConfig game = with_resources(count);
  std::vector<Limit> declared;
  for (std::size_t r = count; r-- > 1;) {
    std::vector<std::pair<std::size_t, std::int64_t>> all_before;
    for (std::size_t before = 0; before < r; ++before) all_before.emplace_back(before, 1);
    declared.push_back(limit_of(game, {r}, 0, all_before));
  }
  const LimitSet limits = compile_limits(game, declared);
  CHECK_EQ(limits.rounds, 1.0);
  Held held{2};
  for (std::size_t r = 1; r < count; ++r) held.push_back(static_cast<std::uint16_t>(1u << r));
  CHECK_EQ(change(limits, held, 0, -1), static_cast<std::uint32_t>(count));
  CHECK_EQ(held[count - 1], 1u << (count - 2));
}
