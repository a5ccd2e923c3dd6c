#include "grid/scripts/hub_recipe.hpp"

#include <algorithm>

namespace gridmill::grid {
namespace {

std::optional<std::uint32_t> resource_of(const Program& p, const std::string& name) {
  const auto& all = p.config.resources;
  const auto found = std::find(all.begin(), all.end(), name);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - all.begin());
}

// The vibe with which a bump hands the resource over to the thing; empty: none does.
std::string deposit_vibe(const ObjectType& type, const std::string& resource) {
  for (const Rule& rule : type.on_use) {
    std::string vibe;
    for (const Condition& condition : rule.when)
      if (const auto* has = std::get_if<HasVibe>(&condition.data)) vibe = has->vibe;
    for (const Effect& effect : rule.then) {
      const auto* transfer = std::get_if<Transfer>(&effect.data);
      if (transfer && transfer->source == "actor" && transfer->gives(resource, "target")) return vibe;
    }
  }
  return {};
}

// The first reward that counts units of a resource in things of a type, and the chest that takes them.
bool find_chest(const Program& p, HubRecipe& recipe) {
  for (const RewardTerm& term : p.config.rewards) {
    const auto* counted = std::get_if<CountOf>(&term.value.data);
    if (!counted || term.weight <= 0 || !resource_of(p, counted->resource)) continue;
    for (const auto& [name, type] : p.config.objects) {
      if (counted->tag != "type:" + name) continue;
      recipe.chest = name;
      recipe.product = *resource_of(p, counted->resource);
      recipe.deposit_vibe = deposit_vibe(type, counted->resource);
      return !recipe.deposit_vibe.empty();
    }
  }
  return false;
}

// The assembler that makes the product, by the recipe that needs the fewest agents.
bool find_maker(const Program& p, HubRecipe& recipe) {
  std::int64_t fewest = 9;
  const std::string& product = p.config.resources[recipe.product];
  for (const auto& [name, type] : p.config.objects) {
    if (!type.assembler) continue;
    for (const Recipe& way : type.assembler->recipes) {
      if (!way.gives(product, "") || way.vibes.empty() || way.min_agents >= fewest) continue;
      fewest = way.min_agents;
      recipe.maker = name;
      recipe.make_vibe = way.vibes.front();
      recipe.inputs.assign(p.num_resources, 0);
      for (const auto& [resource, amount] : way.inputs)
        recipe.inputs[*resource_of(p, resource)] = static_cast<std::uint16_t>(amount);
    }
  }
  return !recipe.maker.empty();
}

void find_sources(const Program& p, HubRecipe& recipe) {
  for (const auto& [name, type] : p.config.objects) {
    if (!type.assembler || name == recipe.maker || type.assembler->recipes.size() != 1) continue;
    const Recipe& way = type.assembler->recipes.front();
    if (!way.vibes.empty() || way.outputs.size() != 1) continue;
    HubSource source{name,
                     *resource_of(p, way.outputs.front().first),
                     std::vector<std::uint16_t>(p.num_resources, 0),
                     static_cast<std::uint32_t>(type.assembler->cooldown),
                     type.assembler->partial,
                     type.assembler->max_uses >= 0};
    for (const auto& [resource, amount] : way.inputs)
      source.inputs[*resource_of(p, resource)] = static_cast<std::uint16_t>(amount);
    recipe.sources.push_back(source);
  }
}

}  // namespace

std::optional<HubRecipe> read_hub_recipe(const Program& program) {
  HubRecipe recipe;
  if (!find_chest(program, recipe) || !find_maker(program, recipe)) return std::nullopt;
  find_sources(program, recipe);
  const ResourceLimit& limit = program.limit_sets.front().of[recipe.product];
  recipe.most_products = limit.limited ? std::min(limit.base, limit.max) : 255;
  return recipe;
}

}  // namespace gridmill::grid
