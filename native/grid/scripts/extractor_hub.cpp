#include "grid/scripts/extractor_hub.hpp"

#include <algorithm>
#include <cstdlib>

#include "grid/scripts/hub_recipe.hpp"
#include "grid/scripts/map_memory.hpp"

namespace gridmill::grid {
namespace {

constexpr Kind kMaker = kFirstKind, kChest = kFirstKind + 1, kFirstSource = kFirstKind + 2;
constexpr std::uint32_t kMostResources = 16, kMostStations = 32;
// A gatherer goes home with what this many products take, fills up at a station to what many more do, and does not wait
// longer than this for a station that rests if it has anything to bring.
constexpr std::uint32_t kBatch = 5, kStock = 20, kLongestWait = 25;
constexpr std::uint32_t kPatience = 40;  // ticks around the assembler in which nothing is made
// Steps that a way around somebody may take more; ticks of standing before somebody until even the lower number goes
// around, or yields; ticks of yielding.
constexpr std::uint32_t kDetour = 8, kShortBlocked = 2, kLongBlocked = 8, kYields = 3;
constexpr std::uint16_t kNowhere = 0xFFFF;

struct Station {
  std::uint16_t cell;
  Kind kind;
  std::uint8_t empty;      // it has no uses left
  std::uint32_t ready_at;  // tick
};

struct HubMemory {
  Walk walk;
  std::uint32_t tick = 0, waiting = 0, last_sum = 0;
  std::uint16_t target = 0;  // 1 + the station it goes to; 0: none
  std::uint8_t delivers = 0, num_stations = 0, blocked = 0, yields = 0;
  Station stations[kMostStations];
};

// What an agent knows in one tick.
struct Situation {
  HubMemory& own;
  std::byte* map;
  const View& view;
  std::uint64_t draw;
  std::uint32_t id = 0, vibe = 0, remaining = 0;
  std::array<std::uint32_t, kMostResources> held{};
  std::uint16_t here = 0, maker = kNowhere, chest = kNowhere;
};

class ExtractorHub final : public Script<std::uint8_t> {
 public:
  ExtractorHub(const Vocabulary& vocabulary, const Program& program, HubRecipe recipe)
      : recipe_(std::move(recipe)),
        map_(vocabulary, program, kinds(recipe_)),
        features_(program.features),
        id_(vocabulary.feature("agent:id")),
        vibe_(vocabulary.feature("vibe")),
        converting_(vocabulary.feature("converting")),
        uses_(vocabulary.feature("uses")),
        num_resources_(program.num_resources),
        num_agents_(program.num_agents),
        max_steps_(static_cast<std::uint32_t>(program.config.max_steps)),
        make_vibe_(vocabulary.vibe(recipe_.make_vibe)),
        deposit_vibe_(vocabulary.vibe(recipe_.deposit_vibe)),
        show_make_(map_.vibe_action(recipe_.make_vibe)),
        show_deposit_(map_.vibe_action(recipe_.deposit_vibe)) {
    for (const auto& [resource, amount] : program.actions.move_cost) move_cost_[resource] = amount;
    for (std::uint32_t r = 0; r < num_resources_; ++r) {
      const bool gained = std::any_of(recipe_.sources.begin(), recipe_.sources.end(),
                                      [r](const HubSource& source) { return source.gives == r; });
      // What a move costs comes back by itself.
      gathered_[r] = recipe_.inputs[r] > 0 && gained && move_cost_[r] == 0;
    }
  }

  std::size_t memory_bytes() const override { return kMapAt + map_.memory_bytes(); }

  int act(const std::uint8_t* row, std::byte* memory, std::uint64_t draw) const override {
    auto& own = *reinterpret_cast<HubMemory*>(memory);
    std::byte* map = memory + kMapAt;
    const View view = map_.read(row);
    const std::uint32_t tick = own.tick + 1;
    if (!map_.remember(view, map)) own = HubMemory{};
    own.tick = tick;
    Situation s{own, map, view, draw};
    s.here = MapReader::here(map);
    s.id = view.value(view.self, id_);
    s.vibe = view.value(view.self, vibe_);
    s.remaining = (256u - view.progress) * max_steps_ / 256;
    for (std::uint32_t r = 0; r < num_resources_; ++r) s.held[r] = amount(view, view.self, r);
    own.walk.follow(map_.torus(), s.here);
    note_stations(s);
    if (s.id == 0 && num_agents_ > 1) return make(s);
    return s.held[recipe_.product] > 0 ? store(s) : gather(s);
  }

  void check_memory(const std::byte* memory) const override {
    const auto& own = *reinterpret_cast<const HubMemory*>(memory);
    own.walk.check(map_.torus());
    map_.check_memory(memory + kMapAt);
    expect_state(own.num_stations <= kMostStations && own.target <= own.num_stations,
                 "it goes to a station that it does not know");
    for (std::uint32_t i = 0; i < own.num_stations; ++i)
      expect_state(
          own.stations[i].cell < map_.torus().size() && own.stations[i].kind < kFirstSource + recipe_.sources.size(),
          "a station that it knows is impossible");
  }

 private:
  static constexpr std::size_t kMapAt = (sizeof(HubMemory) + 7) / 8 * 8;  // where the map lies in the memory

  static std::vector<std::pair<std::string, Kind>> kinds(const HubRecipe& recipe) {
    std::vector<std::pair<std::string, Kind>> all{{recipe.maker, kMaker}, {recipe.chest, kChest}};
    for (std::size_t i = 0; i < recipe.sources.size(); ++i)
      all.emplace_back(recipe.sources[i].type, static_cast<Kind>(kFirstSource + i));
    return all;
  }
  const HubSource& source_of(const Station& station) const { return recipe_.sources[station.kind - kFirstSource]; }

  std::uint32_t amount(const View& view, const Thing& thing, std::uint32_t resource) const {
    const std::uint32_t low = view.value(thing, features_.resource[resource]);
    const std::uint8_t high = features_.resource_high[resource];
    return low + (high == kNoFeature ? 0 : 256u * view.value(thing, high));
  }

  // ---- what is known of stations

  void note_stations(Situation& s) const {
    for (std::uint32_t i = 0; i < s.view.num_things; ++i) {
      const Thing& thing = s.view.things[i];
      if (thing.kind < kFirstKind) continue;
      Station* station = station_at(s.own, map_.cell_of(s.map, thing));
      if (station == nullptr) continue;
      station->kind = thing.kind;
      station->ready_at = s.own.tick + s.view.value(thing, converting_);
      if (thing.kind >= kFirstSource) station->empty = source_of(*station).limited && s.view.value(thing, uses_) == 0;
    }
    for (std::uint32_t i = 0; i < s.own.num_stations; ++i) {
      if (s.own.stations[i].kind == kMaker) s.maker = s.own.stations[i].cell;
      if (s.own.stations[i].kind == kChest) s.chest = s.own.stations[i].cell;
    }
  }

  // Known or new; nullptr if there is no more room.
  static Station* station_at(HubMemory& own, std::uint16_t cell) {
    for (std::uint32_t i = 0; i < own.num_stations; ++i)
      if (own.stations[i].cell == cell) return &own.stations[i];
    if (own.num_stations == kMostStations) return nullptr;
    own.stations[own.num_stations] = {cell, kMaker, 0, 0};
    return &own.stations[own.num_stations++];
  }

  // ---- walking

  bool is_free(const Situation& s, std::uint16_t cell) const { return MapReader::cells(s.map)[cell] == kFree; }

  // The cells between assembler and chest belong to the maker.
  bool in_lane(const Situation& s, std::uint16_t cell) const {
    if (s.maker == kNowhere || s.chest == kNowhere || (s.id == 0 && num_agents_ > 1)) return false;
    const Torus& torus = map_.torus();
    const std::int32_t rows = torus.rows_between(s.maker, s.chest), columns = torus.columns_between(s.maker, s.chest);
    const std::int32_t row = torus.rows_between(s.maker, cell), column = torus.columns_between(s.maker, cell);
    const auto between = [](std::int32_t x, std::int32_t end) {
      return std::min(0, end) <= x && x <= std::max(0, end);
    };
    return cell != s.maker && cell != s.chest && between(row, rows) && between(column, columns);
  }

  // The next step of a way to where is_goal(cell) holds.
  template <class IsGoal>
  int go(Situation& s, IsGoal is_goal) const {
    const auto may_enter = [&](std::uint16_t cell) { return is_free(s, cell) && !in_lane(s, cell); };
    return walk_on(s, is_goal, may_enter, [&](std::span<const std::uint16_t> closed, SearchSpace& space) {
      const auto found = [&](std::uint16_t cell, std::uint32_t) { return is_goal(cell); };
      return find_way(map_.torus(), s.here, map_.directions(), 0, closed, found, may_enter, space);
    });
  }

  // The next step of a way to what was never seen, in the agent's own sector first.
  int explore(Situation& s) const {
    const Kind* cells = MapReader::cells(s.map);
    const auto is_unknown = [&](std::uint16_t cell) { return cells[cell] == kUnknown; };
    const auto may_enter = [&](std::uint16_t cell) { return is_free(s, cell); };
    return walk_on(s, is_unknown, may_enter, [&](std::span<const std::uint16_t> closed, SearchSpace& space) {
      const auto mine = [&](std::uint16_t cell, std::uint32_t) { return is_unknown(cell) && in_own_sector(s, cell); };
      const Way way = find_way(map_.torus(), s.here, map_.directions(), 0, closed, mine, may_enter, space);
      return way.length > 0 ? way : way_to_unknown(map_, s.map, closed, space);
    });
  }

  // On the way that is kept for as long as its goal is one, or on a new one of find(closed cells, space). Where another
  // agent is in the way: around it if that is not much longer, else the one with the lower number goes first.
  template <class IsGoal, class MayEnter, class Find>
  int walk_on(Situation& s, IsGoal is_goal, MayEnter may_enter, Find find) const {
    HubMemory& own = s.own;
    Walk& walk = own.walk;
    if (own.yields > 0) {
      --own.yields;
      return back_off(s);
    }
    SearchSpace space;
    if (walk.going()) {
      const std::uint16_t ahead = walk.ahead(map_.torus());
      if (!is_goal(walk.way.goal) || (ahead != walk.way.goal && !may_enter(ahead))) walk.way.length = 0;
    }
    if (!walk.going()) walk.begin(find(std::span<const std::uint16_t>{}, space), s.here);
    if (!walk.going()) return map_.noop();
    const Thing* other = agent_at(s, walk.ahead(map_.torus()));
    if (other != nullptr) {
      // Two that step aside at the same time meet again.
      if (s.view.value(*other, id_) > s.id && own.blocked < kShortBlocked) return wait_or_yield(s, *other);
      const Way around = find(agents_near(map_, s.map, s.view, 1), space);
      if (around.length == 0 || around.length > walk.way.length - walk.next + kDetour) return wait_or_yield(s, *other);
      walk.begin(around, s.here);
    }
    own.blocked = 0;
    return map_.move(walk.direction());
  }

  const Thing* agent_at(const Situation& s, std::uint16_t cell) const {
    for (std::uint32_t i = 0; i < s.view.num_things; ++i)
      if (s.view.things[i].kind == kAgent && map_.cell_of(s.map, s.view.things[i]) == cell) return &s.view.things[i];
    return nullptr;
  }

  int wait_or_yield(Situation& s, const Thing& other) const {
    ++s.own.blocked;
    if (s.view.value(other, id_) > s.id && s.own.blocked <= kLongBlocked) return map_.noop();
    s.own.blocked = 0;
    s.own.yields = kYields;
    return back_off(s);
  }

  // Away from the nearest agent.
  int back_off(Situation& s) const {
    const Torus& torus = map_.torus();
    s.own.walk.way.length = 0;
    std::int32_t best = -1, action = map_.noop();
    for (std::uint32_t i = 0; i < map_.directions(); ++i) {
      const auto direction = static_cast<std::uint32_t>((i + s.draw) % map_.directions());
      const std::uint16_t cell = torus.beside(s.here, direction);
      if (!is_free(s, cell)) continue;
      std::int32_t nearest = 1000;
      for (std::uint32_t k = 0; k < s.view.num_things; ++k) {
        if (s.view.things[k].kind != kAgent) continue;
        nearest = std::min(nearest, torus.steps_between(cell, map_.cell_of(s.map, s.view.things[k])));
      }
      if (nearest == 0 || nearest <= best) continue;
      best = nearest;
      action = map_.move(direction);
    }
    return action;
  }

  // Gatherers part the directions from the assembler among themselves.
  bool in_own_sector(const Situation& s, std::uint16_t cell) const {
    if (s.maker == kNowhere || num_agents_ < 3) return true;
    const std::int32_t down = map_.torus().rows_between(s.maker, cell),
                       right = map_.torus().columns_between(s.maker, cell);
    const std::uint32_t gatherers = num_agents_ - 1;
    return eighth_turn(down, right) * gatherers / 8 == (s.id - 1) % gatherers;
  }

  // Which of the eight sectors between compass directions, clockwise from north.
  static std::uint32_t eighth_turn(std::int32_t down, std::int32_t right) {
    const std::int32_t up = -down;
    if (right >= 0) {
      if (up > 0) return up > right ? 0 : 1;
      return right > -up ? 2 : 3;
    }
    if (up <= 0) return -up > -right ? 4 : 5;
    return -right > up ? 6 : 7;
  }

  // ---- around the assembler

  bool around_maker(const Situation& s, std::uint16_t cell) const {
    const Torus& torus = map_.torus();
    return s.maker != kNowhere && cell != s.maker && std::abs(torus.rows_between(s.maker, cell)) <= 1 &&
           std::abs(torus.columns_between(s.maker, cell)) <= 1;
  }

  // Products that all around the assembler can make at once, and how many show the vibe for it.
  struct Pool {
    bool enough = true;
    std::uint32_t showing = 0;
  };
  Pool pool(const Situation& s) const {
    Pool found;
    std::array<std::uint32_t, kMostResources> there{};
    const auto add = [&](const Thing& thing) {
      for (std::uint32_t r = 0; r < num_resources_; ++r) there[r] += amount(s.view, thing, r);
      found.showing += s.view.value(thing, vibe_) == make_vibe_;
    };
    add(s.view.self);
    for (std::uint32_t i = 0; i < s.view.num_things; ++i)
      if (s.view.things[i].kind == kAgent && around_maker(s, map_.cell_of(s.map, s.view.things[i])))
        add(s.view.things[i]);
    for (std::uint32_t r = 0; r < num_resources_; ++r) found.enough = found.enough && there[r] >= recipe_.inputs[r];
    return found;
  }

  int make(Situation& s) const {
    if (s.maker == kNowhere || s.chest == kNowhere) return explore(s);
    if (s.vibe != deposit_vibe_) return show_deposit_;
    const Pool around = pool(s);
    const bool can = around.enough && around.showing > 0;
    const std::uint32_t held = s.held[recipe_.product];
    if (held > 0 && (!can || held + around.showing > recipe_.most_products))
      return go(s, [&](std::uint16_t cell) { return cell == s.chest; });
    if (can) return go(s, [&](std::uint16_t cell) { return cell == s.maker; });
    if (is_maker_place(s, s.here)) return map_.noop();
    return go(s, [&](std::uint16_t cell) { return is_maker_place(s, cell); });
  }

  // Beside the assembler, on the side of the chest.
  bool is_maker_place(const Situation& s, std::uint16_t cell) const {
    const Torus& torus = map_.torus();
    return is_free(s, cell) && torus.steps_between(s.maker, cell) == 1 &&
           torus.steps_between(cell, s.chest) < torus.steps_between(s.maker, s.chest);
  }

  int store(Situation& s) const {
    if (s.vibe != deposit_vibe_) return show_deposit_;
    return s.chest == kNowhere ? explore(s) : go(s, [&](std::uint16_t cell) { return cell == s.chest; });
  }

  // ---- gathering

  std::uint32_t worth(const Situation& s) const {
    std::uint32_t products = kStock;
    for (std::uint32_t r = 0; r < num_resources_; ++r)
      if (gathered_[r]) products = std::min(products, s.held[r] / recipe_.inputs[r]);
    return products;
  }

  int gather(Situation& s) const {
    if (s.maker != kNowhere && s.own.delivers != 0) return deliver(s);
    const std::uint32_t products = worth(s);
    const std::uint32_t batch = num_agents_ > 1 ? kBatch : 1;
    if (s.maker != kNowhere && products > 0 && (products >= batch || s.remaining < time_to_deliver(s, products)))
      return start_delivery(s);
    if (s.own.target == 0 || !is_worth_going(s, s.own.stations[s.own.target - 1])) choose(s, products);
    if (s.own.delivers != 0) return deliver(s);
    if (s.own.target == 0) return explore(s);
    const Station& station = s.own.stations[s.own.target - 1];
    if (beside(s, station.cell) && !is_ready(s, station)) return map_.noop();
    return go(s, [&](std::uint16_t cell) { return cell == station.cell; });
  }

  std::uint32_t time_to_deliver(const Situation& s, std::uint32_t products) const {
    const Torus& torus = map_.torus();
    return 3 * static_cast<std::uint32_t>(torus.steps_between(s.here, s.maker)) / 2 + 4 * products + 10;
  }

  bool beside(const Situation& s, std::uint16_t cell) const {
    for (std::uint32_t d = 0; d < map_.directions(); ++d)
      if (map_.torus().beside(s.here, d) == cell) return true;
    return false;
  }

  // It gives all it has, and the agent can pay for it.
  bool is_ready(const Situation& s, const Station& station) const {
    if (station.ready_at > s.own.tick) return false;
    const HubSource& source = source_of(station);
    for (std::uint32_t r = 0; r < num_resources_; ++r)
      if (source.inputs[r] > 0 && s.held[r] < source.inputs[r] + move_cost_[r]) return false;
    return true;
  }

  // On the way to a station until there is enough; at it, until there is plenty or it rests.
  bool is_worth_going(const Situation& s, const Station& station) const {
    if (station.kind < kFirstSource) return false;
    const HubSource& source = source_of(station);
    const std::uint32_t held = s.held[source.gives], cost = recipe_.inputs[source.gives];
    const bool rests = station.ready_at > s.own.tick + kLongestWait;
    if (station.empty != 0) return false;
    return held < cost * kBatch ? !rests || !beside(s, station.cell) || worth(s) == 0
                                : beside(s, station.cell) && held < cost * kStock && is_ready(s, station);
  }

  // The station that has something lacking soonest; home, if that takes long and there is something to bring.
  void choose(Situation& s, std::uint32_t products) const {
    std::array<std::uint32_t, kMostStations> steps{};
    SearchSpace space;
    const Kind* cells = MapReader::cells(s.map);
    find_way(
        map_.torus(), s.here, map_.directions(), 0, {},
        [&](std::uint16_t cell, std::uint32_t far) {
          if (cells[cell] < kFirstKind) return false;
          for (std::uint32_t i = 0; i < s.own.num_stations; ++i)
            if (s.own.stations[i].cell == cell && steps[i] == 0) steps[i] = far;
          return false;
        },
        [&](std::uint16_t cell) { return is_free(s, cell); }, space);
    std::uint32_t soonest = 0xFFFF'FFFF;
    s.own.target = 0;
    for (std::uint32_t i = 0; i < s.own.num_stations; ++i) {
      const Station& station = s.own.stations[i];
      if (station.kind < kFirstSource || station.empty != 0 || steps[i] == 0) continue;
      const std::uint32_t resource = source_of(station).gives;
      if (!gathered_[resource] || s.held[resource] >= recipe_.inputs[resource] * kBatch) continue;
      const std::uint32_t wait = station.ready_at > s.own.tick ? station.ready_at - s.own.tick : 0;
      const std::uint32_t time = std::max(steps[i], wait);
      if (time >= soonest) continue;
      soonest = time;
      s.own.target = static_cast<std::uint16_t>(i + 1);
    }
    s.own.walk.way.length = 0;
    if (products > 0 && s.maker != kNowhere && soonest > kLongestWait) start_delivery(s);
  }

  int start_delivery(Situation& s) const {
    s.own.delivers = 1;
    s.own.target = 0;
    s.own.waiting = 0;
    s.own.walk.way.length = 0;
    return deliver(s);
  }

  // Beside the assembler, showing the vibe, for as long as there is enough to make something of.
  int deliver(Situation& s) const {
    const bool alone = num_agents_ == 1 || s.own.waiting > kPatience;
    if (!around_maker(s, s.here) && !alone) {
      return go(s, [&](std::uint16_t cell) { return around_maker(s, cell) && is_free(s, cell) && !in_lane(s, cell); });
    }
    if (around_maker(s, s.here) && !pool(s).enough) {
      s.own.delivers = 0;
      return gather_again(s);
    }
    if (s.vibe != make_vibe_) return show_make_;
    std::uint32_t sum = 0;
    for (std::uint32_t r = 0; r < num_resources_; ++r) sum += gathered_[r] ? s.held[r] : 0;
    s.own.waiting = sum == s.own.last_sum || alone ? s.own.waiting + 1 : 0;
    s.own.last_sum = sum;
    return alone ? go(s, [&](std::uint16_t cell) { return cell == s.maker; }) : map_.noop();
  }

  int gather_again(Situation& s) const {
    choose(s, 0);
    if (s.own.target == 0) return explore(s);
    const std::uint16_t goal = s.own.stations[s.own.target - 1].cell;
    return go(s, [&](std::uint16_t cell) { return cell == goal; });
  }

  HubRecipe recipe_;
  MapReader map_;
  Features features_;
  std::uint8_t id_, vibe_, converting_, uses_;
  std::uint32_t num_resources_, num_agents_, max_steps_;
  std::uint8_t make_vibe_, deposit_vibe_;
  int show_make_, show_deposit_;
  std::array<std::uint32_t, kMostResources> move_cost_{};
  std::array<bool, kMostResources> gathered_{};
};

}  // namespace

std::unique_ptr<Script<std::uint8_t>> make_extractor_hub_script(const Vocabulary& vocabulary, const Program& program) {
  const bool sees_around = program.window.radius_rows > 0 && program.window.radius_columns > 0;
  if (program.num_resources > kMostResources || program.config.moves == 0 || !sees_around) return nullptr;
  auto recipe = read_hub_recipe(program);
  if (!recipe || vocabulary.vibes.size() < 2) return nullptr;
  return std::make_unique<ExtractorHub>(vocabulary, program, std::move(*recipe));
}

}  // namespace gridmill::grid
