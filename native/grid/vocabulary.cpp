// See vocabulary.hpp. needs_of() says what one game needs; the table is the union.
#include "grid/vocabulary.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "grid/directions.hpp"
#include "grid/observe/object_tokens.hpp"
#include "grid/rules/references.hpp"

namespace gridmill::grid {
namespace {

struct Needs {
  std::map<std::string, double> features;
  std::set<std::string> tags, teams, names, agent_stats, team_stats, game_stats;
  std::size_t moves = 0;
  bool vibes = false, attack_cells = false, attack_nearest = false, swap = false;
};

// What rules add to, and who gets the credit for aligning and scrambling.
void collect_stats(const GameConfig& game, const References& references, Needs& vocabulary) {
  vocabulary.agent_stats = references.agent_stats;
  vocabulary.team_stats = references.team_stats;
  vocabulary.game_stats = references.game_stats;
  if (game.collectives.empty()) return;
  vocabulary.names.insert("agent");
  for (const auto& [name, type] : game.objects)
    if (!is_terrain(game, references, name, type)) vocabulary.names.insert(shown_name(name, type));
  for (const auto& [name, team] : game.collectives) vocabulary.teams.insert(name);
  if (!references.aligns) return;
  for (const auto& name : vocabulary.names)
    vocabulary.agent_stats.insert({name + ".aligned_by_agent", name + ".scrambled_by_agent"});
}

Needs needs_of(const GameConfig& game) {
  const References references = references_of(game);
  Needs vocabulary;
  auto& f = vocabulary.features;
  f = {{"episode_progress", 255}, {"last_action", 255}, {"last_reward", 255}, {"tag", 255}};
  add_object_features(game, references, f);
  if (game.observation.local_position)
    for (const auto direction : kCompass) f["lp:" + std::string(direction)] = 255;
  const auto add = [&f](const std::string& name, const std::string& path) {
    if (!f.emplace(name, 255).second) fail_at(path, "`" + name + "` is already the name of another feature");
  };
  for (std::size_t i = 0; i < game.resources.size(); ++i) {
    const std::string name = "inv:" + game.resources[i], path = "$.resources[" + std::to_string(i) + "]";
    add(name, path);
    if (needs_two_digits(game, game.resources[i])) add(name + ":p1", path);
  }
  for (std::size_t i = 0; i < game.observation.values.size(); ++i) {
    const auto& value = game.observation.values[i];
    const std::string path = "$.observation.values[" + std::to_string(i) + "].name";
    add(value.name, path);
    if (value.digits == 2) add(value.name + ":p1", path);
  }
  const auto tags = tags_of(game);
  vocabulary.tags.insert(tags.begin(), tags.end());
  collect_stats(game, references, vocabulary);
  vocabulary.moves = static_cast<std::size_t>(game.moves);
  vocabulary.vibes = game.vibes.size() > 1;
  vocabulary.attack_cells = game.attack && game.attack->aim != "nearest";
  vocabulary.attack_nearest = game.attack && game.attack->aim != "cells";
  vocabulary.swap = game.swap;
  return vocabulary;
}

std::uint8_t position(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::uint8_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "`" : ", `") + name + "`";
  return text;
}

std::vector<Action> list_actions(const Needs& vocabulary, const std::vector<std::string>& vibes) {
  std::vector<Action> actions{{"noop", ActionKind::noop}};
  const auto add = [&actions](const std::string& name, ActionKind kind, std::size_t which) {
    actions.push_back({name, kind, static_cast<std::uint8_t>(which)});
  };
  for (std::size_t d = 0; d < vocabulary.moves; ++d)
    add("move_" + std::string(kDirections[d].name), ActionKind::move, d);
  for (std::size_t k = 0; k < kConeCells && vocabulary.attack_cells; ++k)
    add("attack_" + std::to_string(k), ActionKind::attack, k);
  if (vocabulary.attack_nearest) add("attack_nearest", ActionKind::attack, kNearest);
  for (std::size_t v = 0; v < vibes.size() && vocabulary.vibes; ++v)
    add("change_vibe_" + vibes[v], ActionKind::change_vibe, v);
  if (vocabulary.swap) add("swap", ActionKind::swap, 0);
  return actions;
}

}  // namespace

std::string shown_name(const std::string& name, const ObjectType& type) {
  return type.counts_as.empty() ? name : type.counts_as;
}

std::vector<std::string> tags_of(const GameConfig& game) {
  std::set<std::string> tags{"type:agent"};
  tags.insert(game.agent.tags.begin(), game.agent.tags.end());
  for (const auto& [name, type] : game.objects) {
    tags.insert("type:" + shown_name(name, type));
    tags.insert(type.tags.begin(), type.tags.end());
  }
  tags.merge(references_of(game).changeable);
  return {tags.begin(), tags.end()};
}

namespace {

std::int64_t limit_for(const std::vector<Limit>& limits, const std::string& resource) {
  for (const auto& group : limits)
    if (std::find(group.resources.begin(), group.resources.end(), resource) != group.resources.end())
      return group.bonus.empty() ? std::min(group.base, group.max) : group.max;
  return 65'535;
}

}  // namespace

bool needs_two_digits(const GameConfig& game, const std::string& resource) {
  const auto amount = [&](const OrderedDict<std::int64_t>& amounts) {
    for (const auto& [name, n] : amounts)
      if (name == resource) return n;
    return std::int64_t{0};
  };
  const std::int64_t limit = limit_for(game.agent.limits, resource);
  // Loot adds up; and a rule anywhere may give it to an agent.
  bool comes = (game.attack && amount(game.agent.inventory) > 0) || may_give(game, resource, "actor") ||
               may_give(game, resource, "target");
  bool to_anything = may_give(game.events, resource, "target");
  for (const char* who : {"actor", "target"})
    to_anything =
        to_anything || may_give(game.on_tag_added, resource, who) || may_give(game.on_tag_removed, resource, who);
  std::int64_t most = amount(game.agent.inventory);
  for (const auto& [name, type] : game.objects) {
    const std::int64_t start = amount(type.inventory);
    most = std::max(most, start);
    if (to_anything || may_give(type.on_use, resource, "target") || may_give(type.on_tick, resource, "actor") ||
        may_give(type.on_tick, resource, "target") || may_give(type.areas, resource, "actor"))
      most = std::max(most, limit_for(type.limits, resource));
    if (!type.converter) continue;
    const Converter& c = *type.converter;
    const std::int64_t out = amount(c.outputs),
                       waiting = std::max(c.max_output - 1 + out, c.initial_resource_count * out);
    if (out > 0) {
      comes = true;
      most = std::max(most, start + waiting);
    }
    most = std::max(most, amount(c.inputs) * c.max_input);
  }
  return most > 255 || (comes && limit > 255);
}

std::uint8_t Vocabulary::feature(const std::string& name) const {
  const auto at = std::lower_bound(features.begin(), features.end(), name,
                                   [](const Feature& f, const std::string& n) { return f.name < n; });
  return at == features.end() || at->name != name ? kNoFeature : static_cast<std::uint8_t>(at - features.begin());
}
std::uint8_t Vocabulary::tag(const std::string& name) const { return position(tags, name); }
std::uint8_t Vocabulary::vibe(const std::string& name) const { return name.empty() ? 0 : position(vibes, name); }

std::vector<std::string> Vocabulary::action_names() const {
  std::vector<std::string> all;
  for (const auto& action : actions) all.push_back(action.name);
  return all;
}

void Vocabulary::list_stats() {
  every_agents = {"reward"};
  for (const auto& action : actions) {
    every_agents.push_back("action." + action.name + ".failed");
    every_agents.push_back("action." + action.name + ".success");
  }
  every_agents.push_back("action.invalid");
  every_agents.insert(every_agents.end(), kAgentCounterNames.begin(), kAgentCounterNames.end());
  for (const auto& resource : resources)
    for (const char* resource_counter : kResourceCounterNames)
      every_agents.push_back(resource + "." + resource_counter);
  for (const auto& resource : resources) every_agents.push_back(resource + ".amount");
  every_teams.clear();
  for (const auto& name : names)
    for (const char* count : kTeamCountNames) every_teams.push_back("aligned." + name + count);
  for (const auto& resource : resources) {
    for (const char* resource_counter : kTeamResourceCounterNames)
      every_teams.push_back(resource + "." + resource_counter);
    every_teams.push_back(resource + ".amount");
  }
}

StatTable Vocabulary::stats() const {
  StatTable table;
  for (const auto& name : every_agents) table.push_back({name, name != "reward"});
  for (const auto& name : agent_stats) table.push_back({name, false});
  for (const auto& team : teams)
    for (const auto& name : stats_of_team()) table.push_back({team + "/" + name, false});
  for (const auto& name : game_stats) table.push_back({"game/" + name, false});
  return table;
}

std::vector<std::string> Vocabulary::stats_of_team() const {
  std::vector<std::string> all = every_teams;
  all.insert(all.end(), team_stats.begin(), team_stats.end());
  return all;
}

Vocabulary make_vocabulary(const std::vector<GameConfig>& games) {
  Vocabulary vocabulary;
  std::map<std::string, double> features;
  std::set<std::string> tags, resources, teams, names, agent_stats, team_stats, game_stats;
  Needs all;
  for (const auto& game : games) {
    const Needs own = needs_of(game);
    features.insert(own.features.begin(), own.features.end());
    tags.insert(own.tags.begin(), own.tags.end());
    resources.insert(game.resources.begin(), game.resources.end());
    teams.insert(own.teams.begin(), own.teams.end());
    names.insert(own.names.begin(), own.names.end());
    agent_stats.insert(own.agent_stats.begin(), own.agent_stats.end());
    team_stats.insert(own.team_stats.begin(), own.team_stats.end());
    game_stats.insert(own.game_stats.begin(), own.game_stats.end());
    all.moves = std::max(all.moves, own.moves);
    all.vibes = all.vibes || own.vibes;
    all.attack_cells = all.attack_cells || own.attack_cells;
    all.attack_nearest = all.attack_nearest || own.attack_nearest;
    all.swap = all.swap || own.swap;
    for (const auto& vibe : game.vibes)
      if (std::find(vocabulary.vibes.begin(), vocabulary.vibes.end(), vibe) == vocabulary.vibes.end())
        vocabulary.vibes.push_back(vibe);
    if (!game.vibes.empty() && game.vibes.front() != vocabulary.vibes.front())
      fail_at("$.vibes[0]", "games of one batch must share their first vibe: expected `" + vocabulary.vibes.front() +
                                "`, got `" + game.vibes.front() + "`");
  }
  for (const auto& [name, normalizer] : features) vocabulary.features.push_back({name, normalizer});
  vocabulary.tags.assign(tags.begin(), tags.end());
  vocabulary.resources.assign(resources.begin(), resources.end());
  vocabulary.teams.assign(teams.begin(), teams.end());
  vocabulary.names.assign(names.begin(), names.end());
  vocabulary.agent_stats.assign(agent_stats.begin(), agent_stats.end());
  vocabulary.team_stats.assign(team_stats.begin(), team_stats.end());
  vocabulary.game_stats.assign(game_stats.begin(), game_stats.end());
  vocabulary.actions = list_actions(all, vocabulary.vibes);
  vocabulary.list_stats();
  std::set<std::string> stats;
  for (const auto& stat : vocabulary.stats())
    if (!stats.insert(stat.name).second) fail_at("$", "`" + stat.name + "` is already the name of another statistic");
  for (auto& f : vocabulary.features) {
    if (f.name == "last_action") f.normalizer = std::max<double>(1, static_cast<double>(vocabulary.actions.size()) - 1);
    if (f.name == "tag") f.normalizer = std::max<double>(1, static_cast<double>(vocabulary.tags.size()) - 1);
    if (f.name == "collective") f.normalizer = std::max<double>(1, static_cast<double>(vocabulary.teams.size()) - 1);
    if (f.name == "vibe") f.normalizer = std::max<double>(1, static_cast<double>(vocabulary.vibes.size()) - 1);
  }
  const auto limit = [](std::size_t n, std::size_t most, const char* what) {
    if (n > most) fail_at("$", "expected at most " + std::to_string(most) + " " + what + ", got " + std::to_string(n));
  };
  limit(vocabulary.features.size(), 254, "features");
  limit(vocabulary.tags.size(), 255, "tags");
  limit(vocabulary.vibes.size(), 128, "vibes");
  limit(vocabulary.actions.size(), 255, "actions");
  limit(vocabulary.teams.size(), 254, "collectives");
  limit(vocabulary.agent_stats.size(), 65'535, "statistics of agents that rules add to");
  limit(vocabulary.num_team_stats(), 65'535, "statistics of a collective");
  limit(vocabulary.game_stats.size(), 65'535, "statistics of the game that rules add to");
  return vocabulary;
}

void expect_covered(const Vocabulary& vocabulary, const GameConfig& game) {
  const Needs own = needs_of(game);
  std::vector<std::string> missing;
  for (const auto& [name, normalizer] : own.features)
    if (vocabulary.feature(name) == kNoFeature) missing.push_back(name);
  if (!missing.empty()) fail_at("$", "this game would add features the batch does not have: " + listed(missing));
  for (const auto& tag : own.tags)
    if (std::find(vocabulary.tags.begin(), vocabulary.tags.end(), tag) == vocabulary.tags.end()) missing.push_back(tag);
  if (!missing.empty()) fail_at("$", "this game would add tags the batch does not have: " + listed(missing));
  const std::vector<std::string> actions = vocabulary.action_names();
  for (const auto& action : list_actions(own, game.vibes))
    if (std::find(actions.begin(), actions.end(), action.name) == actions.end()) missing.push_back(action.name);
  if (!missing.empty()) fail_at("$", "this game would add actions the batch does not have: " + listed(missing));
  const auto expect_in = [&missing](const std::set<std::string>& names, const std::vector<std::string>& known,
                                    const char* what) {
    for (const auto& name : names)
      if (!std::binary_search(known.begin(), known.end(), name)) missing.push_back(name);
    if (!missing.empty())
      fail_at("$", "this game would add " + std::string(what) + " the batch does not have: " + listed(missing));
  };
  expect_in(own.teams, vocabulary.teams, "collectives");
  expect_in({game.resources.begin(), game.resources.end()}, vocabulary.resources, "resources");
  expect_in(own.names, vocabulary.names, "statistics of object types");
  expect_in(own.agent_stats, vocabulary.agent_stats, "statistics of agents");
  expect_in(own.team_stats, vocabulary.team_stats, "statistics of collectives");
  expect_in(own.game_stats, vocabulary.game_stats, "statistics of the game");
  for (const auto& vibe : game.vibes)
    if (std::find(vocabulary.vibes.begin(), vocabulary.vibes.end(), vibe) == vocabulary.vibes.end())
      missing.push_back(vibe);
  if (!missing.empty()) fail_at("$", "this game would add vibes the batch does not have: " + listed(missing));
  if (!game.vibes.empty() && game.vibes.front() != vocabulary.vibes.front())
    fail_at("$.vibes[0]", "games of one batch must share their first vibe: expected `" + vocabulary.vibes.front() +
                              "`, got `" + game.vibes.front() + "`");
}

std::string Vocabulary::text() const {
  std::string all;
  for (const auto& feature : features) all += feature.name + '\n';
  for (const auto& action : actions) all += action.name + '\n';
  for (const auto* list : {&tags, &vibes, &resources, &teams, &names, &agent_stats, &team_stats, &game_stats})
    for (const auto& name : *list) all += name + '\n';
  return all;
}

}  // namespace gridmill::grid
