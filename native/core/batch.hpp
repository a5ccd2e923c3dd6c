// Batch<Game>: N worlds of one kind of game, stepped by a crew of threads, lane by lane.
// It owns the shared arrays, the world blocks, auto-reset, episode records, timing, errors and snapshots; the
// game only knows one world. Python's door (bind/) and the native tests call it; it calls no Python and prints nothing.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/buffers.hpp"
#include "core/crew.hpp"
#include "core/episodes.hpp"
#include "core/game.hpp"
#include "core/phases.hpp"
#include "core/snapshot.hpp"

namespace gridmill {

// A call in the wrong order or from the wrong place.
struct UsageError : std::logic_error {
  using std::logic_error::logic_error;
};

// An exception inside a world, carried out of the worker.
struct WorldFault : std::runtime_error {
  WorldFault(std::uint32_t world_, std::uint32_t tick_, const Key& key_, const std::string& what_)
      : std::runtime_error("world " + std::to_string(world_) + ", episode " + std::to_string(key_.episode) + ", tick " +
                           std::to_string(tick_) + ", seed " + std::to_string(key_.seed) + ": " + what_),
        world(world_) {}
  std::uint32_t world;
};

struct BatchOptions {
  std::uint32_t num_worlds = 64;
  std::uint64_t seed = 0;
  int threads = 1;
  int lanes = 1;
  bool masks = false;
  bool desync_episodes = false;
  std::int64_t min_first_episode = -1;  // -1: the game's own
  bool profiling = false;
  ObserveOptions observe{};
};

// Bumped in the child of a fork: threads did not come along, so batches of the parent are unusable there.
inline std::atomic<std::uint32_t>& fork_count() {
  static std::atomic<std::uint32_t> count{0};
  static const int hooked = pthread_atfork(nullptr, nullptr, [] { fork_count().fetch_add(1); });
  (void)hooked;
  return count;
}

template <Game G>
class Batch {
 public:
  using Obs = typename G::Obs;
  using Program = typename G::Program;
  static constexpr std::size_t kPhases = G::phases.size();

  Batch(const std::vector<Value>& games, std::vector<std::string> fingerprints, const BatchOptions& options)
      : options_(options), words_(G::vocabulary(games)), fingerprints_(std::move(fingerprints)), forks_(fork_count()) {
    for (const auto& game : games) programs_.push_back(std::make_unique<Program>(G::compile(words_, game)));
    for (const auto& program : programs_) note_phases(*program);
    shape_ = G::shape(*programs_.front());
    for (std::size_t i = 1; i < programs_.size(); ++i) check_shape(*programs_[i]);
    stats_ = G::stats(words_);
    for (const auto& program : programs_) stride_ = std::max(stride_, stride_for(*program));
    refuse_more_than_memory();
    const std::size_t rows = options_.num_worlds * shape_.num_agents;
    buffers_ = std::make_shared<Buffers<Obs>>(rows, shape_.obs_size(), shape_.num_actions, options_.masks, G::empty_obs);
    blocks_ = Pages(stride_ * options_.num_worlds);
    records_.resize(rows * stats_.size());
    finished_.resize(options_.num_worlds);
    lane_steps_.resize(static_cast<std::size_t>(options_.lanes));
    in_flight_.resize(static_cast<std::size_t>(options_.lanes));
    log_ = std::make_unique<EpisodeLog>(stats_.size(), std::max<std::size_t>(4 * rows, 65'536));
    for (int i = 0; i < options_.threads; ++i) {
      workers_.push_back(std::make_unique<WorkerState>(options_.observe, options_.lanes));
      for (const auto& program : programs_) workers_.back()->game.fit(*program);
    }
    const std::uint32_t lane_worlds = options_.num_worlds / static_cast<std::uint32_t>(options_.lanes);
    chunk_ = std::clamp<std::uint32_t>(lane_worlds / static_cast<std::uint32_t>(options_.threads * 4), 1, 16);
    crew_ = std::make_unique<Crew>(options_.threads, options_.lanes, (lane_worlds + chunk_ - 1) / chunk_,
                                   [this](int worker, int lane, std::uint32_t chunk) { run_chunk(worker, lane, chunk); });
  }

  ~Batch() {
    if (crew_ && forked()) crew_->abandon();
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // ---- stepping

  void reset(std::optional<std::uint64_t> seed) {
    const Call call(*this);
    refuse_in_flight("reset()");
    fresh_ = seed.has_value() || !ready_;
    if (seed) options_.seed = *seed;
    resetting_ = true;
    fault_.reset();
    log_->clear();
    run_all_lanes();
    resetting_ = false;
    std::fill(lane_steps_.begin(), lane_steps_.end(), 0);
    raise_fault();
    ready_ = true;
  }

  void send(int lane) {
    const Call call(*this);
    check_lane(lane);
    if (in_flight_[static_cast<std::size_t>(lane)])
      throw UsageError("send(" + std::to_string(lane) + "): this lane is already in flight; call recv(" +
                       std::to_string(lane) + ") first");
    require_ready();
    in_flight_[static_cast<std::size_t>(lane)] = 1;
    if (options_.profiling) sent_at_[static_cast<std::size_t>(lane)] = clock_mark();
    crew_->send(lane);
  }

  void recv(int lane) {
    const Call call(*this);
    check_lane(lane);
    if (!in_flight_[static_cast<std::size_t>(lane)])
      throw UsageError("recv(" + std::to_string(lane) + "): nothing was sent to this lane; call send(" +
                       std::to_string(lane) + ") first");
    crew_->recv(lane);
    in_flight_[static_cast<std::size_t>(lane)] = 0;
    collect(lane);
    if (options_.profiling) {
      last_ = {};
      gather_timing(lane);
      finish_timing(sent_at_[static_cast<std::size_t>(lane)]);
    }
    raise_fault();
  }

  // Checked rows of actions, `stride` bytes apart; what does not fit 32 bits becomes an invalid index.
  template <class Int>
  void load_actions(const void* actions, std::int64_t stride) {
    const Call call(*this);
    refuse_in_flight("step(actions)");
    require_ready();
    std::int32_t* out = buffers_->actions;
    for (std::size_t row = 0; row < buffers_->rows; ++row) {
      Int action;
      std::memcpy(&action, static_cast<const char*>(actions) + static_cast<std::int64_t>(row) * stride, sizeof action);
      out[row] = static_cast<Int>(static_cast<std::int32_t>(action)) == action ? static_cast<std::int32_t>(action) : -1;
    }
  }

  // All lanes: send and recv of each.
  void step() {
    const Call call(*this);
    refuse_in_flight("step()");
    require_ready();
    const std::int64_t start = options_.profiling ? clock_mark() : 0;
    run_all_lanes();
    for (int lane = 0; lane < options_.lanes; ++lane) collect(lane);
    if (options_.profiling) {
      last_ = {};
      for (int lane = 0; lane < options_.lanes; ++lane) gather_timing(lane);
      finish_timing(start);
    }
    raise_fault();
  }

  // Joins the threads and frees the worlds; arrays someone holds stay readable.
  void close() {
    const Call call(*this, true);
    if (crew_ == nullptr) return;
    if (forked()) crew_->abandon();
    for (int lane = 0; lane < options_.lanes && !forked(); ++lane)
      if (in_flight_[static_cast<std::size_t>(lane)]) crew_->recv(lane);
    std::fill(in_flight_.begin(), in_flight_.end(), 0);
    crew_.reset();
    blocks_ = Pages();
    buffers_.reset();
    records_ = {};
    log_->clear();
  }

  // ---- games

  int add_game(const Value& game, const std::string& fingerprint) {
    const Call call(*this);
    refuse_in_flight("add_game()");
    auto program = std::make_unique<Program>(G::compile(words_, game));
    check_shape(*program);
    const std::size_t stride = stride_for(*program);
    if (stride > stride_) grow_blocks(stride);
    for (const auto& worker : workers_) worker->game.fit(*program);
    note_phases(*program);
    programs_.push_back(std::move(program));
    fingerprints_.push_back(fingerprint);
    return static_cast<int>(programs_.size()) - 1;
  }

  void assign(const std::vector<std::int64_t>& worlds, const std::vector<std::int64_t>& games) {
    const Call call(*this);
    refuse_in_flight("assign()");
    if (worlds.size() != games.size())
      throw std::invalid_argument("assign: " + std::to_string(worlds.size()) + " worlds but " +
                                  std::to_string(games.size()) + " games");
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      check_world(worlds[i]);
      if (games[i] < 0 || games[i] >= static_cast<std::int64_t>(programs_.size()))
        throw std::invalid_argument("assign: game " + std::to_string(games[i]) + " is not in [0, " +
                                    std::to_string(programs_.size()) + "); add_game() returns the number");
    }
    for (std::size_t i = 0; i < worlds.size(); ++i)
      header(static_cast<std::uint32_t>(worlds[i])).next_program = static_cast<std::int32_t>(games[i]);
  }

  std::vector<std::int32_t> game_of_world() {
    const Call call(*this);
    refuse_in_flight("game_of_world");
    std::vector<std::int32_t> games(options_.num_worlds);
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w) games[w] = header(w).program;
    return games;
  }

  // ---- state to bytes and back

  std::vector<std::uint64_t> state_hash() {
    const Call call(*this);
    refuse_in_flight("state_hash()");
    require_ready();
    std::vector<std::uint64_t> hashes(options_.num_worlds);
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w) hashes[w] = hash_bytes(block(w), used_bytes(w));
    return hashes;
  }

  std::string save(const std::vector<std::int64_t>& worlds) {
    const Call call(*this);
    refuse_in_flight("save()");
    require_ready();
    for (const auto w : worlds) check_world(w);
    ByteWriter out;
    out.put_bytes(kMagic, sizeof kMagic);
    out.put(static_cast<std::uint32_t>(worlds.size()));
    out.put(static_cast<std::uint32_t>(shape_.num_agents));
    out.put(static_cast<std::uint64_t>(shape_.obs_size() * sizeof(Obs)));
    out.put(static_cast<std::uint32_t>(shape_.num_actions));
    out.put(static_cast<std::uint8_t>(options_.masks));
    out.put(static_cast<std::uint32_t>(fingerprints_.size()));
    for (const auto& fingerprint : fingerprints_) out.put_text(fingerprint);
    for (const auto w : worlds) {
      const auto world = static_cast<std::uint32_t>(w);
      out.put(static_cast<std::uint64_t>(used_bytes(world)));
      out.put_bytes(block(world), used_bytes(world));
      each_row_array(rows_of(world), [&](void* data, std::size_t bytes) { out.put_bytes(data, bytes); });
    }
    out.put(hash_bytes(out.bytes().data(), out.bytes().size()));
    return out.take();
  }

  // `worlds` gets the saved worlds in order; one saved world may be forked into many.
  void restore(const std::string& data, const std::vector<std::int64_t>& worlds) {
    const Call call(*this);
    refuse_in_flight("restore()");
    for (const auto w : worlds) check_world(w);
    if (data.size() < sizeof kMagic + 8 || std::memcmp(data.data(), kMagic, sizeof kMagic) != 0)
      throw std::invalid_argument("restore: these bytes are not a saved state of this version (magic differs)");
    std::uint64_t stored;
    std::memcpy(&stored, data.data() + data.size() - 8, 8);
    if (stored != hash_bytes(data.data(), data.size() - 8))
      throw std::invalid_argument("restore: the saved state is damaged (its hash does not match its bytes)");
    ByteReader in(data.data() + sizeof kMagic, data.size() - sizeof kMagic - 8);
    const auto count = in.get<std::uint32_t>();
    const bool fits = in.get<std::uint32_t>() == shape_.num_agents &&
                      in.get<std::uint64_t>() == shape_.obs_size() * sizeof(Obs) &&
                      in.get<std::uint32_t>() == shape_.num_actions && in.get<std::uint8_t>() == options_.masks;
    if (!fits) throw std::invalid_argument("restore: saved from a batch of other shapes (agents, obs, actions, masks)");
    if (count != worlds.size() && count != 1)
      throw std::invalid_argument("restore: " + std::to_string(count) + " worlds saved, " +
                                  std::to_string(worlds.size()) + " asked for; save one world to fork it into many");
    std::vector<std::int32_t> program_of(in.get<std::uint32_t>());
    std::vector<std::string> names;
    for (auto& index : program_of) {
      names.push_back(in.get_text());
      index = find_program(names.back());
    }
    apply_saved(in, count, worlds, program_of, names);
    fault_.reset();
    std::uint32_t started = 0;
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w) started += header(w).max_steps != 0 || header(w).tick != 0;
    ready_ = ready_ || worlds.size() == options_.num_worlds || started == options_.num_worlds;
  }

  // ---- what happened

  void take_episodes(std::vector<EpisodeHead>& heads, std::vector<double>& stats) {
    const Call call(*this);
    refuse_in_flight("take_episodes()");
    log_->take(heads, stats);
  }
  std::uint64_t episodes_dropped() const { return log_->dropped(); }

  // ns per phase of the last step, then auto-reset, then the wall time.
  std::array<std::int64_t, kPhases + 2> timing() const { return in_ns(last_, last_wall_); }
  std::array<std::int64_t, kPhases + 2> timing_total() const { return in_ns(total_, total_wall_); }
  std::uint64_t timed_steps() const { return timed_steps_; }

  template <class Visit>
  void each_worker(Visit visit) {
    for (const auto& worker : workers_) visit(worker->game);
  }

  // A look at one world between steps, for inspection and rendering.
  template <class Look>
  auto look(std::int64_t world, Look look) {
    const Call call(*this);
    refuse_in_flight("inspect()");
    require_ready();
    check_world(world);
    auto tick = tick_of(static_cast<std::uint32_t>(world), *workers_.front());
    return look(tick);
  }

  const BatchOptions& options() const { return options_; }
  const typename G::Vocabulary& words() const { return words_; }
  const Shape& shape() const { return shape_; }
  const StatTable& stats() const { return stats_; }
  const Program& program(std::size_t index) const { return *programs_.at(index); }
  std::size_t num_programs() const { return programs_.size(); }
  std::shared_ptr<Buffers<Obs>> buffers() const { return buffers_; }
  std::size_t bytes_per_world() const {
    return stride_ + shape_.num_agents * stats_.size() * sizeof(double) + sizeof(std::uint8_t);
  }
  bool closed() const { return crew_ == nullptr; }

 private:
  static constexpr char kMagic[8] = {'G', 'M', 'I', 'L', 'L', 'S', '0', '1'};

  struct WorkerState {
    WorkerState(ObserveOptions options, int lanes) : game(options), marks(static_cast<std::size_t>(lanes)) {}
    typename G::Worker game;
    std::vector<PhaseMarks<kPhases>> marks;  // per lane: another lane may be in flight while one is read
  };

  // Entry to every public call: one caller at a time, not after close, not in a forked child.
  class Call {
   public:
    explicit Call(Batch& batch, bool closing = false) : batch_(batch) {
      if (batch_.busy_.exchange(true, std::memory_order_acquire))
        throw UsageError("this env is being used by another thread; one thread at a time");
      if (!closing && batch_.crew_ == nullptr) leave("this env is closed");
      if (!closing && batch_.forked())
        leave("this env was made before fork(); its threads do not exist in this process: make a new one here");
    }
    ~Call() { batch_.busy_.store(false, std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    [[noreturn]] void leave(const char* why) {
      batch_.busy_.store(false, std::memory_order_release);
      throw UsageError(why);
    }
    Batch& batch_;
  };

  bool forked() const { return forks_ != fork_count().load(std::memory_order_relaxed); }

  void check_lane(int lane) const {
    if (lane < 0 || lane >= options_.lanes)
      throw std::invalid_argument("lane " + std::to_string(lane) + " is not in [0, " + std::to_string(options_.lanes) + ")");
  }
  void check_world(std::int64_t world) const {
    if (world < 0 || world >= static_cast<std::int64_t>(options_.num_worlds))
      throw std::invalid_argument("world " + std::to_string(world) + " is not in [0, " +
                                  std::to_string(options_.num_worlds) + ")");
  }
  void require_ready() const {
    if (fault_) throw UsageError("a world failed in an earlier step, so the worlds are out of step; call reset() first");
    if (!ready_) throw UsageError("call reset() before the first step");
  }
  void refuse_in_flight(const char* what) const {
    for (std::size_t lane = 0; lane < in_flight_.size(); ++lane)
      if (in_flight_[lane])
        throw UsageError(std::string(what) + " while lane " + std::to_string(lane) + " is in flight; call recv(" +
                         std::to_string(lane) + ") first");
  }
  void raise_fault() const {
    if (fault_) throw WorldFault(*fault_);
  }
  void check_shape(const Program& program) const {
    const Shape shape = G::shape(program);
    if (shape == shape_) return;
    const auto text = [](const Shape& s) {
      std::string obs;
      for (const auto d : s.obs) obs += (obs.empty() ? "" : "x") + std::to_string(d);
      return std::to_string(s.num_agents) + " agents, obs " + obs + ", " + std::to_string(s.num_actions) + " actions";
    };
    throw std::invalid_argument("games of one batch must have one shape: expected " + text(shape_) + ", got " + text(shape));
  }
  void refuse_more_than_memory() const {
    const double rows = static_cast<double>(options_.num_worlds) * static_cast<double>(shape_.num_agents);
    const double per_row = static_cast<double>(Buffers<Obs>::estimate(1, shape_.obs_size(), shape_.num_actions, options_.masks));
    const double need = static_cast<double>(options_.num_worlds) * static_cast<double>(bytes_per_world()) + rows * per_row;
    const double have = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    if (need <= have) return;
    throw std::invalid_argument(
        "not enough memory: " + std::to_string(options_.num_worlds) + " worlds x (" + std::to_string(bytes_per_world()) +
        " bytes of state + " + std::to_string(shape_.num_agents) + " rows x " +
        std::to_string(static_cast<std::uint64_t>(per_row)) + " bytes) = " +
        std::to_string(static_cast<std::uint64_t>(need / 1048576)) + " MiB, this machine has " +
        std::to_string(static_cast<std::uint64_t>(have / 1048576)) + " MiB; lower num_worlds");
  }

  // ---- blocks and rows

  static std::size_t stride_for(const Program& program) {
    const std::size_t bytes = (sizeof(WorldHeader) + 24 + G::state_bytes(program) + 63) / 64 * 64;
    return bytes % 4096 == 0 ? bytes + 64 : bytes;  // equal page offsets in all worlds would fight for cache sets
  }
  std::size_t used_bytes(std::uint32_t world) const {
    return 64 + G::state_bytes(*programs_[static_cast<std::size_t>(
                    reinterpret_cast<const WorldHeader*>(block(world))->program)]);
  }
  std::byte* block(std::uint32_t world) const { return blocks_.data() + stride_ * world; }
  WorldHeader& header(std::uint32_t world) const { return *reinterpret_cast<WorldHeader*>(block(world)); }

  void grow_blocks(std::size_t stride) {
    Pages bigger(stride * options_.num_worlds);
    for (std::uint32_t w = 0; w < options_.num_worlds; ++w) std::memcpy(bigger.data() + stride * w, block(w), stride_);
    blocks_ = std::move(bigger);
    stride_ = stride;
  }

  Rows<Obs> rows_of(std::uint32_t world) const {
    const std::size_t first = world * shape_.num_agents;
    Buffers<Obs>& b = *buffers_;
    return {b.obs + first * b.obs_size,
            b.final_obs + first * b.obs_size,
            b.actions + first,
            b.rewards + first,
            b.terminals + first,
            b.truncations + first,
            b.masks ? b.masks + first * b.num_actions : nullptr,
            b.used + first};
  }

  template <class Visit>
  void each_row_array(const Rows<Obs>& rows, Visit visit) const {
    const std::size_t n = shape_.num_agents;
    visit(rows.obs, n * shape_.obs_size() * sizeof(Obs));
    visit(rows.final_obs, n * shape_.obs_size() * sizeof(Obs));
    visit(const_cast<std::int32_t*>(rows.actions), n * sizeof(std::int32_t));
    visit(rows.rewards, n * sizeof(float));
    visit(rows.terminals, n);
    visit(rows.truncations, n);
    if (rows.masks) visit(rows.masks, n * shape_.num_actions);
    visit(rows.used, n * sizeof(std::uint16_t));
  }

  Tick<G> tick_of(std::uint32_t world, WorkerState& worker) {
    WorldHeader& h = header(world);
    return {*programs_[static_cast<std::size_t>(h.program)], h, block(world) + 64, rows_of(world), worker.game, nullptr};
  }

  // Worlds are taken one after the other and soon outgrow the caches, so a game may ask for the memory of the next one
  // in this chunk (a further one may be another thread's).
  const std::byte* ahead_of(std::uint32_t world, bool more) const {
    return more && header(world + 1).program == header(world).program ? block(world + 1) + 64 : nullptr;
  }

  std::int32_t find_program(const std::string& fingerprint) const {
    for (std::size_t i = 0; i < fingerprints_.size(); ++i)
      if (fingerprints_[i] == fingerprint) return static_cast<std::int32_t>(i);
    return -1;
  }

  void apply_saved(ByteReader& in, std::uint32_t count, const std::vector<std::int64_t>& worlds,
                   const std::vector<std::int32_t>& program_of, const std::vector<std::string>& names) {
    const auto translate = [&](std::int32_t saved) {
      if (saved < 0) return saved;
      if (static_cast<std::size_t>(saved) >= program_of.size())
        throw std::invalid_argument("restore: the saved state names a game it does not list");
      const std::int32_t here = program_of[static_cast<std::size_t>(saved)];
      if (here < 0)
        throw std::invalid_argument("restore: this batch lacks the game with fingerprint " +
                                    names[static_cast<std::size_t>(saved)] + "; add_game() it first");
      return here;
    };
    std::size_t row_bytes = 0;
    each_row_array(rows_of(0), [&](void*, std::size_t bytes) { row_bytes += bytes; });
    struct Saved {
      WorldHeader header;
      const char *block, *rows;
      std::uint64_t size;
    };
    std::vector<Saved> saved(count);
    for (auto& s : saved) {  // check everything before the first byte of a world changes
      s.size = in.get<std::uint64_t>();
      s.block = in.view(s.size);
      s.rows = in.view(row_bytes);
      if (s.size < 64) throw std::invalid_argument("restore: a saved world is shorter than its header");
      std::memcpy(&s.header, s.block, sizeof s.header);
      s.header.program = translate(s.header.program);
      s.header.next_program = translate(s.header.next_program);
      if (s.header.program < 0 || s.size != 64 + G::state_bytes(*programs_[static_cast<std::size_t>(s.header.program)]))
        throw std::invalid_argument("restore: a saved world has the wrong size for its game");
    }
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      const Saved& s = saved[count == 1 ? 0 : i];
      const auto world = static_cast<std::uint32_t>(worlds[i]);
      std::memset(block(world), 0, stride_);
      std::memcpy(block(world), s.block, s.size);
      std::memcpy(block(world), &s.header, sizeof s.header);
      const char* from = s.rows;
      each_row_array(rows_of(world), [&](void* data, std::size_t bytes) {
        std::memcpy(data, from, bytes);
        from += bytes;
      });
    }
  }

  // ---- the work of one chunk

  void run_all_lanes() {
    for (int lane = 0; lane < options_.lanes; ++lane) crew_->send(lane);
    for (int lane = 0; lane < options_.lanes; ++lane) crew_->recv(lane);
  }

  void run_chunk(int worker, int lane, std::uint32_t chunk) {
    const std::uint32_t lane_worlds = options_.num_worlds / static_cast<std::uint32_t>(options_.lanes);
    const std::uint32_t lane_end = lane_worlds * static_cast<std::uint32_t>(lane + 1);
    const std::uint32_t first = lane_worlds * static_cast<std::uint32_t>(lane) + chunk * chunk_;
    const std::uint32_t last = std::min(first + chunk_, lane_end);
    WorkerState& state = *workers_[static_cast<std::size_t>(worker)];
    if (resetting_) {
      for (std::uint32_t w = first; w < last; ++w) guarded(w, [&] { start_episode(w, state, true); });
    } else if (options_.profiling) {
      step_timed(first, last, state, state.marks[static_cast<std::size_t>(lane)]);
    } else {
      for (std::uint32_t w = first; w < last; ++w) guarded(w, [&] { step_world(w, w + 1 < last, state); });
    }
  }

  // Runs one world's work and keeps the exception of the lowest world.
  template <class Work>
  void guarded(std::uint32_t world, Work work) noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      keep_fault(world, error.what());
    } catch (...) {
      keep_fault(world, "an exception that is no std::exception");
    }
  }

  void keep_fault(std::uint32_t world, const char* what) {
    const std::lock_guard lock(fault_mutex_);
    if (!fault_ || fault_->world > world) fault_.emplace(world, header(world).tick, header(world).key, what);
    header(world).ended = 0;
    header(world).failed = 1;
  }

  template <std::size_t... P>
  static void run_phases(Tick<G>& tick, std::index_sequence<P...>) {
    (G::template phase<P>(tick), ...);
  }

  void step_world(std::uint32_t world, bool more, WorkerState& state) {
    auto tick = tick_of(world, state);
    tick.ahead = ahead_of(world, more);
    run_phases(tick, std::make_index_sequence<kPhases>{});
    if (tick.header.ended) end_episode(world, tick, state);
  }

  template <std::size_t P>
  void time_phase(std::uint32_t first, std::uint32_t last, WorkerState& state, PhaseMarks<kPhases>& marks,
                  std::int64_t& mark) {
    if (!used_phases_[P]) return;
    for (std::uint32_t w = first; w < last; ++w) {
      auto tick = tick_of(w, state);
      if (tick.header.failed) continue;
      tick.ahead = ahead_of(w, w + 1 < last);
      guarded(w, [&] { G::template phase<P>(tick); });
    }
    const std::int64_t now = clock_mark();
    marks.marks[P] += now - mark;
    mark = now;
  }

  void step_timed(std::uint32_t first, std::uint32_t last, WorkerState& state, PhaseMarks<kPhases>& marks) {
    std::int64_t mark = clock_mark();
    [&]<std::size_t... P>(std::index_sequence<P...>) {
      (time_phase<P>(first, last, state, marks, mark), ...);
    }(std::make_index_sequence<kPhases>{});
    bool any = false;
    for (std::uint32_t w = first; w < last; ++w) {
      if (!header(w).ended) continue;
      any = true;
      auto tick = tick_of(w, state);
      guarded(w, [&] { end_episode(w, tick, state); });
    }
    if (any) marks.marks[kPhases] += clock_mark() - mark;
  }

  // Keeps what the ended episode leaves behind, then starts the next one: its first observation fills the row.
  void end_episode(std::uint32_t world, Tick<G>& tick, WorkerState& state) {
    std::memcpy(tick.rows.final_obs, tick.rows.obs, shape_.num_agents * shape_.obs_size() * sizeof(Obs));
    G::record(tick, records_.data() + world * shape_.num_agents * stats_.size());
    ended_heads_[world] = {0, world, 0, tick.header.key.episode, tick.header.tick, tick.header.program,
                           tick.header.short_first != 0};
    finished_[world] = 1;
    start_episode(world, state, false);
  }

  void start_episode(std::uint32_t world, WorkerState& state, bool from_reset) {
    WorldHeader next = header(world);
    if (from_reset && fresh_) {
      next.key = {options_.seed, world, 0};
    } else {
      next.key.episode += 1;
    }
    if (next.next_program >= 0) next.program = next.next_program;
    else if (from_reset && !ready_) next.program = static_cast<std::int32_t>(world % programs_.size());
    const Program& program = *programs_[static_cast<std::size_t>(next.program)];
    next.next_program = -1;
    next.tick = 0;
    next.ended = next.failed = 0;
    next.max_steps = G::max_steps(program);
    next.short_first = 0;
    if (options_.desync_episodes && from_reset && fresh_) shorten(program, world, next);
    std::memset(block(world), 0, 64 + G::state_bytes(program));
    header(world) = next;
    auto tick = tick_of(world, state);
    if (from_reset) {
      const std::size_t n = shape_.num_agents;
      std::fill_n(tick.rows.rewards, n, 0.0f);
      std::fill_n(tick.rows.terminals, n, false);
      std::fill_n(tick.rows.truncations, n, false);
      finished_[world] = 0;
    }
    G::reset(tick);
    G::observe(tick);
  }

  // World i of N starts with an episode of m + round((max - m) * (i + 1) / N) ticks.
  void shorten(const Program& program, std::uint32_t world, WorldHeader& next) const {
    const std::int64_t full = next.max_steps;
    if (full == 0) return;
    const std::int64_t asked =
        options_.min_first_episode >= 0 ? options_.min_first_episode : G::min_first_episode(program);
    const std::int64_t least = std::min(std::max<std::int64_t>(asked, 1), full);
    const std::int64_t n = options_.num_worlds;
    next.max_steps = static_cast<std::uint32_t>(least + (2 * (full - least) * (world + 1) + n) / (2 * n));
    next.short_first = next.max_steps < full;
  }

  // On the caller's thread, in world order, so records do not depend on who did the work.
  void collect(int lane) {
    const auto index = static_cast<std::size_t>(lane);
    const std::uint64_t step = lane_steps_[index]++;
    const std::uint32_t lane_worlds = options_.num_worlds / static_cast<std::uint32_t>(options_.lanes);
    for (std::uint32_t w = lane_worlds * static_cast<std::uint32_t>(lane); w < lane_worlds * static_cast<std::uint32_t>(lane + 1); ++w) {
      if (!finished_[w]) continue;
      finished_[w] = 0;
      EpisodeHead head = ended_heads_[w];
      head.step = step;
      for (std::size_t agent = 0; agent < shape_.num_agents; ++agent) {
        head.agent = static_cast<std::uint32_t>(agent);
        log_->add(head, records_.data() + (w * shape_.num_agents + agent) * stats_.size());
      }
    }
  }

  void note_phases(const Program& program) {
    for (std::size_t p = 0; p < kPhases; ++p) used_phases_[p] = used_phases_[p] || G::uses(program, p);
  }
  // Only adds raw marks; turning them into ns waits until someone asks.
  void gather_timing(int lane) {
    for (const auto& worker : workers_) {
      auto& marks = worker->marks[static_cast<std::size_t>(lane)].marks;
      for (std::size_t p = 0; p <= kPhases; ++p) last_.marks[p] += marks[p], total_.marks[p] += marks[p];
      marks = {};
    }
  }
  void finish_timing(std::int64_t start) {
    last_wall_ = clock_mark() - start;
    total_wall_ += last_wall_;
    ++timed_steps_;
  }
  std::array<std::int64_t, kPhases + 2> in_ns(const PhaseMarks<kPhases>& marks, std::int64_t wall) const {
    const double rate = clock_rate_.ns_per_mark();
    std::array<std::int64_t, kPhases + 2> out{};
    for (std::size_t p = 0; p <= kPhases; ++p) out[p] = static_cast<std::int64_t>(static_cast<double>(marks.marks[p]) * rate);
    out[kPhases + 1] = static_cast<std::int64_t>(static_cast<double>(wall) * rate);
    return out;
  }

  BatchOptions options_;
  typename G::Vocabulary words_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::string> fingerprints_;
  Shape shape_;
  StatTable stats_;
  std::size_t stride_ = 0;
  std::shared_ptr<Buffers<Obs>> buffers_;
  Pages blocks_;
  std::vector<double> records_;          // [world][agent][stat] of the episode that ended last
  std::vector<std::uint8_t> finished_;   // the world ended an episode in this step
  std::vector<EpisodeHead> ended_heads_ = std::vector<EpisodeHead>(options_.num_worlds);
  std::vector<std::uint64_t> lane_steps_;
  std::vector<std::uint8_t> in_flight_;
  std::vector<std::int64_t> sent_at_ = std::vector<std::int64_t>(static_cast<std::size_t>(options_.lanes));
  std::unique_ptr<EpisodeLog> log_;
  std::vector<std::unique_ptr<WorkerState>> workers_;
  std::uint32_t chunk_ = 1;
  bool ready_ = false, resetting_ = false, fresh_ = true;
  std::optional<WorldFault> fault_;
  std::mutex fault_mutex_;
  std::atomic<bool> busy_{false};
  std::uint32_t forks_;
  ClockRate clock_rate_;
  std::array<bool, kPhases> used_phases_{};  // by any game: a phase nobody uses needs no clock
  PhaseMarks<kPhases> last_, total_;
  std::int64_t last_wall_ = 0, total_wall_ = 0;
  std::uint64_t timed_steps_ = 0;
  std::unique_ptr<Crew> crew_;  // last: its threads must end before what they use
};

}  // namespace gridmill
