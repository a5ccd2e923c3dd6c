// Phase aoe. First every agent's sources are found on the state before the phase and their changes added up; then the
// sums are applied, agent by agent, and the sources' rules run. So the outcome hangs on no order of the map.
// Sources that do not walk are bits: per row and per column of the map those whose areas cover it, per collective those
// that concern it. What surrounds an agent is the intersection of three rows of bits, however many sources there are.
#include <cmath>
#include <tuple>

#include "core/bits.hpp"
#include "grid/ahead.hpp"
#include "grid/rules/rules.hpp"

namespace gridmill::grid {
namespace {

// In the order of the list: by area, then by object.
template <class Visit>
void each_source(const Program& p, const World& w, Visit visit) {
  for (std::uint32_t a = 0; a < p.areas.list.size(); ++a) {
    const CompiledArea& area = p.areas.list[a];
    const bool of_agents = area.type == p.agent_type;
    const bool needs_team = area.affects == Affects::friends || area.affects == Affects::enemies || area.territory;
    const std::uint32_t last = of_agents ? p.num_agents : p.num_objects;
    for (std::uint32_t object = of_agents ? 0 : p.num_agents; object < last; ++object)
      if (w.type[object] == area.type && w.on_map(object) && !(needs_team && w.collective_of(object) == kNeutral))
        visit(AreaSource{static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(object)});
  }
}

class AreaPhase {
 public:
  AreaPhase(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch, const std::byte* next)
      : p_(p), w_(w), header_(header), s_(scratch), ahead_(p, next) {}

  void apply() {
    find_sources();
    if (p_.areas.all_counted) {
      for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) count_and_change(agent);
      return;
    }
    s_.matches.clear();
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) add_up(agent);
    std::size_t next = 0;
    for (std::uint32_t agent = 0; agent < p_.num_agents; ++agent) {
      change(agent, sums_of(agent));
      for (; next < s_.matches.size() && s_.matches[next].agent == agent; ++next) run_rules_of(s_.matches[next]);
    }
  }

 private:
  void change(std::uint32_t agent, const std::int32_t* sums) {
    for (const std::uint16_t r : p_.areas.resources)
      if (sums[r] != 0) change_agents_amount(p_, w_, agent, r, sums[r]);
  }

  // Where only numbers matter, what one agent gets changes nothing for the next: there is no need to wait for the sums
  // of all.
  void count_and_change(std::uint32_t agent) {
    ahead_.ask_in_areas(agent);
    const std::uint64_t *rows = w_.reach_row(w_.row[agent]), *columns = w_.reach_column(w_.column[agent]),
                        *concerned = w_.concerned(w_.collective_of(agent));
    std::int32_t* const sums = s_.sums.data();
    bool any = false;
    for (std::uint32_t word = 0; word < words_; ++word) {
      const std::uint64_t near = rows[word] & columns[word] & concerned[word];
      if (near == 0) continue;
      if (!any) clear(sums);
      any = true;
      add_counted(word, near, sums);
    }
    if (any) change(agent, sums);
  }

  // By declaration of the area, then by object; those that can affect nobody are left out.
  void find_sources() {
    if (w_.num_sources() == kSourcesUnknown) {
      list_sources();
      w_.forget_reach();
    }
    if (!w_.reach().known) note_reaches();
    words_ = (w_.reach().fixed + 63) / 64;
  }

  void list_sources() {
    std::uint32_t n = 0;
    each_source(p_, w_, [&](AreaSource source) { w_.sources()[n++] = source; });
    w_.num_sources() = n;
  }

  // The agents' areas are the last, so sources that walk follow those that do not.
  void note_reaches() {
    const AreaSource* list = w_.sources();
    const std::uint32_t all = w_.num_sources();
    // There is room for all sources the map can have; there are often far fewer, and only their words are looked at.
    const std::uint32_t words = std::min((all + 63) / 64, p_.areas.reach_words);
    for (std::uint32_t r = 0; r < p_.height; ++r) std::fill_n(w_.reach_row(r), words, 0);
    for (std::uint32_t c = 0; c < p_.width; ++c) std::fill_n(w_.reach_column(c), words, 0);
    for (std::size_t team = 0; team <= p_.collectives.teams.size(); ++team) std::fill_n(w_.concerned(team), words, 0);
    std::uint32_t source = 0;
    for (std::uint32_t a = 0; a < p_.areas.list.size(); ++a) {
      w_.first_source()[a] = source;
      if (p_.areas.list[a].type == p_.agent_type) break;
      for (; source < all && list[source].area == a; ++source) {
        const std::uint32_t object = list[source].object;
        note_concerned(source, p_.areas.list[a].affects, w_.collective_of(object));
        note_reach(source, w_.row[object], w_.column[object], p_.areas.list[a].radius);
      }
      w_.first_source()[a + 1] = source;
    }
    w_.reach() = {1, source};
  }

  void note_reach(std::uint32_t source, std::int32_t row, std::int32_t column, std::int32_t radius) {
    const std::uint32_t word = source >> 6;
    const std::uint64_t bit = std::uint64_t{1} << (source & 63);
    const auto last_row = std::min(row + radius, static_cast<std::int32_t>(p_.height) - 1);
    const auto last_column = std::min(column + radius, static_cast<std::int32_t>(p_.width) - 1);
    for (std::int32_t r = std::max(row - radius, 0); r <= last_row; ++r)
      w_.reach_row(static_cast<std::uint32_t>(r))[word] |= bit;
    for (std::int32_t c = std::max(column - radius, 0); c <= last_column; ++c)
      w_.reach_column(static_cast<std::uint32_t>(c))[word] |= bit;
  }

  // By collective, at last for agents of none. An area that affects only its own object concerns no agent here.
  void note_concerned(std::uint32_t source, Affects affects, std::uint8_t team) {
    for (std::uint32_t other = 0; other <= p_.collectives.teams.size(); ++other) {
      const bool neutral = other == p_.collectives.teams.size(), same = other == team;
      const bool yes = affects == Affects::all || (affects == Affects::friends && same) ||
                       (affects == Affects::enemies && !neutral && !same);
      if (yes) w_.concerned(other)[source >> 6] |= std::uint64_t{1} << (source & 63);
    }
  }

  // Bits of the sources that do not walk whose square an agent stands in.
  void find_near(std::uint32_t agent) {
    const std::uint64_t *rows = w_.reach_row(w_.row[agent]), *columns = w_.reach_column(w_.column[agent]);
    for (std::uint32_t word = 0; word < words_; ++word) s_.near[word] = rows[word] & columns[word];
  }

  // Every one of those near whose area an agent really stands in, then those that walk, in the order of the list.
  template <class Visit>
  void each_around(std::uint32_t agent, Visit visit) const {
    const AreaSource* list = w_.sources();
    const std::uint32_t fixed = w_.reach().fixed, all = w_.num_sources();
    for (std::uint32_t word = 0; word < words_; ++word)
      for (std::uint64_t left = s_.near[word]; left != 0; left &= left - 1) {
        const auto [a, object] = list[64 * word + static_cast<std::uint32_t>(__builtin_ctzll(left))];
        if (!p_.areas.list[a].euclid || reaches(p_.areas.list[a], object, agent)) visit(a, object);
      }
    for (std::uint32_t i = fixed; i < all; ++i)
      if (reaches(p_.areas.list[list[i].area], list[i].object, agent)) visit(list[i].area, list[i].object);
  }

  std::int64_t distance_squared(const CompiledArea& area, std::uint32_t object, std::uint32_t agent) const {
    const std::int64_t dr = std::abs(w_.row[object] - w_.row[agent]),
                       dc = std::abs(w_.column[object] - w_.column[agent]);
    return area.euclid ? dr * dr + dc * dc : std::max(dr * dr, dc * dc);
  }

  bool reaches(const CompiledArea& area, std::uint32_t object, std::uint32_t agent) const {
    return distance_squared(area, object, agent) <= std::int64_t{area.radius} * area.radius;
  }

  bool concerns(const CompiledArea& area, std::uint32_t object, std::uint32_t agent) const {
    if (area.affects == Affects::self) return object == agent;
    if (object == agent) return false;
    if (area.affects == Affects::all) return true;
    const std::uint8_t team = w_.collective_of(agent);
    return team != kNeutral && (team == w_.collective_of(object)) == (area.affects == Affects::friends);
  }

  bool acts(const CompiledArea& area, std::uint32_t object, std::uint32_t agent) {
    if (area.conditions.empty()) return true;
    RuleContext context(p_, w_, header_, s_.trials, static_cast<std::int32_t>(object), static_cast<std::int32_t>(agent),
                        Mode::now);
    s_.trials.start_from(p_, w_);
    return all_hold(area.conditions, context);
  }

  // Who holds the ground an agent stands on: the nearest claim, or the largest sum of (radius - distance), in 1/1024 of
  // a cell; nobody where two are equal.
  std::uint8_t owner_of_ground(std::uint32_t agent) {
    s_.claims.assign(p_.collectives.teams.size(), 0);
    each_around(agent, [&](std::uint32_t a, std::uint32_t object) {
      const CompiledArea& area = p_.areas.list[a];
      if (!area.territory) return;
      const std::int64_t squared = distance_squared(area, object, agent);
      std::uint64_t& claim = s_.claims[w_.collective_of(object)];
      if (p_.areas.strongest_territory)
        claim += static_cast<std::uint64_t>(1024 * area.radius - root(1024 * 1024 * squared));
      else claim = std::max(claim, ~std::uint64_t{0} - static_cast<std::uint64_t>(squared));
    });
    const auto best = std::max_element(s_.claims.begin(), s_.claims.end());
    if (best == s_.claims.end() || *best == 0 || std::count(s_.claims.begin(), s_.claims.end(), *best) > 1)
      return kNeutral;
    return static_cast<std::uint8_t>(best - s_.claims.begin());
  }

  std::int32_t* sums_of(std::uint32_t agent) { return s_.sums.data() + std::size_t{agent} * p_.num_resources; }

  void clear(std::int32_t* sums) {
    for (const std::uint16_t r : p_.areas.resources) sums[r] = 0;
  }

  // Areas of which only the number matters, among the sources of one word: those of an area are side by side, so the
  // first that is left tells the area, and the area where the next begins.
  void add_counted(std::uint32_t word, std::uint64_t near, std::int32_t* sums) {
    while (near != 0) {
      const std::uint32_t a = w_.sources()[64 * word + static_cast<std::uint32_t>(__builtin_ctzll(near))].area;
      const std::uint32_t end = w_.first_source()[a + 1] - 64 * word;
      const std::uint64_t same = end < 64 ? near & ((std::uint64_t{1} << end) - 1) : near;
      near ^= same;
      const CompiledArea& area = p_.areas.list[a];
      if (!area.counted) continue;
      const auto times = static_cast<std::int32_t>(count_bits(same));
      for (std::uint32_t i = area.changes.first; i < area.changes.last; ++i)
        sums[p_.rules.amounts[i].resource] += times * p_.rules.amounts[i].by;
    }
  }

  void add(std::uint32_t agent, Range changes) {
    std::int32_t* sums = sums_of(agent);
    for (std::uint32_t i = changes.first; i < changes.last; ++i) {
      std::int32_t& sum = sums[p_.rules.amounts[i].resource];  // thousands of areas may not overflow it
      sum = std::clamp(sum + p_.rules.amounts[i].by, -1'000'000'000, 1'000'000'000);
    }
  }

  void add_up(std::uint32_t agent) {
    ahead_.ask_in_areas(agent);
    clear(sums_of(agent));
    find_near(agent);
    const std::uint8_t owner = p_.areas.has_territory ? owner_of_ground(agent) : kNeutral;
    const std::uint64_t* concerned = w_.concerned(w_.collective_of(agent));
    for (std::uint32_t word = 0; word < words_; ++word) {
      s_.near[word] &= concerned[word];
      add_counted(word, s_.near[word], sums_of(agent));
    }
    add_visited(agent, owner);
  }

  void add_visited(std::uint32_t agent, std::uint8_t owner) {
    const std::size_t first_match = s_.matches.size();
    if (p_.areas.remembers) std::fill_n(s_.now_inside.begin(), w_.inside_words(), 0);
    each_around(agent, [&](std::uint32_t a, std::uint32_t object) {
      const CompiledArea& area = p_.areas.list[a];
      if (area.counted || (area.type == p_.agent_type && !concerns(area, object, agent))) return;
      if (area.territory && w_.collective_of(object) != owner) return;
      if (!acts(area, object, agent)) return;
      add(agent, area.changes);
      if (!area.rules.empty()) s_.matches.push_back({agent, a, object, AreaMatch::inside});
      if (p_.areas.remembers) note_inside(object * p_.areas.most_of_type + area.place);
    });
    if (!p_.areas.remembers) return;
    compare_memberships(agent);
    std::sort(s_.matches.begin() + static_cast<std::ptrdiff_t>(first_match), s_.matches.end(),
              [](const AreaMatch& x, const AreaMatch& y) {
                return std::tuple(x.area, x.object, x.why) < std::tuple(y.area, y.object, y.why);
              });
  }

  void note_inside(std::uint32_t bit) { s_.now_inside[bit >> 6] |= std::uint64_t{1} << (bit & 63); }

  void compare_memberships(std::uint32_t agent) {
    std::uint64_t* before = w_.inside(agent);
    for (std::size_t word = 0; word < w_.inside_words(); ++word) {
      for (std::uint64_t changed = before[word] ^ s_.now_inside[word]; changed != 0; changed &= changed - 1) {
        const std::uint32_t bit =
            static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(__builtin_ctzll(changed));
        const std::uint32_t object = bit / p_.areas.most_of_type;
        const std::uint32_t a = p_.types[w_.type[object]].areas.first + bit % p_.areas.most_of_type;
        const bool entered = s_.now_inside[word] >> (bit & 63) & 1;
        add(agent, entered ? p_.areas.list[a].enter : p_.areas.list[a].exit);
        const Range rules = entered ? p_.areas.list[a].on_enter : p_.areas.list[a].on_exit;
        if (!rules.empty()) s_.matches.push_back({agent, a, object, entered ? AreaMatch::entered : AreaMatch::left});
      }
      before[word] = s_.now_inside[word];
    }
  }

  void run_rules_of(const AreaMatch& match) {
    const CompiledArea& area = p_.areas.list[match.area];
    const Range rules = match.why == AreaMatch::inside    ? area.rules
                        : match.why == AreaMatch::entered ? area.on_enter
                                                          : area.on_exit;
    // A source that is gone can still be left; it just is nobody any more.
    const std::int32_t source = w_.on_map(match.object) ? static_cast<std::int32_t>(match.object) : -1;
    if (source < 0 && match.why != AreaMatch::left) return;
    RuleContext context(p_, w_, header_, s_.trials, source, static_cast<std::int32_t>(match.agent), Mode::apply);
    run_rules(rules, true, context);
  }

  // Rounded down; exact, because the squares of a map's distances are far below 2^52.
  static std::int64_t root(std::int64_t n) { return static_cast<std::int64_t>(std::sqrt(static_cast<double>(n))); }

  const Program& p_;
  World& w_;
  const WorldHeader& header_;
  RuleScratch& s_;
  const Ahead ahead_;
  std::uint32_t words_ = 0;  // of bits of the sources that do not walk
};

}  // namespace

bool knows_sources(const Program& p, const World& w) {
  std::uint32_t n = 0;
  bool same = true;
  each_source(p, w, [&](AreaSource source) {
    same = same && n < w.num_sources() && w.sources()[n].area == source.area && w.sources()[n].object == source.object;
    ++n;
  });
  return same && n == w.num_sources();
}

void apply_areas(const Program& p, World& w, const WorldHeader& header, RuleScratch& scratch, const std::byte* next) {
  AreaPhase(p, w, header, scratch, next).apply();
}

}  // namespace gridmill::grid
