// ScriptedRows<Game>: the scripted agents of a batch. Which script has which agent (the same in all worlds), what each
// row remembers, and how both are saved. A player acts in its rows; the teacher is asked in all others. Off, it is
// empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/batch_options.hpp"
#include "core/buffers.hpp"
#include "core/game.hpp"
#include "core/script.hpp"
#include "core/snapshot.hpp"

namespace gridmill {

// Names of the scripts that can play a program; a game that brings none says nothing.
template <class G>
std::vector<std::string> script_names(const typename G::Vocabulary& vocabulary, const typename G::Program& program) {
  if constexpr (kHasScripts<G>) return G::script_names(vocabulary, program);
  else return {};
}

// A script of a game by name; one that the game does not know, or that cannot play it, is refused.
template <class G>
std::unique_ptr<Script<typename G::Obs>> make_script(const std::string& name, const typename G::Vocabulary& vocabulary,
                                                     const typename G::Program& program) {
  if constexpr (kHasScripts<G>)
    if (auto script = G::make_script(name, vocabulary, program)) return script;
  std::string known;
  const auto names = script_names<G>(vocabulary, program);
  for (const auto& other : names) known += (known.empty() ? "" : ", ") + other;
  throw std::invalid_argument("no script `" + name + "`" + nearest(name, names) +
                              " - this game's scripts: " + (known.empty() ? "none" : known));
}

// One row's part of a saved state.
struct SavedScript {
  std::string name;
  const char* memory = nullptr;
  std::size_t bytes = 0;
  std::int32_t action = 0;
};

template <class G>
class ScriptedRows {
 public:
  using Obs = typename G::Obs;

  explicit ScriptedRows(const ScriptOptions& options) : options_(options) {
    if (!options.teacher.empty()) names_.push_back(options.teacher);
    for (const auto& name : options.players)
      if (!name.empty() && std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }

  bool any() const { return !names_.empty(); }
  std::uint64_t teacher_calls() const { return teacher_calls_.load(std::memory_order_relaxed); }

  // One object for each name.
  using Cast = std::vector<std::unique_ptr<Script<Obs>>>;
  Cast cast_for(const typename G::Vocabulary& vocabulary, const typename G::Program& program) const {
    Cast cast;
    for (const auto& name : names_) cast.push_back(make_script<G>(name, vocabulary, program));
    return cast;
  }
  // Bytes of memory that each row has when this cast, too, must fit.
  std::size_t row_bytes(const Cast& cast) const {
    std::size_t bytes = stride_;
    for (const auto& script : cast) bytes = std::max(bytes, (script->memory_bytes() + 7) / 8 * 8);
    return bytes;
  }
  // The cast of a program, one that is there already or the next. What rows remember moves along where they need more
  // room.
  void put(std::size_t program, Cast cast, std::uint32_t num_worlds, const Shape& shape) {
    if (!any()) return;
    if (role_.empty()) give_roles(shape.num_agents);
    obs_size_ = shape.obs_size();
    if (const std::size_t wider = row_bytes(cast); wider > stride_) {
      const std::size_t rows = num_worlds * role_.size();
      Pages bigger(wider * rows);
      for (std::size_t row = 0; row < rows && stride_ != 0; ++row)
        std::memcpy(bigger.data() + wider * row, memory_.data() + stride_ * row, stride_);
      memory_ = std::move(bigger);
      stride_ = wider;
    }
    if (program == casts_.size()) casts_.emplace_back();
    casts_[program] = std::move(cast);
  }

  void free() { memory_ = Pages(); }

  // ---- one world

  void forget(std::uint32_t world) {
    if (stride_ != 0) std::memset(memory(world, 0), 0, stride_ * role_.size());
  }
  void forget_taught(std::uint32_t world) {
    for (std::size_t i = 0; i < taught_.size() && stride_ != 0; ++i) std::memset(memory(world, taught_[i]), 0, stride_);
  }

  // What players decided becomes what they do.
  void play(const std::int32_t* decided, std::int32_t* actions) const {
    for (const auto agent : players_) actions[agent] = decided[agent];
  }
  void ask_players(std::uint32_t world, const WorldHeader& header, const Obs* obs, std::int32_t* decided) const {
    ask(players_, world, header, obs, decided);
  }
  void ask_teacher(std::uint32_t world, const WorldHeader& header, const Obs* obs, std::int32_t* decided) {
    if (!teaching_) return;
    ask(taught_, world, header, obs, decided);
    teacher_calls_.fetch_add(taught_.size(), std::memory_order_relaxed);
  }
  // Whether the teacher begins now.
  bool teach(bool on) {
    if (options_.teacher.empty()) throw std::invalid_argument("teach: this env was made without a teacher");
    return std::exchange(teaching_, on) != on && on;
  }

  // ---- bytes of saved worlds: the name of every agent's script, then for each world what they remember and decided

  void put_names(ByteWriter& out) const {
    out.put(static_cast<std::uint32_t>(role_.size()));
    for (const auto role : role_) out.put_text(role < 0 ? "" : names_[static_cast<std::size_t>(role)]);
  }
  void put_world(ByteWriter& out, std::uint32_t world, std::int32_t program, const std::int32_t* decided) const {
    for (std::size_t agent = 0; agent < role_.size(); ++agent) {
      if (role_[agent] < 0) continue;
      const std::size_t bytes = script(program, agent).memory_bytes();
      out.put(static_cast<std::uint64_t>(bytes));
      out.put_bytes(memory(world, agent), bytes);
      out.put(decided[agent]);
    }
  }
  static std::vector<std::string> get_names(ByteReader& in, std::size_t num_agents) {
    if (in.get<std::uint32_t>() != num_agents)
      throw std::invalid_argument("restore: the saved state names scripts for another number of agents");
    std::vector<std::string> names(num_agents);
    for (auto& name : names) name = in.get_text();
    return names;
  }
  static std::vector<SavedScript> get_world(ByteReader& in, const std::vector<std::string>& names) {
    std::vector<SavedScript> saved(names.size());
    for (std::size_t agent = 0; agent < names.size(); ++agent) {
      if (names[agent].empty()) continue;
      SavedScript& own = saved[agent];
      own.name = names[agent];
      own.bytes = in.get<std::uint64_t>();
      own.memory = in.view(own.bytes);
      own.action = in.get<std::int32_t>();
    }
    return saved;
  }
  // Throws BadState unless what restore() would take over is what these scripts could have left.
  void check(const std::vector<SavedScript>& saved, std::int32_t program, std::size_t num_actions) const {
    std::vector<std::uint64_t> aligned(stride_ / 8 + 1);
    auto* const copy = reinterpret_cast<std::byte*>(aligned.data());
    for (std::size_t agent = 0; agent < role_.size(); ++agent) {
      if (!goes_on(saved, program, agent)) continue;
      const SavedScript& own = saved[agent];
      const std::string whose = "script `" + own.name + "` of agent " + std::to_string(agent) + ": ";
      // -1: a script may want what its game does not offer.
      if (own.action < -1 || own.action >= static_cast<std::int64_t>(num_actions))
        throw BadState(whose + "it chose action " + std::to_string(own.action) + " of " + std::to_string(num_actions));
      if (own.bytes != 0) std::memcpy(copy, own.memory, own.bytes);
      try {
        script(program, agent).check_memory(copy);
      } catch (const BadState& error) {
        throw BadState(whose + error.what());
      }
    }
  }
  // Scripts that were there when the world was saved go on; others begin here, with an empty memory.
  void restore(const std::vector<SavedScript>& saved, std::uint32_t world, const WorldHeader& header, const Obs* obs,
               std::int32_t* decided) {
    forget(world);
    Agents players, taught;
    for (std::size_t agent = 0; agent < role_.size(); ++agent) {
      if (role_[agent] < 0) continue;
      if (!goes_on(saved, header.program, agent)) {
        (acts(agent) ? players : taught).push_back(static_cast<std::uint32_t>(agent));
        continue;
      }
      if (saved[agent].bytes != 0) std::memcpy(memory(world, agent), saved[agent].memory, saved[agent].bytes);
      decided[agent] = saved[agent].action;
    }
    ask(players, world, header, obs, decided);
    if (!teaching_) return;
    ask(taught, world, header, obs, decided);
    teacher_calls_.fetch_add(taught.size(), std::memory_order_relaxed);
  }

 private:
  using Agents = std::vector<std::uint32_t>;

  void give_roles(std::size_t num_agents) {
    if (!options_.players.empty() && options_.players.size() != num_agents)
      throw std::invalid_argument("players: expected a name for each of " + std::to_string(num_agents) +
                                  " agents, got " + std::to_string(options_.players.size()));
    for (std::uint32_t agent = 0; agent < num_agents; ++agent) {
      const std::string& name = acts(agent) ? options_.players[agent] : options_.teacher;
      if (!name.empty()) (acts(agent) ? players_ : taught_).push_back(agent);
      role_.push_back(name.empty()
                          ? -1
                          : static_cast<std::int32_t>(std::find(names_.begin(), names_.end(), name) - names_.begin()));
    }
  }

  bool goes_on(const std::vector<SavedScript>& saved, std::int32_t program, std::size_t agent) const {
    return role_[agent] >= 0 && agent < saved.size() &&
           saved[agent].name == names_[static_cast<std::size_t>(role_[agent])] &&
           saved[agent].bytes == script(program, agent).memory_bytes();
  }
  bool acts(std::size_t agent) const { return !options_.players.empty() && !options_.players[agent].empty(); }
  std::byte* memory(std::uint32_t world, std::size_t agent) const {
    return memory_.data() + stride_ * (world * role_.size() + agent);
  }
  const Script<Obs>& script(std::int32_t program, std::size_t agent) const {
    return *casts_[static_cast<std::size_t>(program)][static_cast<std::size_t>(role_[agent])];
  }
  void ask(const Agents& agents, std::uint32_t world, const WorldHeader& header, const Obs* obs,
           std::int32_t* decided) const {
    const Stream draws = script_draws(header.key, header.tick);
    for (const auto agent : agents)
      decided[agent] =
          script(header.program, agent).act(obs + agent * obs_size_, memory(world, agent), draws.at(agent));
  }

  ScriptOptions options_;
  std::vector<std::string> names_;  // the teacher first
  std::vector<Cast> casts_;         // per program
  std::vector<std::int32_t> role_;  // per agent: place in names_, or -1
  Agents players_, taught_;
  bool teaching_ = true;
  std::atomic<std::uint64_t> teacher_calls_{0};
  std::size_t obs_size_ = 0, stride_ = 0;  // stride_: bytes of memory of a row
  Pages memory_;
};

}  // namespace gridmill
