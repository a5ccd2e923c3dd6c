// See maps.hpp.
#include "grid/maps.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "grid/streams.hpp"

namespace gridmill::grid {
namespace {

std::uint16_t type_index(const Program& p, const std::string& name, const std::string& path) {
  std::vector<std::string> known;
  for (std::size_t t = 0; t < p.types.size(); ++t) {
    if (t == p.agent_type) continue;
    if (p.types[t].name == name) return static_cast<std::uint16_t>(t);
    known.push_back(p.types[t].name);
  }
  refuse(path, "unknown object type `" + name + "`" + nearest(name, known));
}

void check_count(std::uint64_t n, const std::string& path) {
  if (n > static_cast<std::uint64_t>(kMaxObjects))
    refuse(path, "expected at most 65535 objects on a map, got " + std::to_string(n));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text) {
    if (c == '\r') continue;
    if (c == '\n') lines.push_back(std::move(line)), line.clear();
    else line += c;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto filled = [](const std::string& row) { return !row.empty(); };
  lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(), filled));
  return lines;
}

void compile_ascii(Program& p, const AsciiMap& config) {
  const std::vector<std::string> lines = lines_of(config.text);
  if (lines.empty()) refuse("$.map.text", "expected at least one row, got none");
  if (lines.size() > kMaxSide || lines.front().size() > kMaxSide)
    refuse("$.map.text", "expected at most 4096 x 4096 cells, got " + std::to_string(lines.size()) + " x " +
                             std::to_string(lines.front().size()));
  p.height = static_cast<std::uint32_t>(lines.size());
  p.width = static_cast<std::uint32_t>(lines.front().size());
  std::vector<int> type_of(256, -1);
  for (const auto& [key, name] : config.legend) {
    const std::string path = "$.map.legend." + key;
    if (key.size() != 1) refuse(path, "expected one ASCII character, got '" + key + "'");
    if (key == "@" || key == "." || key == " " || (key[0] >= '0' && key[0] <= '9'))
      refuse(path, "'" + key + "' already means empty floor or an agent");
    type_of[static_cast<unsigned char>(key[0])] = type_index(p, name, path);
  }
  std::uint64_t objects = 0;
  for (std::uint16_t r = 0; r < p.height; ++r) {
    if (lines[r].size() != p.width)
      refuse("$.map.text", "row " + std::to_string(r) + " has " + std::to_string(lines[r].size()) +
                               " characters, expected " + std::to_string(p.width) + " like the first");
    for (std::uint16_t c = 0; c < p.width; ++c) {
      const char ch = lines[r][c];
      if (ch == '.' || ch == ' ') continue;
      check_count(++objects, "$.map.text");
      if (ch == '@' || (ch >= '0' && ch <= '9')) {
        p.map.spawns.push_back({r, c, static_cast<std::uint8_t>(ch == '@' ? 0 : ch - '0')});
        continue;
      }
      int type = type_of[static_cast<unsigned char>(ch)];
      if (type < 0 && ch == '#') type = type_index(p, "wall", "$.map.text");
      if (type < 0)
        refuse("$.map.text",
               "character '" +
                   (static_cast<unsigned char>(ch) < 128 && ch >= ' ' ? std::string(1, ch) : std::string("\\x..")) +
                   "' in row " + std::to_string(r) + ", column " + std::to_string(c) + " is not in the legend");
      p.map.fixed.push_back({r, c, static_cast<std::uint16_t>(type)});
    }
  }
  if (p.map.spawns.size() < p.num_agents)
    refuse("$.map.text", "expected room for " + std::to_string(p.num_agents) + " agents (`@` or a digit), got " +
                             std::to_string(p.map.spawns.size()));
  p.num_objects = p.num_agents;
  for (const auto& item : p.map.fixed) p.num_objects += !p.types[item.type].terrain;
}

void compile_scatter(Program& p, const ScatterMap& config) {
  p.map.scatter = true;
  p.height = static_cast<std::uint32_t>(config.height), p.width = static_cast<std::uint32_t>(config.width);
  p.map.border = config.border, p.map.groups = config.groups;
  const std::int64_t inner = std::max<std::int64_t>(0, config.height - 2 * config.border) *
                             std::max<std::int64_t>(0, config.width - 2 * config.border);
  if (config.border > 0) type_index(p, "wall", "$.map.border");
  std::int64_t wanted = p.num_agents;
  p.num_objects = p.num_agents;
  for (const auto& [name, count] : config.objects) {
    const std::uint16_t type = type_index(p, name, "$.map.objects." + name);
    p.map.scattered.emplace_back(type, static_cast<std::uint32_t>(count));
    wanted += count;
    if (!p.types[type].terrain)
      check_count(p.num_objects + static_cast<std::uint64_t>(count), "$.map.objects." + name),
          p.num_objects += static_cast<std::uint32_t>(count);
  }
  if (wanted > inner)
    refuse("$.map", "expected at least " + std::to_string(wanted) + " free cells for agents and objects, got " +
                        std::to_string(inner) + " inside the border");
  const std::uint64_t all =
      static_cast<std::uint64_t>(wanted) + std::uint64_t{p.height} * p.width - static_cast<std::uint64_t>(inner);
  check_count(all, "$.map");
}

// ---- drawing

class Layer {
 public:
  Layer(const Program& program, World& world) : p_(program), w_(world), next_object_(program.num_agents) {}

  void put(std::uint16_t type, std::uint32_t r, std::uint32_t c) {
    const Type& kind = p_.types[type];
    std::uint16_t code = kind.code;
    if (!kind.terrain) code = start_object(next_object_++, type, r, c);
    w_.set_code(w_.cell_at(r, c), code);
    w_.set_occupied(r, c);
  }
  void put_agent(std::uint32_t agent, std::uint32_t r, std::uint32_t c, std::uint8_t group) {
    w_.set_code(w_.cell_at(r, c), start_object(agent, static_cast<std::uint16_t>(p_.agent_type), r, c));
    w_.set_occupied(r, c);
    w_.group[agent] = group;
    w_.spawn_row[agent] = static_cast<std::uint16_t>(r);
    w_.spawn_column[agent] = static_cast<std::uint16_t>(c);
  }

 private:
  std::uint16_t start_object(std::uint32_t object, std::uint16_t type, std::uint32_t r, std::uint32_t c) {
    const Type& kind = p_.types[type];
    w_.type[object] = type;
    w_.cell[object] = w_.cell_at(r, c);
    w_.row[object] = static_cast<std::uint16_t>(r);
    w_.column[object] = static_cast<std::uint16_t>(c);
    w_.vibe[object] = kind.vibe;
    std::copy(kind.inventory.begin(), kind.inventory.end(), w_.inventory + std::size_t{object} * p_.num_resources);
    w_.mark_dirty(object);
    return static_cast<std::uint16_t>(object + 1);
  }
  const Program& p_;
  World& w_;
  std::uint32_t next_object_;
};

void clear_map(const Program& p, World& w) {
  const std::size_t cells = std::size_t{p.height + 2} * p.stride, size = p.narrow_grid ? 1 : 2;
  std::memset(w.grid8, 0xFF, cells * size);  // outside
  for (std::uint32_t r = 0; r < p.height; ++r) std::memset(w.grid8 + w.cell_at(r, 0) * size, kEmpty, p.width * size);
  std::fill_n(w.occupied, 1 + std::size_t{p.num_strips} * p.plane_rows, 0);
}

void draw_ascii(const Program& p, World& w, const Key& key, MapScratch& scratch) {
  clear_map(p, w);
  Layer layer(p, w);
  for (const auto& item : p.map.fixed) layer.put(item.type, item.row, item.column);
  auto& order = scratch.cells;  // more spawn cells than agents: a random choice, otherwise in reading order
  const auto n = static_cast<std::uint32_t>(p.map.spawns.size());
  for (std::uint32_t i = 0; i < n; ++i) order[i] = i;
  if (n > p.num_agents) {
    const Stream draws(key, 0, kMapStream);
    for (std::uint32_t i = 0; i < p.num_agents; ++i) std::swap(order[i], order[i + draws.below(i, n - i)]);
  }
  for (std::uint32_t i = 0; i < p.num_agents; ++i) {
    const Spawn& spawn = p.map.spawns[order[i]];
    layer.put_agent(i, spawn.row, spawn.column, spawn.group);
  }
}

// Labels the 4-connected components of empty cells; returns the label of the largest one (labels start at 1).
std::uint32_t label_components(const Program& p, const World& w, MapScratch& s) {
  const std::int32_t steps[] = {-static_cast<std::int32_t>(p.stride), static_cast<std::int32_t>(p.stride), -1, 1};
  std::fill(s.component.begin(), s.component.begin() + static_cast<std::ptrdiff_t>((p.height + 2) * p.stride), 0);
  std::uint32_t labels = 0, best = 0, best_size = 0;
  for (std::uint32_t r = 0; r < p.height; ++r)
    for (std::uint32_t c = 0; c < p.width; ++c) {
      const std::uint32_t start = w.cell_at(r, c);
      if (w.code_at(start) != kEmpty || s.component[start]) continue;
      const std::uint32_t label = ++labels;
      std::size_t head = 0, tail = 0;
      s.queue[tail++] = start;
      s.component[start] = label;
      while (head < tail) {
        const std::uint32_t cell = s.queue[head++];
        for (const std::int32_t step : steps) {
          const auto next = static_cast<std::uint32_t>(static_cast<std::int32_t>(cell) + step);
          if (w.code_at(next) == kEmpty && !s.component[next]) s.component[next] = label, s.queue[tail++] = next;
        }
      }
      if (tail > best_size) best_size = static_cast<std::uint32_t>(tail), best = label;
    }
  return best;
}

bool touches(const Program& p, const World& w, const MapScratch& s, std::uint32_t object, std::uint32_t label) {
  const std::uint32_t cell = w.cell[object];
  return s.component[cell - p.stride] == label || s.component[cell + p.stride] == label ||
         s.component[cell - 1] == label || s.component[cell + 1] == label;
}

// One attempt: objects anywhere, agents on the largest floor. False where an agent or an object would be cut
// off.
bool try_scatter(const Program& p, World& w, const Stream& draws, MapScratch& s) {
  clear_map(p, w);
  Layer layer(p, w);
  const auto border = static_cast<std::uint32_t>(p.map.border);
  std::size_t n = 0;
  std::uint16_t wall = 0;
  while (wall < p.types.size() && p.types[wall].name != "wall") ++wall;
  for (std::uint32_t r = 0; r < p.height; ++r)
    for (std::uint32_t c = 0; c < p.width; ++c) {
      const bool inner = r >= border && r < p.height - border && c >= border && c < p.width - border;
      if (inner) s.cells[n++] = r * p.width + c;
      else layer.put(wall, r, c);
    }
  std::uint32_t taken = 0;
  const auto draw = [&] {
    std::swap(s.cells[taken], s.cells[taken + draws.below(taken, static_cast<std::uint32_t>(n) - taken)]);
    return s.cells[taken++];
  };
  for (const auto& [type, count] : p.map.scattered)
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t index = draw();
      layer.put(type, index / p.width, index % p.width);
    }
  const std::uint32_t floor = label_components(p, w, s);
  for (std::uint32_t object = p.num_agents; object < p.num_objects; ++object)
    if (!touches(p, w, s, object, floor)) return false;
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    std::uint32_t index;
    do {
      if (taken == n) return false;
      index = draw();
    } while (s.component[w.cell_at(index / p.width, index % p.width)] != floor);
    layer.put_agent(agent, index / p.width, index % p.width,
                    static_cast<std::uint8_t>(agent % static_cast<std::uint32_t>(p.map.groups)));
  }
  return true;
}

}  // namespace

void MapScratch::fit(const Program& p) {
  const std::size_t padded = std::size_t{p.height + 2} * p.stride;
  cells.resize(std::max({cells.size(), padded, p.map.spawns.size()}));
  queue.resize(std::max(queue.size(), padded));
  component.resize(std::max(component.size(), padded));
}

void compile_map(Program& p) {
  if (const auto* ascii = std::get_if<AsciiMap>(&p.config.map)) compile_ascii(p, *ascii);
  else compile_scatter(p, std::get<ScatterMap>(p.config.map));
}

void draw_map(const Program& p, World& w, const Key& key, MapScratch& scratch) {
  if (!p.map.scatter) return draw_ascii(p, w, key, scratch);
  constexpr std::uint32_t kAttempts = 100;
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt)
    if (try_scatter(p, w, Stream(key, attempt, kMapStream), scratch)) return;
  throw std::runtime_error(
      "scatter found no layout in 100 draws in which every agent and every object with a state of its own can be "
      "reached; "
      "use fewer objects or a larger map");
}

}  // namespace gridmill::grid
