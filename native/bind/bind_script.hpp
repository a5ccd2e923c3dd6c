// bind_script<Game>(): a script of a game for rows outside of a batch, with the memory of each row. What it decides is
// what the same script decides in a batch of the same seed whose worlds have these rows.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "bind/to_value.hpp"
#include "core/scripted_rows.hpp"

namespace gridmill {

namespace nb = nanobind;

template <class G>
class RowScript {
 public:
  using Obs = typename G::Obs;
  using ObsArray = nb::ndarray<nb::numpy, const Obs, nb::c_contig, nb::device::cpu>;
  template <class T>
  using RowArray = nb::ndarray<nb::numpy, T, nb::shape<-1>, nb::c_contig, nb::device::cpu>;

  // `games`: those of the batch that the rows come from; the first of them is played.
  RowScript(const nb::list& games, const std::string& name, std::size_t rows, std::uint64_t seed) : seed_(seed) {
    std::vector<Value> trees;
    for (nb::handle game : games) trees.push_back(to_value(game));
    if (trees.empty()) throw std::invalid_argument("expected at least one game");
    vocabulary_ = std::make_unique<typename G::Vocabulary>(G::vocabulary(trees));
    program_ = std::make_unique<typename G::Program>(G::compile(*vocabulary_, trees.front()));
    shape_ = G::shape(*program_);
    script_ = make_script<G>(name, *vocabulary_, *program_);
    stride_ = (script_->memory_bytes() + 7) / 8;
    memory_.resize(stride_ * rows);
    ticks_.resize(rows);
    episodes_.resize(rows);
  }

  void act(const ObsArray& obs, const RowArray<std::int32_t>& actions) {
    expect_rows("obs", obs.ndim() == 0 ? 0 : obs.shape(0));
    expect_rows("actions", actions.shape(0));
    if (obs.size() != ticks_.size() * shape_.obs_size())
      throw std::invalid_argument("obs: expected " + std::to_string(shape_.obs_size()) + " numbers in a row, got " +
                                  std::to_string(ticks_.empty() ? 0 : obs.size() / ticks_.size()));
    for (std::size_t row = 0; row < ticks_.size(); ++row) {
      const Key key{seed_, static_cast<std::uint32_t>(row / shape_.num_agents), episodes_[row]};
      const std::uint64_t draw = script_draws(key, ticks_[row]++).at(row % shape_.num_agents);
      auto* memory = reinterpret_cast<std::byte*>(memory_.data() + stride_ * row);
      actions.data()[row] = script_->act(obs.data() + row * shape_.obs_size(), memory, draw);
    }
  }

  // Forgets the rows whose episode has ended.
  void reset(const RowArray<const bool>& ended) {
    expect_rows("ended", ended.shape(0));
    for (std::size_t row = 0; row < ticks_.size(); ++row) {
      if (!ended.data()[row]) continue;
      std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(stride_ * row), stride_, 0);
      ticks_[row] = 0;
      ++episodes_[row];
    }
  }

 private:
  void expect_rows(const char* name, std::size_t got) const {
    if (got != ticks_.size())
      throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(ticks_.size()) + " rows, got " +
                                  std::to_string(got));
  }

  std::uint64_t seed_;
  std::unique_ptr<typename G::Vocabulary> vocabulary_;  // where they are: the program points to it
  std::unique_ptr<typename G::Program> program_;
  Shape shape_;
  std::unique_ptr<Script<Obs>> script_;
  std::size_t stride_ = 0;             // words of 8 bytes
  std::vector<std::uint64_t> memory_;  // of all rows
  std::vector<std::uint32_t> ticks_, episodes_;
};

template <class G>
void bind_script(nb::module_& m, const char* name) {
  using S = RowScript<G>;
  nb::class_<S>(m, name)
      .def(nb::init<const nb::list&, const std::string&, std::size_t, std::uint64_t>(), nb::arg("games"),
           nb::arg("name"), nb::arg("rows"), nb::arg("seed"))
      .def("act", &S::act, nb::arg("obs"), nb::arg("actions"))
      .def("reset", &S::reset, nb::arg("ended"))
      .def_static(
          "names",
          [](nb::handle game) {
            const std::vector<Value> trees{to_value(game)};
            const auto vocabulary = G::vocabulary(trees);
            return script_names<G>(vocabulary, G::compile(vocabulary, trees.front()));
          },
          nb::arg("game"), "names of the scripts that can play a game");
}

}  // namespace gridmill
