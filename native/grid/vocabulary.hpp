// The names all games of one batch share: features, actions, tags, vibes and statistics, as the union over
// the games the batch was made with. Ids belong to a batch; two batches never share a table.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/stats.hpp"
#include "core/value.hpp"
#include "grid/config.hpp"

namespace gridmill::grid {

// What is counted per agent and episode beside what became of actions, and per agent and resource.
enum class AgentCounter : std::uint8_t { visited, written, dropped, hit, blocked, received, frozen };
constexpr std::array<const char*, 7> kAgentCounterNames{"cell.visited", "tokens_written", "tokens_dropped",
                                                        "attack.hit",   "attack.blocked", "attack.received",
                                                        "frozen.ticks"};
enum class ResourceCounter : std::uint8_t { get, put, gained, lost };
constexpr std::array<const char*, 4> kResourceCounterNames{"get", "put", "gained", "lost"};
constexpr std::size_t kAgentCounters = kAgentCounterNames.size(), kHotAgentCounters = 3,
                      kResourceCounters = kResourceCounterNames.size();

// What is counted per collective: members of every name, and what its store gets and gives.
enum class TeamCount : std::uint8_t { now, gained, lost, held };
constexpr std::array<const char*, 4> kTeamCountNames{"", ".gained", ".lost", ".held"};
enum class TeamResourceCounter : std::uint8_t { deposited, withdrawn };
constexpr std::array<const char*, 2> kTeamResourceCounterNames{"deposited", "withdrawn"};
constexpr std::size_t kTeamCounts = kTeamCountNames.size(), kTeamResourceCounters = kTeamResourceCounterNames.size();

enum class ActionKind : std::uint8_t { noop, move, attack, change_vibe, swap, invalid };
// An action of the batch. A game that lacks it takes it for an invalid one.
struct Action {
  std::string name;
  ActionKind kind;
  std::uint8_t which = 0;  // place in kDirections, cell of the cone or kNearest, vibe
};
constexpr std::uint8_t kConeCells = 9, kNearest = kConeCells;  // all cells of the cone, one after the other

constexpr std::uint8_t kNoFeature = 255;

struct Feature {
  std::string name;
  double normalizer = 255;  // a value divided by this lies in about [0, 1]
};

struct Vocabulary {
  std::vector<Feature> features;       // sorted by name; the id is the position
  std::vector<Action> actions;         // in the fixed order of kinds
  std::vector<std::string> tags;       // sorted
  std::vector<std::string> vibes;      // in order of first appearance
  std::vector<std::string> resources;  // sorted; for statistics
  std::vector<std::string> teams;      // collectives, sorted
  std::vector<std::string> names;      // sorted; what `aligned.<name>` counts, in games with collectives
  std::vector<std::string> agent_stats, team_stats, game_stats;  // sorted; what rules add to
  std::vector<std::string> every_agents, every_teams;  // statistics that each has, before those that rules add to

  std::uint8_t feature(const std::string& name) const;  // kNoFeature: no game of the batch shows it
  // Of names that some game of the batch has; expect_covered() sees to it.
  std::uint8_t tag(const std::string& name) const;
  std::uint8_t vibe(const std::string& name) const;  // empty: the first
  std::vector<std::string> action_names() const;
  StatTable stats() const;
  std::vector<std::string> stats_of_team() const;  // of one collective, in order
  void list_stats();                               // every_agents and every_teams
  std::size_t num_team_stats() const {
    return names.size() * kTeamCounts + resources.size() * (kTeamResourceCounters + 1) + team_stats.size();
  }
  std::string text() const;  // all names in order: equal texts mean equal ids
};

Vocabulary make_vocabulary(const std::vector<GameConfig>& games);
// Refuses a game that needs names this vocabulary does not have.
void expect_covered(const Vocabulary& vocabulary, const GameConfig& game);

std::vector<std::string> tags_of(const GameConfig& game);  // sorted
std::string shown_name(const std::string& name, const ObjectType& type);
// True where some amount of this resource does not fit one base-256 digit.
bool needs_two_digits(const GameConfig& game, const std::string& resource);

}  // namespace gridmill::grid
