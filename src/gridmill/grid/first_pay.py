"""First pay: the earliest tick at which each reward term of a game can pay, and the shortest useful first episode.

Works on any game value by asking when its parts can first change or first be above zero. Called by `env` (default
of `min_first_episode`) and `explain`. It says when a term *could* pay, not how likely an agent is to find out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gridmill.grid.game import Game, RewardTerm
from gridmill.grid.plant import Plant
from gridmill.grid.timeline import one_of_each
from gridmill.grid.values import Constant, GameValue, Inventory, Log, Max, Min, Ratio, Stat, Sum

NO_CAP = 1e9  # the default cap of a reward term: as good as none
Gains = Callable[[str, int], int | None]  # (resource, amount) -> the tick by which an agent has gained that much
EPISODES = 10  # what takes longer than this many episodes counts as never


def min_first_episode(game: Game) -> int:
    """The tick by which every term that can pay at all could have paid with one of each building; at most max_steps."""
    plant = Plant.of(game)

    def gains(resource: str, amount: int) -> int | None:
        found = one_of_each(plant, resource, amount, EPISODES * game.max_steps)
        return None if found is None else found.paid

    paid = [tick for tick in first_rewards(game, gains) if tick is not None]
    return min(game.max_steps, max(paid, default=1))


def first_rewards(game: Game, gains: Gains) -> list[int | None]:
    """For each reward term the first tick it can pay something, given when resources can be gained."""
    first = [_Look(game, gains, None).pays(term) for term in game.rewards]
    others = [tick for tick in first if tick is not None]
    # The statistic `reward` moves one tick after the first term that pays.
    look = _Look(game, gains, 1 + min(others) if others else None)
    return [look.pays(term) for term in game.rewards]


def first_attack(game: Game, gains: Gains) -> int | None:
    """The first tick at which an attack can be paid for; None if never."""
    if game.attack is None or game.num_agents < 2:
        return None
    plant, tick = Plant.of(game), 1
    for resource, cost in game.attack.cost.items():
        lacking = cost - plant.start.get(resource, 0)
        if lacking <= 0:
            continue
        gained = gains(resource, lacking) if cost <= plant.most(resource) else None
        if gained is None:
            return None
        tick = max(tick, gained + 1)
    return tick


class _Look:
    """Reads game values for their first moments."""

    def __init__(self, game: Game, gains: Gains, reward: int | None) -> None:
        self.game, self.gains, self.reward = game, gains, reward
        self.start = {r: n for r, n in game.agent.inventory.items() if n > 0}
        self.resources = set(game.resources)

    def pays(self, term: RewardTerm) -> int | None:
        if term.weight == 0 or term.cap == 0:
            return None
        before = self.at_start(term.value)
        if term.mode == "per_tick":
            tick = self.above_zero(term.value)
            return None if tick is None else max(1, tick)
        if term.mode == "change" and before >= term.cap:
            return None  # it is full from the start and can only be lost
        return self.above_zero(term.value) if before == 0 else self.changes(term.value)

    def at_start(self, value: GameValue) -> float:
        """The value before the first tick."""
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Inventory):
            return self.start.get(value.resource, 0)
        if isinstance(value, Stat):
            resource = value.name.removesuffix(".amount")
            return 1 if value.name == "cell.visited" else self.start.get(resource, 0) if resource != value.name else 0
        if not isinstance(value, Sum | Ratio | Min | Max | Log):
            return 0
        parts = [self.at_start(part) for part in value.values]
        if not parts or (isinstance(value, Ratio) and len(parts) != 2):
            return 0  # the core refuses it with its path
        if isinstance(value, Ratio):
            return parts[0] / parts[1] if parts[1] else 0
        if isinstance(value, Log):
            return math.log1p(max(0.0, parts[0]))
        return sum(parts) if isinstance(value, Sum) else min(parts) if isinstance(value, Min) else max(parts)

    def above_zero(self, value: GameValue) -> int | None:
        """The first tick at which the value can differ from zero; 0 if it does from the start."""
        if self.at_start(value) != 0:
            return 0
        if isinstance(value, Sum | Max | Log):
            # A part that differs already (and is cancelled, or below a log) must move first.
            settled = [part for part in value.values if self.at_start(part) == 0]
            moving = [part for part in value.values if self.at_start(part) != 0]
            return _first([*map(self.above_zero, settled), *map(self.changes, moving)])
        if isinstance(value, Ratio | Min):
            ticks = [self.above_zero(part) for part in value.values]
            known = [tick for tick in ticks if tick is not None]
            return max(known, default=None) if len(known) == len(ticks) else None
        return self.changes(value)

    def changes(self, value: GameValue) -> int | None:
        """The first tick at which the value can differ from what it was at the start."""
        if isinstance(value, Constant):
            return None
        if isinstance(value, Inventory):
            return self.gains(value.resource, 1)
        if isinstance(value, Stat):
            return self.moves(value.name)
        if isinstance(value, Sum | Ratio | Min | Max | Log):
            return _first([self.changes(part) for part in value.values])
        return 1  # a value this page does not know: nothing is promised, nothing is ruled out

    def moves(self, name: str) -> int | None:
        """The first tick at which a statistic can rise."""
        head, _, tail = name.rpartition(".")
        if head in self.resources and tail in ("get", "gained", "amount"):
            return self.gains(head, 1)
        if head in self.resources and tail in ("put", "lost"):
            return self.hands_over(head, spent=tail == "lost")
        if name == "reward":
            return self.reward
        if name == "cell.visited" or name.startswith("action.move_"):
            return 1 if self.game.moves else None
        attack = self.game.attack
        if name in ("attack.hit", "attack.received", "frozen.ticks") or (
            name.startswith("action.attack_") and tail == "success"
        ):
            return first_attack(self.game, self.gains)
        if name == "attack.blocked":
            if attack is None or not attack.armor:
                return None
            armor = 0 if attack.armor in self.start else self.gains(attack.armor, 1)
            ticks = [first_attack(self.game, self.gains), armor]
            known = [tick for tick in ticks if tick is not None]
            return max(known) if len(known) == len(ticks) else None
        return 1

    def hands_over(self, resource: str, *, spent: bool) -> int | None:
        """When an agent can first put a resource into a machine, or (spent) lose it in any way."""
        game = self.game
        useful = bool(Plant.of(game).consumers(resource))
        if spent:
            useful |= game.move_cost.get(resource, 0) > 0 or game.attack is not None
        if not useful:
            return None
        gained = 0 if resource in self.start else self.gains(resource, 1)
        return None if gained is None else gained + 1


def _first(ticks: list[int | None]) -> int | None:
    return min((tick for tick in ticks if tick is not None), default=None)


def describe(term: RewardTerm) -> str:
    """A reward term in words: `0.1 x ore, up to 1`."""
    cap = "" if term.cap >= NO_CAP else f", up to {term.cap:g}"
    mode = "" if term.mode == "change" else f" {term.mode}"
    return f"{term.weight:g} x {_value_text(term.value)}{mode}{cap}"


def _value_text(value: GameValue) -> str:
    if isinstance(value, Inventory):
        return value.resource
    if isinstance(value, Stat):
        return value.name
    if isinstance(value, Constant):
        return f"{value.value:g}"
    return f"{value.kind}({', '.join(_value_text(part) for part in getattr(value, 'values', ()))})"
