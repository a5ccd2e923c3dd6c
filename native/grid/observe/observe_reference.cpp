// Observations, slow and obvious: no cache, no bitmap, no table. For every agent it walks the window cell by
// cell, asks the world's plain state what stands there and what that shows, sorts, and writes. Shadow
// validation and the tests hold the fast path equal to this, byte for byte. A new token is added here first.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "grid/grid.hpp"

namespace gridmill::grid {
namespace {

struct Token {
  std::uint8_t location, feature, value;
};

bool in_window(const Observation& o, int row, int column) {
  if (o.window == "square") return true;
  const int r = o.height / 2, d2 = row * row + column * column;
  if (d2 <= r * r) return true;
  return r >= 2 && d2 == r * r + 1 && (std::abs(row) == r || std::abs(column) == r);
}

// Cells by Manhattan distance; inside a shell from north to south, in a row west before east.
std::vector<std::pair<int, int>> cells_in_order(const Observation& o) {
  std::vector<std::pair<int, int>> cells;
  const int rows = o.height / 2, columns = o.width / 2;
  for (int distance = 0; distance <= rows + columns; ++distance)
    for (int row = -rows; row <= rows; ++row)
      for (int column = -columns; column <= columns; ++column)
        if (std::abs(row) + std::abs(column) == distance && in_window(o, row, column)) cells.emplace_back(row, column);
  return cells;
}

void add_amount(std::vector<Token>& tokens, const Program& p, const std::string& feature, std::uint32_t amount) {
  if (amount % 256 != 0) tokens.push_back({0, p.vocabulary->feature(feature), static_cast<std::uint8_t>(amount % 256)});
  if (amount / 256 != 0)
    tokens.push_back({0, p.vocabulary->feature(feature + ":p1"), static_cast<std::uint8_t>(amount / 256)});
}

std::vector<Token> tokens_of_object(const Program& p, const World& w, std::uint16_t code, std::uint32_t tick) {
  std::vector<Token> tokens;
  const bool has_state = code <= p.num_objects;
  const std::uint32_t object = has_state ? code - 1u : 0;
  std::size_t type = 0;
  if (has_state) type = w.type[object];
  else
    while (!(p.types[type].terrain && p.types[type].code == code)) ++type;
  for (std::uint16_t tag = 0; tag < p.vocabulary->tags.size(); ++tag)
    if (has_state ? w.has_tag(object, tag) : p.types[type].tag_set[tag])
      tokens.push_back({0, p.vocabulary->feature("tag"), static_cast<std::uint8_t>(tag)});
  if (has_state) {
    if (w.collective_of(object) != kNeutral)
      tokens.push_back({0, p.vocabulary->feature("collective"), p.collectives.teams[w.collective_of(object)].batch_id});
    if (w.vibe[object] != 0) tokens.push_back({0, p.vocabulary->feature("vibe"), w.vibe[object]});
    for (std::uint32_t r = 0; r < p.num_resources; ++r)
      add_amount(tokens, p, "inv:" + p.config.resources[r], w.inventory[std::size_t{object} * p.num_resources + r]);
  }
  if (has_state && object < p.num_agents) {
    tokens.push_back({0, p.vocabulary->feature("agent:group"), w.group[object]});
    tokens.push_back({0, p.vocabulary->feature("agent:id"), static_cast<std::uint8_t>(object % 256)});
    if (p.config.attack || p.config.swap)
      tokens.push_back({0, p.vocabulary->feature("agent:facing"), w.facing[object]});
    if (p.actions.can_freeze && w.frozen[object] > 0)
      tokens.push_back(
          {0, p.vocabulary->feature("agent:frozen"), static_cast<std::uint8_t>(std::min(255, int{w.frozen[object]}))});
  }
  const bool works = has_state && (p.types[type].converter >= 0 || p.types[type].assembler >= 0);
  if (works && (w.running[object / 64] >> (object % 64)) % 2 == 1) {
    const std::uint32_t left = w.done_at[object] - tick;
    tokens.push_back({0, p.vocabulary->feature("converting"), static_cast<std::uint8_t>(std::min(255u, left))});
  }
  if (has_state && p.types[type].assembler >= 0) {
    const std::int64_t uses = p.machines.assemblers[static_cast<std::size_t>(p.types[type].assembler)].max_uses;
    const std::int64_t left = std::min<std::int64_t>(255, uses - w.conversions[object]);
    if (uses >= 0 && left > 0) tokens.push_back({0, p.vocabulary->feature("uses"), static_cast<std::uint8_t>(left)});
  }
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    return std::pair(a.feature, a.value) < std::pair(b.feature, b.value);
  });
  return tokens;
}

std::vector<Token> globals_of(const Program& p, const World& w, const WorldHeader& header, std::uint32_t agent) {
  const auto& o = p.config.observation;
  const std::uint64_t progress =
      std::min<std::uint64_t>(255, 256ull * header.tick / static_cast<std::uint64_t>(p.config.max_steps));
  std::vector<Token> tokens{{0, p.vocabulary->feature("episode_progress"), static_cast<std::uint8_t>(progress)},
                            {0, p.vocabulary->feature("last_action"), w.last_action[agent]},
                            {0, p.vocabulary->feature("last_reward"), w.reward_token[agent]}};
  if (o.local_position) {
    const int north = w.spawn_row[agent] - w.row[agent], west = w.spawn_column[agent] - w.column[agent];
    const auto far = [](int n) { return static_cast<std::uint8_t>(std::min(255, std::abs(n))); };
    if (north != 0) tokens.push_back({0, p.vocabulary->feature(north > 0 ? "lp:north" : "lp:south"), far(north)});
    if (west != 0) tokens.push_back({0, p.vocabulary->feature(west > 0 ? "lp:west" : "lp:east"), far(west)});
  }
  for (std::size_t i = 0; i < o.values.size(); ++i) {
    const double most = o.values[i].digits == 2 ? 65535.0 : 255.0;
    const double value =
        std::min(most, std::max(0.0, evaluate(p.features.shown[i].value, {p, w, static_cast<std::int32_t>(agent)})));
    add_amount(tokens, p, o.values[i].name, static_cast<std::uint32_t>(std::lround(value)));
  }
  for (auto& token : tokens) token.location = kGlobalLocation;
  return tokens;
}

}  // namespace

void observe_reference(const Program& p, const World& w, const WorldHeader& header, std::uint8_t* obs,
                       std::uint32_t* needed_per_agent) {
  const auto budget = static_cast<std::size_t>(p.config.observation.num_tokens);
  const auto cells = cells_in_order(p.config.observation);
  for (std::uint32_t agent = 0; agent < p.num_agents; ++agent) {
    std::vector<Token> tokens = globals_of(p, w, header, agent);
    for (const auto& [dr, dc] : cells) {
      const int row = w.row[agent] + dr, column = w.column[agent] + dc;
      if (row < 0 || column < 0 || row >= static_cast<int>(p.height) || column >= static_cast<int>(p.width)) continue;
      const std::uint16_t code =
          w.code_at(w.cell_at(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column)));
      if (code == kEmpty) continue;
      const int top = dr + p.config.observation.height / 2, left = dc + p.config.observation.width / 2;
      for (Token token : tokens_of_object(p, w, code, header.tick)) {
        token.location = static_cast<std::uint8_t>(top * 16 + left);
        tokens.push_back(token);
      }
    }
    needed_per_agent[agent] = static_cast<std::uint32_t>(tokens.size());
    std::uint8_t* row = obs + agent * budget * 3;
    std::memset(row, kNoToken, budget * kTokenBytes);
    for (std::size_t i = 0; i < std::min(budget, tokens.size()); ++i) {
      row[3 * i] = tokens[i].location;
      row[3 * i + 1] = tokens[i].feature;
      row[3 * i + 2] = tokens[i].value;
    }
  }
}

}  // namespace gridmill::grid
