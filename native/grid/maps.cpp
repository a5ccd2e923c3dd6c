// draw_map(): see maps.hpp.
#include "grid/maps.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "grid/places.hpp"
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

 private:
  const Program& p_;
  World& w_;
  std::uint32_t next_object_;
};

// One attempt to draw the whole map: objects node by node, then agents.
class Drawing {
 public:
  Drawing(const Program& program, World& world, const Key& key, std::uint32_t attempt, MapScratch& scratch)
      : p_(program), w_(world), layer_(program, world), draws_(key, attempt, kMapStream), s_(scratch) {
    s_.requests.clear();
  }

  // False where an agent or an object with a state of its own would be cut off from the rest.
  bool draw() {
    clear();
    node(p_.map, 0, 0);
    if (s_.requests.empty()) return true;
    const std::uint32_t labels = label_components();
    for (const auto& request : s_.requests)
      if (!place(request, largest_floor(request, labels))) return false;
    return true;
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return draws_.below(next_draw_++, bound); }

  void clear() {
    const std::size_t cells = std::size_t{p_.height + 2} * p_.stride, size = p_.narrow_grid ? 1 : 2;
    std::memset(w_.grid8, 0xFF, cells * size);  // outside
    for (std::uint32_t r = 0; r < p_.height; ++r)
      std::memset(w_.grid8 + w_.cell_at(r, 0) * size, kEmpty, p_.width * size);
    std::fill_n(w_.occupied, 1 + std::size_t{p_.num_strips} * p_.plane_rows, 0);
  }

  void node(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    if (map.kind == CompiledMap::ascii) ascii(map, top, left);
    else if (map.kind == CompiledMap::scatter) scatter(map, top, left);
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
        else layer_.put(p_.wall, top + r, left + c);
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

  void instances(const CompiledMap& map, std::uint32_t top, std::uint32_t left) {
    const std::uint32_t height = map.parts.front().height, width = map.parts.front().width;
    for (std::uint32_t r = 0; r < map.height; ++r)
      for (std::uint32_t c = 0; c < map.width; ++c)
        if (outside(r, map.border, height, map.gap, map.rows) || outside(c, map.border, width, map.gap, map.columns))
          layer_.put(p_.wall, top + r, left + c);
    for (std::uint32_t i = 0; i < map.rows * map.columns; ++i)
      node(map.parts[i % map.parts.size()], top + map.border + i / map.columns * (height + map.gap),
           left + map.border + i % map.columns * (width + map.gap));
  }

  // True for a row (or column) of the border or of a gap.
  static bool outside(std::uint32_t at, std::uint32_t border, std::uint32_t size, std::uint32_t gap, std::uint32_t n) {
    if (at < border || at >= border + n * (size + gap) - gap) return true;
    return (at - border) % (size + gap) >= size;
  }

  // Labels the 4-connected components of empty cells from 1 on; returns how many there are.
  std::uint32_t label_components() {
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
            if (w_.code_at(next) == kEmpty && !s_.component[next]) s_.component[next] = label, s_.queue[tail++] = next;
          }
        }
      }
    return labels;
  }

  bool touches(std::uint32_t object, std::uint32_t label) const {
    const std::uint32_t cell = w_.cell[object];
    return s_.component[cell - p_.stride] == label || s_.component[cell + p_.stride] == label ||
           s_.component[cell - 1] == label || s_.component[cell + 1] == label;
  }

  // The component with the most cells in a request's rectangle.
  std::uint32_t largest_floor(const SpawnRequest& request, std::uint32_t labels) {
    std::fill_n(s_.queue.begin(), std::size_t{labels} + 1, 0);
    for (std::uint32_t r = request.top; r < request.top + request.height; ++r)
      for (std::uint32_t c = request.left; c < request.left + request.width; ++c)
        ++s_.queue[s_.component[w_.cell_at(r, c)]];
    const auto first = s_.queue.begin() + 1, last = first + labels;
    return labels == 0 ? 0 : static_cast<std::uint32_t>(std::max_element(first, last) - first) + 1;
  }

  // The request's agents on random cells of that floor. False if they do not fit, or if an object with a state of its
  // own in the rectangle could not be reached from there.
  bool place(const SpawnRequest& request, std::uint32_t floor) {
    for (std::uint32_t object = p_.num_agents; object < p_.num_objects; ++object) {
      const bool inside =
          w_.row[object] - request.top < request.height && w_.column[object] - request.left < request.width;
      if (inside && !touches(object, floor)) return false;
    }
    std::uint32_t n = 0;
    for (std::uint32_t r = request.top; r < request.top + request.height; ++r)
      for (std::uint32_t c = request.left; c < request.left + request.width; ++c) {
        const std::uint32_t cell = w_.cell_at(r, c);
        if (s_.component[cell] == floor && w_.code_at(cell) == kEmpty) s_.cells[n++] = r * p_.width + c;
      }
    if (n < request.count) return false;
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
  const Stream draws_;
  std::uint64_t next_draw_ = 0;
  MapScratch& s_;
  std::uint32_t agents_placed_ = 0;
};

}  // namespace

void MapScratch::fit(const Program& p) {
  const std::size_t padded = std::size_t{p.height + 2} * p.stride;
  for (auto* list : {&cells, &queue, &component}) list->resize(std::max(list->size(), padded));
  requests.reserve(4096);
}

void draw_map(const Program& p, World& w, const Key& key, MapScratch& scratch) {
  constexpr std::uint32_t kAttempts = 100;
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt)
    if (Drawing(p, w, key, attempt, scratch).draw()) return;
  throw std::runtime_error(
      "scatter found no layout in 100 draws in which every agent and every object with a state of its own can be "
      "reached; "
      "use fewer objects or a larger map");
}

}  // namespace gridmill::grid
