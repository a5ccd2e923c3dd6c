// Grids: names, areas, and a world as a list of objects.
#include "grid/directions.hpp"
#include "grid/observe/views.hpp"
#include "wasm/show.hpp"

namespace gridmill::wasm {

using grid::GridBatch;

Value list_of(const std::vector<std::string>& names) {
  Value::List list;
  for (const auto& name : names) list.push_back({name});
  return {std::move(list)};
}

std::vector<std::string> action_names(const GridBatch& batch) { return batch.worlds().vocabulary.action_names(); }

namespace {

Value features_of(const grid::Vocabulary& vocabulary) {
  Value::List list;
  for (const auto& feature : vocabulary.features)
    list.push_back(
        {Value::Dict{{"id", number(list.size())}, {"name", {feature.name}}, {"normalization", {feature.normalizer}}}});
  return {std::move(list)};
}

// What surrounds objects of a type and how far it reaches; whose ground it is follows from their collectives.
Value areas_of(const grid::Program& program) {
  constexpr const char* kAffects[] = {"friend", "enemy", "all", "self"};
  Value::List list;
  for (const auto& area : program.areas.list) {
    const std::string type = program.types[area.type].name, affects = kAffects[static_cast<std::size_t>(area.affects)];
    list.push_back({Value::Dict{{"type", {type}},
                                {"radius", number(area.radius)},
                                {"metric", {std::string(area.euclid ? "euclid" : "chebyshev")}},
                                {"territory", {area.territory}},
                                {"affects", {affects}}}});
  }
  return {std::move(list)};
}

}  // namespace

void describe(const GridBatch& batch, Value::Dict& info) {
  const grid::Vocabulary& vocabulary = batch.worlds().vocabulary;
  const grid::Program& program = batch.worlds().program(0);
  std::vector<std::string> types, directions;
  for (const auto& type : program.types) types.push_back(type.name);
  for (const auto& direction : grid::kDirections) directions.emplace_back(direction.name);
  info.push_back({"name", {program.config.name}});
  info.push_back({"height", number(program.height)});
  info.push_back({"width", number(program.width)});
  info.push_back({"window",
                  {Value::Dict{{"height", number(program.window.height)},
                               {"width", number(program.window.width)},
                               {"shape", {program.config.observation.window}}}}});
  info.push_back({"features", features_of(vocabulary)});
  info.push_back({"objectTypes", list_of(types)});
  info.push_back({"resources", list_of(program.config.resources)});
  info.push_back({"vibes", list_of(vocabulary.vibes)});
  info.push_back({"tags", list_of(vocabulary.tags)});
  info.push_back({"collectives", list_of(vocabulary.teams)});
  info.push_back({"directions", list_of(directions)});
  info.push_back({"areas", areas_of(program)});
  info.push_back({"territory", {program.config.territory}});
}

void inspect(GridBatch& batch, Value::Dict& out) {
  batch.look(0, [&](auto& tick) {
    const grid::Program& program = tick.program;
    const grid::World view(program, tick.state);
    Value::Dict teams;
    for (std::uint32_t team = 0; team < program.collectives.teams.size(); ++team) {
      Value::Dict inventory;
      for (std::uint32_t r = 0; r < program.num_resources; ++r)
        if (const int held = view.held(program.num_objects + team)[r])
          inventory.push_back({program.config.resources[r], number(held)});
      const std::string& name = program.vocabulary->teams[program.collectives.teams[team].batch_id];
      teams.push_back({name, {Value::Dict{{"inventory", {std::move(inventory)}}}}});
    }
    out.push_back({"collectives", {std::move(teams)}});
  });
}

std::vector<std::int32_t> objects(GridBatch& batch) {
  std::vector<std::int32_t> out;
  batch.look(0, [&](auto& tick) {
    const grid::World view(tick.program, tick.state);
    grid::each_object(tick.program, view, tick.header.tick, [&](const grid::SeenNumbers& seen) {
      const std::int32_t fixed[] = {seen.object,
                                    seen.type,
                                    seen.row,
                                    seen.column,
                                    seen.vibe,
                                    seen.collective,
                                    seen.agent,
                                    seen.group,
                                    seen.facing,
                                    seen.frozen,
                                    seen.converting,
                                    seen.uses,
                                    static_cast<std::int32_t>(seen.tags.size())};
      out.insert(out.end(), std::begin(fixed), std::end(fixed));
      out.insert(out.end(), seen.tags.begin(), seen.tags.end());
      out.push_back(static_cast<std::int32_t>(seen.inventory.size()));
      for (const auto& [resource, amount] : seen.inventory) {
        out.push_back(resource);
        out.push_back(amount);
      }
    });
  });
  return out;
}

std::vector<std::uint32_t> cells(GridBatch& batch) {
  std::vector<std::uint32_t> out(batch.worlds().shape.num_agents);
  batch.look(0, [&](auto& tick) {
    const grid::World view(tick.program, tick.state);
    for (std::uint32_t agent = 0; agent < out.size(); ++agent)
      if (view.on_map(agent)) out[agent] = std::uint32_t{view.row[agent]} * tick.program.width + view.column[agent];
  });
  return out;
}

void add_words(const GridBatch& batch, Seen& seen) {
  const grid::Vocabulary& vocabulary = batch.worlds().vocabulary;
  const grid::Program& program = batch.worlds().program(0);
  seen.tokens = true;
  seen.window_height = program.window.height;
  seen.window_width = program.window.width;
  for (const auto& feature : vocabulary.features) {
    seen.features.push_back(feature.name);
    seen.normalizers.push_back(feature.normalizer);
  }
  seen.tags = vocabulary.tags;
  seen.vibes = vocabulary.vibes;
}

}  // namespace gridmill::wasm
