// compile(): decoded game -> Program, part by part.
#include "grid/program.hpp"

#include <algorithm>

#include "grid/compile.hpp"
#include "grid/maps/maps.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

// Objects that rules may add stand unused at first.
void make_room_to_spawn(Program& p, const References& references) {
  for (std::size_t t = 0; t < p.config.objects.size(); ++t)
    if (references.spawned.contains(p.config.objects[t].first)) {
      p.rules.can_spawn = true;
      p.map.placed[t] += static_cast<std::uint64_t>(p.config.spawn_room);
    }
  if (p.rules.can_spawn) p.num_objects += static_cast<std::uint32_t>(p.config.spawn_room);
}

// How many sources can stand still at a time, what areas change, and which of them need only be counted.
void compile_reach(Program& p) {
  std::uint64_t most = 0, largest = 0;
  for (std::size_t t = 0; t < p.agent_type; ++t)
    most += (p.types[t].areas.last - p.types[t].areas.first) * p.map.placed[t];
  // What is spawned takes the places of whatever was removed, so any object may come to have the most areas.
  const std::uint64_t all = std::uint64_t{p.num_objects - p.num_agents} * p.areas.most_of_type;
  most = p.rules.can_spawn ? all : std::min(most, all);
  p.areas.reach_words = static_cast<std::uint32_t>((most + 63) / 64);
  for (const CompiledArea& area : p.areas.list)
    for (const Range changes : {area.changes, area.enter, area.exit})
      for (std::uint32_t i = changes.first; i < changes.last; ++i) {
        p.areas.resources.push_back(p.rules.amounts[i].resource);
        largest = std::max<std::uint64_t>(largest, static_cast<std::uint64_t>(std::abs(p.rules.amounts[i].by)));
      }
  std::sort(p.areas.resources.begin(), p.areas.resources.end());
  p.areas.resources.erase(std::unique(p.areas.resources.begin(), p.areas.resources.end()), p.areas.resources.end());
  const bool fits = most * largest <= 1'000'000'000;  // where sums are clamped, their order matters
  for (CompiledArea& area : p.areas.list) {
    area.counted = fits && !p.areas.remembers && !area.euclid && !area.territory && area.conditions.empty() &&
                   area.rules.empty() && area.type != p.agent_type;
  }
  p.areas.all_counted =
      std::all_of(p.areas.list.begin(), p.areas.list.end(), [](const CompiledArea& area) { return area.counted; });
}

}  // namespace

Program compile(const Vocabulary& vocabulary, const Value& game) {
  Program p;
  p.config = decode_game(game);
  expect_covered(vocabulary, p.config);
  const References references = references_of(p.config);
  p.vocabulary = &vocabulary;
  for (std::size_t t = 0; t < p.config.objects.size(); ++t) p.type_numbers[p.config.objects[t].first] = t;
  p.num_agents = static_cast<std::uint32_t>(p.config.num_agents);
  p.num_resources = static_cast<std::uint32_t>(p.config.resources.size());
  for (const auto& name : vocabulary.resources) {
    const auto at = std::find(p.config.resources.begin(), p.config.resources.end(), name);
    p.resource_by_batch_id.push_back(
        at == p.config.resources.end() ? -1 : static_cast<std::int32_t>(at - p.config.resources.begin()));
  }
  compile_types(p, references);
  p.tags = compile_tags(p, references);
  p.collectives = compile_collectives(p);
  compile_map(p);
  make_room_to_spawn(p, references);
  p.stride = p.width + 2;
  p.actions = compile_actions(p.config, vocabulary, references, p.stride);
  p.window = compile_window(p.config.observation, p.stride);
  p.features = compile_features(p);
  compile_rules(p);
  p.codes = compile_codes(p, references);
  write_plain_tokens(p);
  compile_reach(p);
  p.rewards = compile_rewards(p);
  check_work(p);
  p.truncates = p.config.time_limit == "truncation";
  p.drop_on_overflow = p.config.observation.overflow != "error";
  for (Type& type : p.types)
    type.inert = type.on_use.empty() && type.converter < 0 && type.assembler < 0 && !type.pushable;
  p.token_cache = compile_token_cache(p);
  p.layout = compile_layout(p);
  p.prefetch = compile_prefetch(p);
  list_event_ticks(p);
  return p;
}

}  // namespace gridmill::grid
