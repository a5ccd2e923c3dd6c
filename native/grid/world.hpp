// World: typed pointers into one world's block, made from the program's layout for one tick and thrown away.
// Objects with state come first (agents 0..A-1, then the others); terrain (walls) is only a code in the grid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "grid/program.hpp"

namespace gridmill::grid {

constexpr std::uint8_t kNotShown = 255;
constexpr std::uint16_t kEmpty = 0;  // object i has code i + 1, terrain follows, then what lies outside the map

struct World {
  World(const Program& p, std::byte* state) : program(p), state_(state) {}

  const Program& program;

 private:
  std::byte* state_;
  template <class T>
  T* at(StateArray<T> array) const {
    return array.in(state_);
  }

 public:
  // One of the two views is in use. Codes, padded by one cell of what is outside.
  std::uint8_t* grid8 = at(program.layout.grid);
  std::uint16_t* grid16 = at(program.layout.grid.as<std::uint16_t>());
  std::uint64_t* occupied = at(program.layout.occupied);  // the word nobody reads, then strips of plane_rows words
  // Per object.
  std::uint16_t* type = at(program.layout.type);
  std::uint32_t* cell = at(program.layout.cell);
  std::uint16_t* row = at(program.layout.row);
  std::uint16_t* column = at(program.layout.column);
  std::uint8_t* vibe = at(program.layout.vibe);
  std::uint16_t* inventory = at(program.layout.inventory);  // [object][resource]
  std::uint64_t* dirty = at(program.layout.dirty);          // bits: its tokens must be rebuilt before it is observed
  // Per agent.
  std::uint8_t* group = at(program.layout.group);
  std::uint8_t* facing = at(program.layout.facing);
  std::uint8_t* last_action = at(program.layout.last_action);
  std::uint8_t* reward_token = at(program.layout.reward_token);
  std::uint16_t* spawn_row = at(program.layout.spawn_row);
  std::uint16_t* spawn_column = at(program.layout.spawn_column);
  std::uint64_t* visited = at(program.layout.visited);
  std::uint16_t* action_counters16 =
      at(program.layout.action_counters);  // [agent][counter]; one of the two views is in use
  std::uint32_t* action_counters32 = at(program.layout.action_counters.as<std::uint32_t>());
  std::uint64_t* agent_counters = at(program.layout.agent_counters);        // [counter][agent]
  std::uint64_t* resource_counters = at(program.layout.resource_counters);  // [agent][resource][counter]
  std::uint16_t* frozen = at(program.layout.frozen);                        // ticks left; only in games that can freeze
  std::uint16_t* facing_byte = at(program.layout.facing_byte);  // where in its cached tokens the direction is shown
  std::uint64_t* touched = at(program.layout.touched);  // bits: its inventory changed in this tick, for the rewards
  double* reward_sum = at(program.layout.reward_sum);
  double* term_state = at(program.layout.term_state);  // [agent][term][2]: value before, running sum of rises
  // Machines, per object; only in games that have some.
  std::uint32_t* done_at = at(program.layout.done_at);          // the tick its outputs appear
  std::uint32_t* conversions = at(program.layout.conversions);  // how many were started
  std::uint64_t* running = at(program.layout.running);          // bits: a conversion is under way
  std::uint16_t* converting_byte =
      at(program.layout.converting_byte);  // where in its cached tokens the ticks left are shown
  // Per code.
  std::uint8_t* token_cache = at(program.layout.token_cache);  // what each code shows, location 0
  std::uint8_t* token_counts = at(program.layout.token_counts);

  std::uint32_t cell_at(std::uint32_t r, std::uint32_t c) const { return (r + 1) * program.stride + c + 1; }

  std::uint16_t code_at(std::uint32_t at) const { return program.layout.narrow_grid ? grid8[at] : grid16[at]; }
  void set_code(std::uint32_t at, std::uint16_t code) {
    if (program.layout.narrow_grid) grid8[at] = static_cast<std::uint8_t>(code);
    else grid16[at] = code;
  }

  // The occupancy bitmap: overlapping vertical strips of 64 columns, one every 32, so that any window's rows
  // are consecutive words of one strip. Every column lies in two strips; the first 32 lie in one and a word
  // nobody reads.
  void set_occupied(std::uint32_t r, std::uint32_t c) {
    const auto [left, right, bit] = occupied_words(r, c);
    *right |= std::uint64_t{1} << bit;
    *left |= std::uint64_t{1} << (bit + 32);
  }
  void clear_occupied(std::uint32_t r, std::uint32_t c) {
    const auto [left, right, bit] = occupied_words(r, c);
    *right &= ~(std::uint64_t{1} << bit);
    *left &= ~(std::uint64_t{1} << (bit + 32));
  }
  // The same bitmap of plain terrain alone, made when it is first asked for: it never changes in an episode.
  std::uint64_t* plain() const { return at(program.layout.plain); }
  bool plain_known() const { return *at(program.layout.plain_known) != 0; }
  void note_plain() {
    const auto radius = static_cast<std::uint32_t>(program.window.radius_columns);
    for (std::uint32_t r = 0; r < program.height; ++r) {
      const std::uint32_t first = cell_at(r, 0);
      std::uint64_t* const row_words = plain() + 1 + r + static_cast<std::uint32_t>(program.window.radius_rows);
      for (std::uint32_t c = 0; c < program.width; ++c) {
        const std::uint32_t x = c + radius;
        const std::uint64_t bit = std::uint64_t{code_at(first + c) == program.codes.plain} << (x & 31);
        std::uint64_t* const right = row_words + std::size_t{x >> 5} * program.layout.plane_rows;
        *right |= bit;
        if (x >= 32) right[-static_cast<std::ptrdiff_t>(program.layout.plane_rows)] |= bit << 32;
      }
    }
    *at(program.layout.plain_known) = 1;
  }
  // An agent turned: only one byte of what it shows changes. It is the first token's, so it is there even if the rest
  // is going to be built again.
  void turn(std::uint32_t agent, std::uint8_t direction) {
    facing[agent] = direction;
    if (program.actions.shows_facing) cached_tokens(agent + 1)[facing_byte[agent]] = direction;
  }
  // What a code shows. Agents show more than most objects, so theirs have more room.
  std::uint8_t* cached_tokens(std::uint32_t code) const { return token_cache + program.token_cache.at[code]; }
  bool is_dirty(std::uint32_t object) const { return (dirty[object >> 6] >> (object & 63) & 1) != 0; }
  // What an object shows has to be built anew.
  void mark_dirty(std::uint32_t object) {
    dirty[object >> 6] |= std::uint64_t{1} << (object & 63);
    if (object < program.num_agents) changes()[object] = 0;
  }
  // Only an amount of an agent changed, or its vibe: often just that has to be written again.
  void mark_amount(std::uint32_t agent, std::uint32_t resource) {
    if (resource < kVibeChange) mark_change(agent, resource);
    else mark_dirty(agent);
  }
  void set_vibe(std::uint32_t object, std::uint8_t now) {
    vibe[object] = now;
    if (object < program.num_agents) mark_change(object, kVibeChange);
    else mark_dirty(object);
  }
  static constexpr std::uint32_t kVibeChange = 63;
  // Per dirty agent: bits of the resources whose amounts changed, and of the vibe; none: anything may have.
  std::uint64_t* changes() const { return at(program.layout.changes); }
  // Per resource of an agent: which of its cached tokens show the low and the high digit of its amount, or kNotShown.
  // 0: not known; an agent's first token is never an amount.
  std::uint8_t* digit_places(std::uint32_t agent) const {
    return at(program.layout.digit_places) + std::size_t{agent} * program.num_resources * 2;
  }

  void count_action(std::uint32_t agent, std::uint32_t action_counter) {
    const std::size_t at = std::size_t{agent} * program.actions.num_counters + action_counter;
    if (program.layout.narrow_action_counters) ++action_counters16[at];
    else ++action_counters32[at];
  }
  std::uint32_t action_counter(std::uint32_t agent, std::uint32_t which) const {
    const std::size_t at = std::size_t{agent} * program.actions.num_counters + which;
    return program.layout.narrow_action_counters ? action_counters16[at] : action_counters32[at];
  }
  // What an object holds; behind the objects come the collectives.
  std::uint16_t* held(std::uint32_t holder) const { return inventory + std::size_t{holder} * program.num_resources; }
  // Maps differ in how many objects they have, and rules remove some: those that are not there have no cell.
  bool on_map(std::uint32_t object) const { return cell[object] != 0; }

  // What only games with rules, areas or collectives have.
  std::uint8_t* collective() const { return at(program.layout.collective); }  // per object
  std::uint8_t collective_of(std::uint32_t object) const {
    return program.collectives.teams.empty() ? kNeutral : collective()[object];
  }
  std::uint64_t* tag_bits() const { return at(program.layout.tag_bits); }  // per object: changeable tags
  bool has_tag(std::uint32_t object, std::uint16_t tag) const {
    const std::int32_t mark = program.tags.bit_of[tag];
    return mark < 0 ? program.types[type[object]].tag_set[tag] : (tag_bits()[object] >> mark & 1) != 0;
  }
  std::uint32_t* freed_at() const { return at(program.layout.freed_at); }  // per object
  // Per agent: bits of the areas it is inside of, by object and place among its type's areas.
  std::size_t inside_words() const { return (std::size_t{program.num_objects} * program.areas.most_of_type + 63) / 64; }
  std::uint64_t* inside(std::uint32_t agent) const { return at(program.layout.inside) + agent * inside_words(); }
  AreaSource* sources() const { return at(program.layout.sources); }
  std::uint32_t& num_sources() const { return *at(program.layout.num_sources); }
  void forget_sources() {
    if (!program.areas.list.empty()) num_sources() = kSourcesUnknown;
  }
  // Bits of the sources that do not walk: those whose areas cover a row, those that cover a column, and those that
  // concern a collective's agents (the last: agents of none).
  AreaReach& reach() const { return *at(program.layout.reach); }
  std::uint32_t* first_source() const { return at(program.layout.first_source); }  // per area
  std::uint64_t* reach_row(std::uint32_t r) const {
    return at(program.layout.reach_rows) + std::size_t{r} * program.areas.reach_words;
  }
  std::uint64_t* reach_column(std::uint32_t c) const {
    return at(program.layout.reach_columns) + std::size_t{c} * program.areas.reach_words;
  }
  std::uint64_t* concerned(std::size_t team) const {
    return at(program.layout.concerned) + std::min(team, program.collectives.teams.size()) * program.areas.reach_words;
  }
  void forget_reach() {
    if (!program.areas.list.empty()) reach().known = 0;
  }
  std::uint64_t& team_count(std::size_t team, std::size_t name, TeamCount which) const {
    return at(program.layout.team_counts)[(team * program.vocabulary->names.size() + name) * kTeamCounts +
                                          static_cast<std::size_t>(which)];
  }
  std::uint64_t& team_resource_counter(std::size_t team, std::size_t resource, TeamResourceCounter which) const {
    return at(program.layout.team_resource_counters)[(team * program.num_resources + resource) * kTeamResourceCounters +
                                                     static_cast<std::size_t>(which)];
  }
  // Statistics that rules add to: those of agents, then of collectives, then the game's.
  double* agent_stats(std::size_t agent) const {
    return at(program.layout.extra_stats) + agent * program.vocabulary->agent_stats.size();
  }
  double* team_stats(std::size_t team) const {
    return agent_stats(program.num_agents) + team * program.vocabulary->team_stats.size();
  }
  double* game_stats() const { return team_stats(program.collectives.teams.size()); }
  std::uint64_t& resource_counter(std::uint32_t agent, std::uint32_t resource, ResourceCounter which) const {
    return resource_counters[(std::size_t{agent} * program.num_resources + resource) * kResourceCounters +
                             static_cast<std::size_t>(which)];
  }
  // The type of what a code of the grid stands for.
  std::size_t type_of(std::uint16_t code) const {
    return code <= program.num_objects ? type[code - 1] : program.codes.terrain[code - program.num_objects - 1];
  }
  std::uint64_t* agent_counter(AgentCounter which) const {
    return agent_counters + static_cast<std::size_t>(which) * program.num_agents;
  }

  std::uint64_t* visited_word(std::uint32_t agent, std::uint32_t r, std::uint32_t c) const {
    return visited + std::size_t{agent} * program.layout.visited_words + (r >> 3) * program.layout.visited_tiles +
           (c >> 3);
  }
  // 1 where the agent had not yet stood on this cell in this episode. A word is a tile of 8 x 8 cells, so
  // that an agent stays in one cache line while it wanders.
  std::uint32_t visit(std::uint32_t agent, std::uint32_t r, std::uint32_t c) {
    std::uint64_t& word = *visited_word(agent, r, c);
    const std::uint32_t bit = (r & 7) << 3 | (c & 7);
    const auto seen = static_cast<std::uint32_t>(word >> bit) & 1u;
    word |= std::uint64_t{1} << bit;
    return seen ^ 1u;
  }

 private:
  void mark_change(std::uint32_t agent, std::uint32_t what) {
    std::uint64_t& noted = changes()[agent];
    const bool before = is_dirty(agent);
    if (!before || noted != 0) noted = (before ? noted : 0) | std::uint64_t{1} << what;
    dirty[agent >> 6] |= std::uint64_t{1} << (agent & 63);
  }

  struct Words {
    std::uint64_t *left, *right;
    std::uint32_t bit;
  };
  Words occupied_words(std::uint32_t r, std::uint32_t c) const {
    const std::uint32_t x = c + static_cast<std::uint32_t>(program.window.radius_columns);
    const std::uint32_t y = r + static_cast<std::uint32_t>(program.window.radius_rows);
    const std::uint32_t strip = x >> 5;
    std::uint64_t* right = occupied + 1 + std::size_t{strip} * program.layout.plane_rows + y;
    return {strip == 0 ? occupied : right - program.layout.plane_rows, right, x & 31};
  }
};

}  // namespace gridmill::grid
