// compile(): decoded game -> Program. All cross-checks that need ids or sizes live here.
#include "grid/program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "grid/compile.hpp"
#include "grid/maps.hpp"
#include "grid/mentions.hpp"
#include "grid/rules.hpp"

namespace gridmill::grid {
namespace {

Type make_type(const std::string& name, const std::vector<std::string>& tags, const Named<std::int64_t>& inventory,
               const std::string& vibe, const GameConfig& game, const Vocabulary& words) {
  Type type;
  type.name = name;
  type.tags.push_back(words.tag("type:" + name));
  for (const auto& tag : tags) type.tags.push_back(words.tag(tag));
  std::sort(type.tags.begin(), type.tags.end());
  type.tags.erase(std::unique(type.tags.begin(), type.tags.end()), type.tags.end());
  type.inventory.assign(game.resources.size(), 0);
  for (const auto& [resource, amount] : inventory) {
    const auto at = std::find(game.resources.begin(), game.resources.end(), resource) - game.resources.begin();
    type.inventory[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(amount);
  }
  type.vibe = words.vibe(vibe);
  type.may_hold.assign(game.resources.size(), false);
  type.limits = kNoLimits;
  return type;
}

void compile_actions(Program& p) {
  const Vocabulary& words = *p.words;
  const int rows[] = {-1, 1, 0, 0, -1, -1, 1, 1}, columns[] = {0, 0, -1, 1, -1, 1, -1, 1};
  const int facing[] = {0, 1, 2, 3, 0, 0, 1, 1};  // north, south, west, east; a diagonal sets its north/south part
  const char* directions[] = {"north", "south", "west", "east", "northwest", "northeast", "southwest", "southeast"};
  p.actions.resize(words.actions.size() + 1);
  for (std::size_t a = 0; a < words.actions.size(); ++a) {
    const std::string& name = words.actions[a];
    ActionEntry& entry = p.actions[a];
    if (name == "noop") entry.kind = ActionKind::noop;
    for (int d = 0; d < p.config.moves; ++d) {
      if (name != std::string("move_") + directions[d]) continue;
      entry.kind = ActionKind::move;
      entry.row = static_cast<std::int8_t>(rows[d]);
      entry.column = static_cast<std::int8_t>(columns[d]);
      entry.delta = rows[d] * static_cast<std::int32_t>(p.stride) + columns[d];
      entry.facing = static_cast<std::int8_t>(facing[d]);
    }
    if (p.config.attack && name.starts_with("attack_")) {
      const bool nearest_one = name == "attack_nearest";
      const bool has = p.config.attack->aim == "both" || nearest_one == (p.config.attack->aim == "nearest");
      if (has) {
        entry.kind = ActionKind::attack;
        entry.first = static_cast<std::uint8_t>(nearest_one ? 0 : name.back() - '0');
        entry.last = nearest_one ? std::uint8_t{8} : entry.first;
      }
    }
    if (p.config.swap && name == "swap") entry.kind = ActionKind::swap;
    if (p.config.vibes.size() > 1)
      for (const auto& vibe : p.config.vibes)
        if (name == "change_vibe_" + vibe) entry.kind = ActionKind::change_vibe, entry.vibe = words.vibe(vibe);
  }
  p.num_outcomes = static_cast<std::uint32_t>(2 * words.actions.size() + 1);
}

void compile_window(Program& p) {
  const Observation& o = p.config.observation;
  Window& w = p.window;
  std::memset(&w, 0, sizeof w);
  w.height = o.height, w.width = o.width;
  w.radius_rows = o.height / 2, w.radius_columns = o.width / 2;
  for (std::size_t i = 0; i < 256; ++i) w.numbers[i] = static_cast<std::uint8_t>(i);
  std::fill(std::begin(w.rank_of), std::end(w.rank_of), std::uint8_t{255});
  struct Cell {
    int row, column;
  };
  std::vector<Cell> cells;
  const int r = w.radius_rows;
  for (int row = -w.radius_rows; row <= w.radius_rows; ++row)
    for (int column = -w.radius_columns; column <= w.radius_columns; ++column) {
      const int d2 = row * row + column * column;
      const bool rim = r >= 2 && d2 == r * r + 1 && (std::abs(row) == r || std::abs(column) == r);
      if (o.window == "square" || d2 <= r * r || rim) cells.push_back({row, column});
    }
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::abs(a.row) + std::abs(a.column) < std::abs(b.row) + std::abs(b.column);
  });
  w.num_ranks = static_cast<std::uint32_t>(cells.size());
  w.num_words = (w.num_ranks + 63) / 64;
  for (std::size_t byte = 0; byte < 64; ++byte)
    w.spread[byte] = static_cast<std::uint8_t>(byte % 3 == 0 ? byte / 3 : 0x80);
  for (std::size_t rank = 0; rank < cells.size(); ++rank) {
    const auto location =
        static_cast<std::uint8_t>((cells[rank].row + w.radius_rows) << 4 | (cells[rank].column + w.radius_columns));
    w.location[rank] = location;
    w.rank_of[location] = static_cast<std::uint8_t>(rank);
    w.inside[location >> 6] |= std::uint64_t{1} << (location & 63);
    w.picture_byte[rank] = location >> 3;
    w.picture_bit[rank] = static_cast<std::uint8_t>(1u << (location & 7));
    const std::uint32_t row = location >> 4, at = 8 * (row & 3) + 2 * (row >> 2) + (location >> 3 & 1);
    w.half_byte[at >> 4][rank] = static_cast<std::uint8_t>(at & 15);
    w.half_byte[at >> 4 ^ 1][rank] = 0x80;
    w.cell_delta[rank] = cells[rank].row * static_cast<std::int32_t>(p.stride) + cells[rank].column;
    std::uint8_t pattern[16] = {};
    for (int byte = 0; byte < 16; byte += 3) pattern[byte] = location;
    std::memcpy(w.pattern[rank], pattern, 16);
  }
}

std::size_t tokens_of(const Program& p, const Type& type, bool agent) {
  std::size_t n = type.tags.size() + (p.config.vibes.size() > 1 ? 1 : 0);
  if (type.terrain) n += static_cast<std::size_t>(std::popcount(type.marks));
  else n += p.changeable.size() + (p.teams.empty() ? 0 : 1);
  if (type.assembler >= 0) n += 2;
  if (agent) n += 2 + (p.can_freeze ? 1 : 0) + (p.shows_facing ? 1 : 0);
  const CompiledConverter* machine =
      type.converter < 0 ? nullptr : &p.converters[static_cast<std::size_t>(type.converter)];
  if (machine) n += 1;
  for (std::size_t r = 0; r < p.num_resources; ++r) {
    const bool works = machine && (machine->inputs[r] > 0 || machine->outputs[r] > 0);
    const bool holds = agent || type.inventory[r] > 0 || works || type.may_hold[r];
    if (holds) n += p.resource_high_feature[r] == kNoFeature ? 1 : 2;
  }
  return n;
}

// Nothing of an agent's own but whom it belongs to.
bool same_in_team(const CompiledValue& value) {
  return std::all_of(value.begin(), value.end(), [](const ValueOp& op) {
    return op.code == ValueOp::inventory ? op.whose == kNamed
                                         : op.code == ValueOp::team_stat || op.code == ValueOp::game_stat ||
                                               op.code == ValueOp::count || op.code >= ValueOp::constant;
  });
}

void compile_features(Program& p) {
  const Vocabulary& words = *p.words;
  p.tag_feature = words.feature("tag");
  p.group_feature = words.feature("agent:group");
  p.id_feature = words.feature("agent:id");
  p.vibe_feature = words.feature("vibe");
  p.frozen_feature = words.feature("agent:frozen");
  p.facing_feature = words.feature("agent:facing");
  p.converting_feature = words.feature("converting");
  p.collective_feature = words.feature("collective");
  p.uses_feature = words.feature("uses");
  p.progress_feature = words.feature("episode_progress");
  p.action_feature = words.feature("last_action");
  p.reward_feature = words.feature("last_reward");
  const char* names[] = {"lp:north", "lp:south", "lp:west", "lp:east"};
  for (std::size_t i = 0; i < 4; ++i) p.lp_features[i] = words.feature(names[i]);
  for (const auto& name : words.resources) {
    const auto at = std::find(p.config.resources.begin(), p.config.resources.end(), name);
    p.resource_of_word.push_back(
        at == p.config.resources.end() ? -1 : static_cast<std::int32_t>(at - p.config.resources.begin()));
  }
  for (const auto& resource : p.config.resources) {
    p.resource_feature.push_back(words.feature("inv:" + resource));
    p.resource_high_feature.push_back(needs_two_digits(p.config, resource) ? words.feature("inv:" + resource + ":p1")
                                                                           : kNoFeature);
  }
  for (std::uint16_t r = 0; r < p.num_resources; ++r) {
    p.amount_digits.push_back({p.resource_feature[r], 0, r});
    if (p.resource_high_feature[r] != kNoFeature) p.amount_digits.push_back({p.resource_high_feature[r], 8, r});
  }
  std::sort(p.amount_digits.begin(), p.amount_digits.end(),
            [](const AmountDigit& a, const AmountDigit& b) { return a.feature < b.feature; });
  for (std::size_t i = 0; i < p.config.observation.values.size(); ++i) {
    const auto& v = p.config.observation.values[i];
    ShownValue shown{{}, words.feature(v.name), words.feature(v.name + ":p1"), v.digits};
    compile_value(p, v.value, "$.observation.values[" + std::to_string(i) + "].value", shown.value);
    p.shown_by_team = (i == 0 || p.shown_by_team) && same_in_team(shown.value);
    p.shown.push_back(std::move(shown));
  }
}

// Runs are worth their bitmap where walls are most of a map, as in a maze.
void compile_plain(Program& p, const Mentions& mentions) {
  std::uint64_t plain = 0, all = p.num_objects;
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    const Type& type = p.types[t];
    if (!type.terrain) continue;
    all += p.placed[t];
    const bool moves = type.pushable || type.swappable || mentions.spawned.contains(p.config.objects[t].first);
    if (moves || type.tags.size() != 1 || type.marks != 0 || p.placed[t] <= plain) continue;
    plain = p.placed[t];
    p.plain_code = type.code;
    for (std::size_t byte = 0; byte < sizeof p.window.plain; ++byte)
      p.window.plain[byte] = byte % 3 == 0 ? 0 : byte % 3 == 1 ? p.tag_feature : type.tags[0];
  }
  if (plain < 20 * (all - plain)) p.plain_code = 0;
}

// Slots are as wide as the richest agent, or the richest of all others, rounded to a power of two.
void compile_slots(Program& p) {
  std::size_t most = 0, most_of_agent = 0;
  std::vector<std::pair<std::size_t, std::uint64_t>> seen;  // tokens each, how many there are
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    const std::size_t n = tokens_of(p, p.types[t], t == p.agent_type);
    if (n > 255)
      refuse("$.objects." + p.types[t].name, "expected at most 255 tokens per object, got " + std::to_string(n));
    (t == p.agent_type ? most_of_agent : most) = std::max(t == p.agent_type ? most_of_agent : most, n);
    seen.emplace_back(n, p.placed[t]);
  }
  const auto shift_for = [](std::size_t tokens) {
    return std::max(4u, static_cast<std::uint32_t>(std::bit_width(3 * tokens - 1)));
  };
  p.agent_slot_shift = shift_for(most_of_agent);
  p.slot_shift = shift_for(std::max<std::size_t>(1, most));
  std::size_t at = 0;
  for (std::uint32_t code = 0; code < p.num_slots; ++code) {
    p.slot_at.push_back(static_cast<std::uint32_t>(at));
    at += std::size_t{1} << (code <= p.num_agents ? p.agent_slot_shift : p.slot_shift);
  }
  const Type& agent = p.types[p.agent_type];
  const auto held = std::count_if(agent.inventory.begin(), agent.inventory.end(), [](auto n) { return n > 0; });
  const std::size_t usual = agent.tags.size() + 2 + p.shows_facing + !p.teams.empty() + static_cast<std::size_t>(held);
  p.wide_slots = p.slot_shift > 5 || usual > 5;
  const std::size_t globals = 3 + (p.config.observation.local_position ? 2 : 0) + [&] {
    std::size_t n = 0;
    for (const auto& s : p.shown) n += static_cast<std::size_t>(s.digits);
    return n;
  }();
  // At worst the richest objects of the map crowd the window.
  std::sort(seen.rbegin(), seen.rend());
  p.worst_tokens = globals;
  std::uint64_t free = p.window.num_ranks;
  for (const auto& [tokens, count] : seen) {
    const std::uint64_t fits = std::min(free, count);
    p.worst_tokens += tokens * fits;
    free -= fits;
  }
}

void compile_layout(Program& p) {
  const std::size_t objects = p.num_objects, agents = p.num_agents;
  Layout& l = p.layout;
  std::size_t at = 0;
  const auto place = [&at](std::size_t count, std::size_t size) {
    at = (at + size - 1) / size * size;
    const std::size_t here = at;
    at += count * size;
    return here;
  };
  // What every tick touches, side by side and in few lines; Batch asks for it ahead.
  l.cell = place(objects, 4);
  l.row = place(objects, 2);
  l.column = place(objects, 2);
  l.dirty = place((objects + 63) / 64, 8);
  l.last_action = place(agents, 1);
  l.reward_token = place(agents, 1);
  l.facing = place(agents, 1);
  l.slot_counts = place(p.num_slots, 1);
  l.occupied = place(1 + std::size_t{p.num_strips} * p.plane_rows + 16, 8);  // the vector path reads 16 rows
  at = (at + 15) / 16 * 16;
  // Copies read up to 31 bytes beyond a slot.
  l.slots = place((std::size_t{p.num_agents + 1} << p.agent_slot_shift) +
                      (std::size_t{p.num_slots - p.num_agents} << p.slot_shift) + 32,
                  1);
  l.grid = place(std::size_t{p.height + 2} * p.stride, p.narrow_grid ? 1 : 2);
  l.outcomes = place(agents * p.num_outcomes, p.narrow_outcomes ? 2 : 4);
  l.frozen = place(p.can_freeze ? agents : 0, 2);
  l.facing_byte = place(p.shows_facing ? agents : 0, 2);
  l.touched = place((agents + 63) / 64, 8);
  l.done_at = place(p.has_clocks ? objects : 0, 4);
  l.running = place(p.has_clocks ? (objects + 63) / 64 : 0, 8);
  l.converting_byte = place(p.has_clocks ? objects : 0, 2);
  l.tallies = place(agents * kTallies, 8);
  l.hot = l.tallies + agents * kHotTallies * 8;
  l.visited = place(agents * p.visited_words, 8);
  l.flows = place(agents * p.num_resources * kFlows, 8);
  l.conversions = place(p.has_clocks ? objects : 0, 4);
  l.reward_sum = place(agents, 8);
  l.term_state = place(agents * p.terms.size() * 2, 8);
  l.type = place(objects, 2);
  l.inventory = place((objects + p.teams.size()) * p.num_resources, 2);
  const Vocabulary& words = *p.words;
  l.collective = place(p.teams.empty() ? 0 : objects, 1);
  l.marks = place(p.changeable.empty() ? 0 : objects, 8);
  l.freed_at = place(p.can_spawn ? objects : 0, 4);
  l.inside = place(p.remembers_areas ? agents * ((objects * p.most_areas + 63) / 64) : 0, 8);
  l.num_sources = place(p.areas.empty() ? 0 : 1, 4);
  l.sources = place(objects * p.most_areas, sizeof(AreaSource));
  l.team_counts = place(p.teams.size() * words.names.size() * kTeamCounts, 8);
  l.team_flows = place(p.teams.size() * p.num_resources * kTeamFlows, 8);
  l.extra_stats =
      place(agents * words.agent_stats.size() + p.teams.size() * words.team_stats.size() + words.game_stats.size(), 8);
  l.vibe = place(objects, 1);
  l.group = place(agents, 1);
  l.spawn_row = place(agents, 2);
  l.spawn_column = place(agents, 2);
  at = l.saved = (at + 63) / 64 * 64;
  l.plain_known = place(p.plain_code == 0 ? 0 : 1, 8);
  l.plain = place(p.plain_code == 0 ? 0 : l.slots / 8 - l.occupied / 8, 8);
  l.changes = place(agents, 8);
  l.digit_places = place(agents * p.num_resources * 2, 1);
  l.reach = place(p.areas.empty() ? 0 : 1, sizeof(AreaReach));
  l.first_source = place(p.areas.empty() ? 0 : p.areas.size() + 1, 4);
  l.reach_rows = place(std::size_t{p.height} * p.reach_words, 8);
  l.reach_columns = place(std::size_t{p.width} * p.reach_words, 8);
  l.concerned = place((p.teams.size() + 1) * p.reach_words, 8);
  l.bytes = (at + 63) / 64 * 64;
}

// Amounts of agents that change in every tick.
std::vector<std::uint16_t> busy_resources(const Program& p) {
  std::vector<std::uint16_t> busy = p.area_resources;
  const Range rules = p.types[p.agent_type].on_tick;
  for (std::uint32_t rule = rules.first; rule < rules.last; ++rule)
    for (std::uint32_t i = p.rules[rule].effects.first; i < p.rules[rule].effects.last; ++i) {
      const Op& op = p.effects[i];
      if (op.alone == nullptr) continue;
      if (op.range.empty()) busy.push_back(op.id);  // what it adds to
      for (std::uint32_t a = op.range.first; a < op.range.last; ++a) busy.push_back(p.amounts[a].resource);
    }
  return busy;
}

// What ahead.hpp asks for without looking at the world.
void list_sure_lines(Program& p) {
  const Layout& l = p.layout;
  const std::size_t n = p.num_agents, small_bytes = std::max<std::size_t>(16 * 1024, 640 * n);
  std::set<std::uint32_t> lines;
  const auto add = [&](std::size_t from, std::size_t bytes) {
    for (std::size_t at = from / 64 * 64; at < from + bytes; at += 64) lines.insert(static_cast<std::uint32_t>(at));
  };
  p.small = l.hot <= small_bytes;
  if (p.small) add(0, l.hot);
  add(l.dirty, l.slot_counts + p.num_slots - l.dirty);
  add(l.outcomes, n * p.num_outcomes * (p.narrow_outcomes ? 2 : 4));
  add(l.tallies, n * kHotTallies * 8);
  add(l.touched, (n + 63) / 64 * 8);
  if (p.can_freeze) add(l.frozen, n * 2);
  if (p.has_clocks) add(l.running, (p.num_objects + 63) / 64 * 8);
  if (!p.terms.empty()) add(l.reward_sum, n * 8), add(l.term_state, n * p.terms.size() * 16);
  if (p.config.observation.local_position) add(l.spawn_row, n * 2), add(l.spawn_column, n * 2);
  if (!p.teams.empty()) add(l.collective, n), add(l.team_counts, l.team_flows - l.team_counts);
  if (!p.areas.empty())
    add(l.num_sources, 4), add(l.reach, sizeof(AreaReach)), add(l.first_source, p.areas.size() * 4 + 4);
  const std::vector<std::uint16_t> busy = busy_resources(p);
  if (!busy.empty() || !p.move_cost.empty()) add(l.inventory, n * p.num_resources * 2), add(l.changes, n * 8);
  if (!busy.empty()) add(l.digit_places, n * p.num_resources * 2);
  for (std::size_t agent = 0; agent < n; ++agent)
    for (const std::uint16_t r : busy) add(l.flows + (agent * p.num_resources + r) * kFlows * 8, kFlows * 8);
  p.sure_lines.assign(lines.begin(), lines.end());
}

std::vector<std::uint16_t> per_resource(const GameConfig& game, const Named<std::int64_t>& amounts,
                                        std::int64_t times) {
  std::vector<std::uint16_t> out(game.resources.size());
  for (const auto& [name, n] : amounts) {
    const auto at = std::find(game.resources.begin(), game.resources.end(), name) - game.resources.begin();
    out[static_cast<std::size_t>(at)] = static_cast<std::uint16_t>(std::min<std::int64_t>(n * times, 65'535));
  }
  return out;
}

std::vector<std::pair<std::uint16_t, std::uint16_t>> costs(const GameConfig& game, const Named<std::int64_t>& amounts) {
  std::vector<std::pair<std::uint16_t, std::uint16_t>> out;
  const auto all = per_resource(game, amounts, 1);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] > 0) out.emplace_back(static_cast<std::uint16_t>(r), all[r]);
  return out;
}

// The resources of each group in order of the game's resources.
std::size_t add_limits(Program& p, const std::vector<Limit>& limits) {
  LimitSet set;
  set.bonus_for.resize(p.num_resources);
  for (const auto& limit : limits) {
    LimitGroup group{{}, static_cast<std::uint32_t>(limit.base), static_cast<std::uint32_t>(limit.max), {}};
    const auto index = static_cast<std::uint16_t>(set.groups.size());
    for (std::uint16_t r = 0; r < p.num_resources; ++r) {
      const auto& names = limit.resources;
      if (std::find(names.begin(), names.end(), p.config.resources[r]) == names.end()) continue;
      group.resources.push_back(r);
    }
    for (const auto& [r, n] : costs(p.config, limit.bonus))
      group.bonus.emplace_back(r, n), set.bonus_for[r].push_back(index);
    set.groups.push_back(std::move(group));
  }
  set.of.resize(p.num_resources);
  for (std::size_t r = 0; r < p.num_resources; ++r) set.of[r].is_bonus = !set.bonus_for[r].empty();
  const auto end_of = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  for (const LimitGroup& group : set.groups) {
    const std::uint32_t first_bonus = end_of(set.bonuses);
    set.bonuses.insert(set.bonuses.end(), group.bonus.begin(), group.bonus.end());
    for (const auto r : group.resources) {
      const std::uint32_t first_other = end_of(set.others);
      std::copy_if(group.resources.begin(), group.resources.end(), std::back_inserter(set.others),
                   [r](auto other) { return other != r; });
      set.of[r] = {true,
                   set.of[r].is_bonus,
                   group.base,
                   group.max,
                   {first_bonus, end_of(set.bonuses)},
                   {first_other, end_of(set.others)}};
    }
  }
  p.limit_sets.push_back(std::move(set));
  return p.limit_sets.size() - 1;
}

void compile_teams(Program& p) {
  Named<Collective> teams = p.config.collectives;
  std::sort(teams.begin(), teams.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto place = [](const auto& names, const std::string& name) {
    return static_cast<std::uint8_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  };
  std::vector<std::string> own;
  for (const auto& [name, team] : teams) own.push_back(name);
  for (const auto& [name, team] : teams)
    p.teams.push_back({per_resource(p.config, team.inventory, 1),
                       team.limits.empty() ? kNoLimits : add_limits(p, team.limits), place(p.words->teams, name)});
  for (const auto& name : p.words->teams) {
    const auto at = std::find(own.begin(), own.end(), name);
    p.team_of_word.push_back(at == own.end() ? -1 : static_cast<std::int32_t>(at - own.begin()));
  }
  for (const auto& name : p.config.agent.collectives) p.agent_teams.push_back(place(own, name));
  for (std::size_t t = 0; t < p.config.objects.size(); ++t)
    if (const std::string& name = p.config.objects[t].second.collective; !name.empty())
      p.types[t].collective = place(own, name);
  if (teams.empty()) return;
  const auto stat = [&](const std::string& name) {
    const auto& names = p.words->agent_stats;
    return static_cast<std::uint16_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  };
  for (const auto& name : p.words->names)
    p.credit.push_back({stat(name + ".aligned_by_agent"), stat(name + ".scrambled_by_agent")});
  for (Type& type : p.types)
    type.counted_as = static_cast<std::uint16_t>(
        std::lower_bound(p.words->names.begin(), p.words->names.end(), type.name) - p.words->names.begin());
}

void compile_assembler(Program& p, Type& type, const Assembler& config) {
  CompiledAssembler assembler;
  assembler.cooldown = static_cast<std::uint32_t>(config.cooldown);
  assembler.partial = config.partial, assembler.max_uses = config.max_uses;
  for (const Recipe& declared : config.recipes) {
    CompiledRecipe recipe;
    recipe.min_agents = static_cast<std::uint32_t>(declared.min_agents);
    recipe.inputs = per_resource(p.config, declared.inputs, 1);
    recipe.outputs = per_resource(p.config, declared.outputs, 1);
    for (const auto& name : declared.vibes) {
      const std::uint8_t vibe = p.words->vibe(name);
      const auto same =
          std::find_if(recipe.vibes.begin(), recipe.vibes.end(), [&](auto& v) { return v.first == vibe; });
      if (same == recipe.vibes.end()) recipe.vibes.emplace_back(vibe, 1);
      else ++same->second;
    }
    assembler.recipes.push_back(std::move(recipe));
  }
  type.assembler = static_cast<std::int32_t>(p.assemblers.size());
  p.assemblers.push_back(std::move(assembler));
}

// Tags that rules set or clear are bits of every object; the others belong to its type.
void compile_tags(Program& p, const Mentions& mentions) {
  p.mark_of.assign(256, -1);
  const auto& names = mentions.changeable;
  if (names.size() > 64)
    refuse("$", "rules may set or clear at most 64 different tags, got " + std::to_string(names.size()));
  for (const auto& name : names) {
    const std::uint8_t tag = p.words->tag(name);
    p.mark_of[tag] = static_cast<std::int32_t>(p.changeable.size());
    p.changeable.push_back(tag);
  }
  for (Type& type : p.types) {
    for (const auto tag : type.tags) {
      type.tag_set.set(tag);
      if (p.mark_of[tag] >= 0) type.marks |= std::uint64_t{1} << p.mark_of[tag];
    }
    std::erase_if(type.tags, [&](std::uint8_t tag) { return p.mark_of[tag] >= 0; });
  }
}

void compile_machine(Program& p, Type& type, const ObjectType& object) {
  type.pushable = object.pushable, type.swappable = object.swappable;
  type.limits = object.limits.empty() ? kNoLimits : add_limits(p, object.limits);
  type.use_all = object.use == "all";
  if (object.assembler) compile_assembler(p, type, *object.assembler);
  if (!object.converter) return;
  const Converter& c = *object.converter;
  CompiledConverter machine;
  machine.inputs = per_resource(p.config, c.inputs, 1);
  machine.outputs = per_resource(p.config, c.outputs, 1);
  machine.store = per_resource(p.config, c.inputs, c.max_input);
  machine.cooldown = static_cast<std::uint32_t>(c.cooldown),
  machine.max_output = static_cast<std::uint32_t>(c.max_output);
  machine.initial = static_cast<std::uint32_t>(c.initial_resource_count), machine.max_conversions = c.max_conversions;
  type.converter = static_cast<std::int32_t>(p.converters.size());
  p.converters.push_back(std::move(machine));
}

void compile_attack(Program& p) {
  p.move_cost = costs(p.config, p.config.move_cost);
  p.shows_facing = p.config.attack.has_value() || p.config.swap;
  if (!p.config.attack) return;
  const Attack& attack = *p.config.attack;
  p.has_attack = true;
  p.attack_cost = costs(p.config, attack.cost);
  p.freeze_duration = static_cast<std::uint16_t>(attack.freeze_duration);
  const auto& names = p.config.resources;
  if (!attack.armor.empty())
    p.armor = static_cast<std::int32_t>(std::find(names.begin(), names.end(), attack.armor) - names.begin());
}

// Objects that rules may add stand unused at first.
void make_room_to_spawn(Program& p, const Mentions& mentions) {
  for (std::size_t t = 0; t < p.config.objects.size(); ++t)
    if (mentions.spawned.contains(p.config.objects[t].first)) {
      p.can_spawn = true;
      p.placed[t] += static_cast<std::uint64_t>(p.config.spawn_room);
    }
  if (p.can_spawn) p.num_objects += static_cast<std::uint32_t>(p.config.spawn_room);
}

// How many sources can stand still at a time, what areas change, and which of them need only be counted.
void compile_reach(Program& p) {
  std::uint64_t most = 0, largest = 0;
  for (std::size_t t = 0; t < p.agent_type; ++t) most += (p.types[t].areas.last - p.types[t].areas.first) * p.placed[t];
  // What is spawned takes the places of whatever was removed, so any object may come to have the most areas.
  const std::uint64_t all = std::uint64_t{p.num_objects - p.num_agents} * p.most_areas;
  most = p.can_spawn ? all : std::min(most, all);
  p.reach_words = static_cast<std::uint32_t>((most + 63) / 64);
  for (const CompiledArea& area : p.areas)
    for (const Range changes : {area.changes, area.enter, area.exit})
      for (std::uint32_t i = changes.first; i < changes.last; ++i) {
        p.area_resources.push_back(p.amounts[i].resource);
        largest = std::max<std::uint64_t>(largest, static_cast<std::uint64_t>(std::abs(p.amounts[i].by)));
      }
  std::sort(p.area_resources.begin(), p.area_resources.end());
  p.area_resources.erase(std::unique(p.area_resources.begin(), p.area_resources.end()), p.area_resources.end());
  const bool fits = most * largest <= 1'000'000'000;  // where sums are clamped, their order matters
  for (CompiledArea& area : p.areas) {
    area.counted = fits && !p.remembers_areas && !area.euclid && !area.territory && area.conditions.empty() &&
                   area.rules.empty() && area.type != p.agent_type;
    if (area.counted) p.counted_areas.push_back(static_cast<std::uint16_t>(&area - p.areas.data()));
  }
}

}  // namespace

Program compile(const Vocabulary& words, const Value& game) {
  Program p;
  p.config = decode_game(game);
  expect_covered(words, p.config);
  const Mentions mentions = mentions_of(p.config);
  p.words = &words;
  p.num_agents = static_cast<std::uint32_t>(p.config.num_agents);
  p.num_resources = static_cast<std::uint32_t>(p.config.resources.size());
  add_limits(p, p.config.agent.limits);
  add_limits(p, {});  // kNoLimits
  for (const auto& [name, type] : p.config.objects) {
    p.types.push_back(make_type(shown_name(name, type), type.tags, type.inventory, type.vibe, p.config, words));
    p.types.back().terrain = is_terrain(p.config, mentions, name, type);
    compile_machine(p, p.types.back(), type);
    p.interactive = p.interactive || type.converter || type.assembler || type.pushable || !type.on_use.empty();
  }
  p.agent_type = p.types.size();
  p.types.push_back(
      make_type("agent", p.config.agent.tags, p.config.agent.inventory, p.config.agent.vibe, p.config, words));
  p.has_clocks = !p.converters.empty() || !p.assemblers.empty();
  p.can_freeze = mentions.freezes;
  compile_tags(p, mentions);
  compile_teams(p);
  compile_attack(p);
  p.interactive = p.interactive || p.can_freeze || !p.move_cost.empty() || !p.config.agent.on_use.empty();
  compile_map(p);
  make_room_to_spawn(p, mentions);
  p.stride = p.width + 2;
  compile_actions(p);
  compile_window(p);
  compile_features(p);
  compile_rules(p);
  std::uint32_t code = p.num_objects + 1;
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    if (!p.types[t].terrain) continue;
    p.types[t].code = static_cast<std::uint16_t>(code++);
    p.code_type.push_back(static_cast<std::uint16_t>(t));
  }
  if (code > kMaxObjects)
    refuse("$.map", "expected at most 65534 codes, got " + std::to_string(p.num_objects) + " objects with a state + " +
                        std::to_string(code - p.num_objects - 1) + " kinds of terrain");
  p.num_slots = code;
  compile_reach(p);
  p.narrow_grid = code < 255;
  p.narrow_outcomes = p.config.max_steps <= 65'535;
  p.plane_rows = p.height + 2 * static_cast<std::uint32_t>(p.window.radius_rows);
  p.num_strips = ((p.width + 2 * static_cast<std::uint32_t>(p.window.radius_columns) - 1) >> 5) + 1;
  p.visited_tiles = (p.width + 7) / 8;
  p.visited_words = p.visited_tiles * ((p.height + 7) / 8);
  for (std::size_t i = 0; i < p.config.rewards.size(); ++i) {
    const RewardTerm& term = p.config.rewards[i];
    const RewardMode mode = term.mode == "change"   ? RewardMode::change
                            : term.mode == "gained" ? RewardMode::gained
                                                    : RewardMode::per_tick;
    p.terms.push_back({term.weight, term.cap, mode, -1, false, {}});
    compile_value(p, term.value, "$.rewards[" + std::to_string(i) + "].value", p.terms.back().value);
    const CompiledValue& value = p.terms.back().value;
    p.terms.back().by_team = same_in_team(value);
    if (value.size() == 1 && value[0].code == ValueOp::inventory && value[0].whose == 0)
      p.terms.back().resource = value[0].arg;
  }
  p.pays_on_change_only = std::all_of(p.terms.begin(), p.terms.end(), [](const CompiledTerm& term) {
    return term.resource >= 0 && term.mode != RewardMode::per_tick;
  });
  p.truncates = p.config.time_limit == "truncation";
  p.drop_on_overflow = p.config.observation.overflow != "error";
  for (Type& type : p.types)
    type.inert = type.on_use.empty() && type.converter < 0 && type.assembler < 0 && !type.pushable;
  compile_plain(p, mentions);
  compile_slots(p);
  compile_layout(p);
  list_sure_lines(p);
  list_event_ticks(p);
  return p;
}

}  // namespace gridmill::grid
