// What agents can do: every action of the batch as this game understands it, and what actions cost.
#include <algorithm>

#include "grid/compile.hpp"
#include "grid/directions.hpp"

namespace gridmill::grid {
namespace {

bool has_action(const GameConfig& game, const Vocabulary& vocabulary, const Action& action) {
  switch (action.kind) {
    case ActionKind::noop:
      return true;
    case ActionKind::move:
      return action.which < game.moves;
    case ActionKind::attack:
      return game.attack &&
             (game.attack->aim == "both" || (action.which == kNearest) == (game.attack->aim == "nearest"));
    case ActionKind::change_vibe:
      return game.vibes.size() > 1 &&
             std::find(game.vibes.begin(), game.vibes.end(), vocabulary.vibes[action.which]) != game.vibes.end();
    case ActionKind::swap:
      return game.swap;
    case ActionKind::invalid:
      break;
  }
  return false;
}

ActionEntry compile_action(const Action& action, std::uint32_t stride) {
  ActionEntry entry;
  entry.kind = action.kind;
  if (action.kind == ActionKind::move) {
    const Direction& direction = kDirections[action.which];
    entry.row = static_cast<std::int8_t>(direction.row);
    entry.column = static_cast<std::int8_t>(direction.column);
    entry.delta = direction.row * static_cast<std::int32_t>(stride) + direction.column;
    entry.facing = static_cast<std::int8_t>(direction.facing);
  }
  if (action.kind == ActionKind::attack) {
    const bool nearest_one = action.which == kNearest;
    entry.first = nearest_one ? std::uint8_t{0} : action.which;
    entry.last = nearest_one ? std::uint8_t{kConeCells - 1} : action.which;
  }
  if (action.kind == ActionKind::change_vibe) entry.vibe = action.which;
  return entry;
}

bool is_interactive(const ObjectType& type) {
  return type.converter || type.assembler || type.pushable || !type.on_use.empty();
}

}  // namespace

Actions compile_actions(const GameConfig& game, const Vocabulary& vocabulary, const References& references,
                        std::uint32_t stride) {
  Actions actions;
  for (const Action& action : vocabulary.actions)
    actions.entries.push_back(has_action(game, vocabulary, action) ? compile_action(action, stride) : ActionEntry{});
  actions.entries.emplace_back();
  actions.num_counters = static_cast<std::uint32_t>(2 * vocabulary.actions.size() + 1);
  actions.can_freeze = references.freezes;
  actions.move_cost = costs(game, game.move_cost);
  actions.shows_facing = game.attack.has_value() || game.swap;
  actions.interactive = actions.can_freeze || !actions.move_cost.empty() || !game.agent.on_use.empty() ||
                        std::any_of(game.objects.begin(), game.objects.end(),
                                    [](const auto& named) { return is_interactive(named.second); });
  if (!game.attack) return actions;
  const Attack& attack = *game.attack;
  actions.has_attack = true;
  actions.attack_cost = costs(game, attack.cost);
  actions.freeze_duration = static_cast<std::uint16_t>(attack.freeze_duration);
  const auto& names = game.resources;
  if (!attack.armor.empty())
    actions.armor = static_cast<std::int32_t>(std::find(names.begin(), names.end(), attack.armor) - names.begin());
  return actions;
}

}  // namespace gridmill::grid
