// draw_map(): see maps.hpp.
#include "grid/maps/maps.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "grid/occupancy.hpp"
#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

// Lays objects into a world, numbering those with a state of their own as they come.
class Layer {
 public:
  Layer(const Program& program, World& world) : p_(program), w_(world), next_object_(program.num_agents) {}

  void put(std::uint16_t type, std::uint32_t r, std::uint32_t c) {
    if (p_.types[type].terrain) place_terrain(p_, w_, type, r, c);
    else place_object(p_, w_, next_object_++, type, r, c);
  }
  void put_agent(std::uint32_t agent, std::uint32_t r, std::uint32_t c, std::uint8_t group) {
    place_object(p_, w_, agent, static_cast<std::uint16_t>(p_.agent_type), r, c);
    w_.group[agent] = group;
    w_.spawn_row[agent] = static_cast<std::uint16_t>(r);
    w_.spawn_column[agent] = static_cast<std::uint16_t>(c);
  }
  // Objects that this map does not have hold nothing and stand nowhere, whatever an earlier attempt left there.
  void clear_the_rest() {
    for (std::uint32_t object = next_object_; object < p_.num_objects; ++object) {
      w_.type[object] = 0;
      w_.cell[object] = 0;
      w_.row[object] = 0;
      w_.column[object] = 0;
      w_.vibe[object] = 0;
      std::fill_n(w_.held(object), p_.num_resources, std::uint16_t{0});
      w_.dirty[object >> 6] &= ~(std::uint64_t{1} << (object & 63));
    }
  }

 private:
  const Program& p_;
  World& w_;
  std::uint32_t next_object_;
};

// Why an attempt came to nothing, and which canvas it was. # is the number of attempts.
struct Failure {
  const char* why = nullptr;
  const CompiledMap* map = nullptr;
};
constexpr const char* kScatterFailed =
    "scatter found no layout in # attempts in which every agent and every object with its own state can be "
    "reached; use fewer objects or a larger map";
constexpr const char* kNoRoom =
    "expected room for all objects on floor where they block no path, found too little in # attempts; use fewer "
    "objects, "
    "a larger canvas or wider paths";
constexpr const char* kNoStart =
    "expected floor for all agents, found too little in # attempts; use fewer agents or a larger canvas";
constexpr const char* kCutOff =
    "expected paths between all agents and objects, found none in # attempts; add a `connect` layer at the end";

// One attempt to draw the whole map: objects node by node, then agents.
class Drawing {
 public:
  Drawing(const Program& program, World& world, const Key& key, std::uint32_t attempt, MapScratch& scratch)
      : p_(program), w_(world), layer_(program, world), draws_(Stream(key, attempt, kMapStream)), s_(scratch) {
    s_.requests.clear();
  }

  // What went wrong, or nothing: something would be cut off from the rest, or does not fit.
  Failure draw() {
    clear();
    node(p_.map.root, 0, 0);
    if (failure_.why == nullptr && !s_.requests.empty()) place_requests();
    layer_.clear_the_rest();
    return failure_;
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return draws_.below(bound); }

  void clear() {
    const std::size_t cells = std::size_t{p_.height + 2} * p_.stride, size = p_.layout.narrow_grid ? 1 : 2;
    std::memset(w_.grid8, 0xFF, cells * size);  // outside
    for (std::uint32_t r = 0; r < p_.height; ++r)
      std::memset(w_.grid8 + w_.cell_at(r, 0) * size, kEmpty, p_.width * size);
    std::fill_n(w_.occupied, 1 + std::size_t{p_.layout.num_strips} * p_.layout.plane_rows, 0);
  }

  void node(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    if (map.kind == CompiledMap::ascii) ascii(map, top, left);
    else if (map.kind == CompiledMap::scatter) scatter(map, top, left);
    else if (map.kind == CompiledMap::canvas) canvas(map, top, left);
    else instances(map, top, left);
  }

  void ascii(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    for (const auto& item : map.fixed) layer_.put(item.type, top + item.row, left + item.column);
    auto& order = s_.cells;  // more spawn cells than agents: a random choice, otherwise in reading order
    for (std::uint32_t i = 0; i < map.spawns.size(); ++i) order[i] = i;
    if (map.spawns.size() > map.agents)
      for (std::uint32_t i = 0; i < map.agents; ++i)
        std::swap(order[i], order[i + below(static_cast<std::uint32_t>(map.spawns.size()) - i)]);
    for (std::uint32_t i = 0; i < map.agents; ++i) {
      const Spawn& spawn = map.spawns[order[i]];
      layer_.put_agent(agents_placed_++, top + spawn.row, left + spawn.column, spawn.group);
    }
  }

  void scatter(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    const std::uint32_t border = map.border;
    std::uint32_t n = 0;
    for (std::uint32_t r = 0; r < map.height; ++r)
      for (std::uint32_t c = 0; c < map.width; ++c) {
        const bool inner = r >= border && r + border < map.height && c >= border && c + border < map.width;
        if (inner) s_.cells[n++] = r * map.width + c;
        else layer_.put(p_.map.wall, top + r, left + c);
      }
    std::uint32_t taken = 0;
    for (const auto& [type, count] : map.scattered)
      for (std::uint32_t i = 0; i < count; ++i, ++taken) {
        std::swap(s_.cells[taken], s_.cells[taken + below(n - taken)]);
        layer_.put(type, top + s_.cells[taken] / map.width, left + s_.cells[taken] % map.width);
      }
    if (map.agents == 0) return;
    s_.requests.push_back({top + border, left + border, map.height - 2 * border, map.width - 2 * border, map.agents,
                           map.groups, agents_placed_});
    agents_placed_ += map.agents;
  }

  // Layers on a canvas, then everything on it into the world, then agents on the floor or on cells marked for them.
  void canvas(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    const auto border = static_cast<std::int32_t>(map.border);
    Canvas canvas(static_cast<std::int32_t>(map.height) - 2 * border, static_cast<std::int32_t>(map.width) - 2 * border,
                  s_.canvas);
    if (!paint_layers(map.layers, canvas.all(), canvas, draws_)) return fail(kNoRoom, &map);
    const std::uint32_t n = starts_on(canvas, map);
    if (n < map.agents) return fail(kNoStart, &map);
    for (std::uint32_t r = 0; r < map.height; ++r)
      for (std::uint32_t c = 0; c < map.width; ++c) {
        const std::int32_t row = static_cast<std::int32_t>(r) - border, column = static_cast<std::int32_t>(c) - border;
        const Cell cell = canvas.all().has(row, column) ? canvas.at(row, column) : kWall;
        if (cell == kWall) layer_.put(p_.map.wall, top + r, left + c);
        else if (is_thing(cell)) layer_.put(static_cast<std::uint16_t>(cell - kThing), top + r, left + c);
      }
    for (std::uint32_t i = 0; i < map.agents; ++i, ++agents_placed_) {
      std::swap(s_.cells[i], s_.cells[i + below(n - i)]);
      layer_.put_agent(agents_placed_, top + map.border + static_cast<std::uint32_t>(canvas.row(s_.cells[i])),
                       left + map.border + static_cast<std::uint32_t>(canvas.column(s_.cells[i])),
                       static_cast<std::uint8_t>(agents_placed_ % map.groups));
    }
  }

  // Lists the cells where agents may start: those marked, or all of the largest floor; everything on the canvas must be
  // within reach of them.
  std::uint32_t starts_on(Canvas& canvas, const CompiledMap& map) {
    const std::uint32_t labels = label_floor(canvas);
    std::uint32_t n = 0, floor = 0;
    const auto each = [&](auto&& visit) {
      for (std::int32_t r = 0; r < canvas.height; ++r)
        for (std::int32_t c = 0; c < canvas.width; ++c) visit(canvas.index(r, c));
    };
    each([&](std::uint32_t i) {
      if (canvas.s.cells[i] == kPad) s_.cells[n++] = i;
    });
    const auto& label = canvas.s.label;
    floor = n > 0 ? label[s_.cells[0]] : grid::largest_floor(canvas, labels, canvas.all());
    if (std::any_of(s_.cells.begin(), s_.cells.begin() + n, [&](std::uint32_t i) { return label[i] != floor; }))
      fail(kCutOff, &map);
    each([&](std::uint32_t i) {
      if (!is_thing(canvas.s.cells[i])) return;
      bool reached = false;
      for (int d = 0; d < 4; ++d) reached = reached || (floor != 0 && label[canvas.beside(i, d)] == floor);
      if (!reached) fail(kCutOff, &map);
    });
    if (n == 0 && floor != 0)
      for (std::uint32_t k = canvas.s.begin[floor]; k < canvas.s.begin[floor + 1]; ++k)
        s_.cells[n++] = canvas.s.order[k];
    return n;
  }

  void fail(const char* why, const CompiledMap* map) { failure_ = {why, map}; }

  void instances(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    const std::uint32_t height = map.parts.front().height, width = map.parts.front().width;
    for (std::uint32_t r = 0; r < map.height; ++r) {
      const bool whole_row = outside(r, map.border, height, map.gap, map.rows);
      for (std::uint32_t c = 0; c < map.width; ++c)
        if (whole_row || outside(c, map.border, width, map.gap, map.columns))
          layer_.put(p_.map.wall, top + r, left + c);
    }
    for (std::uint32_t i = 0; i < map.rows * map.columns; ++i)
      node(map.parts[i % map.parts.size()], top + map.border + i / map.columns * (height + map.gap),
           left + map.border + i % map.columns * (width + map.gap));
  }

  // True for a row (or column) of the border or of a gap.
  static bool outside(std::uint32_t at, std::uint32_t border, std::uint32_t size, std::uint32_t gap, std::uint32_t n) {
    if (at < border || at >= border + n * (size + gap) - gap) return true;
    return (at - border) % (size + gap) >= size;
  }

  void place_requests() {
    label_components();
    for (const auto& request : s_.requests)
      if (!place(request, largest_floor(request))) return fail(kScatterFailed, nullptr);
  }

  // Labels the 4-connected components of empty cells from 1 on.
  void label_components() {
    const auto stride = static_cast<std::int32_t>(p_.stride);
    const std::int32_t steps[] = {-stride, stride, -1, 1};
    std::fill_n(s_.component.begin(), std::size_t{p_.height + 2} * p_.stride, 0);
    std::uint32_t labels = 0;
    for (std::uint32_t r = 0; r < p_.height; ++r)
      for (std::uint32_t c = 0; c < p_.width; ++c) {
        const std::uint32_t start = w_.cell_at(r, c);
        if (w_.code_at(start) != kEmpty || s_.component[start]) continue;
        const std::uint32_t label = ++labels;
        std::uint32_t head = 0, tail = 0;
        s_.queue[tail++] = start;
        s_.component[start] = label;
        while (head < tail) {
          const std::uint32_t cell = s_.queue[head++];
          for (const std::int32_t step : steps) {
            const auto next = static_cast<std::uint32_t>(static_cast<std::int32_t>(cell) + step);
            if (w_.code_at(next) == kEmpty && !s_.component[next]) {
              s_.component[next] = label;
              s_.queue[tail++] = next;
            }
          }
        }
      }
  }

  bool touches(std::uint32_t cell, std::uint32_t label) const {
    return s_.component[cell - p_.stride] == label || s_.component[cell + p_.stride] == label ||
           s_.component[cell - 1] == label || s_.component[cell + 1] == label;
  }

  template <class Visit>
  void each_cell(const SpawnRequest& request, Visit&& visit) {
    for (std::uint32_t r = request.top; r < request.top + request.height; ++r)
      for (std::uint32_t c = request.left; c < request.left + request.width; ++c) visit(w_.cell_at(r, c), r, c);
  }

  // The component with the most cells in a request's rectangle, the first of several; 0 if there is none.
  std::uint32_t largest_floor(const SpawnRequest& request) {
    auto& count = s_.queue;
    each_cell(request, [&](std::uint32_t cell, auto, auto) { count[s_.component[cell]] = 0; });
    std::uint32_t best = 0;
    each_cell(request, [&](std::uint32_t cell, auto, auto) { ++count[s_.component[cell]]; });
    each_cell(request, [&](std::uint32_t cell, auto, auto) {
      const std::uint32_t label = s_.component[cell];
      if (label == 0) return;
      if (best == 0 || count[label] > count[best] || (count[label] == count[best] && label < best)) best = label;
    });
    return best;
  }

  // The request's agents on random cells of that floor. False if they do not fit, or if an object with a state of its
  // own in the rectangle could not be reached from there.
  bool place(const SpawnRequest& request, std::uint32_t floor) {
    std::uint32_t n = 0;
    bool reached = true;
    each_cell(request, [&](std::uint32_t cell, std::uint32_t r, std::uint32_t c) {
      const std::uint32_t code = w_.code_at(cell);
      if (code == kEmpty && s_.component[cell] == floor) s_.cells[n++] = r * p_.width + c;
      const bool is_object = code > p_.num_agents && code <= p_.num_objects;  // with a state, and no agent
      if (is_object && !touches(cell, floor)) reached = false;
    });
    if (!reached || n < request.count) return false;
    for (std::uint32_t i = 0; i < request.count; ++i) {
      std::swap(s_.cells[i], s_.cells[i + below(n - i)]);
      const std::uint32_t agent = request.first_agent + i;
      layer_.put_agent(agent, s_.cells[i] / p_.width, s_.cells[i] % p_.width,
                       static_cast<std::uint8_t>(agent % request.groups));
    }
    return true;
  }

  const Program& p_;
  World& w_;
  Layer layer_;
  Draws draws_;
  MapScratch& s_;
  Failure failure_;
  std::uint32_t agents_placed_ = 0;
};

}  // namespace

void MapScratch::fit(const Program& p) {
  const std::size_t padded = std::size_t{p.height + 2} * p.stride;
  for (auto* list : {&cells, &queue, &component}) list->resize(std::max(list->size(), padded));
  requests.reserve(4096);
  if (p.map.largest_canvas > 0) canvas.fit(p.map.largest_canvas);
}

void draw_map(const Program& p, World& w, const Key& key, MapScratch& scratch) {
  Failure failure;
  for (std::uint32_t attempt = 0; attempt < p.map.attempts; ++attempt) {
    failure = Drawing(p, w, key, attempt, scratch).draw();
    if (failure.why == nullptr) return;
  }
  std::string text = failure.why;
  text.replace(text.find('#'), 1, std::to_string(p.map.attempts));
  throw std::runtime_error(failure.map == nullptr ? text : text + " - at `" + failure.map->path + "`");
}

}  // namespace gridmill::grid
