// Signal<Game>: what is learned from, apart from what is paid. In every step each row gets the sum of weight x what a
// value changed by. It belongs to the batch and not to a game: worlds, their bytes and their rewards are the same with
// and without it. What a value was before follows from the state of the world, so it is not saved but read again.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "core/game.hpp"

namespace gridmill {

// A game that has more to read than statistics says so with `SignalValues`: what it makes of the values of all terms
// for one program, filled one by one, and reads for one agent. It may know of an agent that none of them changed in
// this tick.
template <class G>
concept ReadsValues = requires(const Tick<G>& tick, const typename G::Program& program, const Value& value,
                               const std::string& path, typename G::SignalValues& values, double* out) {
  { G::add_signal(program, value, path, values) };
  { G::signal_unchanged(tick, std::uint32_t{}, values) } -> std::same_as<bool>;
  { G::read_signal(tick, std::uint32_t{}, values, out) };
};

// A game whose steps have parts: numbers of the last step alone, by name, taken as they are.
template <class G>
concept HasStepParts = requires(const Tick<G>& tick) {
  { G::step_parts() } -> std::same_as<StatTable>;
  { G::step_part(tick, std::uint32_t{}, std::size_t{}) } -> std::same_as<double>;
};

inline bool has_terms(const Value& signal) { return !expect_list(signal, "$.signal").empty(); }

template <class G>
struct SignalValuesOf {
  using Type = std::monostate;
};
template <ReadsValues G>
struct SignalValuesOf<G> {
  using Type = typename G::SignalValues;
};

template <class G>
class Signal {
 public:
  // Whose time its own is counted as.
  static constexpr std::size_t kPhase = [] {
    std::size_t phase = 0;
    while (phase + 1 < G::phases.size() && G::phases[phase].name != "rewards") ++phase;
    return phase;
  }();

  // `terms`: a list of {value, weight}, possibly empty.
  Signal(const Value& terms, const StatTable& stats, std::size_t agents, const Buffers<typename G::Obs>& buffers)
      : first_(buffers.signal), agents_(agents) {
    const auto& list = expect_list(terms, "$.signal");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = path_of(i);
      const Value *value = nullptr, *weight = nullptr;
      for (const auto& [name, item] : expect_dict(list[i], path)) {
        if (name == "value") value = &item;
        else if (name == "weight") weight = &item;
        else fail_field(path, name, {"value", "weight"});
      }
      if (value == nullptr || weight == nullptr) fail_at(path, "expected a `value` and a `weight`");
      terms_.push_back({*value, decode_number(*weight, path + ".weight", between(-kMostWeight, kMostWeight)), false});
    }
    if constexpr (!ReadsValues<G>) look_up(stats);
    before_.resize(buffers.rows * terms_.size());
  }

  bool on() const { return !terms_.empty(); }
  // Between steps: what the terms weigh from now on, in their order.
  void weigh(const std::vector<double>& weights) {
    if (weights.size() != terms_.size())
      throw std::invalid_argument("signal: expected " + std::to_string(terms_.size()) + " weights, got " +
                                  std::to_string(weights.size()));
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (!(std::abs(weights[i]) <= kMostWeight))
        throw std::invalid_argument("signal: expected weights within +-1e12, got " + std::to_string(weights[i]));
    for (std::size_t i = 0; i < weights.size(); ++i) terms_[i].weight = weights[i];
  }
  // What a thread needs to read the values of a world.
  std::size_t scratch() const { return agents_ * stats_ + terms_.size(); }

  // A program, one that is there already or the next.
  void put([[maybe_unused]] std::size_t number, const typename G::Program& program) {
    if constexpr (ReadsValues<G>) {
      typename G::SignalValues own;
      for (std::size_t i = 0; i < terms_.size(); ++i)
        G::add_signal(program, terms_[i].value, path_of(i) + ".value", own);
      if (number == programs_.size()) programs_.emplace_back();
      programs_[number] = std::move(own);
    }
  }

  // The values of a world at the beginning of an episode, or of one that was put back. Where no step was made, nothing
  // came of one.
  void start(Tick<G> tick, double* scratch, bool stepped) {
    if (!on()) return;
    if (!stepped) std::fill_n(tick.rows.signal, agents_, 0.0f);
    record(tick, scratch);
    for (std::uint32_t agent = 0; agent < agents_; ++agent) read(tick, agent, scratch, before(tick, agent));
  }

  // At the end of a step.
  void pay(Tick<G>& tick, double* scratch) {
    record(tick, scratch);
    double* now = scratch + agents_ * stats_;
    for (std::uint32_t agent = 0; agent < agents_; ++agent) {
      double sum = 0;
      if (!unchanged(tick, agent)) {
        double* then = before(tick, agent);
        read(tick, agent, scratch, now);
        for (std::size_t i = 0; i < terms_.size(); ++i) {
          sum += terms_[i].weight * (terms_[i].of_step ? now[i] : now[i] - then[i]);
          then[i] = now[i];
        }
      }
      tick.rows.signal[agent] = static_cast<float>(sum);
    }
  }

 private:
  struct Term {
    Value value;  // the name of a statistic, or whatever else the game reads
    double weight;
    bool of_step;  // a part of the last step
    std::size_t column = 0;
  };

  static constexpr double kMostWeight = 1e12;
  static std::string path_of(std::size_t term) { return "$.signal[" + std::to_string(term) + "]"; }
  double* before(const Tick<G>& tick, std::uint32_t agent) {
    return before_.data() + (static_cast<std::size_t>(tick.rows.signal - first_) + agent) * terms_.size();
  }

  // Terms by name: columns of what record() writes, then parts of a step.
  void look_up(const StatTable& stats) {
    std::vector<std::string> names;
    for (const auto& stat : stats) names.push_back(stat.name);
    if constexpr (HasStepParts<G>)
      for (const auto& part : G::step_parts()) names.push_back(part.name);
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const std::string path = path_of(i) + ".value", name = decode_text(terms_[i].value, path, {});
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) fail_at(path, "unknown statistic `" + name + "`" + nearest(name, names));
      terms_[i].column = static_cast<std::size_t>(found - names.begin());
      terms_[i].of_step = terms_[i].column >= stats.size();
      with_stats_ = with_stats_ || !terms_[i].of_step;
    }
    stats_ = stats.size();
  }

  // Where statistics are read by name, all of them are written for all agents at once: [agent][statistic].
  void record(Tick<G>& tick, double* scratch) const {
    if (with_stats_) G::record(tick, scratch);
  }

  bool unchanged([[maybe_unused]] const Tick<G>& tick, [[maybe_unused]] std::uint32_t agent) const {
    if constexpr (ReadsValues<G>) return G::signal_unchanged(tick, agent, values_of(tick));
    else return false;
  }

  // All terms of one agent; `recorded` is what record() wrote.
  void read(const Tick<G>& tick, std::uint32_t agent, [[maybe_unused]] const double* recorded, double* out) const {
    if constexpr (ReadsValues<G>) return G::read_signal(tick, agent, values_of(tick), out);
    for (const Term& term : terms_) {
      if constexpr (HasStepParts<G>)
        if (term.of_step) {
          *out++ = G::step_part(tick, agent, term.column - stats_);
          continue;
        }
      *out++ = recorded[agent * stats_ + term.column];
    }
  }

  const auto& values_of(const Tick<G>& tick) const { return programs_[static_cast<std::size_t>(tick.header.program)]; }

  std::vector<Term> terms_;
  std::vector<double> before_;  // [row][term]
  const float* first_;          // row
  std::size_t agents_, stats_ = 0;
  bool with_stats_ = false;
  std::vector<typename SignalValuesOf<G>::Type> programs_;
};

}  // namespace gridmill
