// compile_map(): checks and sizes of maps, with the path of whatever is wrong.
#include "grid/maps/compile_map.hpp"

#include <algorithm>

#include "grid/maps/maps.hpp"

namespace gridmill::grid {

namespace {

void check_size(std::uint64_t height, std::uint64_t width, const std::string& path) {
  if (height > kMaxSide || width > kMaxSide)
    fail_at(path, "expected at most 4096 x 4096 cells, got " + std::to_string(height) + " x " + std::to_string(width));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text) {
    if (c == '\r') continue;
    if (c == '\n') {
      lines.push_back(std::move(line));
      line.clear();
    } else line += c;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto filled = [](const std::string& row) { return !row.empty(); };
  lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(), filled));
  return lines;
}

std::string shown(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code >= ' ' && code < 127 ? std::string(1, c) : "byte " + std::to_string(code);
}

std::vector<int> types_by_character(const Program& p, const AsciiMap& config, const std::string& path) {
  std::vector<int> type_of(256, -1);
  for (const auto& [key, name] : config.legend) {
    const std::string at = path + ".legend." + key;
    if (key.size() != 1) fail_at(at, "expected one ASCII character, got '" + key + "'");
    if (key == "@" || key == "." || key == " " || (key[0] >= '0' && key[0] <= '9'))
      fail_at(at, "'" + key + "' already means empty floor or an agent");
    type_of[static_cast<unsigned char>(key[0])] = type_index(p, name, at);
  }
  return type_of;
}

CompiledMap compile_ascii(const Program& p, const AsciiMap& config, std::uint32_t agents, const std::string& path) {
  const std::string at = path + ".text";
  const std::vector<std::string> lines = lines_of(config.text);
  if (lines.empty()) fail_at(at, "expected at least one row, got none");
  check_size(lines.size(), lines.front().size(), at);
  CompiledMap map;
  map.kind = CompiledMap::ascii;
  map.height = static_cast<std::uint32_t>(lines.size());
  map.width = static_cast<std::uint32_t>(lines.front().size());
  map.agents = agents;
  const std::vector<int> type_of = types_by_character(p, config, path);
  for (std::uint16_t r = 0; r < map.height; ++r) {
    if (lines[r].size() != map.width)
      fail_at(at, "row " + std::to_string(r) + " has " + std::to_string(lines[r].size()) + " characters, expected " +
                      std::to_string(map.width) + " like the first");
    for (std::uint16_t c = 0; c < map.width; ++c) {
      const char ch = lines[r][c];
      if (ch == '.' || ch == ' ') continue;
      if (ch == '@' || (ch >= '0' && ch <= '9')) {
        map.spawns.push_back({r, c, static_cast<std::uint8_t>(ch == '@' ? 0 : ch - '0')});
        continue;
      }
      int type = type_of[static_cast<unsigned char>(ch)];
      if (type < 0 && ch == '#') type = type_index(p, "wall", at);
      if (type < 0)
        fail_at(at, "character '" + shown(ch) + "' in row " + std::to_string(r) + ", column " + std::to_string(c) +
                        " is not in the legend");
      map.fixed.push_back({r, c, static_cast<std::uint16_t>(type)});
    }
  }
  const std::size_t pieces = map.fixed.size() + map.spawns.size();
  if (pieces > static_cast<std::size_t>(kMaxObjects))
    fail_at(at, "expected at most 65535 objects on a map, got " + std::to_string(pieces));
  if (map.spawns.size() < agents)
    fail_at(at, "expected cells for " + std::to_string(agents) + " agents (`@` or a digit), got " +
                    std::to_string(map.spawns.size()));
  return map;
}

CompiledMap compile_scatter(const Program& p, const ScatterMap& config, std::uint32_t agents, const std::string& path) {
  CompiledMap map;
  map.kind = CompiledMap::scatter;
  map.height = static_cast<std::uint32_t>(config.height);
  map.width = static_cast<std::uint32_t>(config.width);
  map.border = static_cast<std::uint32_t>(config.border);
  map.groups = static_cast<std::uint32_t>(config.groups);
  map.agents = agents;
  if (config.border > 0) type_index(p, "wall", path + ".border");
  std::int64_t wanted = agents;
  for (const auto& [name, count] : config.objects) {
    map.scattered.emplace_back(type_index(p, name, path + ".objects." + name), static_cast<std::uint32_t>(count));
    wanted += count;
  }
  const std::int64_t inner = std::max<std::int64_t>(0, config.height - 2 * config.border) *
                             std::max<std::int64_t>(0, config.width - 2 * config.border);
  if (wanted > inner)
    fail_at(path, "expected at least " + std::to_string(wanted) + " free cells for agents and objects, got " +
                      std::to_string(inner) + " inside the border");
  return map;
}

CompiledMap compile_node(const Program& p, const MapNode& node, std::uint32_t agents, const std::string& path);

CompiledMap compile_instances(const Program& p, const InstancesMap& config, std::uint32_t agents,
                              const std::string& path) {
  CompiledMap map;
  map.kind = CompiledMap::instances;
  map.rows = static_cast<std::uint32_t>(config.rows);
  map.columns = static_cast<std::uint32_t>(config.columns);
  map.gap = static_cast<std::uint32_t>(config.gap);
  map.border = static_cast<std::uint32_t>(config.border);
  map.agents = agents;
  const std::uint32_t places = map.rows * map.columns;
  if (config.maps.empty()) fail_at(path + ".maps", "expected at least one map, got none");
  if (agents % places != 0)
    fail_at(path, "expected a number of agents that is a multiple of the " + std::to_string(places) + " places, got " +
                      std::to_string(agents));
  if (config.gap + config.border > 0) type_index(p, "wall", path);
  for (std::size_t i = 0; i < config.maps.size(); ++i) {
    const std::string at = path + ".maps[" + std::to_string(i) + "]";
    map.parts.push_back(compile_node(p, config.maps[i], agents / places, at));
    const CompiledMap &part = map.parts.back(), &first = map.parts.front();
    if (part.height != first.height || part.width != first.width)
      fail_at(at, "expected " + std::to_string(first.height) + " x " + std::to_string(first.width) +
                      " cells like the first map, got " + std::to_string(part.height) + " x " +
                      std::to_string(part.width));
  }
  const std::uint64_t height =
      std::uint64_t{map.rows} * map.parts.front().height + (map.rows - 1) * map.gap + 2 * map.border;
  const std::uint64_t width =
      std::uint64_t{map.columns} * map.parts.front().width + (map.columns - 1) * map.gap + 2 * map.border;
  check_size(height, width, path);
  map.height = static_cast<std::uint32_t>(height);
  map.width = static_cast<std::uint32_t>(width);
  return map;
}

CompiledMap compile_canvas(const Program& p, const CanvasMap& config, std::uint32_t agents, const std::string& path) {
  CompiledMap map;
  map.kind = CompiledMap::canvas;
  map.height = static_cast<std::uint32_t>(config.height);
  map.width = static_cast<std::uint32_t>(config.width);
  map.border = static_cast<std::uint32_t>(config.border);
  map.groups = static_cast<std::uint32_t>(config.groups);
  map.agents = agents;
  map.path = path;
  if (config.border > 0) type_index(p, "wall", path + ".border");
  const Size inner{config.height - 2 * config.border, config.width - 2 * config.border};
  if (inner.height < 1 || inner.width < 1)
    fail_at(path + ".border", "expected at least one cell inside the border, got none");
  const std::int64_t cells = std::int64_t{inner.height} * inner.width;
  if (agents > cells)
    fail_at(path, "expected at least " + std::to_string(agents) + " free cells for agents, got " +
                      std::to_string(cells) + " inside the border");
  map.layers = compile_layers(p, config.layers, inner, path + ".layers");
  const std::uint64_t pads = stock_of(p, map.layers).pads;
  if (pads > 0 && pads < agents)
    fail_at(path, "expected at least " + std::to_string(agents) + " cells marked for agents, got " +
                      std::to_string(pads) + "; if no cell is marked, agents start anywhere on the floor");
  return map;
}

CompiledMap compile_node(const Program& p, const MapNode& node, std::uint32_t agents, const std::string& path) {
  if (const auto* canvas = std::get_if<CanvasMap>(&node.data)) return compile_canvas(p, *canvas, agents, path);
  if (const auto* ascii = std::get_if<AsciiMap>(&node.data)) return compile_ascii(p, *ascii, agents, path);
  if (const auto* scatter = std::get_if<ScatterMap>(&node.data)) return compile_scatter(p, *scatter, agents, path);
  return compile_instances(p, std::get<InstancesMap>(node.data), agents, path);
}

std::uint64_t frame(std::uint64_t height, std::uint64_t width, std::uint64_t border) {
  return height * width - (height - std::min(height, 2 * border)) * (width - std::min(width, 2 * border));
}

std::size_t largest_canvas(const CompiledMap& map) {
  std::size_t cells = map.kind == CompiledMap::canvas ? std::size_t{map.height + 2} * (map.width + 2) : 0;
  for (const auto& part : map.parts) cells = std::max(cells, largest_canvas(part));
  return cells;
}

// The most pieces of each type a map can have. Any cell of a canvas may be a wall, and none is two things.
Stock stock_of(const Program& p, const CompiledMap& map) {
  Stock stock = no_stock(p);
  if (map.kind == CompiledMap::canvas) {
    const std::uint64_t cells = std::uint64_t{map.height} * map.width;
    stock = stock_of(p, map.layers);
    stock.all = cells;
    stock.placed[p.map.wall] += cells;
    if (!p.types[p.map.wall].terrain) stock.with_state += cells;
    return stock;
  }
  const auto put = [&](std::size_t type, std::uint64_t n) {
    stock.placed[type] += n;
    stock.all += n;
    if (!p.types[type].terrain) stock.with_state += n;
  };
  if (map.kind == CompiledMap::instances) {
    const std::uint64_t places = std::uint64_t{map.rows} * map.columns;
    put(p.map.wall, std::uint64_t{map.height} * map.width - places * map.parts[0].height * map.parts[0].width);
    for (std::size_t i = 0; i < map.parts.size(); ++i)
      if (const std::uint64_t times = times_of_part(map, i)) add(stock, stock_of(p, map.parts[i]), times);
    return stock;
  }
  for (const auto& item : map.fixed) put(item.type, 1);
  for (const auto& [type, n] : map.scattered) put(type, n);
  if (map.kind == CompiledMap::scatter && map.border > 0) put(p.map.wall, frame(map.height, map.width, map.border));
  return stock;
}

}  // namespace

std::uint64_t times_of_part(const CompiledMap& map, std::size_t part) {
  const std::uint64_t places = std::uint64_t{map.rows} * map.columns, parts = map.parts.size();
  return places / parts + (part < places % parts);
}

void compile_map(Program& p) {
  while (p.map.wall < p.agent_type && p.config.objects[p.map.wall].first != "wall") ++p.map.wall;
  p.map.root = compile_node(p, p.config.map, p.num_agents, "$.map");
  p.map.largest_canvas = largest_canvas(p.map.root);
  p.height = p.map.root.height;
  p.width = p.map.root.width;
  const Stock stock = stock_of(p, p.map.root);
  p.map.placed = stock.placed;
  p.map.placed[p.agent_type] = p.num_agents;
  const std::uint64_t all = stock.all + p.num_agents;
  if (all > static_cast<std::uint64_t>(kMaxObjects))
    fail_at("$.map", "expected at most 65535 objects on a map, got " + std::to_string(all) + " (" +
                         std::to_string(p.num_agents) + " agents + " + std::to_string(all - p.num_agents) + " others)");
  p.num_objects = static_cast<std::uint32_t>(stock.with_state + p.num_agents);
  compile_map_work(p);
}

}  // namespace gridmill::grid
