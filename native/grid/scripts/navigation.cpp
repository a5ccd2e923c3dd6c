#include "grid/scripts/navigation.hpp"

#include "grid/scripts/map_memory.hpp"

namespace gridmill::grid {
namespace {

constexpr Kind kAltar = kFirstKind, kFull = kFirstKind + 1, kEmptied = kFirstKind + 2;  // the first: just discovered

struct NavigationMemory {
  Walk walk;
  std::uint16_t finished = 0;  // nothing is left that could be reached
};

class Navigation final : public Script<std::uint8_t> {
 public:
  Navigation(const Vocabulary& vocabulary, const Program& program) : map_(vocabulary, program, altars(program)) {
    for (const auto& converter : program.machines.converters)
      for (std::uint32_t r = 0; r < program.num_resources; ++r)
        if (converter.outputs[r] > 0) gives_[program.features.resource[r]] = true;
  }

  std::size_t memory_bytes() const override { return sizeof(NavigationMemory) + map_.memory_bytes(); }

  int act(const std::uint8_t* row, std::byte* memory, std::uint64_t) const override {
    auto& own = *reinterpret_cast<NavigationMemory*>(memory);
    std::byte* map = memory + sizeof(NavigationMemory);
    const View view = map_.read(row);
    if (!map_.remember(view, map)) own = {};
    own.walk.follow(map_.torus(), MapReader::here(map));
    if (note_altars(view, map)) own = {};
    if (own.finished == 0 && !leads_on(own.walk, map)) look(own, map, view);
    return own.walk.going() ? map_.move(own.walk.direction()) : map_.noop();
  }

  void check_memory(const std::byte* memory) const override {
    reinterpret_cast<const NavigationMemory*>(memory)->walk.check(map_.torus());
    map_.check_memory(memory + sizeof(NavigationMemory));
  }

 private:
  static std::vector<std::pair<std::string, Kind>> altars(const Program& program) {
    std::vector<std::pair<std::string, Kind>> kinds;
    for (const auto& [name, type] : program.config.objects)
      if (type.converter) kinds.emplace_back(name, kAltar);
    return kinds;
  }

  // An altar is full if it shows what it gives. True: one is that was not known to be.
  bool note_altars(const View& view, std::byte* map) const {
    bool news = false;
    for (std::uint32_t i = 0; i < view.num_things; ++i) {
      if (view.things[i].kind != kAltar) continue;
      Kind& known = MapReader::cells(map)[map_.cell_of(map, view.things[i])];
      const Kind now = shows_gift(view, view.things[i]) ? kFull : kEmptied;
      news = news || (now == kFull && known != kFull);
      known = now;
    }
    return news;
  }

  bool shows_gift(const View& view, const Thing& thing) const {
    for (std::uint32_t i = thing.first; i < thing.last; ++i)
      if (gives_[view.row[kTokenBytes * i + 1]]) return true;
    return false;
  }

  // To an altar until it is empty, to the unknown until it is known.
  bool leads_on(const Walk& walk, const std::byte* map) const {
    if (!walk.going()) return false;
    const Kind* cells = MapReader::cells(map);
    const std::uint16_t ahead = walk.ahead(map_.torus());
    const Kind goal = cells[walk.way.goal];
    return (goal == kFull || goal == kUnknown) && (cells[ahead] == kFree || ahead == walk.way.goal);
  }

  void look(NavigationMemory& own, const std::byte* map, const View& view) const {
    SearchSpace space;
    const Kind* cells = MapReader::cells(map);
    const Crowd crowd = agents_near(map_, map, view, 1);
    const std::uint16_t here = MapReader::here(map);
    Way way = find_way(
        map_.torus(), here, map_.directions(), 0, crowd,
        [&](std::uint16_t cell, std::uint32_t) { return cells[cell] == kFull; },
        [&](std::uint16_t cell) { return cells[cell] == kFree; }, space);
    if (way.length == 0) way = way_to_unknown(map_, map, crowd, space);
    own.walk.begin(way, here);
    own.finished = way.length == 0 && crowd.count == 0;
  }

  MapReader map_;
  std::array<bool, 256> gives_{};  // by feature
};

}  // namespace

std::unique_ptr<Script<std::uint8_t>> make_navigation_script(const Vocabulary& vocabulary, const Program& program) {
  const auto& converters = program.machines.converters;
  const bool sees_around = program.window.radius_rows > 0 && program.window.radius_columns > 0;
  const bool gifts =
      !converters.empty() && std::all_of(converters.begin(), converters.end(), [](const auto& converter) {
        return std::all_of(converter.inputs.begin(), converter.inputs.end(), [](std::uint16_t n) { return n == 0; });
      });
  if (!gifts || !sees_around || program.config.moves == 0) return nullptr;
  return std::make_unique<Navigation>(vocabulary, program);
}

}  // namespace gridmill::grid
