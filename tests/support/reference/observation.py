"""Observations in plain Python, from what `env.inspect` shows and what a caller can see for itself.

Written from the rules alone, so that it checks the native reference too. A `Follower` watches one world of a
one-game env: it keeps the last actions, rewards and counts that tokens depend on, and `expected()` is the world's
rows of `obs`. Slow and obvious; used by tests only. It does not know the state an ended episode ended in, and it can
follow only games in which nobody shoots, swaps, pays for a move, feeds a machine or is given something by a rule
without a bump (`games(quiet=True)`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from random_games import DIRECTIONS, agents_of

from gridmill import Config, Env, Game
from gridmill.grid import Add, Area, ClearTag, Freeze, Give, Limit, Recipe, SetTag, Transfer

EMPTY, GLOBAL = 0xFF, 0xFE
STEPS = dict(zip(DIRECTIONS, [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)], strict=True))
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


def parts(item: Any) -> Iterator[Config]:
    """Every setting inside a setting, itself included."""
    if isinstance(item, Config):
        yield item
        for name in type(item).model_fields:
            yield from parts(getattr(item, name))
    elif isinstance(item, Mapping):
        for value in item.values():
            yield from parts(value)
    elif isinstance(item, tuple):
        for value in item:
            yield from parts(value)


def feature_names(game: Game) -> list[str]:
    """The feature table of a batch of this one game: names in sorted order, the id is the place."""
    names = {"episode_progress", "last_action", "last_reward", "tag", "agent:group", "agent:id"}
    if game.observation.local_position:
        names |= {"lp:north", "lp:south", "lp:west", "lp:east"}
    if len(game.vibes) > 1:
        names.add("vibe")
    freezes = game.attack is not None or any(isinstance(part, Freeze) for part in parts(game))
    names |= {"agent:frozen"} if freezes else set()
    names |= {"agent:facing"} if game.attack or game.swap else set()
    names |= {"collective"} if game.collectives else set()
    for kind in game.objects.values():
        names |= {"converting"} if kind.converter or (kind.assembler and kind.assembler.cooldown) else set()
        names |= {"uses"} if kind.assembler and kind.assembler.max_uses >= 0 else set()
    for resource in game.resources:
        names.add(f"inv:{resource}")
        if most_held(game, resource) > 255:
            names.add(f"inv:{resource}:p1")
    for shown in game.observation.values:
        names |= {shown.name} if shown.digits == 1 else {shown.name, f"{shown.name}:p1"}
    return sorted(names)


def gives(item: Any, resource: str, *whom: str) -> bool:
    """True where some rule, area or recipe inside may bring a resource to one of these."""
    for part in parts(item):
        if isinstance(part, Give) and part.who in whom and part.amounts.get(resource):
            return True
        if isinstance(part, Transfer) and part.to in whom and part.amounts.get(resource):
            return True
        if isinstance(part, Add) and part.who in whom and part.resource == resource:
            return True
        if isinstance(part, Area) and any(c.get(resource) for c in (part.changes, part.enter, part.exit)):
            return True
        if isinstance(part, Recipe) and part.outputs.get(resource):
            return True
    return False


def limit_of(limits: tuple[Limit, ...], resource: str) -> int:
    for limit in limits:
        if resource in limit.resources:
            return limit.max if limit.bonus else min(limit.base, limit.max)
    return 65_535


def most_held(game: Game, resource: str) -> int:
    """The most of a resource that anything could come to hold: up to a limit if there is more to get."""
    start = game.agent.inventory.get(resource, 0)
    more = game.attack is not None and start > 0  # the others'
    more = more or gives(game, resource, "actor", "target")
    amounts = [start]
    anywhere = gives(game.events, resource, "target")
    anywhere = anywhere or gives((game.on_tag_added, game.on_tag_removed), resource, "actor", "target")
    for kind in game.objects.values():
        there, machine = kind.inventory.get(resource, 0), kind.converter
        amounts.append(there)
        own = gives(kind.on_use, resource, "target") or gives(kind.on_tick, resource, "actor", "target")
        if anywhere or own or gives(kind.areas, resource, "actor"):
            amounts.append(limit_of(kind.limits, resource))
        if machine is None:
            continue
        amounts.append(machine.inputs.get(resource, 0) * machine.max_input)
        if made := machine.outputs.get(resource, 0):
            more = True
            amounts += [there + machine.max_output - 1 + made, there + machine.initial_resource_count * made]
    if more:
        amounts.append(limit_of(game.agent.limits, resource))
    return max(amounts)


def tag_names(game: Game) -> list[str]:
    names = {"type:agent", *game.agent.tags}
    for name, kind in game.objects.items():
        names |= {f"type:{kind.counts_as or name}", *kind.tags}
    return sorted(names | {part.tag for part in parts(game) if isinstance(part, SetTag | ClearTag)})


def action_names(game: Game) -> list[str]:
    vibes = game.vibes if len(game.vibes) > 1 else ()
    names = ["noop", *(f"move_{d}" for d in DIRECTIONS[: game.moves])]
    if game.attack and game.attack.aim != "nearest":
        names += [f"attack_{k}" for k in range(9)]
    if game.attack and game.attack.aim != "cells":
        names.append("attack_nearest")
    return [*names, *(f"change_vibe_{v}" for v in vibes), *(["swap"] if game.swap else [])]


def round_half_away(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def reward_token(reward: float, scale: float) -> int:
    return round_half_away(max(-127.0, min(127.0, reward * scale))) + 128


def digits(feature: str, amount: int) -> list[tuple[str, int]]:
    return [(f, v) for f, v in ((feature, amount % 256), (f"{feature}:p1", amount // 256)) if v]


class Asker:
    """Game values for one agent, read from what an inspected world shows and what was counted."""

    def __init__(
        self, view: dict[str, Any], agent: dict[str, Any], stats: dict[str, float], held: dict[str, int]
    ) -> None:
        self.view, self.agent, self.stats, self.held = view, agent, stats, held

    def team(self, name: str) -> str | None:
        return name or self.agent["collective"]

    def store(self, name: str) -> dict[str, int]:
        team = self.team(name)
        return {} if team is None else self.view["collectives"][team]["inventory"]

    def counted(self, tag: str, team: str, resource: str) -> int:
        found = [o for o in self.view["objects"] if tag in o["tags"] and (not team or o["collective"] == team)]
        return sum(o["inventory"].get(resource, 0) for o in found) if resource else len(found)

    def team_stat(self, name: str, team: str | None) -> float:
        """`aligned.agent`, `aligned.agent.held` and `<resource>.amount` are all that random games ask for."""
        if team is None:
            return 0.0
        if name == "aligned.agent":
            return float(sum(a["collective"] == team for a in agents_of(self.view)))
        if name == "aligned.agent.held":
            return float(self.held.get(team, 0))
        return float(self.store(team).get(name.removesuffix(".amount"), 0))

    def evaluate(self, value: Any) -> float:
        if value.kind == "inventory":
            held = self.store(value.collective) if value.of == "collective" else self.agent["inventory"]
            return float(held.get(value.resource, 0))
        if value.kind == "stat" and value.of == "collective":
            return self.team_stat(value.name, self.team(value.collective))
        if value.kind == "stat":
            return float(self.stats.get(value.name, 0))
        if value.kind == "count":
            return float(self.counted(value.tag, value.collective, value.resource))
        if value.kind == "constant":
            return float(value.value)
        parts = [self.evaluate(v) for v in value.values]
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
        self.done_at: dict[tuple[int, int], int] = {}  # machines that run, by cell
        self.started: dict[tuple[int, int], int] = {}
        self.uses: dict[tuple[int, int], int] = {}  # of assemblers, by cell
        self.held: dict[str, int] = {}  # members of each team, summed over ticks
        self.advance_machines()

    def advance_machines(self) -> None:
        """A machine that takes nothing starts whenever it is idle, has room and may; so its clock is known."""
        tick = self.view["tick"]
        for thing in self.view["objects"]:
            cell = (thing["row"], thing["column"])
            if self.done_at.get(cell) == tick:
                del self.done_at[cell]
            machine = None if thing["agent"] is not None else self.game.objects[thing["type"]].converter
            if machine is None:
                continue
            waiting = sum(thing["inventory"].get(name, 0) for name in machine.outputs)
            allowed = machine.max_conversions < 0 or self.started.get(cell, 0) < machine.max_conversions
            if cell not in self.done_at and waiting < machine.max_output and allowed:
                self.done_at[cell] = tick + machine.cooldown
                self.started[cell] = self.started.get(cell, 0) + 1

    def after_step(self, actions: np.ndarray) -> None:
        """Call after every step, with the actions given to it."""
        if (self.env.terminals | self.env.truncations)[self.rows].any():
            self.begin_episode()
            return
        self.last_reward = [reward_token(r, self.game.observation.reward_scale) for r in self.paid]
        for stats, paid in zip(self.stats, self.paid, strict=True):
            stats["reward"] = stats.get("reward", 0.0) + paid
        before, self.view = self.view, self.env.inspect(self.world)
        for i, (old, new) in enumerate(zip(agents_of(before), agents_of(self.view), strict=True)):
            action = int(actions[self.rows][i])
            self.count(i, action, old, new)
            if 0 < action <= self.game.moves and old["inventory"] != new["inventory"]:
                self.note_use(before, old, self.actions[action].removeprefix("move_"))
        self.advance_machines()
        for agent in agents_of(self.view):
            if agent["collective"] is not None:
                self.held[agent["collective"]] = self.held.get(agent["collective"], 0) + 1
        self.paid = [float(r) for r in self.env.rewards[self.rows]]

    def count(self, agent: int, action: int, old: dict[str, Any], new: dict[str, Any]) -> None:
        stats = self.stats[agent]
        for name in self.game.resources:
            taken = new["inventory"].get(name, 0) - old["inventory"].get(name, 0)
            for flow in ("get", "gained"):
                stats[f"{name}.{flow}"] = stats.get(f"{name}.{flow}", 0) + taken
        if not 0 <= action < len(self.actions):
            stats["action.invalid"] = stats.get("action.invalid", 0) + 1
            self.last_action[agent] = 0
            return
        name = self.actions[action]
        worked = not name.startswith("move_") or any(old[k] != new[k] for k in ("row", "column", "inventory"))
        key = f"action.{name}.{'success' if worked else 'failed'}"
        stats[key] = stats.get(key, 0) + 1
        self.last_action[agent] = action if worked else 0
        self.visited[agent].add((new["row"], new["column"]))
        stats["cell.visited"] = len(self.visited[agent])

    def note_use(self, before: dict[str, Any], agent: dict[str, Any], direction: str) -> None:
        """Somebody took something out of what is in that direction; an assembler rests then, and has one use less."""
        cell = (agent["row"] + STEPS[direction][0], agent["column"] + STEPS[direction][1])
        for thing in before["objects"]:
            if (thing["row"], thing["column"]) == cell and thing["agent"] is None:
                assembler = self.game.objects[thing["type"]].assembler
                if assembler is not None:
                    self.uses[cell] = self.uses.get(cell, 0) + 1
                    if assembler.cooldown:
                        self.done_at[cell] = self.view["tick"] + assembler.cooldown

    def uses_left(self, thing: dict[str, Any]) -> int:
        assembler = None if thing["agent"] is not None else self.game.objects[thing["type"]].assembler
        if assembler is None:
            return 0
        return max(0, assembler.max_uses - self.uses.get((thing["row"], thing["column"]), 0))

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
            value = Asker(self.view, agent, self.stats[i], self.held).evaluate(shown.value)
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
            if self.game.attack or self.game.swap:
                named.append(("agent:facing", ["north", "south", "west", "east"].index(thing["facing"])))
        elif (done := self.done_at.get((thing["row"], thing["column"]))) is not None:
            named.append(("converting", min(255, done - self.view["tick"])))
        if left := self.uses_left(thing):
            named.append(("uses", min(255, left)))
        if thing["collective"] is not None:
            named.append(("collective", sorted(self.game.collectives).index(thing["collective"])))
        return sorted((self.features[name], value) for name, value in named)
