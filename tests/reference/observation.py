"""Observations in plain Python, from what `env.inspect` shows and what a caller can see for itself.

Written from the rules alone, so that it checks the native reference too. A `Follower` watches one world of a
one-game env: it keeps the last actions, rewards and counts that tokens depend on, and `expected()` is the world's
rows of `obs`. Slow and obvious; used by tests only. It does not know the state an ended episode ended in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from random_games import DIRECTIONS, agents_of

from gridmill import Env, Game

EMPTY, GLOBAL = 0xFF, 0xFE
Tokens = list[tuple[int, int, int]]


def window_cells(window: str, height: int, width: int) -> list[tuple[int, int]]:
    """Cells an agent sees, relative to it, in the order of observation."""
    radius = height // 2
    cells = []
    for row in range(-(height // 2), height // 2 + 1):
        for column in range(-(width // 2), width // 2 + 1):
            far = row * row + column * column
            rim = radius >= 2 and far == radius * radius + 1 and radius in (abs(row), abs(column))
            if window == "square" or far <= radius * radius or rim:
                cells.append((abs(row) + abs(column), row, column))
    return [(row, column) for _, row, column in sorted(cells)]


def feature_names(game: Game) -> list[str]:
    """The feature table of a batch of this one game: names in sorted order, the id is the place."""
    names = {"episode_progress", "last_action", "last_reward", "tag", "agent:group", "agent:id"}
    if game.observation.local_position:
        names |= {"lp:north", "lp:south", "lp:west", "lp:east"}
    if len(game.vibes) > 1:
        names.add("vibe")
    held = [game.agent.inventory, *(kind.inventory for kind in game.objects.values())]
    for resource in game.resources:
        names.add(f"inv:{resource}")
        if any(inventory.get(resource, 0) > 255 for inventory in held):
            names.add(f"inv:{resource}:p1")
    for shown in game.observation.values:
        names |= {shown.name} if shown.digits == 1 else {shown.name, f"{shown.name}:p1"}
    return sorted(names)


def tag_names(game: Game) -> list[str]:
    names = {"type:agent", *game.agent.tags}
    for name, kind in game.objects.items():
        names |= {f"type:{name}", *kind.tags}
    return sorted(names)


def action_names(game: Game) -> list[str]:
    vibes = game.vibes if len(game.vibes) > 1 else ()
    return ["noop", *(f"move_{d}" for d in DIRECTIONS[: game.moves]), *(f"change_vibe_{v}" for v in vibes)]


def round_half_away(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def reward_token(reward: float, scale: float) -> int:
    return round_half_away(max(-127.0, min(127.0, reward * scale))) + 128


def digits(feature: str, amount: int) -> list[tuple[str, int]]:
    return [(f, v) for f, v in ((feature, amount % 256), (f"{feature}:p1", amount // 256)) if v]


def evaluate(value: Any, inventory: dict[str, int], stats: dict[str, float]) -> float:
    """A game value for one agent."""
    if value.kind == "inventory":
        return float(inventory.get(value.resource, 0))
    if value.kind == "stat":
        return float(stats.get(value.name, 0))
    if value.kind == "constant":
        return float(value.value)
    parts = [evaluate(v, inventory, stats) for v in value.values]
    if value.kind == "sum":
        total = 0.0
        for part in parts:
            total += part
        return total
    if value.kind == "ratio":
        return parts[0] / parts[1] if parts[1] != 0 else 0.0
    if value.kind == "log":
        return math.log1p(max(0.0, parts[0]))
    return min(parts) if value.kind == "min" else max(parts)


class Follower:
    """What one world's agents should see, kept up to date with `after_step`."""

    def __init__(self, env: Env, world: int) -> None:
        self.env, self.world, self.game = env, world, env.games[0]
        self.features = {name: i for i, name in enumerate(feature_names(self.game))}
        self.tags = {name: i for i, name in enumerate(tag_names(self.game))}
        self.actions = action_names(self.game)
        o = self.game.observation
        self.cells = window_cells(o.window, o.height, o.width)
        self.rows = slice(world * env.num_agents, (world + 1) * env.num_agents)
        self.begin_episode()

    def begin_episode(self) -> None:
        self.view = self.env.inspect(self.world)
        agents = agents_of(self.view)
        self.spawns = [(a["row"], a["column"]) for a in agents]
        self.last_action = [0] * len(agents)
        self.paid = [0.0] * len(agents)  # in the tick before, so the first observation shows 128
        self.last_reward = [128] * len(agents)
        self.visited = [{spawn} for spawn in self.spawns]
        self.stats: list[dict[str, float]] = [{"cell.visited": 1.0} for _ in agents]

    def after_step(self, actions: np.ndarray) -> None:
        """Call after every step, with the actions given to it."""
        if (self.env.terminals | self.env.truncations)[self.rows].any():
            self.begin_episode()
            return
        self.last_reward = [reward_token(r, self.game.observation.reward_scale) for r in self.paid]
        for stats, paid in zip(self.stats, self.paid, strict=True):
            stats["reward"] = stats.get("reward", 0.0) + paid
        before, self.view = agents_of(self.view), self.env.inspect(self.world)
        for i, (old, new) in enumerate(zip(before, agents_of(self.view), strict=True)):
            self.count(i, int(actions[self.rows][i]), (old["row"], old["column"]), (new["row"], new["column"]))
        self.paid = [float(r) for r in self.env.rewards[self.rows]]

    def count(self, agent: int, action: int, old: tuple[int, int], new: tuple[int, int]) -> None:
        stats = self.stats[agent]
        if not 0 <= action < len(self.actions):
            stats["action.invalid"] = stats.get("action.invalid", 0) + 1
            self.last_action[agent] = 0
            return
        name = self.actions[action]
        worked = old != new if name.startswith("move_") else True
        key = f"action.{name}.{'success' if worked else 'failed'}"
        stats[key] = stats.get(key, 0) + 1
        self.last_action[agent] = action if worked else 0
        self.visited[agent].add(new)
        stats["cell.visited"] = len(self.visited[agent])

    def expected(self) -> np.ndarray:
        num_tokens = self.game.observation.num_tokens
        rows = np.full((self.env.num_agents, num_tokens, 3), EMPTY, np.uint8)
        there = {(o["row"], o["column"]): o for o in self.view["objects"]}
        for i, agent in enumerate(agents_of(self.view)):
            tokens = self.globals_of(i, agent) + self.seen_by(agent, there)
            for place, token in enumerate(tokens[:num_tokens]):
                rows[i, place] = token
        return rows

    def globals_of(self, i: int, agent: dict[str, Any]) -> Tokens:
        o = self.game.observation
        progress = min(255, 256 * self.view["tick"] // self.game.max_steps)
        named = [("episode_progress", progress), ("last_action", self.last_action[i])]
        named.append(("last_reward", self.last_reward[i]))
        if o.local_position:
            south = agent["row"] - self.spawns[i][0]
            east = agent["column"] - self.spawns[i][1]
            if south:
                named.append(("lp:south" if south > 0 else "lp:north", min(255, abs(south))))
            if east:
                named.append(("lp:east" if east > 0 else "lp:west", min(255, abs(east))))
        for shown in o.values:
            most = 255.0 if shown.digits == 1 else 65535.0
            value = evaluate(shown.value, agent["inventory"], self.stats[i])
            named += digits(shown.name, round_half_away(min(most, max(0.0, value))))
        return [(GLOBAL, self.features[name], value) for name, value in named]

    def seen_by(self, agent: dict[str, Any], there: dict[tuple[int, int], dict[str, Any]]) -> Tokens:
        o = self.game.observation
        tokens: Tokens = []
        for row, column in self.cells:
            thing = there.get((agent["row"] + row, agent["column"] + column))
            if thing is not None:
                location = (row + o.height // 2) << 4 | (column + o.width // 2)
                tokens += [(location, feature, value) for feature, value in self.tokens_of(thing)]
        return tokens

    def tokens_of(self, thing: dict[str, Any]) -> list[tuple[int, int]]:
        named = [("tag", self.tags[tag]) for tag in thing["tags"]]
        if thing["vibe"] and (vibe := self.game.vibes.index(thing["vibe"])):
            named.append(("vibe", vibe))
        for resource, amount in thing["inventory"].items():
            named += digits(f"inv:{resource}", amount)
        if thing["agent"] is not None:
            named += [("agent:group", thing["group"]), ("agent:id", thing["agent"] % 256)]
        return sorted((self.features[name], value) for name, value in named)
