// bind_batch<Game>(): the Python class of a batch, the same for every game. Arrays are views whose owner is
// the buffers themselves, so they outlive the batch; the GIL is released while worlds run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind/gil.hpp"
#include "bind/to_value.hpp"
#include "core/batch.hpp"

namespace gridmill {

namespace nb = nanobind;

template <class T>
nb::ndarray<nb::numpy, T> owned_array(std::vector<T> data, std::vector<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}

template <class G>
class BatchArrays {
 public:
  explicit BatchArrays(const Batch<G>& batch) : buffers_(batch.buffers()), obs_shape_(batch.worlds().shape.obs) {}
  template <class T>
  nb::object view(T* data, std::vector<std::size_t> rest) const {
    using Kept = std::shared_ptr<Buffers<typename G::Obs>>;
    auto* kept = new Kept(buffers_);
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Kept*>(p); });
    std::vector<std::size_t> shape{buffers_->rows};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
  }
  nb::dict all() const {
    nb::dict out;
    out["obs"] = view(buffers_->obs, obs_shape_);
    out["final_obs"] = view(buffers_->final_obs, obs_shape_);
    out["actions"] = view(buffers_->actions, {});
    out["rewards"] = view(buffers_->rewards, {});
    out["terminals"] = view(buffers_->terminals, {});
    out["truncations"] = view(buffers_->truncations, {});
    out["signal"] = buffers_->signal ? view(buffers_->signal, {}) : nb::object(nb::none());
    out["teacher_actions"] = buffers_->decided ? view(buffers_->decided, {}) : nb::object(nb::none());
    out["masks"] = buffers_->masks ? view(buffers_->masks, {buffers_->num_actions}) : nb::object(nb::none());
    return out;
  }

 private:
  std::shared_ptr<Buffers<typename G::Obs>> buffers_;
  std::vector<std::size_t> obs_shape_;
};

inline BatchOptions batch_options(std::int64_t num_worlds, std::uint64_t seed, std::int64_t threads, std::int64_t lanes,
                                  bool masks, bool desync_episodes, std::int64_t min_first_episode, bool profiling,
                                  bool validation, bool fast, std::string teacher, std::vector<std::string> players,
                                  nb::handle signal, std::int64_t first_world, std::int64_t all_worlds) {
  const auto expect = [](const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
      throw std::invalid_argument(std::string(name) + ": expected an int in [" + std::to_string(low) + ", " +
                                  std::to_string(high) + "], got " + std::to_string(value));
  };
  expect("num_worlds", num_worlds, 1, 1 << 24);
  expect("threads", threads, 1, 1024);
  expect("lanes", lanes, 1, 64);
  expect("min_first_episode", min_first_episode, -1, 1'000'000'000);
  expect("all_worlds", all_worlds, 0, 1 << 24);
  expect("first_world", first_world, 0, all_worlds == 0 ? 0 : all_worlds - num_worlds);
  if (num_worlds % lanes != 0)
    throw std::invalid_argument("num_worlds must be a multiple of lanes: expected a multiple of " +
                                std::to_string(lanes) + ", got " + std::to_string(num_worlds));
  return {static_cast<std::uint32_t>(num_worlds),
          seed,
          static_cast<int>(threads),
          static_cast<int>(lanes),
          masks,
          desync_episodes,
          min_first_episode,
          profiling,
          {fast, validation},
          {std::move(teacher), std::move(players)},
          to_value(signal),
          static_cast<std::uint32_t>(first_world),
          static_cast<std::uint32_t>(all_worlds)};
}

// Through the buffer protocol, because it allocates nothing: int32 or int64 of shape [rows], any stride.
template <class G>
void write_actions(Batch<G>& batch, nb::handle actions) {
  Py_buffer view;
  if (PyObject_GetBuffer(actions.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> release(&view, &PyBuffer_Release);
  const std::string_view format = view.format == nullptr ? "B" : view.format;
  const bool is_int = format == "i" || format == "l" || format == "q";
  if (!is_int || (view.itemsize != 4 && view.itemsize != 8))
    throw TypeMismatch("actions must be int32 or int64, got items of format '" + std::string(format) + "'");
  const std::size_t rows = batch.options().num_worlds * batch.worlds().shape.num_agents;
  if (view.ndim != 1 || static_cast<std::size_t>(view.shape[0]) != rows) {
    std::string got;
    for (int i = 0; i < view.ndim; ++i) got += (i ? ", " : "") + std::to_string(view.shape[i]);
    throw std::invalid_argument("actions must have shape [" + std::to_string(rows) + "], got [" + got + "]");
  }
  batch.load_actions(view.buf, static_cast<std::size_t>(view.itemsize), view.strides[0]);
}

template <class G>
nb::tuple take_episodes(Batch<G>& batch) {
  std::vector<EpisodeHead> heads;
  std::vector<double> stats;
  batch.take_episodes(heads, stats);
  std::vector<std::int64_t> columns;
  for (const auto& h : heads)
    for (const std::int64_t value : {std::int64_t{h.world}, std::int64_t{h.agent}, std::int64_t{h.program},
                                     std::int64_t{h.episode}, std::int64_t{h.length}, std::int64_t{h.desynced}})
      columns.push_back(value);
  return nb::make_tuple(owned_array(std::move(columns), {heads.size(), 6}),
                        owned_array(std::move(stats), {heads.size(), batch.worlds().stats.size()}));
}

// Rows of worker, thread, world, phase, begin and end in ns of the steady clock; and how many found no room.
template <class G>
nb::tuple take_trace(Batch<G>& batch) {
  std::vector<std::int64_t> rows;
  std::uint64_t dropped = 0;
  const double rate = batch.times().ns_per_mark();
  batch.each_trace([&](std::size_t worker, PhaseTrace& trace) {
    for (const TracedPhase& p : trace.list)
      for (const std::int64_t value :
           {static_cast<std::int64_t>(worker), trace.thread, std::int64_t{p.world}, std::int64_t{p.phase},
            batch.times().ns_at(p.begin, rate), batch.times().ns_at(p.end, rate)})
        rows.push_back(value);
    dropped += trace.dropped;
    trace.list.clear();
    trace.dropped = 0;
  });
  const std::size_t count = rows.size() / 6;
  return nb::make_tuple(owned_array(std::move(rows), {count, 6}), dropped);
}

template <class G>
nb::class_<Batch<G>> bind_batch(nb::module_& m, const char* name) {
  using B = Batch<G>;
  using Release = nb::call_guard<ReleaseGil>;
  return nb::class_<B>(m, name)
      .def(
          "__init__",
          [](B* self, const nb::list& games, const std::vector<std::string>& fingerprints, std::int64_t num_worlds,
             std::uint64_t seed, std::int64_t threads, std::int64_t lanes, bool masks, bool desync_episodes,
             std::int64_t min_first_episode, bool profiling, bool validation, bool fast, std::string teacher,
             std::vector<std::string> players, const nb::list& signal, std::int64_t first_world,
             std::int64_t all_worlds) {
            std::vector<Value> trees;
            for (nb::handle game : games) trees.push_back(to_value(game));
            if (trees.empty() || trees.size() != fingerprints.size())
              throw std::invalid_argument("expected at least one game and one fingerprint each");
            const BatchOptions options = batch_options(
                num_worlds, seed, threads, lanes, masks, desync_episodes, min_first_episode, profiling, validation,
                fast, std::move(teacher), std::move(players), signal, first_world, all_worlds);
            new (self) B(trees, fingerprints, options);
          },
          nb::arg("games"), nb::arg("fingerprints"), nb::arg("num_worlds"), nb::arg("seed"), nb::arg("threads"),
          nb::arg("lanes"), nb::arg("masks"), nb::arg("desync_episodes"), nb::arg("min_first_episode"),
          nb::arg("profiling"), nb::arg("validation"), nb::arg("fast"), nb::arg("teacher") = "",
          nb::arg("players") = std::vector<std::string>(), nb::arg("signal") = nb::list(), nb::arg("first_world") = 0,
          nb::arg("all_worlds") = 0)
      .def("weigh_signal", &B::weigh_signal, nb::arg("weights"))
      .def("arrays", [](const B& b) { return BatchArrays<G>(b).all(); })
      .def(
          "reset", [](B& b, std::optional<std::uint64_t> seed) { b.reset(seed); }, nb::arg("seed").none(), Release())
      .def("step", &B::step, Release())
      .def("send", &B::send, nb::arg("lane"), Release())
      .def("recv", &B::recv, nb::arg("lane"), Release())
      .def("hold_ended", &B::hold_ended)
      .def("write_actions", &write_actions<G>, nb::arg("actions"))
      .def("close", &B::close, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("closed", &B::closed)
      .def("teach", &B::teach, nb::arg("on"), Release())
      .def_prop_ro("teacher_calls", &B::teacher_calls)
      .def(
          "add_game",
          [](B& b, nb::handle game, const std::string& fingerprint) { return b.add_game(to_value(game), fingerprint); },
          nb::arg("game"), nb::arg("fingerprint"))
      .def(
          "replace_game",
          [](B& b, std::int64_t number, nb::handle game, const std::string& fingerprint) {
            b.replace_game(number, to_value(game), fingerprint);
          },
          nb::arg("number"), nb::arg("game"), nb::arg("fingerprint"))
      .def("assign", &B::assign, nb::arg("worlds"), nb::arg("games"))
      .def("game_of_world",
           [](B& b) {
             auto g = b.game_of_world();
             const std::size_t n = g.size();
             return owned_array(std::move(g), {n});
           })
      .def("state_hash",
           [](B& b) {
             auto h = b.state_hash();
             const std::size_t n = h.size();
             return owned_array(std::move(h), {n});
           })
      .def(
          "save",
          [](B& b, const std::vector<std::int64_t>& worlds) {
            const std::string s = b.save(worlds);
            return nb::bytes(s.data(), s.size());
          },
          nb::arg("worlds"))
      .def(
          "restore",
          [](B& b, const nb::bytes& data, const std::vector<std::int64_t>& worlds, std::optional<std::uint32_t> first) {
            b.restore({data.c_str(), data.size()}, worlds, first);
          },
          nb::arg("data"), nb::arg("worlds"), nb::arg("first") = nb::none())
      .def(
          "join_saved",
          [](B& b, const std::vector<nb::bytes>& parts) {
            std::vector<std::string> plain;
            for (const auto& part : parts) plain.emplace_back(part.c_str(), part.size());
            const std::string s = b.join_saved(plain);
            return nb::bytes(s.data(), s.size());
          },
          nb::arg("parts"))
      .def("reseed", &B::reseed, nb::arg("worlds"), nb::arg("seeds"))
      .def("take_episodes", &take_episodes<G>)
      .def_prop_ro("episodes_dropped", &B::episodes_dropped)
      .def("timing",
           [](const B& b) {
             const auto t = b.times().last();
             return std::vector<std::int64_t>(t.begin(), t.end());
           })
      .def("timing_total",
           [](const B& b) {
             const auto t = b.times().total();
             return std::vector<std::int64_t>(t.begin(), t.end());
           })
      .def("trace", &B::trace, nb::arg("room"))
      .def("take_trace", &take_trace<G>)
      .def_prop_ro("timed_steps", [](const B& b) { return b.times().steps(); })
      .def_prop_ro("num_agents", [](const B& b) { return b.worlds().shape.num_agents; })
      .def_prop_ro("num_actions", [](const B& b) { return b.worlds().shape.num_actions; })
      .def_prop_ro("bytes_per_world", [](const B& b) { return b.worlds().bytes_per_world(); })
      .def("stats",
           [](const B& b) {
             nb::list list;
             for (const auto& s : b.worlds().stats) list.append(nb::make_tuple(s.name, s.integer));
             return list;
           })
      .def_static(
          "schema", [] { return nb::cast<nb::dict>(from_value(G::schema())); },
          "fields of a native game config: {name: [type, default, meaning]}")
      .def_prop_ro_static("phases", [](nb::handle) {
        nb::list names;
        for (const auto& phase : G::phases) names.append(nb::str(phase.name.data(), phase.name.size()));
        return names;
      });
}

}  // namespace gridmill
