// What only the grid's batch offers to Python: names, views of observations and worlds, shadow validation,
// schema.
#include <array>
#include <stdexcept>
#include <string>

#include "bind/bind_batch.hpp"
#include "bind/bind_script.hpp"
#include "bind/bindings.hpp"
#include "grid/batch.hpp"
#include "grid/observe/views.hpp"
#include "grid/schema.hpp"

namespace gridmill {

namespace {

using grid::GridBatch;

nb::list named_tokens(const grid::Program& program, const std::uint8_t* row) {
  nb::list out;
  for (const auto& t : grid::describe_row(program, row))
    out.append(nb::make_tuple(t.row ? nb::object(nb::int_(*t.row)) : nb::object(nb::none()),
                              t.column ? nb::object(nb::int_(*t.column)) : nb::object(nb::none()), t.feature, t.value,
                              t.text));
  return out;
}

nb::dict validation_report(GridBatch& batch) {
  grid::Validation sum;
  batch.each_worker([&](const grid::Worker& worker) {
    const auto& v = worker.validation;
    sum.comparisons += v.comparisons;
    sum.mismatches += v.mismatches;
    sum.fast_ns += v.fast_ns;
    sum.reference_ns += v.reference_ns;
    const auto place = [](const grid::Mismatch& m) { return std::tuple(m.episode, m.tick, m.world, m.agent); };
    if (v.first && (!sum.first || place(*v.first) < place(*sum.first))) sum.first = v.first;
  });
  nb::dict out;
  out["comparisons"] = sum.comparisons;
  out["mismatches"] = sum.mismatches;
  out["fast_ns"] = sum.fast_ns;
  out["reference_ns"] = sum.reference_ns;
  out["first_mismatch"] = nb::none();
  if (sum.first) {
    nb::dict first;
    const auto& program = batch.worlds().program(sum.first->program);
    first["world"] = sum.first->world;
    first["episode"] = sum.first->episode;
    first["tick"] = sum.first->tick;
    first["agent"] = sum.first->agent;
    first["fast"] = named_tokens(program, sum.first->fast.data());
    first["reference"] = named_tokens(program, sum.first->reference.data());
    out["first_mismatch"] = first;
  }
  return out;
}

nb::dict seen_world(GridBatch& batch, std::int64_t world) {
  return batch.look(world, [](auto& tick) {
    nb::dict out;
    out["tick"] = tick.header.tick;
    out["episode"] = tick.header.key.episode;
    out["seed"] = tick.header.key.seed;
    out["max_steps"] = tick.header.max_steps;
    out["game"] = tick.program.config.name;
    out["height"] = tick.program.height;
    out["width"] = tick.program.width;
    nb::list objects;
    const grid::World view(tick.program, tick.state);
    for (const auto& seen : grid::inspect_world(tick.program, view, tick.header.tick)) {
      nb::dict o;
      o["type"] = seen.type;
      o["row"] = seen.row;
      o["column"] = seen.column;
      o["vibe"] = seen.vibe;
      nb::list tags;
      for (const auto& tag : seen.tags) tags.append(tag);
      o["tags"] = tags;
      nb::dict inventory;
      for (const auto& [name, amount] : seen.inventory) inventory[name.c_str()] = amount;
      o["inventory"] = inventory;
      o["agent"] = seen.agent >= 0 ? nb::object(nb::int_(seen.agent)) : nb::object(nb::none());
      o["collective"] = seen.collective ? nb::object(nb::str(seen.collective->c_str())) : nb::object(nb::none());
      o["converting"] = seen.converting;
      if (seen.agent >= 0) {
        o["group"] = seen.group;
        o["facing"] = seen.facing;
        o["frozen"] = seen.frozen;
      }
      if (seen.uses) o["uses"] = *seen.uses;
      objects.append(o);
    }
    out["objects"] = objects;
    nb::dict teams;
    for (std::uint32_t team = 0; team < tick.program.collectives.teams.size(); ++team) {
      nb::dict inventory;
      for (std::uint32_t r = 0; r < tick.program.num_resources; ++r)
        if (const int held = view.held(tick.program.num_objects + team)[r])
          inventory[tick.program.config.resources[r].c_str()] = held;
      nb::dict shown;
      shown["inventory"] = inventory;
      teams[tick.program.vocabulary->teams[tick.program.collectives.teams[team].batch_id].c_str()] = shown;
    }
    out["collectives"] = teams;
    return out;
  });
}

using TokenRows = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using DenseRows = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

void check_dense(const grid::DenseForm& form, std::size_t num_rows, const DenseRows& out) {
  const std::array<std::size_t, 4> wanted = {num_rows, form.features + form.tags, form.height, form.width};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (out.shape(i) != wanted[i]) throw std::invalid_argument("out: expected [rows, channels, height, width]");
}

void write_dense_rows(GridBatch& batch, const TokenRows& rows, const DenseRows& out) {
  batch.look(0, [&](auto& tick) {
    const auto& program = tick.program;
    const auto tokens = static_cast<std::size_t>(program.config.observation.num_tokens);
    if (rows.shape(1) != tokens || rows.shape(2) != 3)
      throw std::invalid_argument("rows: expected [rows, " + std::to_string(tokens) + ", 3]");
    check_dense(grid::dense_form(program), rows.shape(0), out);
    grid::write_dense(program, rows.data(), rows.shape(0), out.data());
  });
}

// Whoever calls this keeps the array for as long as it is written to.
void send_dense_rows(GridBatch& batch, const std::optional<DenseRows>& out) {
  if (!out) return batch.dense_into(nullptr, 0);
  const auto form = grid::dense_form(batch.worlds().program(0));
  check_dense(form, batch.worlds().num_rows(), *out);
  batch.dense_into(out->data(), form.bytes);
}

}  // namespace

void bind_grid(nb::module_& m) {
  bind_batch<grid::Grid>(m, "GridBatch")
      .def("features",
           [](const GridBatch& b) {
             nb::list out;
             for (const auto& f : b.worlds().vocabulary.features) out.append(nb::make_tuple(f.name, f.normalizer));
             return out;
           })
      .def("actions", [](const GridBatch& b) { return b.worlds().vocabulary.action_names(); })
      .def("tags", [](const GridBatch& b) { return b.worlds().vocabulary.tags; })
      .def("vibes", [](const GridBatch& b) { return b.worlds().vocabulary.vibes; })
      .def("num_tokens", [](const GridBatch& b) { return b.worlds().program(0).config.observation.num_tokens; })
      .def(
          "worst_tokens",
          [](const GridBatch& b, std::int32_t game) { return b.worlds().program(game).token_cache.worst_tokens; },
          nb::arg("game"))
      .def("window",
           [](const GridBatch& b) {
             return nb::make_tuple(b.worlds().program(0).window.height, b.worlds().program(0).window.width);
           })
      .def("validation", &validation_report)
      .def("inspect", &seen_world, nb::arg("world"))
      .def("dense", &write_dense_rows, nb::arg("rows"), nb::arg("out"))
      .def("dense_into", &send_dense_rows, nb::arg("out").noconvert().none())
      .def("dense_channels", [](const GridBatch& b) { return grid::dense_channels(b.worlds().vocabulary); })
      .def(
          "describe_row",
          [](GridBatch& b, std::int64_t row) {
            const auto agents = static_cast<std::int64_t>(b.worlds().shape.num_agents);
            const std::int64_t rows = agents * b.options().num_worlds;
            if (row < 0 || row >= rows)
              throw std::invalid_argument("row " + std::to_string(row) + " is not in [0, " + std::to_string(rows) +
                                          ")");
            return b.look(row / agents, [&](auto& tick) {
              return named_tokens(tick.program,
                                  tick.rows.obs + static_cast<std::size_t>(row % agents) * b.worlds().shape.obs_size());
            });
          },
          nb::arg("row"));
  bind_script<grid::Grid>(m, "GridScript");
  m.def("grid_kinds", [] { return nb::cast<nb::dict>(from_value(grid::kinds_schema())); });
  m.def("grid_parts", [] { return nb::cast<nb::dict>(from_value(grid::parts_schema())); });
}

}  // namespace gridmill
