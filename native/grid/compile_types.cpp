// What there is: types of objects with their machines and limits, tags, collectives.
#include <algorithm>

#include "grid/compile.hpp"

namespace gridmill::grid {

std::vector<std::uint16_t> per_resource(const GameConfig& game, const OrderedDict<std::int64_t>& amounts,
                                        std::int64_t times) {
  std::vector<std::uint16_t> out(game.resources.size());
  for (const auto& [name, n] : amounts) {
    const auto at = std::find(game.resources.begin(), game.resources.end(), name) - game.resources.begin();
    out[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(std::min<std::int64_t>(n * times, 65'535));
  }
  return out;
}

std::vector<std::pair<std::uint16_t, std::uint16_t>> costs(const GameConfig& game,
                                                           const OrderedDict<std::int64_t>& amounts) {
  std::vector<std::pair<std::uint16_t, std::uint16_t>> out;
  const auto all = per_resource(game, amounts, 1);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] > 0) out.emplace_back(static_cast<std::uint16_t>(r), all[r]);
  return out;
}

std::uint16_t type_index(const Program& p, const std::string& name, const std::string& path) {
  if (const auto found = p.type_numbers.find(name); found != p.type_numbers.end())
    return static_cast<std::uint16_t>(found->second);
  std::vector<std::string> known;
  for (const auto& [other, type] : p.config.objects) known.push_back(other);
  fail_at(path, "unknown object type `" + name + "`" + nearest(name, known));
}

namespace {

Type make_type(const std::string& name, const std::vector<std::string>& tags,
               const OrderedDict<std::int64_t>& inventory, const std::string& vibe, const GameConfig& game,
               const Vocabulary& vocabulary) {
  Type type;
  type.name = name;
  type.tags.push_back(vocabulary.tag("type:" + name));
  for (const auto& tag : tags) type.tags.push_back(vocabulary.tag(tag));
  std::sort(type.tags.begin(), type.tags.end());
  type.tags.erase(std::unique(type.tags.begin(), type.tags.end()), type.tags.end());
  type.inventory.assign(game.resources.size(), 0);
  for (const auto& [resource, amount] : inventory) {
    const auto at = std::find(game.resources.begin(), game.resources.end(), resource) - game.resources.begin();
    type.inventory[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(amount);
  }
  type.vibe = vocabulary.vibe(vibe);
  type.may_hold.assign(game.resources.size(), false);
  type.limits = kNoLimits;
  return type;
}

std::size_t add_limits(Program& p, const std::vector<Limit>& limits) {
  p.limit_sets.push_back(compile_limits(p.config, limits));
  return p.limit_sets.size() - 1;
}

void compile_assembler(Program& p, Type& type, const Assembler& config) {
  CompiledAssembler assembler;
  assembler.cooldown = static_cast<std::uint32_t>(config.cooldown);
  assembler.partial = config.partial;
  assembler.max_uses = config.max_uses;
  for (const Recipe& declared : config.recipes) {
    CompiledRecipe recipe;
    recipe.min_agents = static_cast<std::uint32_t>(declared.min_agents);
    recipe.inputs = per_resource(p.config, declared.inputs, 1);
    recipe.outputs = per_resource(p.config, declared.outputs, 1);
    for (const auto& name : declared.vibes) {
      const std::uint8_t vibe = p.vocabulary->vibe(name);
      const auto same =
          std::find_if(recipe.vibes.begin(), recipe.vibes.end(), [&](auto& v) { return v.first == vibe; });
      if (same == recipe.vibes.end()) recipe.vibes.emplace_back(vibe, 1);
      else ++same->second;
    }
    assembler.recipes.push_back(std::move(recipe));
  }
  type.assembler = static_cast<std::int32_t>(p.machines.assemblers.size());
  p.machines.assemblers.push_back(std::move(assembler));
}

void compile_machine(Program& p, Type& type, const ObjectType& object) {
  type.pushable = object.pushable;
  type.swappable = object.swappable;
  type.limits = object.limits.empty() ? kNoLimits : add_limits(p, object.limits);
  type.use_all = object.use == "all";
  if (object.assembler) compile_assembler(p, type, *object.assembler);
  if (!object.converter) return;
  const Converter& c = *object.converter;
  CompiledConverter machine;
  machine.inputs = per_resource(p.config, c.inputs, 1);
  machine.outputs = per_resource(p.config, c.outputs, 1);
  machine.store = per_resource(p.config, c.inputs, c.max_input);
  machine.cooldown = static_cast<std::uint32_t>(c.cooldown);
  machine.max_output = static_cast<std::uint32_t>(c.max_output);
  machine.initial = static_cast<std::uint32_t>(c.initial_resource_count);
  machine.max_conversions = c.max_conversions;
  type.converter = static_cast<std::int32_t>(p.machines.converters.size());
  p.machines.converters.push_back(std::move(machine));
}

}  // namespace

void compile_types(Program& p, const References& references) {
  add_limits(p, p.config.agent.limits);
  add_limits(p, {});  // kNoLimits
  for (const auto& [name, type] : p.config.objects) {
    p.types.push_back(make_type(shown_name(name, type), type.tags, type.inventory, type.vibe, p.config, *p.vocabulary));
    p.types.back().terrain = is_terrain(p.config, references, name, type);
    compile_machine(p, p.types.back(), type);
  }
  p.agent_type = p.types.size();
  const AgentType& agent = p.config.agent;
  p.types.push_back(make_type("agent", agent.tags, agent.inventory, agent.vibe, p.config, *p.vocabulary));
  p.machines.any = !p.machines.converters.empty() || !p.machines.assemblers.empty();
}

// Tags that rules set or clear are bits of every object; the others belong to its type.
Tags compile_tags(Program& p, const References& references) {
  Tags tags;
  tags.own = tags_of(p.config);
  tags.bit_of.assign(256, -1);
  const auto& names = references.changeable;
  if (names.size() > 64)
    fail_at("$", "rules may set or clear at most 64 different tags, got " + std::to_string(names.size()));
  for (const auto& name : names) {
    const std::uint8_t tag = p.vocabulary->tag(name);
    tags.bit_of[tag] = static_cast<std::int32_t>(tags.changeable.size());
    tags.changeable.push_back(tag);
  }
  for (Type& type : p.types) {
    for (const auto tag : type.tags) {
      type.tag_set.set(tag);
      if (tags.bit_of[tag] >= 0) type.tag_bits |= std::uint64_t{1} << tags.bit_of[tag];
    }
    std::erase_if(type.tags, [&](std::uint8_t tag) { return tags.bit_of[tag] >= 0; });
  }
  return tags;
}

Collectives compile_collectives(Program& p) {
  Collectives out;
  OrderedDict<Collective> teams = p.config.collectives;
  std::sort(teams.begin(), teams.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto place = [](const auto& names, const std::string& name) {
    return static_cast<std::uint8_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  };
  std::vector<std::string> own;
  for (const auto& [name, team] : teams) own.push_back(name);
  for (const auto& [name, team] : teams)
    out.teams.push_back({per_resource(p.config, team.inventory, 1),
                         team.limits.empty() ? kNoLimits : add_limits(p, team.limits),
                         place(p.vocabulary->teams, name)});
  for (const auto& name : p.vocabulary->teams) {
    const auto at = std::find(own.begin(), own.end(), name);
    out.by_batch_id.push_back(at == own.end() ? -1 : static_cast<std::int32_t>(at - own.begin()));
  }
  for (const auto& name : p.config.agent.collectives) out.of_agents.push_back(place(own, name));
  for (std::size_t t = 0; t < p.config.objects.size(); ++t)
    if (const std::string& name = p.config.objects[t].second.collective; !name.empty())
      p.types[t].collective = place(own, name);
  if (teams.empty()) return out;
  const auto stat = [&](const std::string& name) {
    const auto& names = p.vocabulary->agent_stats;
    return static_cast<std::uint16_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  };
  for (const auto& name : p.vocabulary->names)
    out.credit.push_back({stat(name + ".aligned_by_agent"), stat(name + ".scrambled_by_agent")});
  for (Type& type : p.types)
    type.counted_as =
        static_cast<std::uint16_t>(std::lower_bound(p.vocabulary->names.begin(), p.vocabulary->names.end(), type.name) -
                                   p.vocabulary->names.begin());
  return out;
}

}  // namespace gridmill::grid
