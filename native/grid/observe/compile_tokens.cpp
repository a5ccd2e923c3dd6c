// What agents see as bytes: features, codes of what stands in a cell, and the room its tokens need.
#include <algorithm>
#include <bit>

#include "grid/compile.hpp"
#include "grid/directions.hpp"
#include "grid/inventory.hpp"
#include "grid/observe/object_tokens.hpp"

namespace gridmill::grid {

Features compile_features(const Program& p) {
  const Vocabulary& vocabulary = *p.vocabulary;
  Features f;
  f.tag = vocabulary.feature("tag");
  f.of_object = compile_object_features(vocabulary);
  f.progress = vocabulary.feature("episode_progress");
  f.action = vocabulary.feature("last_action");
  f.reward = vocabulary.feature("last_reward");
  for (std::size_t i = 0; i < 4; ++i) f.local_position[i] = vocabulary.feature("lp:" + std::string(kCompass[i]));
  for (const auto& resource : p.config.resources) {
    f.resource.push_back(vocabulary.feature("inv:" + resource));
    f.resource_high.push_back(needs_two_digits(p.config, resource) ? vocabulary.feature("inv:" + resource + ":p1")
                                                                   : kNoFeature);
  }
  for (std::uint16_t r = 0; r < p.num_resources; ++r) {
    f.amount_digits.push_back({f.resource[r], 0, r});
    if (f.resource_high[r] != kNoFeature) f.amount_digits.push_back({f.resource_high[r], 8, r});
  }
  std::sort(f.amount_digits.begin(), f.amount_digits.end(),
            [](const AmountDigit& a, const AmountDigit& b) { return a.feature < b.feature; });
  for (std::size_t i = 0; i < p.config.observation.values.size(); ++i) {
    const auto& v = p.config.observation.values[i];
    ShownValue shown{{}, vocabulary.feature(v.name), vocabulary.feature(v.name + ":p1"), v.digits};
    compile_value(p, v.value, "$.observation.values[" + std::to_string(i) + "].value", shown.value);
    f.shown_by_team = (i == 0 || f.shown_by_team) && same_in_team(shown.value);
    f.shown.push_back(std::move(shown));
  }
  return f;
}

Codes compile_codes(Program& p, const References& references) {
  Codes codes;
  codes.count = p.num_objects + 1;
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    if (!p.types[t].terrain) continue;
    p.types[t].code = static_cast<std::uint16_t>(codes.count++);
    codes.terrain.push_back(static_cast<std::uint16_t>(t));
  }
  if (codes.count > kMaxObjects)
    fail_at("$.map", "expected at most 65534 codes, got " + std::to_string(p.num_objects) + " objects with a state + " +
                         std::to_string(codes.terrain.size()) + " kinds of terrain");
  // Runs are worth their bitmap where walls are most of a map, as in a maze.
  std::uint64_t plain = 0, all = p.num_objects;
  for (const std::uint16_t t : codes.terrain) {
    const Type& type = p.types[t];
    all += p.map.placed[t];
    const bool moves = type.pushable || type.swappable || references.spawned.contains(p.config.objects[t].first);
    if (moves || type.tags.size() != 1 || type.tag_bits != 0 || p.map.placed[t] <= plain) continue;
    plain = p.map.placed[t];
    codes.plain = type.code;
    codes.common_tag = type.tags[0];
  }
  if (plain < 20 * (all - plain)) codes.plain = 0;
  return codes;
}

void write_plain_tokens(Program& p) {
  if (p.codes.plain == 0) return;
  const Type& type = p.types[p.codes.terrain[p.codes.plain - p.num_objects - 1]];
  for (std::size_t byte = 0; byte < sizeof p.window.plain; ++byte)
    p.window.plain[byte] = byte % 3 == 0 ? 0 : byte % 3 == 1 ? p.features.tag : type.tags[0];
}

namespace {

std::size_t tokens_of(const Program& p, const Type& type, bool agent) {
  std::size_t n = type.tags.size() + most_object_tokens(p, type, agent);
  n += type.terrain ? static_cast<std::size_t>(std::popcount(type.tag_bits)) : p.tags.changeable.size();
  for (std::size_t r = 0; r < p.num_resources; ++r)
    if (agent || can_hold(p, type, r)) n += p.features.resource_high[r] == kNoFeature ? 1 : 2;
  return n;
}

}  // namespace

TokenCache compile_token_cache(const Program& p) {
  TokenCache token_cache;
  std::size_t most = 0, most_of_agent = 0;
  std::vector<std::pair<std::size_t, std::uint64_t>> seen;  // tokens each, how many there are
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    const std::size_t n = tokens_of(p, p.types[t], t == p.agent_type);
    if (n > 255)
      fail_at("$.objects." + p.types[t].name, "expected at most 255 tokens per object, got " + std::to_string(n));
    (t == p.agent_type ? most_of_agent : most) = std::max(t == p.agent_type ? most_of_agent : most, n);
    seen.emplace_back(n, p.map.placed[t]);
  }
  const auto shift_for = [](std::size_t tokens) {
    return std::max(4u, static_cast<std::uint32_t>(std::bit_width(3 * tokens - 1)));
  };
  token_cache.agent_shift = shift_for(most_of_agent);
  token_cache.shift = shift_for(std::max<std::size_t>(1, most));
  std::size_t at = 0;
  for (std::uint32_t code = 0; code < p.codes.count; ++code) {
    token_cache.at.push_back(static_cast<std::uint32_t>(at));
    at += std::size_t{1} << (code <= p.num_agents ? token_cache.agent_shift : token_cache.shift);
  }
  const Type& agent = p.types[p.agent_type];
  const auto held = std::count_if(agent.inventory.begin(), agent.inventory.end(), [](auto n) { return n > 0; });
  const std::size_t usual = agent.tags.size() + usual_object_tokens(p) + static_cast<std::size_t>(held);
  token_cache.wide = token_cache.shift > 5 || usual > 5;
  const std::size_t globals = 3 + (p.config.observation.local_position ? 2 : 0) + [&] {
    std::size_t n = 0;
    for (const auto& s : p.features.shown) n += static_cast<std::size_t>(s.digits);
    return n;
  }();
  // At worst the richest objects of the map crowd the window.
  std::sort(seen.rbegin(), seen.rend());
  token_cache.worst_tokens = globals;
  std::uint64_t free = p.window.num_ranks;
  for (const auto& [tokens, count] : seen) {
    const std::uint64_t fits = std::min(free, count);
    token_cache.worst_tokens += tokens * fits;
    free -= fits;
  }
  return token_cache;
}

}  // namespace gridmill::grid
