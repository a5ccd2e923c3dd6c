// What only Prospector offers to Python: facts of the last step, one ship outside of a batch, its scripts.
#include <algorithm>
#include <memory>

#include "bind/bind_batch.hpp"
#include "bind/bind_script.hpp"
#include "bind/bindings.hpp"
#include "prospector/batch.hpp"

namespace gridmill {

namespace {

using prospector::ProspectorBatch;

template <class T>
using RowArray = nb::ndarray<nb::numpy, T, nb::shape<-1>, nb::c_contig, nb::device::cpu>;

void expect_rows(const char* name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(expected) + " rows, got " +
                                std::to_string(got));
}

// Info as Python's env hands it out: numbers are floats unless the name says otherwise.
nb::dict info_dict(const prospector::State& state) {
  const auto names = prospector::info_names();
  std::vector<double> values(names.size());
  prospector::write_info(state, values.data());
  nb::dict out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i].name;
    const double value = values[i];
    nb::object item = nb::float_(value);
    if (name == "node_context") item = nb::str(value == 0 ? "station" : "field");
    else if (name == "invalid_action" || name == "terminated" || name == "truncated") item = nb::bool_(value != 0);
    else if (names[i].integer) item = nb::int_(static_cast<std::int64_t>(value));
    out[name.c_str()] = item;
  }
  return out;
}

constexpr const char* kGoodNames[] = {"iron", "nickel", "water_ice", "pge", "rare_isotopes", "volatiles"};

nb::dict by_good(const float* values) {
  nb::dict out;
  for (int good = 0; good < prospector::kGoods; ++good) out[kGoodNames[good]] = static_cast<double>(values[good]);
  return out;
}

nb::dict ship_dict(const prospector::State& s) {
  nb::dict out;
  out["sector"] = s.node;
  out["fuel"] = s.fuel;
  out["hull"] = s.hull;
  out["heat"] = s.heat;
  out["tool"] = s.tool;
  out["alert"] = s.alert;
  out["credits"] = s.credits;
  out["total_spend"] = s.total_spend;
  out["time_remaining"] = s.time_remaining;
  out["repair_kits"] = s.repair_kits;
  out["stabilizers"] = s.stabilizers;
  out["decoys"] = s.decoys;
  out["pirate_encounters"] = s.pirate_encounters;
  return out;
}

// One belt by name, for pictures: all of it, also what the ship has not seen.
void write_belt(const prospector::State& s, nb::dict& out) {
  out["ship"] = ship_dict(s);
  out["cargo"] = by_good(s.cargo);
  out["price"] = by_good(s.price);
  out["previous_price"] = by_good(s.prev_price);
  nb::list sectors, links;
  for (int node = 0; node < std::clamp(s.node_count, 0, prospector::kNodes); ++node) {
    nb::dict sector;
    sector["kind"] = s.type[node] == prospector::kStation   ? "station"
                     : s.type[node] == prospector::kCluster ? "cluster"
                                                            : "hazard";
    sector["visited"] = s.place[node] != 0;
    sector["asteroids"] = s.num_asteroids[node];
    sector["hazard"] = s.hazard[node];
    sector["pirates"] = s.pirates[node];
    sectors.append(sector);
    const prospector::Edges& edges = s.edges[node];
    for (int slot = 0; slot < prospector::kSlots && edges.to[slot] >= 0; ++slot)
      links.append(nb::make_tuple(node, static_cast<int>(edges.to[slot]), static_cast<int>(edges.time[slot])));
  }
  out["sectors"] = sectors;
  out["links"] = links;
  out["action"] = s.action;
  out["invalid"] = s.invalid != 0;
  out["reward"] = s.reward;
}

nb::dict seen_world(ProspectorBatch& batch, std::int64_t world) {
  return batch.look(world, [](auto& tick) {
    nb::dict out;
    out["tick"] = tick.header.tick;
    out["episode"] = tick.header.key.episode;
    out["seed"] = tick.header.key.seed;
    write_belt(prospector::Prospector::state(tick), out);
    return out;
  });
}

// One ship, one episode at a time.
struct LoneProspector {
  prospector::Program program;
  std::unique_ptr<prospector::State> state = std::make_unique<prospector::State>();

  nb::object obs() const {
    std::vector<float> row(prospector::kObs);
    prospector::observe(program, *state, row.data());
    return nb::cast(owned_array(std::move(row), {prospector::kObs}));
  }
  nb::object mask() const {
    std::vector<std::uint8_t> row(prospector::kActions);
    prospector::write_mask(program, *state, row.data());
    return nb::cast(owned_array(std::move(row), {prospector::kActions}));
  }
};

template <class Class>
void bind_prospector_batch(Class&& cls) {
  cls.def(
         "step_info",
         [](ProspectorBatch& b, const RowArray<std::int32_t>& dt, const RowArray<bool>& invalid,
            const RowArray<std::int32_t>& action) {
           const std::size_t rows = b.options().num_worlds;
           expect_rows("dt", dt.shape(0), rows);
           expect_rows("invalid", invalid.shape(0), rows);
           expect_rows("action", action.shape(0), rows);
           for (std::size_t w = 0; w < rows; ++w)
             b.look(static_cast<std::int64_t>(w), [&](auto& tick) {
               const auto& state = prospector::Prospector::state(tick);
               dt.data()[w] = state.dt;
               invalid.data()[w] = state.invalid != 0;
               action.data()[w] = state.action;
             });
         },
         nb::arg("dt"), nb::arg("invalid"), nb::arg("action"), "writes facts about the last step into the arrays")
      .def("inspect", &seen_world, nb::arg("world"), "one world by name, for pictures")
      .def("rng_states", [](ProspectorBatch& b) {
        std::vector<std::uint64_t> states(b.options().num_worlds);
        for (std::size_t w = 0; w < states.size(); ++w)
          b.look(static_cast<std::int64_t>(w),
                 [&](auto& tick) { states[w] = prospector::Prospector::state(tick).rng.state; });
        return owned_array(std::move(states), {b.options().num_worlds});
      });
}

}  // namespace

void bind_prospector(nb::module_& m) {
  bind_prospector_batch(bind_batch<prospector::Prospector>(m, "ProspectorBatch"));
  nb::class_<LoneProspector>(m, "LoneProspector")
      .def(
          "__init__",
          [](LoneProspector* self, nb::handle config) {
            new (self) LoneProspector{prospector::compile(to_value(config))};
          },
          nb::arg("config"))
      .def(
          "reset",
          [](LoneProspector& l, std::optional<std::uint64_t> seed) {
            prospector::reset_alone(l.program, *l.state, seed ? &*seed : nullptr);
          },
          nb::arg("seed").none())
      .def(
          "step",
          [](LoneProspector& l, std::int64_t action) {
            prospector::step_alone(l.program, *l.state, action);
            return nb::make_tuple(l.state->reward, l.state->terminated != 0, l.state->truncated != 0);
          },
          nb::arg("action"))
      .def("obs", &LoneProspector::obs)
      .def("mask", &LoneProspector::mask)
      .def("info", [](const LoneProspector& l) { return info_dict(*l.state); })
      .def("inspect",
           [](const LoneProspector& l) {
             nb::dict out;
             write_belt(*l.state, out);
             return out;
           })
      .def_prop_ro("rng_state", [](const LoneProspector& l) { return l.state->rng.state; });
  bind_script<prospector::Prospector>(m, "ProspectorScript");
}

}  // namespace gridmill
