// Reading the tokens of a row. Whatever the bytes are, the result is within its bounds.
#include "grid/scripts/cogsguard_row.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/tokens.hpp"
#include "grid/directions.hpp"
#include "grid/program.hpp"
#include "grid/scripts/cogsguard_memory.hpp"

namespace gridmill::grid::cogsguard {
namespace {

constexpr const char* kElementNames[] = {"carbon", "oxygen", "germanium", "silicon"};
constexpr const char* kGearNames[] = {"aligner", "scrambler", "miner", "scout"};

void set_kind(Ids& ids, const Vocabulary& vocabulary, const std::string& name, int kind) {
  const auto at = std::find(vocabulary.tags.begin(), vocabulary.tags.end(), "type:" + name);
  if (at == vocabulary.tags.end()) return;
  ids.kind_of_tag[static_cast<std::size_t>(at - vocabulary.tags.begin())] = static_cast<Kind>(kind);
}

int action(const Vocabulary& vocabulary, const std::string& name) {
  for (std::size_t i = 0; i < vocabulary.actions.size(); ++i)
    if (vocabulary.actions[i].name == name) return static_cast<int>(i);
  return 0;
}

bool has_object(const GameConfig& game, const std::string& name) {
  return std::any_of(game.objects.begin(), game.objects.end(), [&](const auto& type) { return type.first == name; });
}

bool has_resource(const GameConfig& game, const std::string& name) {
  return std::find(game.resources.begin(), game.resources.end(), name) != game.resources.end();
}

bool shows(const GameConfig& game, const std::string& value) {
  const auto& values = game.observation.values;
  return std::any_of(values.begin(), values.end(), [&](const auto& shown) { return shown.name == value; });
}

}  // namespace

bool plays(const Program& program) {
  const GameConfig& game = program.config;
  const auto& seen = game.observation;
  // A place is known by the distance from the start, modulo kSide; a disc shows fewer cells than a row's window has.
  if (!seen.local_position || seen.window != "square" || seen.height < 3 || seen.width < 3) return false;
  if (program.height > kSide || program.width > kSide || game.moves < 4) return false;
  for (const std::string name : {"hp", "energy", "heart", "influence", "solar"})
    if (!has_resource(game, name)) return false;
  for (const std::string name : {"c:hub", "junction", "c:aligner", "c:scrambler", "c:miner"})
    if (!has_object(game, name)) return false;
  for (const std::string name : {"aligner", "scrambler", "miner"})
    if (!has_resource(game, name)) return false;
  for (const std::string name : kElementNames)
    if (!has_object(game, name + "_extractor") || !has_resource(game, name) || !shows(game, "inv:collective:" + name))
      return false;
  return true;
}

Ids ids_of(const Vocabulary& vocabulary, const Program& program) {
  Ids ids{};
  const auto feature = [&](const std::string& name) { return vocabulary.feature(name); };
  ids.tag = feature("tag");
  ids.collective = feature("collective");
  ids.agent_id = feature("agent:id");
  ids.action = feature("last_action");
  ids.hp = feature("inv:hp");
  ids.hp_high = feature("inv:hp:p1");
  ids.heart = feature("inv:heart");
  ids.influence = feature("inv:influence");
  ids.energy = feature("inv:energy");
  ids.solar = feature("inv:solar");
  for (std::size_t i = 0; i < 4; ++i) {
    ids.local_position[i] = feature("lp:" + std::string(kCompass[i]));
    ids.move[i] = action(vocabulary, "move_" + std::string(kCompass[i]));
  }
  for (std::size_t e = 0; e < kElements; ++e) {
    const std::string name = kElementNames[e];
    ids.cargo[e] = feature("inv:" + name);
    ids.store[e] = feature("inv:collective:" + name);
    ids.store_high[e] = feature("inv:collective:" + name + ":p1");
    set_kind(ids, vocabulary, name + "_extractor", extractor + static_cast<int>(e));
  }
  for (std::size_t g = 0; g < kGears; ++g) {
    const std::string name = kGearNames[g];
    ids.gear[g] = feature("inv:" + name);
    set_kind(ids, vocabulary, "c:" + name, station + static_cast<int>(g));
  }
  set_kind(ids, vocabulary, "wall", wall);
  set_kind(ids, vocabulary, "agent", other_agent);
  set_kind(ids, vocabulary, "c:hub", hub);
  set_kind(ids, vocabulary, "junction", junction);
  ids.noop = action(vocabulary, "noop");
  ids.num_tokens = static_cast<int>(program.config.observation.num_tokens);
  ids.height = static_cast<int>(program.config.observation.height);
  ids.width = static_cast<int>(program.config.observation.width);
  return ids;
}

namespace {

class Reader {
 public:
  Reader(const Ids& ids, Row& row) : ids_(ids), row_(row) {}

  void token(std::uint8_t location, std::uint8_t feature, std::uint8_t value) {
    if (location == kGlobalLocation) return global(feature, value);
    if (location != location_) begin(location);
    if (inside_) (own_ ? self(feature, value) : thing(feature, value));
    if (inside_ && feature == ids_.collective) (own_ ? own_team_ : team_) = value;
  }

  // The last object is complete.
  void flush() {
    if (!inside_ || own_ || thing_.kind == nothing) return;
    thing_.owner = team_ < 0 ? nobody : team_ == own_team_ ? ours : theirs;
    if (row_.num_things < static_cast<int>(row_.things.size()))
      row_.things[static_cast<std::size_t>(row_.num_things++)] = thing_;
  }

 private:
  void begin(std::uint8_t location) {
    flush();
    location_ = location;
    const int r = location >> 4, c = location & 15;
    inside_ = r < ids_.height && c < ids_.width;
    thing_ = {};
    thing_.row = static_cast<std::int8_t>(r - ids_.height / 2);
    thing_.column = static_cast<std::int8_t>(c - ids_.width / 2);
    own_ = thing_.row == 0 && thing_.column == 0;
    team_ = -1;
  }

  void global(std::uint8_t feature, std::uint8_t value) {
    if (feature == ids_.action) row_.failed = value == 0;
    if (feature == ids_.local_position[0]) row_.north = value;
    if (feature == ids_.local_position[1]) row_.north = -value;
    if (feature == ids_.local_position[2]) row_.west = value;
    if (feature == ids_.local_position[3]) row_.west = -value;
    for (std::size_t e = 0; e < kElements; ++e) {
      if (feature == ids_.store[e]) row_.store[e] += value;
      if (feature == ids_.store_high[e]) row_.store[e] += 256 * value;
    }
  }

  void self(std::uint8_t feature, std::uint8_t value) {
    if (feature == ids_.agent_id) row_.id = value;
    if (feature == ids_.hp) row_.hp += value;
    if (feature == ids_.hp_high) row_.hp += 256 * value;
    if (feature == ids_.heart) row_.hearts = value;
    if (feature == ids_.influence) row_.influence = value;
    if (feature == ids_.energy) row_.energy = value;
    if (feature == ids_.solar) row_.solar = value;
    for (std::size_t e = 0; e < kElements; ++e)
      if (feature == ids_.cargo[e]) row_.cargo[e] = value;
    for (int g = 0; g < kGears; ++g)
      if (feature == ids_.gear[static_cast<std::size_t>(g)]) row_.gear = g;
  }

  void thing(std::uint8_t feature, std::uint8_t value) {
    if (feature == ids_.tag && ids_.kind_of_tag[value] != nothing) thing_.kind = ids_.kind_of_tag[value];
    if (feature == ids_.heart) thing_.stock = value;
    for (std::size_t e = 0; e < kElements; ++e)
      if (feature == ids_.cargo[e]) thing_.stock = value;
    for (int g = 0; g < kGears; ++g)
      if (feature == ids_.gear[static_cast<std::size_t>(g)]) thing_.gear = static_cast<std::int8_t>(g);
  }

  const Ids& ids_;
  Row& row_;
  int location_ = -1;
  bool inside_ = false, own_ = false;
  Thing thing_;
  int team_ = -1, own_team_ = -1;  // the agent's own cell comes first
};

}  // namespace

void read_row(const Ids& ids, const std::uint8_t* tokens, Row& row) {
  Reader reader(ids, row);
  row.seen_to = ids.height + ids.width;
  int t = 0;
  for (; t < ids.num_tokens && tokens[0] != kNoToken; ++t, tokens += kTokenBytes) {
    reader.token(tokens[0], tokens[1], tokens[2]);
    if (t + 1 < ids.num_tokens || tokens[0] == kGlobalLocation) continue;
    // The row is full: what lies as far as its last token, or farther, may be missing.
    row.seen_to = std::abs((tokens[0] >> 4) - ids.height / 2) + std::abs((tokens[0] & 15) - ids.width / 2);
  }
  reader.flush();
}

}  // namespace gridmill::grid::cogsguard
