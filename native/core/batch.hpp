// Batch<Game>: N worlds of one kind of game, stepped by a pool of threads, lane by lane.
// It owns the order of calls, auto-reset, records, timing and errors; Worlds owns the memory. No Python, no printing.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "core/batch_options.hpp"
#include "core/episodes.hpp"
#include "core/fork.hpp"
#include "core/game.hpp"
#include "core/phases.hpp"
#include "core/signal.hpp"
#include "core/thread_pool.hpp"
#include "core/threads.hpp"
#include "core/worlds.hpp"

namespace gridmill {

template <Game G>
class Batch {
 public:
  using Obs = typename G::Obs;
  using Program = typename G::Program;
  static constexpr std::size_t kPhases = G::phases.size();

  Batch(const std::vector<Value>& games, std::vector<std::string> fingerprints, const BatchOptions& options)
      : options_(options),
        worlds_(games, std::move(fingerprints), options),
        signal_(options.signal, worlds_.stats, worlds_.shape.num_agents, *worlds_.buffers),
        lane_worlds_(options.num_worlds / static_cast<std::uint32_t>(options.lanes)),
        chunk_(std::clamp<std::uint32_t>(lane_worlds_ / static_cast<std::uint32_t>(options.threads * 4), 1, 16)),
        lanes_(static_cast<std::size_t>(options.lanes)),
        log_(worlds_.stats.size(), worlds_.num_rows()),
        forks_(fork_count()) {
    for (int i = 0; i < options_.threads; ++i)
      workers_.push_back(std::make_unique<WorkerState>(options_.observe, lanes_.size(), signal_.scratch()));
    for (std::size_t i = 0; i < worlds_.programs.size(); ++i) prepare(i, *worlds_.programs[i]);
    const std::uint32_t chunks = (lane_worlds_ + chunk_ - 1) / chunk_;
    for (auto& lane : lanes_) lane.ended.resize(chunks);
    pool_ = std::make_unique<ThreadPool>(
        options_.threads, options_.lanes, chunks,
        [this](int worker, int lane, std::uint32_t chunk) { run_chunk(worker, lane, chunk); });
  }

  ~Batch() {
    if (pool_ && forked()) pool_->abandon();
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // ---- stepping

  void reset(std::optional<std::uint64_t> seed) {
    const Call call(*this);
    refuse_in_flight("reset()");
    fresh_ = seed.has_value() || !ready_;
    if (seed) options_.seed = *seed;
    fault_.reset();
    run_all_lanes(Job::reset);
    raise_fault();
    ready_ = true;
  }

  void send(int lane) {
    const Call call(*this);
    LaneState& state = lane_state(lane);
    const std::string name = std::to_string(lane);
    if (state.in_flight)
      throw UsageError("send(" + name + "): this lane is already in flight; call recv(" + name + ") first");
    require_ready();
    refuse_ended("send()", lane_worlds_ * static_cast<std::uint32_t>(lane), lane_worlds_);
    state.in_flight = true;
    if (options_.profiling) state.sent_at = clock_mark();
    pool_->send(lane);
  }

  void recv(int lane) {
    const Call call(*this);
    LaneState& state = lane_state(lane);
    const std::string name = std::to_string(lane);
    if (!state.in_flight)
      throw UsageError("recv(" + name + "): nothing was sent to this lane; call send(" + name + ") first");
    pool_->recv(lane);
    state.in_flight = false;
    collect(lane);
    if (options_.profiling) {
      times_.begin();
      gather_times(lane);
      times_.end(state.sent_at);
    }
    raise_fault();
  }

  // All lanes: send and recv of each.
  void step() {
    const Call call(*this);
    refuse_in_flight("step()");
    require_ready();
    refuse_ended("step()", 0, options_.num_worlds);
    const std::int64_t start = options_.profiling ? clock_mark() : 0;
    run_all_lanes(Job::step);
    for (int lane = 0; lane < options_.lanes; ++lane) collect(lane);
    if (options_.profiling) {
      times_.begin();
      for (int lane = 0; lane < options_.lanes; ++lane) gather_times(lane);
      times_.end(start);
    }
    raise_fault();
  }

  // From now on a world whose episode ends stays as its last tick left it, to be looked at, until it is reset or
  // restored; it is neither stepped nor saved in between.
  void hold_ended() {
    const Call call(*this);
    refuse_in_flight("hold_ended()");
    hold_ended_ = true;
  }

  // From now on whatever writes observations also writes their dense form, `bytes` per row, to `out`, which must stay
  // until this is called again; nullptr ends it.
  void dense_into(std::uint8_t* out, std::size_t bytes) {
    const Call call(*this);
    refuse_in_flight("dense_into()");
    worlds_.dense = out;
    worlds_.dense_bytes = bytes;
  }

  // One integer of 4 or 8 bytes per row, `stride` bytes apart; what does not fit 32 bits becomes an invalid index.
  void load_actions(const void* actions, std::size_t bytes, std::int64_t stride) {
    const Call call(*this);
    refuse_in_flight("step(actions)");
    require_ready();
    if (bytes == sizeof(std::int32_t)) worlds_.template copy_actions<std::int32_t>(actions, stride);
    else worlds_.template copy_actions<std::int64_t>(actions, stride);
  }

  // Joins the threads and frees the worlds; arrays someone holds stay readable.
  void close() {
    const Call call(*this, true);
    if (pool_ == nullptr) return;
    if (forked()) pool_->abandon();
    for (int lane = 0; lane < options_.lanes && !forked(); ++lane)
      if (lane_state(lane).in_flight) pool_->recv(lane);
    pool_.reset();
    worlds_.free();
    log_.clear();
  }

  // ---- scripts

  // Switches the teacher. It begins anew where it is switched on in the middle of an episode, asked at once.
  void teach(bool on) {
    const Call call(*this);
    refuse_in_flight("teach()");
    if (worlds_.scripts.teach(on) && ready_) run_all_lanes(Job::teach);
    raise_fault();
  }
  std::uint64_t teacher_calls() const { return worlds_.scripts.teacher_calls(); }

  // ---- games and what is learned from them

  void weigh_signal(const std::vector<double>& weights) {
    const Call call(*this);
    refuse_in_flight("weigh_signal()");
    signal_.weigh(weights);
  }

  int add_game(const Value& game, const std::string& fingerprint) {
    const Call call(*this);
    refuse_in_flight("add_game()");
    put_game(worlds_.programs.size(), game, fingerprint);
    return static_cast<int>(worlds_.programs.size()) - 1;
  }

  void replace_game(std::int64_t number, const Value& game, const std::string& fingerprint) {
    const Call call(*this);
    refuse_in_flight("replace_game()");
    worlds_.check_game("replace_game", number);
    worlds_.refuse_played(static_cast<std::int32_t>(number));
    put_game(static_cast<std::size_t>(number), game, fingerprint);
  }

  // Between two steps of the worlds' own lanes; other lanes may be in flight.
  void assign(const std::vector<std::int64_t>& worlds, const std::vector<std::int64_t>& games) {
    const Call call(*this);
    for (const auto world : worlds) {
      worlds_.check_world(world);
      refuse_in_flight("assign()", static_cast<std::size_t>(world) / lane_worlds_);
    }
    worlds_.assign(worlds, games);
  }

  std::vector<std::int32_t> game_of_world() {
    const Call call(*this);
    refuse_in_flight("game_of_world");
    return worlds_.game_of_world();
  }

  // ---- state to bytes and back

  std::vector<std::uint64_t> state_hash() {
    const Call call(*this);
    refuse_in_flight("state_hash()");
    require_ready();
    std::vector<std::uint64_t> hashes(options_.num_worlds);
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w)
      hashes[w] = hash_bytes(worlds_.block(w), worlds_.saved_bytes(w));
    return hashes;
  }

  std::string save(const std::vector<std::int64_t>& worlds) {
    const Call call(*this);
    refuse_in_flight("save()");
    require_ready();
    for (const auto w : worlds) {
      worlds_.check_world(w);
      refuse_ended("save()", static_cast<std::uint32_t>(w), 1);
    }
    return worlds_.save(worlds);
  }

  // What several batches of one run saved, as if one had; all of their games must be the same.
  std::string join_saved(const std::vector<std::string>& parts) {
    const Call call(*this);
    return worlds_.join_saved(parts);
  }

  // `first`: these worlds are some of many that were saved, from this one on.
  void restore(const std::string& data, const std::vector<std::int64_t>& worlds,
               std::optional<std::uint32_t> first = {}) {
    const Call call(*this);
    refuse_in_flight("restore()");
    for (const auto w : worlds) worlds_.check_world(w);
    worlds_.restore(data, worlds, first);
    WorkerState& own = *workers_.front();
    for (const auto w : worlds) {
      auto tick = worlds_.tick(static_cast<std::uint32_t>(w), own.game);
      signal_.start(tick, own.scratch.data(), false);
      if constexpr (requires { G::show_dense(tick); }) G::show_dense(tick);
    }
    bool all_started = true, any_failed = false;
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w) {
      all_started = all_started && worlds_.header(w).max_steps != 0;
      any_failed = any_failed || worlds_.header(w).failed != 0;
    }
    if (!any_failed) fault_.reset();
    ready_ = ready_ || all_started;
  }

  // From now on these worlds draw as if their episode had been made from other seeds; what has happened stays. Forks of
  // one world part by it, and forks with one seed draw alike.
  void reseed(const std::vector<std::int64_t>& worlds, const std::vector<std::uint64_t>& seeds) {
    const Call call(*this);
    refuse_in_flight("reseed()");
    require_ready();
    if (worlds.size() != seeds.size())
      throw std::invalid_argument("reseed: " + std::to_string(worlds.size()) + " worlds but " +
                                  std::to_string(seeds.size()) + " seeds");
    for (const auto w : worlds) worlds_.check_world(w);
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      auto tick = worlds_.tick(static_cast<std::uint32_t>(worlds[i]), workers_.front()->game);
      tick.header.key.seed = seeds[i];
      if constexpr (requires { G::reseed(tick); }) G::reseed(tick);
    }
  }

  // ---- what happened

  void take_episodes(std::vector<EpisodeHead>& heads, std::vector<double>& stats) {
    const Call call(*this);
    refuse_in_flight("take_episodes()");
    log_.take(heads, stats);
  }
  std::uint64_t episodes_dropped() const { return log_.dropped(); }

  const StepTimes<kPhases>& times() const { return times_; }

  // From now on every worker keeps its phases, `room` of them at most; 0 ends it.
  void trace(std::size_t room) {
    const Call call(*this);
    refuse_in_flight("trace()");
    if (!options_.profiling) throw UsageError("trace(): phases are timed only with profiling on");
    for (const auto& worker : workers_) worker->trace.start(room);
  }

  // visit(worker, its trace) for each; a mark is ns with times().ns_at().
  template <class Visit>
  void each_trace(Visit visit) {
    const Call call(*this);
    refuse_in_flight("take_trace()");
    for (std::size_t i = 0; i < workers_.size(); ++i) visit(i, workers_[i]->trace);
  }

  // Between steps only: what workers keep is theirs while a lane is in flight.
  template <class Visit>
  void each_worker(Visit visit) {
    const Call call(*this);
    refuse_in_flight("observation_validation");
    for (const auto& worker : workers_) visit(worker->game);
  }

  // A look at one world between steps, for inspection and rendering.
  template <class Look>
  auto look(std::int64_t world, Look look) {
    const Call call(*this);
    refuse_in_flight("inspect()");
    require_ready();
    worlds_.check_world(world);
    auto tick = worlds_.tick(static_cast<std::uint32_t>(world), workers_.front()->game);
    return look(tick);
  }

  const BatchOptions& options() const { return options_; }
  const Worlds<G>& worlds() const { return worlds_; }
  std::shared_ptr<Buffers<Obs>> buffers() const {
    if (worlds_.buffers == nullptr) throw UsageError("this env is closed");
    return worlds_.buffers;
  }
  bool closed() const { return pool_ == nullptr; }

 private:
  struct WorkerState {
    WorkerState(ObserveOptions o, std::size_t lanes, std::size_t n) : game(o), scratch(n), marks(lanes) {}
    typename G::Worker game;
    std::vector<double> scratch;  // the signal's
    // Per lane: another lane may be in flight while one is read.
    std::vector<PhaseMarks<kPhases>> marks;
    PhaseTrace trace;
  };
  struct LaneState {
    bool in_flight = false;
    std::uint64_t steps = 0;
    std::int64_t sent_at = 0;
    std::optional<WorldFault> fault;  // the workers' while the lane is in flight
    // By chunk, not by worker: what a list must hold does not depend on who ran it, so it stops growing.
    std::vector<EndedEpisodes> ended;
  };

  // Entry to every public call: one caller at a time, not after close, not in a forked child.
  class Call {
   public:
    explicit Call(Batch& batch, bool closing = false) : batch_(batch) {
      if (batch_.busy_.exchange(true, std::memory_order_acquire))
        throw UsageError("this env is being used by another thread; only one thread may use it at a time");
      if (!closing && batch_.pool_ == nullptr) reject("this env is closed");
      if (!closing && batch_.forked())
        reject("this env was made before fork(); its threads do not exist in this process: make a new one here");
    }
    ~Call() { batch_.busy_.store(false, std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    [[noreturn]] void reject(const char* why) {
      batch_.busy_.store(false, std::memory_order_release);
      throw UsageError(why);
    }
    Batch& batch_;
  };

  bool forked() const { return forks_ != fork_count().load(std::memory_order_relaxed); }

  LaneState& lane_state(int lane) {
    if (lane < 0 || lane >= options_.lanes)
      throw std::invalid_argument("lane " + std::to_string(lane) + " is not in [0, " + std::to_string(options_.lanes) +
                                  ")");
    return lanes_[static_cast<std::size_t>(lane)];
  }
  void require_ready() const {
    if (fault_)
      throw UsageError("a world failed in an earlier step, so the worlds are out of step; call reset() first");
    if (!ready_) throw UsageError("call reset() before the first step");
  }
  void refuse_in_flight(const char* what) const {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) refuse_in_flight(what, lane);
  }
  void refuse_in_flight(const char* what, std::size_t lane) const {
    if (!lanes_[lane].in_flight) return;
    const std::string name = std::to_string(lane);
    throw UsageError(std::string(what) + " while lane " + name + " is in flight; call recv(" + name + ") first");
  }
  void refuse_ended(const char* what, std::uint32_t first, std::uint32_t count) const {
    for (std::uint32_t w = first; hold_ended_ && w < first + count; ++w)
      if (worlds_.header(w).ended)
        throw UsageError(std::string(what) + ": the episode of world " + std::to_string(w) +
                         " has ended and is held; reset() or restore() it first");
  }
  // Called when the lane has come back: its fault becomes the batch's, the lowest world's first.
  void take_fault(int lane) {
    auto& fault = lanes_[static_cast<std::size_t>(lane)].fault;
    if (fault && (!fault_ || fault_->world > fault->world)) fault_.emplace(*fault);
    fault.reset();
  }
  void raise_fault() {
    for (int lane = 0; lane < options_.lanes; ++lane)
      if (!lanes_[static_cast<std::size_t>(lane)].in_flight) take_fault(lane);
    if (fault_) throw WorldFault(*fault_);
  }

  void put_game(std::size_t number, const Value& game, const std::string& fingerprint) {
    worlds_.put(number, game, fingerprint, [this](std::size_t at, const Program& program) { prepare(at, program); });
  }

  void prepare(std::size_t number, const Program& program) {
    for (const auto& worker : workers_) worker->game.fit(program);
    signal_.put(number, program);
    for (std::size_t p = 0; p < kPhases; ++p) used_phases_[p] = used_phases_[p] || G::phases[p].used(program);
  }

  // ---- the work of one chunk

  enum class Job : std::uint8_t { step, reset, teach };

  void run_all_lanes(Job job) {
    job_ = job;
    for (int lane = 0; lane < options_.lanes; ++lane) pool_->send(lane);
    for (int lane = 0; lane < options_.lanes; ++lane) pool_->recv(lane);
    job_ = Job::step;
  }

  void run_chunk(int worker, int lane, std::uint32_t chunk) {
    const std::uint32_t lane_first = lane_worlds_ * static_cast<std::uint32_t>(lane);
    const std::uint32_t first = lane_first + chunk * chunk_;
    const std::uint32_t last = std::min(first + chunk_, lane_first + lane_worlds_);
    WorkerState& state = *workers_[static_cast<std::size_t>(worker)];
    auto& marks = state.marks[static_cast<std::size_t>(lane)];
    if (state.trace.on()) state.trace.thread = thread_number();
    for (std::uint32_t w = first; w < last; ++w)
      guarded(w, [&] {
        if (job_ != Job::step) prepare_world(w, state);
        else if (options_.profiling) step_world<true>(w, last, state, marks);
        else step_world<false>(w, last, state, marks);
      });
  }

  // Runs one world's work and keeps the exception of the lowest world.
  template <class Work>
  void guarded(std::uint32_t world, Work work) noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      keep_fault(world, error.what());
    } catch (...) {
      keep_fault(world, "an exception that is not a std::exception");
    }
  }

  // Kept by lane, so that whoever waits for another lane neither sees nor touches it.
  void keep_fault(std::uint32_t world, const char* what) {
    const std::lock_guard lock(fault_mutex_);
    WorldHeader& header = worlds_.header(world);
    auto& fault = lanes_[world / lane_worlds_].fault;
    if (!fault || fault->world > world) fault.emplace(world, header.tick, header.key, what);
    header.ended = 0;
    header.failed = 1;
  }

  // Worlds are taken one after the other and soon outgrow the caches, so a game may ask for the memory of the next one
  // in this chunk (a further one may be another thread's).
  const std::byte* ahead_of(std::uint32_t world, std::uint32_t last) const {
    const std::uint32_t next = world + 1;
    const bool alike = next < last && worlds_.header(next).program == worlds_.header(world).program;
    return alike ? worlds_.state(next) : nullptr;
  }

  void prepare_world(std::uint32_t world, WorkerState& state) {
    if (job_ == Job::reset) {
      start_episode(world, state, true);
      worlds_.ask_players(world);
    } else {
      worlds_.scripts.forget_taught(world);
    }
    worlds_.ask_teacher(world);
  }

  // Timed, the clock is read between the phases; those that no game uses share the mark of the one before.
  template <bool timed>
  void step_world(std::uint32_t world, std::uint32_t last, WorkerState& state, PhaseMarks<kPhases>& marks) {
    const bool scripted = worlds_.scripts.any();
    if (scripted) worlds_.scripts.play(worlds_.decided(world), worlds_.actions(world));
    auto tick = worlds_.tick(world, state.game);
    tick.ahead = ahead_of(world, last);
    [[maybe_unused]] std::int64_t mark = timed ? clock_mark() : 0;
    const auto take_time = [&](std::size_t phase) {
      if constexpr (timed) note_time(state.trace, marks, mark, world, phase);
    };
    [&]<std::size_t... P>(std::index_sequence<P...>) {
      ((G::phases[P].run(tick), used_phases_[P] ? take_time(P) : void()), ...);
    }(std::make_index_sequence<kPhases>{});
    if (signal_.on()) {
      signal_.pay(tick, state.scratch.data());
      take_time(Signal<G>::kPhase);
    }
    if (tick.header.ended) {
      end_episode(world, tick, state);
      take_time(kPhases);
    }
    if (!scripted) return;
    worlds_.ask_players(world);
    take_time(kPhases + 1);
    worlds_.ask_teacher(world);
    take_time(kPhases + 2);
  }

  static void note_time(PhaseTrace& trace, PhaseMarks<kPhases>& marks, std::int64_t& mark, std::uint32_t world,
                        std::size_t phase) {
    const std::int64_t now = clock_mark();
    marks[phase] += now - mark;
    if (trace.on()) trace.add({mark, now, world, static_cast<std::uint32_t>(phase)});
    mark = now;
  }

  // ---- episodes

  // Keeps what the ended episode leaves behind, then starts the next one, unless the end is to be looked at: its first
  // observation fills the row.
  void end_episode(std::uint32_t world, Tick<G>& tick, WorkerState& state) {
    const Shape& shape = worlds_.shape;
    std::memcpy(tick.rows.final_obs, tick.rows.obs, shape.num_agents * shape.obs_size() * sizeof(Obs));
    const WorldHeader& h = tick.header;
    EndedEpisodes& ended = lanes_[world / lane_worlds_].ended[world % lane_worlds_ / chunk_];
    const std::size_t at = ended.stats.size();
    ended.stats.resize(at + shape.num_agents * worlds_.stats.size());
    G::record(tick, ended.stats.data() + at);
    ended.heads.push_back({0, world, 0, h.key.episode, h.tick, h.program, h.desynced != 0});
    if (!hold_ended_) start_episode(world, state, false);
  }

  void start_episode(std::uint32_t world, WorkerState& state, bool from_reset) {
    WorldHeader next = worlds_.header(world);
    if (from_reset && fresh_) next.key = {options_.seed, options_.first_world + world, 0};
    else next.key.episode += 1;
    if (next.next_program >= 0) next.program = next.next_program;
    const Program& program = worlds_.program(next.program);
    next.next_program = -1;
    next.tick = 0;
    next.ended = next.failed = next.desynced = 0;
    next.max_steps = G::max_steps(program);
    if (options_.desync_episodes && from_reset && fresh_) shorten(program, world, next);
    worlds_.header(world) = next;
    if constexpr (!kKeepsState<G>) std::memset(worlds_.state(world), 0, G::state_bytes(program));
    auto tick = worlds_.tick(world, state.game);
    if (from_reset) {
      const std::size_t n = worlds_.shape.num_agents;
      std::fill_n(tick.rows.rewards, n, 0.0f);
      std::fill_n(tick.rows.terminals, n, false);
      std::fill_n(tick.rows.truncations, n, false);
    }
    worlds_.scripts.forget(world);
    G::reset(tick);
    G::observe(tick);
    signal_.start(tick, state.scratch.data(), !from_reset);
  }

  // World i of all N starts with an episode of m + round((max - m) * (i + 1) / N) ticks.
  void shorten(const Program& program, std::uint32_t world, WorldHeader& next) const {
    const std::int64_t full = next.max_steps, i = std::int64_t{options_.first_world} + world;
    const std::int64_t n = options_.all_worlds ? options_.all_worlds : options_.num_worlds;
    if (full == 0) return;
    const std::int64_t asked =
        options_.min_first_episode >= 0 ? options_.min_first_episode : G::min_first_episode(program);
    const std::int64_t least = std::min(std::max<std::int64_t>(asked, 1), full);
    next.max_steps = static_cast<std::uint32_t>(least + (2 * (full - least) * (i + 1) + n) / (2 * n));
    next.desynced = next.max_steps < full;
  }

  // On the caller's thread.
  void collect(int lane) {
    const auto index = static_cast<std::size_t>(lane);
    const std::uint64_t step = lanes_[index].steps++;
    const std::size_t agents = worlds_.shape.num_agents;
    for (auto& ended : lanes_[index].ended) {
      log_.add(ended, step, agents);
      ended.clear();
    }
  }

  void gather_times(int lane) {
    for (const auto& worker : workers_) times_.add(worker->marks[static_cast<std::size_t>(lane)]);
  }

  BatchOptions options_;
  Worlds<G> worlds_;
  Signal<G> signal_;
  std::uint32_t lane_worlds_, chunk_;
  std::vector<LaneState> lanes_;
  EpisodeLog log_;
  std::vector<std::unique_ptr<WorkerState>> workers_;
  bool ready_ = false, fresh_ = true, hold_ended_ = false;
  Job job_ = Job::step;  // what the lanes do when they are sent
  std::optional<WorldFault> fault_;
  Mutex fault_mutex_;
  std::atomic<bool> busy_{false};
  std::uint32_t forks_;
  std::array<bool, kPhases> used_phases_{};  // by any game: a phase nobody uses needs no clock
  StepTimes<kPhases> times_;
  std::unique_ptr<ThreadPool> pool_;  // last: its threads must end before what they use
};

}  // namespace gridmill

// A batch takes long to compile, so every game's is compiled once: declared at the end of the game's header, compiled
// at the end of one of its .cpp files. The name is the game's inside of namespace gridmill.
#define GRIDMILL_DECLARE_BATCH(game) \
  namespace gridmill {               \
  static_assert(Game<game>);         \
  extern template class Batch<game>; \
  }
#define GRIDMILL_COMPILE_BATCH(game) \
  namespace gridmill {               \
  template class Batch<game>;        \
  }
