#include "wasm/world.hpp"

#include <array>
#include <cstring>

#include "wasm/show.hpp"

namespace gridmill::wasm {
namespace {

// A script that plays agents of one world. It remembers of each what it saw since it was first asked in an episode, and
// answers the same however often it is asked in one tick.
template <class G>
class OwnScript {
 public:
  OwnScript(std::unique_ptr<Script<typename G::Obs>> script, std::size_t agents)
      : script_(std::move(script)), stride_((script_->memory_bytes() + 7) / 8), memory_(stride_ * agents) {
    asked_.resize(agents);
  }

  std::int32_t act(const Tick<G>& tick, std::uint32_t agent, std::size_t obs_size, const Moment& now) {
    Asked& last = asked_[agent];
    if (last.when == now) return last.action;
    if (last.when.story != now.story) forget(agent);
    const std::uint64_t draw = script_draws(tick.header.key, tick.header.tick).at(agent);
    auto* memory = reinterpret_cast<std::byte*>(memory_.data() + stride_ * agent);
    last = {now, script_->act(tick.rows.obs + agent * obs_size, memory, draw)};
    return last.action;
  }
  void forget_all() { std::fill(asked_.begin(), asked_.end(), Asked{}); }

 private:
  struct Asked {
    Moment when{0, 0};  // never
    std::int32_t action = 0;
  };
  void forget(std::uint32_t agent) {
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(stride_ * agent), stride_, 0);
  }

  std::unique_ptr<Script<typename G::Obs>> script_;
  std::size_t stride_;  // words of 8 bytes
  std::vector<std::uint64_t> memory_;
  std::vector<Asked> asked_;
};

template <class G>
class WorldOf final : public World {
 public:
  WorldOf(const Opening& opening, const Value& tree)
      : kind_(opening.kind), batch_({tree}, {opening.name}, options(opening)), buffers_(batch_.buffers()) {
    batch_.reset(opening.seed);
  }

  Value info() const override {
    const auto& worlds = batch_.worlds();
    const auto number = [](std::size_t value) { return Value{static_cast<std::int64_t>(value)}; };
    std::vector<std::string> stats;
    for (const auto& stat : worlds.stats) stats.push_back(stat.name);
    Value::List obs_shape;
    for (const auto size : worlds.shape.obs) obs_shape.push_back(number(size));
    Value::Dict info{{"kind", {kind_}},
                     {"numAgents", number(worlds.shape.num_agents)},
                     {"numActions", number(worlds.shape.num_actions)},
                     {"actionNames", list_of(action_names(batch_))},
                     {"statNames", list_of(stats)},
                     {"obsShape", {std::move(obs_shape)}},
                     {"maxSteps", number(G::max_steps(worlds.program(0)))}};
    describe(batch_, info);
    return {std::move(info)};
  }

  Value inspect() override {
    Value::Dict out;
    wasm::inspect(batch_, out);
    return {std::move(out)};
  }
  std::vector<std::int32_t> objects() override { return wasm::objects(batch_); }
  std::vector<std::uint32_t> cells() override { return wasm::cells(batch_); }

  void reset() override {
    batch_.reset(batch_.options().seed);
    begin_story();
  }
  void step() override {
    batch_.step();
    ++moment_.moves;
    if (!ended()) return;
    begin_story();
    std::vector<EpisodeHead> heads;
    batch_.take_episodes(heads, ended_stats_);
  }
  void hold_ended() override { batch_.hold_ended(); }
  std::string save() override { return batch_.save({0}); }
  void restore(const std::string& data) override {
    batch_.restore(data, {0});
    begin_story();
  }

  std::uint64_t hash() override { return batch_.state_hash()[0]; }
  WorldHeader header() override {
    return batch_.look(0, [](auto& tick) { return tick.header; });
  }
  bool ended() const override {
    const auto any = [this](const bool* flags) { return std::find(flags, flags + buffers_->rows, true); };
    return any(buffers_->terminals) != buffers_->terminals + buffers_->rows ||
           any(buffers_->truncations) != buffers_->truncations + buffers_->rows;
  }
  std::vector<double> stats() override {
    std::vector<double> out(buffers_->rows * batch_.worlds().stats.size());
    batch_.look(0, [&](auto& tick) { G::record(tick, out.data()); });
    return out;
  }
  std::vector<double> ended_stats() override { return ended_stats_; }

  Bytes array(Array which) const override {
    const auto& b = *buffers_;
    const std::size_t obs_bytes = b.rows * b.obs_size * sizeof(typename G::Obs);
    switch (which) {
      case Array::obs:
        return {b.obs, obs_bytes};
      case Array::final_obs:
        return {b.final_obs, obs_bytes};
      case Array::actions:
        return {b.actions, b.rows * sizeof(std::int32_t)};
      case Array::rewards:
        return {b.rewards, b.rows * sizeof(float)};
      case Array::terminals:
        return {b.terminals, b.rows};
      case Array::truncations:
        return {b.truncations, b.rows};
      case Array::masks:
        return {b.masks, b.masks ? b.rows * b.num_actions : 0};
    }
    throw std::invalid_argument("array: expected a number from 0 to 6");
  }

  std::vector<std::string> script_names() const override {
    return gridmill::script_names<G>(batch_.worlds().vocabulary, batch_.worlds().program(0));
  }
  std::int32_t add_script(const std::string& name) override {
    const auto& worlds = batch_.worlds();
    scripts_.emplace_back(make_script<G>(name, worlds.vocabulary, worlds.program(0)), buffers_->rows);
    return static_cast<std::int32_t>(scripts_.size()) - 1;
  }
  std::int32_t ask_script(std::int32_t script, std::uint32_t agent) override {
    OwnScript<G>& own = script_at(script);
    if (agent >= buffers_->rows)
      throw std::invalid_argument("agent " + std::to_string(agent) + " is not in [0, " +
                                  std::to_string(buffers_->rows) + ")");
    return batch_.look(0, [&](auto& tick) { return own.act(tick, agent, buffers_->obs_size, moment_); });
  }
  void forget_script(std::int32_t script) override { script_at(script).forget_all(); }

  Seen seen() const override {
    Seen seen;
    seen.num_agents = buffers_->rows;
    seen.obs_size = buffers_->obs_size;
    seen.actions = action_names(batch_);
    add_words(batch_, seen);
    return seen;
  }
  Moment moment() const override { return moment_; }

 private:
  static BatchOptions options(const Opening& opening) {
    BatchOptions options;
    options.num_worlds = 1;
    options.seed = opening.seed;
    options.masks = opening.masks;
    return options;
  }
  void begin_story() {
    ++moment_.moves;
    ++moment_.story;
  }
  OwnScript<G>& script_at(std::int32_t script) {
    if (script < 0 || static_cast<std::size_t>(script) >= scripts_.size())
      throw std::invalid_argument("script " + std::to_string(script) + " does not exist in this world");
    return scripts_[static_cast<std::size_t>(script)];
  }

  std::string kind_;
  Batch<G> batch_;
  std::shared_ptr<Buffers<typename G::Obs>> buffers_;
  std::vector<OwnScript<G>> scripts_;
  std::vector<double> ended_stats_;
  Moment moment_;
};

struct Kind {
  const char* name;
  std::unique_ptr<World> (*open)(const Opening&, const Value&);
};
template <class G>
std::unique_ptr<World> open_as(const Opening& opening, const Value& tree) {
  return std::make_unique<WorldOf<G>>(opening, tree);
}
constexpr Kind kKinds[] = {{"corridor", open_as<corridor::Corridor>},
                           {"grid", open_as<grid::Grid>},
                           {"prospector", open_as<prospector::Prospector>}};

}  // namespace

std::unique_ptr<World> open_world(const Opening& opening, const Value& tree) {
  std::vector<std::string> known;
  for (const Kind& kind : kKinds) {
    if (opening.kind == kind.name) return kind.open(opening, tree);
    known.emplace_back(kind.name);
  }
  std::string names;
  for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
  fail_at("$.kind", "expected a kind among " + names + ", got '" + opening.kind + "'" + nearest(opening.kind, known));
}

}  // namespace gridmill::wasm
