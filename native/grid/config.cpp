// Checks of one game on its own, where it enters the core, each with its path.
#include "grid/config.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace gridmill::grid {
namespace {

void check_names(const std::vector<std::string>& names, const std::string& path) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (names[i].empty()) fail_at(at, "expected a name, got nothing");
    if (!seen.insert(names[i]).second) fail_at(at, "`" + names[i] + "` is listed twice");
  }
}

void expect_known(const std::string& name, const std::vector<std::string>& known, const std::string& what,
                  const std::string& path) {
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail_at(path, "unknown " + what + " `" + name + "`" + nearest(name, known));
}

template <class T>
std::vector<std::string> keys(const OrderedDict<T>& named) {
  std::vector<std::string> names;
  for (const auto& [name, value] : named) names.push_back(name);
  return names;
}

template <class Type>
void check_type(const Type& type, const GameConfig& game, const std::string& path) {
  for (const auto& [resource, amount] : type.inventory)
    expect_known(resource, game.resources, "resource", path + ".inventory");
  if (!type.vibe.empty()) expect_known(type.vibe, game.vibes, "vibe", path + ".vibe");
  check_names(type.tags, path + ".tags");
}

void check_amounts(const OrderedDict<std::int64_t>& amounts, const GameConfig& game, const std::string& path) {
  for (const auto& [resource, amount] : amounts) expect_known(resource, game.resources, "resource", path);
}

void check_limits(const std::vector<Limit>& limits, const GameConfig& game, const std::string& path) {
  std::set<std::string> limited;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    for (const auto& resource : limits[i].resources) {
      expect_known(resource, game.resources, "resource", at + ".resources");
      if (!limited.insert(resource).second) fail_at(at + ".resources", "`" + resource + "` is limited twice");
    }
    check_amounts(limits[i].bonus, game, at + ".bonus");
  }
}

void check_converter(const Converter& converter, const GameConfig& game, const std::string& path) {
  check_amounts(converter.inputs, game, path + ".inputs");
  check_amounts(converter.outputs, game, path + ".outputs");
  if (converter.outputs.empty()) fail_at(path + ".outputs", "expected at least one output, got none");
  for (const auto& [input, n] : converter.inputs)
    for (const auto& [output, m] : converter.outputs)
      if (input == output) fail_at(path + ".outputs", "`" + input + "` is an input and an output");
}

void check_assembler(const Assembler& assembler, const GameConfig& game, const std::string& path) {
  if (assembler.recipes.empty()) fail_at(path + ".recipes", "expected at least one recipe, got none");
  for (std::size_t i = 0; i < assembler.recipes.size(); ++i) {
    const Recipe& recipe = assembler.recipes[i];
    const std::string at = path + ".recipes[" + std::to_string(i) + "]";
    for (const auto& vibe : recipe.vibes) expect_known(vibe, game.vibes, "vibe", at + ".vibes");
    if (recipe.vibes.size() > 8)
      fail_at(at + ".vibes", "expected at most 8 vibes, got " + std::to_string(recipe.vibes.size()));
    check_amounts(recipe.inputs, game, at + ".inputs");
    check_amounts(recipe.outputs, game, at + ".outputs");
    std::int64_t made = 0;
    for (const auto& [resource, n] : recipe.outputs) made += n;
    if (made == 0) fail_at(at + ".outputs", "expected at least one output, got none");
  }
}

// Fallbacks must end: following them never comes back. What was followed once is not followed again.
void check_events(const GameConfig& game) {
  const std::vector<std::string> known = keys(game.events);
  check_names(known, "$.events");
  std::unordered_map<std::string, const Event*> by_name;
  for (const auto& [name, event] : game.events) by_name[name] = &event;
  std::unordered_map<const Event*, const Event*> followed;  // event -> the one from which it was come to
  for (const auto& [name, event] : game.events) {
    const std::string at = "$.events." + name + ".fallback";
    for (const Event* one = &event; followed.emplace(one, &event).second && !one->fallback.empty();) {
      const auto next = by_name.find(one->fallback);
      if (next == by_name.end()) expect_known(one->fallback, known, "event", at);
      one = next->second;
      if (const auto met = followed.find(one); met != followed.end() && met->second == &event)
        fail_at(at, "the fallbacks of `" + name + "` form a cycle");
    }
  }
}

// What is paid must fit a float32, whatever it is multiplied with.
void check_rewards(const GameConfig& game) {
  constexpr double kMostWeight = 1e12;
  for (std::size_t i = 0; i < game.rewards.size(); ++i)
    if (const double weight = game.rewards[i].weight; !(std::abs(weight) <= kMostWeight))
      fail_at("$.rewards[" + std::to_string(i) + "].weight",
              "expected a weight within +-1e12, got " + Value{weight}.describe());
}

void check_collectives(const GameConfig& game) {
  const std::vector<std::string> known = keys(game.collectives);
  check_names(known, "$.collectives");
  if (known.size() > 254) fail_at("$.collectives", "expected at most 254, got " + std::to_string(known.size()));
  for (const auto& [name, team] : game.collectives) {
    check_amounts(team.inventory, game, "$.collectives." + name + ".inventory");
    check_limits(team.limits, game, "$.collectives." + name + ".limits");
  }
  for (std::size_t i = 0; i < game.agent.collectives.size(); ++i)
    expect_known(game.agent.collectives[i], known, "collective", "$.agent.collectives[" + std::to_string(i) + "]");
  for (const auto& [name, type] : game.objects)
    if (!type.collective.empty())
      expect_known(type.collective, known, "collective", "$.objects." + name + ".collective");
}

void check_odd(std::int32_t n, const std::string& path) {
  if (n % 2 == 0) fail_at(path, "expected an odd number, got " + std::to_string(n));
}

}  // namespace

void check_value(const GameValue& value, const GameConfig& game, const std::string& path, int depth) {
  if (depth > 8) fail_at(path, "expected game values nested at most 8 levels deep, got more");
  std::visit(
      [&](const auto& item) {
        using T = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<T, InventoryOf>) {
          expect_known(item.resource, game.resources, "resource", path + ".resource");
        } else if constexpr (requires { item.values; }) {
          const std::size_t n = item.values.size();
          if (std::is_same_v<T, Ratio> && n != 2)
            fail_at(path + ".values", "a ratio takes 2 values, got " + std::to_string(n));
          if (std::is_same_v<T, LogOnePlus> && n != 1)
            fail_at(path + ".values", "a log takes 1 value, got " + std::to_string(n));
          if (n == 0 || n > 32) fail_at(path + ".values", "expected 1 to 32 values, got " + std::to_string(n));
          for (std::size_t i = 0; i < n; ++i)
            check_value(item.values[i], game, path + ".values[" + std::to_string(i) + "]", depth + 1);
        }
      },
      value.data);
}

void GameValue::decode(GameValue& out, const Value& value, const std::string& path) {
  // A hostile tree could be deep enough to exhaust the stack before check_value sees it.
  if (std::count(path.begin(), path.end(), '[') > 20)
    fail_at(path, "expected game values nested at most 8 levels deep, got more");
  decode_one_of(out.data, value, path);
}

void MapNode::decode(MapNode& out, const Value& value, const std::string& path) {
  if (std::count(path.begin(), path.end(), '[') > 4)
    fail_at(path, "expected maps nested at most 4 levels deep, got more");
  decode_one_of(out.data, value, path);
}

GameConfig decode_game(const Value& value) {
  GameConfig game = gridmill::decode<GameConfig>(value);
  if (game.moves != 0 && game.moves != 4 && game.moves != 8)
    fail_at("$.moves", "expected 0, 4 or 8, got " + std::to_string(game.moves));
  check_names(game.resources, "$.resources");
  check_names(game.vibes, "$.vibes");
  check_names(keys(game.objects), "$.objects");
  if (game.vibes.size() > 128)
    fail_at("$.vibes", "expected at most 128 vibes, got " + std::to_string(game.vibes.size()));
  if (game.resources.size() > 128)
    fail_at("$.resources", "expected at most 128 resources, got " + std::to_string(game.resources.size()));
  check_type(game.agent, game, "$.agent");
  check_limits(game.agent.limits, game, "$.agent.limits");
  check_amounts(game.move_cost, game, "$.move_cost");
  if (game.attack) {
    check_amounts(game.attack->cost, game, "$.attack.cost");
    if (!game.attack->armor.empty()) expect_known(game.attack->armor, game.resources, "resource", "$.attack.armor");
  }
  const std::vector<std::string> names = keys(game.objects);
  const std::set<std::string> known(names.begin(), names.end());
  if (names.size() > 65'534)
    fail_at("$.objects", "expected at most 65534 object types, got " + std::to_string(names.size()));
  for (const auto& [name, type] : game.objects) {
    if (name == "agent") fail_at("$.objects", "`agent` is not an object type; agents are described by `$.agent`");
    check_type(type, game, "$.objects." + name);
    check_limits(type.limits, game, "$.objects." + name + ".limits");
    if (type.converter) check_converter(*type.converter, game, "$.objects." + name + ".converter");
    if (type.assembler) check_assembler(*type.assembler, game, "$.objects." + name + ".assembler");
    if (type.converter && type.assembler)
      fail_at("$.objects." + name + ".assembler", "expected a converter or an assembler, got both");
    if (!type.counts_as.empty() && !known.contains(type.counts_as))
      expect_known(type.counts_as, names, "object type", "$.objects." + name + ".counts_as");
  }
  check_collectives(game);
  check_rewards(game);
  check_events(game);
  check_odd(game.observation.height, "$.observation.height");
  check_odd(game.observation.width, "$.observation.width");
  if (game.observation.window == "disc" && game.observation.height != game.observation.width)
    fail_at("$.observation.width", "a disc window must be as wide as it is high: expected " +
                                       std::to_string(game.observation.height) + ", got " +
                                       std::to_string(game.observation.width));
  for (std::size_t i = 0; i < game.rewards.size(); ++i)
    check_value(game.rewards[i].value, game, "$.rewards[" + std::to_string(i) + "].value", 1);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < game.observation.values.size(); ++i) {
    check_value(game.observation.values[i].value, game, "$.observation.values[" + std::to_string(i) + "].value", 1);
    shown.push_back(game.observation.values[i].name);
  }
  check_names(shown, "$.observation.values");
  return game;
}

}  // namespace gridmill::grid
