// Worlds<Game>: the memory of a batch. Compiled programs, one block of bytes per world, the shared arrays, and the
// views of both that a tick needs; and the bytes of a saved world. Nothing here steps anything or knows of threads.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/buffers.hpp"
#include "core/game.hpp"
#include "core/memory.hpp"
#include "core/saved_check.hpp"
#include "core/scripted_rows.hpp"
#include "core/signal.hpp"
#include "core/snapshot.hpp"

namespace gridmill {

template <Game G>
class Worlds {
 public:
  using Obs = typename G::Obs;
  using Program = typename G::Program;

  Worlds(const std::vector<Value>& games, std::vector<std::string> names, const BatchOptions& options)
      : vocabulary(G::vocabulary(games)),
        fingerprints(std::move(names)),
        count(options.num_worlds),
        with_masks(options.masks),
        with_signal(has_terms(options.signal)),
        scripts(options.scripts) {
    for (const auto& game : games) programs.push_back(std::make_unique<Program>(G::compile(vocabulary, game)));
    shape = G::shape(*programs.front());
    std::size_t script_bytes = 0;
    std::vector<typename ScriptedRows<G>::Cast> casts;
    for (const auto& program : programs) {
      check_shape(*program);
      stride = std::max(stride, stride_for(*program));
      casts.push_back(scripts.cast_for(vocabulary, *program));
      script_bytes = std::max(script_bytes, scripts.row_bytes(casts.back()));
    }
    stats = G::stats(vocabulary);
    refuse_more_than_memory(stride, script_bytes);
    buffers = std::make_shared<Buffers<Obs>>(num_rows(), shape.obs_size(), shape.num_actions, with_masks, scripts.any(),
                                             with_signal, G::empty_obs);
    for (std::size_t i = 0; i < casts.size(); ++i) scripts.put(i, std::move(casts[i]), count, shape);
    blocks = Pages(stride * count);
    for (std::uint32_t w = 0; w < count; ++w) {  // several games are dealt out in turn
      header(w).program = static_cast<std::int32_t>((options.first_world + w) % programs.size());
      header(w).next_program = -1;
    }
  }

  std::size_t num_rows() const { return count * shape.num_agents; }
  std::size_t bytes_per_world() const { return stride; }

  // A game as program `number`, one that is there already or the next. `accept` has the last word: what it throws
  // leaves everything as it was.
  template <class Accept>
  void put(std::size_t number, const Value& game, const std::string& fingerprint, Accept accept) {
    auto program = std::make_unique<Program>(G::compile(vocabulary, game));
    check_shape(*program);
    auto cast = scripts.cast_for(vocabulary, *program);
    const std::size_t wider = std::max(stride, stride_for(*program));
    refuse_more_than_memory(wider, scripts.row_bytes(cast));
    accept(number, *program);
    scripts.put(number, std::move(cast), count, shape);
    if (wider > stride) {
      Pages bigger(wider * count);
      for (std::uint32_t w = 0; w < count; ++w) std::memcpy(bigger.data() + wider * w, block(w), stride);
      blocks = std::move(bigger);
      stride = wider;
    }
    if (number == programs.size()) {
      programs.emplace_back();
      fingerprints.emplace_back();
    }
    programs[number] = std::move(program);
    fingerprints[number] = fingerprint;
  }

  // A program that is replaced is freed, so no world may play it or be about to.
  void refuse_played(std::int32_t number) const {
    for (std::uint32_t w = 0; w < count; ++w)
      if (header(w).program == number || header(w).next_program == number)
        throw std::invalid_argument("replace_game: expected a game that no world plays, but game " +
                                    std::to_string(number) + " is played by world " + std::to_string(w) +
                                    (header(w).program == number ? "" : " next") +
                                    "; assign() another game to it first");
  }

  // Which game each world takes at its next reset.
  void assign(const std::vector<std::int64_t>& worlds, const std::vector<std::int64_t>& games) {
    if (worlds.size() != games.size())
      throw std::invalid_argument("assign: " + std::to_string(worlds.size()) + " worlds but " +
                                  std::to_string(games.size()) + " games");
    for (const auto world : worlds) check_world(world);
    for (const auto game : games) check_game("assign", game);
    for (std::size_t i = 0; i < worlds.size(); ++i)
      header(static_cast<std::uint32_t>(worlds[i])).next_program = static_cast<std::int32_t>(games[i]);
  }

  std::vector<std::int32_t> game_of_world() const {
    std::vector<std::int32_t> games(count);
    for (std::uint32_t w = 0; w < count; ++w) games[w] = header(w).program;
    return games;
  }

  template <class Int>
  void copy_actions(const void* from, std::int64_t bytes_apart) {
    for (std::size_t row = 0; row < num_rows(); ++row) {
      Int action;
      std::memcpy(&action, static_cast<const char*>(from) + static_cast<std::int64_t>(row) * bytes_apart,
                  sizeof action);
      const auto narrow = static_cast<std::int32_t>(action);
      buffers->actions[row] = static_cast<Int>(narrow) == action ? narrow : -1;
    }
  }

  void free() {
    blocks = Pages();
    scripts.free();
    buffers.reset();
  }

  // ---- one world

  std::byte* block(std::uint32_t world) const { return blocks.data() + stride * world; }
  std::byte* state(std::uint32_t world) const { return block(world) + kHeaderBytes; }
  WorldHeader& header(std::uint32_t world) const { return *reinterpret_cast<WorldHeader*>(block(world)); }
  const Program& program(std::int32_t index) const { return *programs[static_cast<std::size_t>(index)]; }
  std::size_t saved_bytes(std::uint32_t world) const {
    return kHeaderBytes + G::saved_bytes(program(header(world).program));
  }

  Rows<Obs> rows(std::uint32_t world) const {
    const std::size_t first = world * shape.num_agents;
    Buffers<Obs>& b = *buffers;
    return {b.obs + first * b.obs_size,
            b.final_obs + first * b.obs_size,
            b.actions + first,
            b.rewards + first,
            b.terminals + first,
            b.truncations + first,
            b.masks ? b.masks + first * b.num_actions : nullptr,
            b.used + first,
            b.signal ? b.signal + first : nullptr,
            dense ? dense + first * dense_bytes : nullptr};
  }
  // The rows of a world in an array of one number per row.
  std::int32_t* actions(std::uint32_t world) const { return buffers->actions + world * shape.num_agents; }
  std::int32_t* decided(std::uint32_t world) const { return buffers->decided + world * shape.num_agents; }

  void ask_players(std::uint32_t world) {
    if (scripts.any()) scripts.ask_players(world, header(world), rows(world).obs, decided(world));
  }
  void ask_teacher(std::uint32_t world) {
    if (scripts.any()) scripts.ask_teacher(world, header(world), rows(world).obs, decided(world));
  }

  Tick<G> tick(std::uint32_t world, typename G::Worker& worker) const {
    WorldHeader& h = header(world);
    const Program& own = program(h.program);
    return {own, h, state(world), rows(world), worker, typename G::View(own, state(world))};
  }

  void check_game(const char* what, std::int64_t number) const {
    const auto known = static_cast<std::int64_t>(programs.size());
    if (number < 0 || number >= known)
      throw std::invalid_argument(std::string(what) + ": game " + std::to_string(number) + " is not in [0, " +
                                  std::to_string(known) + "); add_game() returns the number");
  }

  void check_world(std::int64_t world) const {
    if (world < 0 || world >= static_cast<std::int64_t>(count))
      throw std::invalid_argument("world " + std::to_string(world) + " is not in [0, " + std::to_string(count) + ")");
  }

  // ---- bytes of saved worlds

  std::string save(const std::vector<std::int64_t>& chosen) const {
    ByteWriter out;
    put_heading(out, static_cast<std::uint32_t>(chosen.size()));
    for (const auto w : chosen) {
      const auto world = static_cast<std::uint32_t>(w);
      out.put(static_cast<std::uint64_t>(saved_bytes(world)));
      out.put_bytes(block(world), saved_bytes(world));
      each_row_array(rows(world), [&](void* data, std::size_t bytes) { out.put_bytes(data, bytes); });
      if (scripts.any()) scripts.put_world(out, world, header(world).program, decided(world));
    }
    out.put(hash_bytes(out.bytes().data(), out.bytes().size()));
    return out.take();
  }

  // Parts that batches of the same games saved, one behind the other.
  std::string join_saved(const std::vector<std::string>& parts) const {
    ByteWriter own;
    put_heading(own, 0);
    const std::size_t heading = own.bytes().size(), behind_count = sizeof kMagic + sizeof(std::uint32_t);
    std::uint32_t all = 0;
    for (const auto& part : parts) {
      if (part.size() < heading + 8 || std::memcmp(part.data(), own.bytes().data(), sizeof kMagic) != 0 ||
          std::memcmp(part.data() + behind_count, own.bytes().data() + behind_count, heading - behind_count) != 0)
        throw std::invalid_argument("join_saved: a part was saved from a batch with other games or shapes");
      std::uint32_t some;
      std::memcpy(&some, part.data() + sizeof kMagic, sizeof some);
      all += some;
    }
    ByteWriter out;
    put_heading(out, all);
    for (const auto& part : parts) out.put_bytes(part.data() + heading, part.size() - heading - 8);
    out.put(hash_bytes(out.bytes().data(), out.bytes().size()));
    return out.take();
  }

  // `chosen` get the saved worlds in order, from the `first` on if that is said; one saved world may be forked into
  // many. All is checked before any changes.
  void restore(const std::string& data, const std::vector<std::int64_t>& chosen,
               std::optional<std::uint32_t> first = {}) {
    const bool long_enough = data.size() >= sizeof kMagic + 8;
    const bool with_scripts = long_enough && std::memcmp(data.data(), kMagicWithScripts, sizeof kMagic) == 0;
    if (!long_enough || (!with_scripts && std::memcmp(data.data(), kMagic, sizeof kMagic) != 0))
      throw std::invalid_argument("restore: these bytes are not a saved state of this version (magic differs)");
    std::uint64_t stored;
    std::memcpy(&stored, data.data() + data.size() - 8, 8);
    if (stored != hash_bytes(data.data(), data.size() - 8))
      throw std::invalid_argument("restore: the saved state is damaged (its hash does not match its bytes)");
    ByteReader in(data.data() + sizeof kMagic, data.size() - sizeof kMagic - 8);
    const auto saved_count = in.get<std::uint32_t>();
    ByteWriter own;
    put_shape(own);
    if (std::memcmp(in.view(own.bytes().size()), own.bytes().data(), own.bytes().size()) != 0)
      throw std::invalid_argument("restore: saved from a batch with other shapes (agents, obs, actions, masks)");
    if (in.get<std::uint64_t>() != vocabulary_hash())
      throw std::invalid_argument(
          "restore: saved from a batch with another feature table; create the env with the same games");
    if (first && (*first > saved_count || chosen.size() > saved_count - *first))
      throw std::invalid_argument("restore: " + std::to_string(saved_count) + " worlds saved, but " +
                                  std::to_string(chosen.size()) + " requested from world " + std::to_string(*first) +
                                  " on");
    if (!first && saved_count != chosen.size() && saved_count != 1)
      throw std::invalid_argument("restore: " + std::to_string(saved_count) + " worlds saved, but " +
                                  std::to_string(chosen.size()) + " requested; save one world to fork it into many");
    const auto num_names = in.get<std::uint32_t>();
    if (num_names > in.left() / sizeof(std::uint32_t))  // each has a length: no memory is taken for more
      throw std::invalid_argument("restore: the saved state is too short for the " + std::to_string(num_names) +
                                  " games it lists");
    std::vector<std::string> names(num_names);
    for (auto& name : names) name = in.get_text();
    std::vector<std::string> script_of(shape.num_agents);
    if (with_scripts) script_of = ScriptedRows<G>::get_names(in, shape.num_agents);
    std::vector<Saved> saved;
    TrialWorld<G> trial(stride, shape, with_masks);
    for (std::uint32_t i = 0; i < saved_count; ++i) {
      saved.push_back(read_saved(in, names));
      saved.back().scripts = ScriptedRows<G>::get_world(in, script_of);
      try {
        check_saved(saved.back(), trial);
      } catch (const BadState& error) {
        throw BadState("restore: saved world " + std::to_string(i) + " is invalid: " + error.what());
      }
    }
    if (in.left() != 0)
      throw std::invalid_argument("restore: " + std::to_string(in.left()) + " bytes follow the last saved world");
    for (std::size_t i = 0; i < chosen.size(); ++i)
      write_saved(saved[first ? *first + i : saved_count == 1 ? 0 : i], static_cast<std::uint32_t>(chosen[i]));
  }

  typename G::Vocabulary vocabulary;
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::string> fingerprints;
  Shape shape;
  StatTable stats;
  std::uint32_t count;
  bool with_masks, with_signal;
  std::size_t stride = 0;
  std::shared_ptr<Buffers<Obs>> buffers;
  Pages blocks;
  ScriptedRows<G> scripts;
  std::uint8_t* dense = nullptr;  // the caller's, `dense_bytes` per row
  std::size_t dense_bytes = 0;

 private:
  static constexpr char kMagic[8] = {'G', 'M', 'I', 'L', 'L', 'S', '0', '1'};
  static constexpr char kMagicWithScripts[8] = {'G', 'M', 'I', 'L', 'L', 'S', '0', '2'};
  static constexpr std::size_t kHeaderBytes = 64;
  static_assert(sizeof(WorldHeader) <= kHeaderBytes);

  struct Saved {
    WorldHeader header;
    const char *block, *rows;
    std::size_t size;
    std::vector<SavedScript> scripts;
  };

  static std::size_t stride_for(const Program& program) {
    const std::size_t bytes = (kHeaderBytes + G::state_bytes(program) + 63) / 64 * 64;
    return bytes % 4096 == 0 ? bytes + 64 : bytes;  // equal page offsets in all worlds would fight for cache sets
  }

  void check_shape(const Program& program) const {
    const Shape other = G::shape(program);
    if (other == shape) return;
    const auto text = [](const Shape& s) {
      std::string obs;
      for (const auto d : s.obs) obs += (obs.empty() ? "" : "x") + std::to_string(d);
      return std::to_string(s.num_agents) + " agents, obs " + obs + ", " + std::to_string(s.num_actions) + " actions" +
             (s.window.empty() ? "" : ", window " + s.window);
    };
    throw std::invalid_argument("games of one batch must have the same shape: expected " + text(shape) + ", got " +
                                text(other));
  }

  static constexpr std::size_t kMostRecord = std::size_t{512} << 20;  // bytes, of all agents of a world

  void refuse_more_than_memory(std::size_t block_bytes, std::size_t script_bytes) const {
    const std::size_t record = stats.size() * sizeof(double);
    if (static_cast<double>(shape.num_agents) * static_cast<double>(record) > kMostRecord)
      throw std::invalid_argument(
          "expected at most " + std::to_string(kMostRecord >> 20) + " MiB for the record of an episode, got " +
          std::to_string(shape.num_agents) + " agents x " + std::to_string(stats.size()) +
          " statistics; use fewer agents, collectives, resources or names that collectives count");
    // All worlds may end in one step: their records are gathered, kept and taken.
    const std::size_t per_row =
        Buffers<Obs>::estimate(1, shape.obs_size(), shape.num_actions, with_masks, with_signal) + script_bytes +
        3 * record;
    const double per_world = static_cast<double>(block_bytes + shape.num_agents * per_row);
    const double need = static_cast<double>(count) * per_world;
    const double have = memory_of_machine();
    if (need <= have) return;
    const auto mib = [](double bytes) {
      return std::to_string(static_cast<std::uint64_t>(bytes / 1'048'576)) + " MiB";
    };
    throw std::invalid_argument("not enough memory: " + std::to_string(count) + " worlds x (" +
                                std::to_string(block_bytes) + " bytes of state + " + std::to_string(shape.num_agents) +
                                " rows x " + std::to_string(per_row) + " bytes) = " + mib(need) +
                                ", this machine has " + mib(have) + "; lower num_worlds");
  }

  std::uint64_t vocabulary_hash() const {
    const std::string text = G::vocabulary_text(vocabulary);
    return hash_bytes(text.data(), text.size());
  }

  // All that stands before the first saved world.
  void put_heading(ByteWriter& out, std::uint32_t saved) const {
    out.put_bytes(scripts.any() ? kMagicWithScripts : kMagic, sizeof kMagic);
    out.put(saved);
    put_shape(out);
    out.put(vocabulary_hash());
    out.put(static_cast<std::uint32_t>(fingerprints.size()));
    for (const auto& fingerprint : fingerprints) out.put_text(fingerprint);
    if (scripts.any()) scripts.put_names(out);
  }

  void put_shape(ByteWriter& out) const {
    out.put(static_cast<std::uint32_t>(shape.num_agents));
    out.put(static_cast<std::uint64_t>(shape.obs_size() * sizeof(Obs)));
    out.put(static_cast<std::uint32_t>(shape.num_actions));
    out.put(static_cast<std::uint8_t>(with_masks));
  }

  template <class Visit>
  void each_row_array(const Rows<Obs>& r, Visit visit) const {
    const std::size_t n = shape.num_agents;
    visit(r.obs, n * shape.obs_size() * sizeof(Obs));
    visit(r.final_obs, n * shape.obs_size() * sizeof(Obs));
    visit(const_cast<std::int32_t*>(r.actions), n * sizeof(std::int32_t));
    visit(r.rewards, n * sizeof(float));
    visit(r.terminals, n);
    visit(r.truncations, n);
    if (r.masks) visit(r.masks, n * shape.num_actions);
    visit(r.used, n * sizeof(std::uint16_t));
  }

  Saved read_saved(ByteReader& in, const std::vector<std::string>& names) const {
    std::size_t row_bytes = 0;
    each_row_array(rows(0), [&](void*, std::size_t bytes) { row_bytes += bytes; });
    Saved saved{};
    saved.size = in.get<std::uint64_t>();
    saved.block = in.view(saved.size);
    saved.rows = in.view(row_bytes);
    if (saved.size < kHeaderBytes) throw std::invalid_argument("restore: a saved world is shorter than its header");
    std::memcpy(&saved.header, saved.block, sizeof saved.header);
    saved.header.program = own_program(saved.header.program, names);
    if (saved.header.next_program >= 0) saved.header.next_program = own_program(saved.header.next_program, names);
    if (saved.size != kHeaderBytes + G::saved_bytes(program(saved.header.program)))
      throw std::invalid_argument("restore: a saved world has the wrong size for its game");
    return saved;
  }

  // The number here of a game the saved state lists under another number.
  std::int32_t own_program(std::int32_t index, const std::vector<std::string>& names) const {
    if (index < 0 || static_cast<std::size_t>(index) >= names.size())
      throw std::invalid_argument("restore: the saved state names a game it does not list");
    const std::string& wanted = names[static_cast<std::size_t>(index)];
    // A batch may list one game twice: then its own number is meant.
    if (static_cast<std::size_t>(index) < fingerprints.size() &&
        fingerprints[static_cast<std::size_t>(index)] == wanted)
      return index;
    for (std::size_t i = 0; i < fingerprints.size(); ++i)
      if (fingerprints[i] == wanted) return static_cast<std::int32_t>(i);
    throw std::invalid_argument("restore: this batch does not have the game " + shown(wanted) +
                                "; add it with add_game() first");
  }
  // A name from the bytes as an error may show it, whatever it holds and however long it is.
  static std::string shown(const std::string& name) {
    std::string text = name.substr(0, 200);
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return text.size() < name.size() ? text + "..." : text;
  }

  void check_saved(const Saved& saved, TrialWorld<G>& trial) const {
    const Program& own = program(saved.header.program);
    std::byte* const copy = trial.take(saved.block, saved.size);
    copy_rows(saved.rows, trial.rows());
    check_header(saved.header, G::max_steps(own));
    check_rows(trial.rows(), shape);
    G::check_state(own, saved.header, copy + kHeaderBytes, trial.rows());
    scripts.check(saved.scripts, saved.header.program, shape.num_actions);
  }

  void copy_rows(const char* from, const Rows<Obs>& to) const {
    each_row_array(to, [&](void* data, std::size_t bytes) {
      std::memcpy(data, from, bytes);
      from += bytes;
    });
  }

  void write_saved(const Saved& saved, std::uint32_t world) {
    std::memset(block(world), 0, stride);
    std::memcpy(block(world), saved.block, saved.size);
    header(world) = saved.header;
    copy_rows(saved.rows, rows(world));
    if (scripts.any()) scripts.restore(saved.scripts, world, header(world), rows(world).obs, decided(world));
  }
};

}  // namespace gridmill
