// What must hold of a grid world so that every tick of it is safe: asked once, of bytes that come from outside. The
// arrays are those of the table in layout.hpp; one that is not named here may hold anything.
// What follows from other arrays (the bitmap, the cached tokens, the list of areas) is made again and compared.
#include <string>
#include <vector>

#include "grid/directions.hpp"
#include "grid/grid.hpp"
#include "grid/inventory.hpp"

namespace gridmill::grid {
namespace {

// Finite, and so small that no sum or product that a game makes of it is infinite.
inline void expect_within(const double* numbers, std::size_t count, double most, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (!(std::abs(numbers[i]) <= most))
      throw BadState(std::string(what) + ": expected numbers within +-" + Value{most}.describe() + ", got " +
                     Value{numbers[i]}.describe());
}

class StateCheck {
 public:
  StateCheck(const Program& p, const WorldHeader& header, std::byte* state, const Rows<std::uint8_t>& rows)
      : p_(p), l_(p.layout), header_(header), w_(p, state), rows_(rows) {}

  // The order matters: a later question may look up what an earlier one has found to be in range.
  void run() {
    check_places();
    check_cells();
    check_bitmap();
    for (std::uint32_t object = 0; object < p_.num_objects; ++object) check_object(object);
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) check_agent(agent);
    if (p_.machines.any) check_machines();
    if (!p_.areas.list.empty()) check_areas();
    check_numbers();
    check_tokens();
    check_observations();
  }

 private:
  [[noreturn]] static void reject(std::uint32_t object, const std::string& what) {
    throw BadState("object " + std::to_string(object) + " " + what);
  }
  static std::string place(std::uint32_t row, std::uint32_t column) {
    return "row " + std::to_string(row) + ", column " + std::to_string(column);
  }
  const Type& type_of(std::uint32_t object) const { return p_.types[w_.type[object]]; }

  // ---- who stands where

  void check_places() {
    for (std::uint32_t object = 0; object < p_.num_objects; ++object) {
      const std::uint32_t row = w_.row[object], column = w_.column[object], type = w_.type[object];
      const bool agent = object < p_.num_agents;
      const bool no_types = !agent && p_.agent_type == 0 && !w_.on_map(object);  // in a game without objects
      if (type >= p_.types.size() || (agent != (type == p_.agent_type) && !no_types))
        reject(object, "is of type " + std::to_string(type) + ", which is impossible");
      if (row >= p_.height || column >= p_.width) reject(object, "is outside the map, at " + place(row, column));
      if (!w_.on_map(object)) {  // as rules leave what they remove
        if (agent) reject(object, "is an agent and has no cell");
        continue;
      }
      if (type_of(object).terrain) reject(object, "is terrain, which has no state");
      if (w_.cell[object] != w_.cell_at(row, column) || w_.code_at(w_.cell[object]) != object + 1)
        reject(object, "is not where its position says, at " + place(row, column));
    }
  }

  // Around the map lies what nobody can enter.
  void check_cells() {
    const std::uint16_t outside = l_.narrow_grid ? 0xFF : 0xFFFF;
    for (std::uint32_t r = 0; r < p_.height + 2; ++r)
      for (std::uint32_t c = 0; c < p_.stride; ++c) {
        const std::uint32_t cell = r * p_.stride + c;
        const std::uint16_t code = w_.code_at(cell);
        const bool inner = r > 0 && r <= p_.height && c > 0 && c <= p_.width;
        const bool object = code != kEmpty && code <= p_.num_objects;
        const bool right = !inner ? code == outside : object ? w_.cell[code - 1u] == cell : code < p_.codes.count;
        if (!right) throw BadState("code " + std::to_string(code) + " is impossible at padded " + place(r, c));
      }
  }

  // The first word is written and never read, so it depends on what happened before.
  void check_bitmap() {
    std::uint64_t* const end = w_.occupied + 1 + std::size_t{l_.num_strips} * l_.plane_rows + 16;
    const std::vector<std::uint64_t> saved(w_.occupied, end);
    std::fill(w_.occupied, end, 0);
    for (std::uint32_t r = 0; r < p_.height; ++r)
      for (std::uint32_t c = 0; c < p_.width; ++c)
        if (w_.code_at(w_.cell_at(r, c)) != kEmpty) w_.set_occupied(r, c);
    expect_state(std::equal(saved.begin() + 1, saved.end(), w_.occupied + 1), "its bitmap does not match its grid");
  }

  // ---- what they are

  bool is_vibe(std::uint8_t vibe) const {
    if (vibe == 0) return true;
    const auto& names = p_.config.vibes;
    return vibe < p_.vocabulary->vibes.size() &&
           std::find(names.begin(), names.end(), p_.vocabulary->vibes[vibe]) != names.end();
  }

  void check_object(std::uint32_t object) const {
    if (!is_vibe(w_.vibe[object])) reject(object, "has the unknown vibe " + std::to_string(w_.vibe[object]));
    const std::uint8_t team = w_.collective_of(object);
    if (team != kNeutral && team >= p_.collectives.teams.size())
      reject(object, "belongs to the unknown collective " + std::to_string(team));
    const std::size_t tags = p_.tags.changeable.size();
    if (tags != 0 && tags < 64 && w_.tag_bits()[object] >> tags != 0) reject(object, "has a tag that does not exist");
    if (!w_.on_map(object)) return;
    for (std::uint32_t r = 0; r < p_.num_resources; ++r) {
      const std::uint16_t held = w_.held(object)[r];
      const bool room = object < p_.num_agents || can_hold(p_, type_of(object), r);
      if (held != 0 && !room) reject(object, "holds " + p_.config.resources[r] + ", for which it has no room");
      if (held > 255 && p_.features.resource_high[r] == kNoFeature)
        reject(object, "holds more " + p_.config.resources[r] + " than can be shown");
    }
  }

  void check_agent(std::uint32_t agent) const {
    if (w_.facing[agent] >= std::size(kCompass))
      reject(agent, "faces the unknown direction " + std::to_string(w_.facing[agent]));
    if (w_.last_action[agent] >= p_.actions.entries.size())
      reject(agent, "did the unknown action " + std::to_string(w_.last_action[agent]));
    if (w_.spawn_row[agent] >= p_.height || w_.spawn_column[agent] >= p_.width)
      reject(agent, "started outside the map, at " + place(w_.spawn_row[agent], w_.spawn_column[agent]));
  }

  // ---- machines

  // How long a machine of this type is busy at most; 0: it never is.
  std::uint32_t longest_run(const Type& type) const {
    if (type.converter >= 0) return p_.machines.converters[static_cast<std::size_t>(type.converter)].cooldown;
    return type.assembler >= 0 ? p_.machines.assemblers[static_cast<std::size_t>(type.assembler)].cooldown : 0;
  }

  void check_machines() const {
    check_padding(w_.running, "machines that do not exist are running");
    for (std::uint32_t object = 0; object < p_.num_objects; ++object) {
      const std::uint32_t shift = object < p_.num_agents ? p_.token_cache.agent_shift : p_.token_cache.shift;
      if (w_.converting_byte[object] >> shift != 0) reject(object, "shows its work outside its tokens");
      if (!(w_.running[object >> 6] >> (object & 63) & 1)) continue;
      const std::uint32_t left = w_.done_at[object] - header_.tick;
      if (!w_.on_map(object) || left == 0 || left > longest_run(type_of(object)))
        reject(object, "works until tick " + std::to_string(w_.done_at[object]) + ", which is impossible");
    }
  }

  // Bits of objects: none behind the last.
  void check_padding(const std::uint64_t* bits, const char* what) const {
    const std::uint32_t used = p_.num_objects & 63;
    expect_state(used == 0 || bits[p_.num_objects >> 6] >> used == 0, what);
  }

  // ---- areas

  void check_areas() {
    std::uint64_t fixed = 0;
    for (std::uint32_t object = p_.num_agents; object < p_.num_objects; ++object)
      if (w_.on_map(object)) fixed += type_of(object).areas.last - type_of(object).areas.first;
    expect_state(fixed <= std::uint64_t{p_.areas.reach_words} * 64, "the map has more areas than is possible");
    expect_state(w_.num_sources() == kSourcesUnknown || knows_sources(p_, w_),
                 "its list of areas does not match its map");
    if (!p_.areas.remembers) return;
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent)
      for (std::size_t word = 0; word < w_.inside_words(); ++word)
        for (std::uint64_t left = w_.inside(agent)[word]; left != 0; left &= left - 1)
          check_inside(agent, 64 * word + static_cast<std::size_t>(__builtin_ctzll(left)));
  }

  // What was removed in this tick is left in the next. Were it gone for longer, its place could be another's by then.
  void check_inside(std::uint32_t agent, std::size_t bit) const {
    const std::size_t object = bit / p_.areas.most_of_type, area = bit % p_.areas.most_of_type;
    const bool there = object < p_.num_objects;
    const Range areas = there ? type_of(static_cast<std::uint32_t>(object)).areas : Range{};
    const bool leaves = there && p_.rules.can_spawn && !w_.on_map(static_cast<std::uint32_t>(object));
    if (area >= areas.last - areas.first || (leaves && w_.freed_at()[object] != header_.tick))
      reject(agent, "is inside area " + std::to_string(area) + " of object " + std::to_string(object) +
                        ", which does not exist");
  }

  // ---- numbers, tokens and rows

  void check_numbers() const {
    expect_finite(w_.reward_sum, p_.num_agents, "sums of rewards");
    // A value before and a sum of rises: next to the largest sum the largest rise does not count, so what is accepted
    // stays within these limits.
    for (std::size_t i = 0; i < std::size_t{p_.num_agents} * p_.rewards.terms.size(); ++i) {
      expect_within(w_.term_state + 2 * i, 1, 1e150, "values of reward terms");
      expect_within(w_.term_state + 2 * i + 1, 1, 1e200, "sums of reward terms");
    }
    expect_within(w_.agent_stats(0), l_.num_extra_stats, 1e150, "statistics");
    if (p_.drop_on_overflow) return;
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent)
      if (w_.agent_counter(AgentCounter::dropped)[agent] != 0)
        reject(agent, "has seen more tokens than fit into its row");
  }

  // Written again from what was checked above, which is why they have room.
  void check_tokens() {
    for (std::uint32_t word = 0; word < (p_.num_objects + 63) / 64; ++word)
      expect_state(w_.dirty[word] == 0, "tokens are waiting to be written");
    expect_state(w_.token_counts[kEmpty] == 0, "an empty cell has tokens");
    const std::vector<std::uint8_t> counts(w_.token_counts, w_.token_counts + p_.codes.count);
    const std::vector<std::uint8_t> tokens(w_.token_cache, w_.token_cache + l_.token_cache_bytes);
    const auto same = [&](std::uint32_t code) {
      const std::uint8_t* const now = w_.cached_tokens(code);
      return counts[code] == w_.token_counts[code] &&
             std::equal(now, now + 3 * w_.token_counts[code], tokens.begin() + p_.token_cache.at[code]);
    };
    refresh_terrain(p_, w_);
    for (const std::uint16_t type : p_.codes.terrain)
      expect_state(same(p_.types[type].code), "tokens of terrain do not match its type");
    for (std::uint32_t object = 0; object < p_.num_objects; ++object) {
      if (!w_.on_map(object)) continue;
      const bool shows = p_.actions.shows_facing && object < p_.num_agents;
      const std::uint16_t facing = shows ? w_.facing_byte[object] : 0;
      const bool runs = p_.machines.any && (w_.running[object >> 6] >> (object & 63) & 1);
      const std::uint16_t converting = runs ? w_.converting_byte[object] : 0;
      refresh_object(p_, w_, object, header_.tick);
      const bool places =
          (!shows || facing == w_.facing_byte[object]) && (!runs || converting == w_.converting_byte[object]);
      if (!places || !same(object + 1)) reject(object, "has tokens that do not match its state");
    }
  }

  // Behind what the last observation used a row is empty: the next one clears no more than that.
  void check_observations() const {
    const auto most = static_cast<std::size_t>(p_.config.observation.num_tokens);
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) {
      const std::size_t used = rows_.used[agent];
      const std::uint8_t* const row = rows_.obs + agent * most * kTokenBytes;
      if (used > most || std::any_of(row + used * kTokenBytes, row + most * kTokenBytes,
                                     [](std::uint8_t byte) { return byte != kNoToken; }))
        reject(agent, "has something after its " + std::to_string(used) + " tokens");
    }
  }

  const Program& p_;
  const StateLayout& l_;
  const WorldHeader& header_;
  World w_;
  const Rows<std::uint8_t>& rows_;
};

}  // namespace

void Grid::check_state(const Program& p, const WorldHeader& header, std::byte* state, const Rows<Obs>& rows) {
  StateCheck(p, header, state, rows).run();
}

}  // namespace gridmill::grid
