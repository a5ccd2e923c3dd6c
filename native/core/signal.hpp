// Signal<Game>: what is learned from, apart from what is paid. In every step each row gets the sum of weight x what a
// value changed by. It belongs to the batch and not to a game: worlds, their bytes and their rewards are the same with
// and without it. What a value was before follows from the state of the world, so it is not saved but read again.
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/game.hpp"

namespace gridmill {

// A game that has more to read than statistics says so with `SignalValue`: it compiles a term's value for a program and
// reads it for one agent.
template <class G>
concept ReadsValues = requires(const Tick<G>& tick, const typename G::Program& program, const Value& value,
                               const std::string& path, const typename G::SignalValue& compiled) {
  { G::compile_signal(program, value, path) } -> std::same_as<typename G::SignalValue>;
  { G::read_signal(tick, std::uint32_t{}, compiled) } -> std::same_as<double>;
};

// A game whose steps have parts (`step_parts`, `record_parts`): numbers of the last step alone, taken as they are.
template <class G>
concept HasStepParts = requires(const Tick<G>& tick, double* out) {
  { G::step_parts() } -> std::same_as<StatTable>;
  { G::record_parts(tick, out) };
};

template <class G>
struct SignalValueOf {
  using Type = std::monostate;
};
template <ReadsValues G>
struct SignalValueOf<G> {
  using Type = typename G::SignalValue;
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
      terms_.push_back({*value, decode_number(*weight, path + ".weight", between(-1e12, 1e12)), false});
    }
    if constexpr (!ReadsValues<G>) look_up(stats);
    before_.resize(buffers.rows * terms_.size());
  }

  bool on() const { return !terms_.empty(); }
  // What a thread needs to read the values of a world.
  std::size_t scratch() const { return on() ? agents_ * (terms_.size() + columns_) : 0; }

  // Programs in the order of their numbers.
  void add(const typename G::Program& program) {
    if constexpr (ReadsValues<G>) {
      std::vector<typename G::SignalValue> own;
      for (std::size_t i = 0; i < terms_.size(); ++i)
        own.push_back(G::compile_signal(program, terms_[i].value, path_of(i) + ".value"));
      programs_.push_back(std::move(own));
    }
  }

  // The values of a world at the beginning of an episode, or of one that was put back. Where no step was made, nothing
  // came of one.
  void start(const Tick<G>& tick, double* scratch, bool stepped) {
    if (!on()) return;
    if (!stepped) std::fill_n(tick.rows.signal, agents_, 0.0f);
    read(tick, before(tick), scratch);
  }

  // At the end of a step.
  void pay(const Tick<G>& tick, double* scratch) {
    double* now = scratch;
    double* then = before(tick);
    read(tick, now, scratch + agents_ * terms_.size());
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      double sum = 0;
      for (const Term& term : terms_) {
        sum += term.weight * (term.of_step ? *now : *now - *then);
        *then++ = *now++;
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

  static std::string path_of(std::size_t term) { return "$.signal[" + std::to_string(term) + "]"; }
  double* before(const Tick<G>& tick) {
    return before_.data() + static_cast<std::size_t>(tick.rows.signal - first_) * terms_.size();
  }

  // Terms by name: columns of what record() writes, then of what record_parts() does.
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
    columns_ = names.size();
  }

  // [agent][term]; `scratch` holds [agent][column].
  void read(const Tick<G>& tick, double* out, [[maybe_unused]] double* scratch) const {
    if constexpr (ReadsValues<G>) {
      const auto& values = programs_[static_cast<std::size_t>(tick.header.program)];
      for (std::uint32_t agent = 0; agent < agents_; ++agent)
        for (const auto& value : values) *out++ = G::read_signal(tick, agent, value);
    } else {
      const std::size_t parts = columns_ - stats_;
      double* of_step = scratch + agents_ * stats_;
      if (with_stats_) G::record(tick, scratch);
      if constexpr (HasStepParts<G>) G::record_parts(tick, of_step);
      for (std::size_t agent = 0; agent < agents_; ++agent)
        for (const Term& term : terms_)
          *out++ = term.of_step ? of_step[agent * parts + term.column - stats_] : scratch[agent * stats_ + term.column];
    }
  }

  std::vector<Term> terms_;
  std::vector<double> before_;  // [row][term]
  const float* first_;          // row
  std::size_t agents_, stats_ = 0, columns_ = 0;
  bool with_stats_ = false;
  std::vector<std::vector<typename SignalValueOf<G>::Type>> programs_;  // [program][term]
};

}  // namespace gridmill
