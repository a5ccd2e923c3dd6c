"""Explain: what a game means for whoever has to learn it: what makes what, when it first pays, and how much at most.

Pure functions of a Game: `explain` gives a record, `text` a page of it in 80 columns of plain ASCII. Called by the
command line. The clocks are in `grid.timeline`, the bounds in `grid.ceiling`; nothing here steps a world.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gridmill.env import make
from gridmill.grid import Constant, Game, GameValue, Inventory, Log, Max, Min, RewardTerm, Stat, Sum
from gridmill.grid.ceiling import Ceiling, Stage, ceiling
from gridmill.grid.first_pay import EPISODES, NO_CAP, Gains, describe, first_attack, first_rewards, min_first_episode
from gridmill.grid.plant import Plant
from gridmill.grid.timeline import Schedule, all_buildings, one_of_each

__all__ = ["Explanation", "Machine", "Product", "Reward", "explain", "min_first_episode", "text"]

WIDTH = 80


@dataclass(frozen=True)
class Machine:
    """A converter and how many of it stand on the map."""

    name: str
    count: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    cooldown: int
    waiting: int  # outputs there at the start
    max_conversions: int


@dataclass(frozen=True)
class Product:
    """A resource something makes; ticks are None where it cannot be had."""

    name: str
    chain: str
    one_ready: int | None  # one of each building, a scripted agent that hands over at once
    one_paid: int | None
    sequence: int | None  # every conversion after the one before, no hand-overs
    all_ready: int | None  # all buildings and enough agents
    all_paid: int | None
    ceiling: Ceiling


@dataclass(frozen=True)
class Reward:
    """A reward term: the first tick it pays in the three ways, and the most it gives one agent in an episode."""

    text: str
    one_paid: int | None
    sequence: int | None
    all_paid: int | None
    ceiling: float | None  # None: no bound is known


@dataclass(frozen=True)
class Explanation:
    """Everything `gridmill explain` says about a game."""

    name: str
    fingerprint: str
    num_agents: int
    max_steps: int
    resources: Mapping[str, tuple[str, ...]]  # resource -> machines on the map that make it
    machines: tuple[Machine, ...]
    products: tuple[Product, ...]
    rewards: tuple[Reward, ...]
    reward_ceiling: float | None
    min_first_episode: int
    num_tokens: int
    worst_tokens: int
    window: str
    actions: tuple[str, ...]
    warnings: tuple[str, ...]


def explain(game: Game, first_episode: int | None = None) -> Explanation:
    """What a game means for learning. `first_episode` is the `min_first_episode` to be judged, default the game's own.

    Ticks beyond ten episodes count as never.
    """
    if not isinstance(game, Game):
        raise TypeError(f"game: expected a Game, got {type(game).__name__}")
    plant = Plant.of(game)
    # make() warns of a token budget that may not do; here that is one of our own warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with make(game, num_worlds=1) as env:
            worst, actions = int(env._batch.worst_tokens(0)), tuple(env.action_names)
    products = tuple(_product(plant, game, name) for name in _ordered(game, plant))
    rewards = _rewards(plant, game, products)
    known = [reward.ceiling for reward in rewards]
    seen = game.observation
    said = Explanation(
        name=game.name,
        fingerprint=game.fingerprint(),
        num_agents=game.num_agents,
        max_steps=game.max_steps,
        resources={r: tuple(plant.makers(r)) for r in game.resources},
        machines=_machines(game, plant),
        products=products,
        rewards=rewards,
        reward_ceiling=None if None in known else sum(amount for amount in known if amount is not None),
        min_first_episode=min_first_episode(game) if first_episode is None else first_episode,
        num_tokens=seen.num_tokens,
        worst_tokens=worst,
        window=f"{seen.height}x{seen.width} {seen.window}",
        actions=actions,
        warnings=(),
    )
    return replace(said, warnings=tuple(_warnings(game, plant, said)))


# ---- what is in the record


def _ordered(game: Game, plant: Plant) -> list[str]:
    """Products with what they are made of first."""
    made = [r for r in game.resources if plant.makers(r)]
    return sorted(made, key=lambda r: plant.costs.get(r, math.inf))


def _machines(game: Game, plant: Plant) -> tuple[Machine, ...]:
    found = []
    for name, kind in game.objects.items():
        if kind.converter is not None:
            c = kind.converter
            waiting = sum(plant.waiting(name, r) for r in c.outputs) if name in plant.machines else 0
            count = plant.counts.get(name, 0)
            found.append(Machine(name, count, c.inputs, c.outputs, c.cooldown, waiting, c.max_conversions))
    return tuple(found)


def _product(plant: Plant, game: Game, name: str) -> Product:
    horizon = EPISODES * game.max_steps
    plan = plant.plan(name)
    chain = " > ".join(f"{runs} {machine}" for machine, runs in reversed(list(plan.runs.items()) if plan else []))
    one, every = one_of_each(plant, name, 1, horizon), all_buildings(plant, name, 1, horizon)
    return Product(
        name=name,
        chain=chain or ("there from the start" if plan else "its inputs cannot be had"),
        one_ready=one.ready if one else None,
        one_paid=one.paid if one else None,
        sequence=plan.sequence if plan else None,
        all_ready=every.ready if every else None,
        all_paid=every.paid if every else None,
        ceiling=ceiling(plant, name, game.max_steps),
    )


def _gains(plant: Plant, game: Game) -> tuple[Gains, Gains, Gains]:
    """When an agent has gained so much of a resource: one of each building, in sequence, all buildings."""
    horizon = EPISODES * game.max_steps

    def paid(found: Schedule | None) -> int | None:
        return None if found is None else found.paid

    def sequence(resource: str, amount: int) -> int | None:
        plan = plant.plan(resource, amount)
        return None if plan is None else plan.sequence

    return (
        lambda r, n: paid(one_of_each(plant, r, n, horizon)),
        sequence,
        lambda r, n: paid(all_buildings(plant, r, n, horizon)),
    )


def _rewards(plant: Plant, game: Game, products: Sequence[Product]) -> tuple[Reward, ...]:
    ways = [first_rewards(game, gains) for gains in _gains(plant, game)]
    made = {product.name: product.ceiling.per_agent for product in products}
    found = []
    for term, one, sequence, every in zip(game.rewards, *ways, strict=True):
        most = _most_paid(plant, game, term, every, made)
        found.append(Reward(describe(term), one, sequence, every, most))
    return tuple(found)


def _most_paid(
    plant: Plant, game: Game, term: RewardTerm, first: int | None, made: Mapping[str, float]
) -> float | None:
    """The most a term gives one agent in an episode, on average over the agents; loot is not counted."""
    if first is None or first > game.max_steps or term.weight <= 0:
        return 0.0
    most = _most(plant, game, term.value, made, held=term.mode != "gained")
    if most is None and term.cap >= NO_CAP:
        return None
    most = term.cap if most is None else min(term.cap, most)
    if term.mode == "per_tick":
        return term.weight * most * (game.max_steps - first + 1)
    start = 0.0
    if term.mode == "change" and isinstance(term.value, Inventory):
        start = min(term.cap, plant.start.get(term.value.resource, 0))
    return term.weight * max(0.0, most - start)


def _most(plant: Plant, game: Game, value: GameValue, made: Mapping[str, float], held: bool) -> float | None:
    """The most a game value can come to for one agent; `held`: what does not fit does not count."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Inventory):
        gained = made.get(value.resource, 0.0)
        return min(plant.most(value.resource), gained + plant.start.get(value.resource, 0)) if held else gained
    if isinstance(value, Stat):
        head, _, tail = value.name.rpartition(".")
        if head in game.resources and tail in ("get", "gained", "amount"):
            return made.get(head, 0.0)
        if value.name in ("cell.visited", "frozen.ticks") or head.startswith("action"):
            return float(game.max_steps)
        return None
    if not isinstance(value, Sum | Min | Max | Log):
        return None
    parts = [_most(plant, game, part, made, held) for part in value.values]
    known = [part for part in parts if part is not None]
    if isinstance(value, Min):
        return min(known, default=None)
    if len(known) < len(parts) or not known:
        return None
    if isinstance(value, Log):
        return math.log1p(max(0.0, known[0]))
    return sum(known) if isinstance(value, Sum) else max(known)


# ---- warnings


def _warnings(game: Game, plant: Plant, said: Explanation) -> Iterable[str]:
    if not game.rewards:
        yield "no reward terms: every reward is 0"
    for reward in said.rewards:
        if reward.all_paid is None:
            yield f"reward `{reward.text}` can never pay"
        elif reward.all_paid > game.max_steps:
            yield (
                f"reward `{reward.text}` is unreachable within max_steps = {game.max_steps}: "
                f"it first pays at tick {reward.all_paid}"
            )
        elif reward.one_paid is not None and reward.one_paid > said.min_first_episode:
            yield (
                f"a first episode of {said.min_first_episode} ticks (desync_episodes) ends before reward "
                f"`{reward.text}` first pays with one of each building, at tick {reward.one_paid}"
            )
    if said.worst_tokens > said.num_tokens:
        yield (
            f"token overflow possible: an agent could see {said.worst_tokens} tokens at worst, there is room for "
            f"{said.num_tokens}; the nearest are kept"
            if game.observation.overflow != "error"
            else f"token overflow possible: an agent could see {said.worst_tokens} tokens at worst, there is room for "
            f"{said.num_tokens}, and observation.overflow = 'error' would stop the run"
        )
    none = [r for r in game.resources if r not in plant.costs and not plant.makers(r)]
    if none:
        yield f"nothing makes {', '.join(none)}"
    for machine in said.machines:
        if machine.count == 0:
            yield f"{machine.name} is declared but does not stand on the map"
            continue
        lacking = [r for r in machine.inputs if r not in plant.costs and not plant.stored(machine.name, r)]
        if lacking:
            yield f"{machine.name} can never run: its inputs cannot be had ({', '.join(lacking)})"
    if game.attack is not None and first_attack(game, _gains(plant, game)[0]) is None:
        cost = ", ".join(f"{n} {r}" for r, n in game.attack.cost.items())
        yield f"attack can never succeed: it costs {cost}" if game.num_agents > 1 else "attack has nobody to hit"


# ---- the page


def text(said: Explanation) -> str:
    """An explanation as lines of at most 80 characters."""
    lines = _hang(f"{said.name}: ", f"{said.num_agents} agents, {said.max_steps} ticks, {said.fingerprint}")
    if said.resources:
        lines += ["", "resources"]
        for resource, makers in said.resources.items():
            made = "; ".join(_machine_text(m) for m in said.machines if m.name in makers)
            lines += _hang(f"  {resource}: ", made or "nothing makes it")
    if said.products:
        lines += ["", "chains, for the first unit with one of each building"]
        for product in said.products:
            lines += _hang(f"  {product.name}: ", product.chain)
        lines += ["", *_first_ticks(said), "", *_ceilings(said)]
    if said.rewards:
        lines += ["", *_reward_lines(said)]
    lines += ["", f"tokens: at worst {said.worst_tokens}, room for {said.num_tokens}, window {said.window}"]
    lines += _hang(f"actions ({len(said.actions)}): ", ", ".join(said.actions))
    lines.append(f"first episode with desync_episodes: at least {said.min_first_episode} ticks")
    if said.warnings:
        lines.append("")
    for warning in said.warnings:
        lines += _hang("warning: ", warning)
    return "\n".join(lines)


def _machine_text(machine: Machine) -> str:
    inputs = " + ".join(f"{n} {r}" for r, n in machine.inputs.items())
    outputs = " + ".join(f"{n} {r}" for r, n in machine.outputs.items())
    made = f"{inputs} -> {outputs}" if inputs else outputs
    limit = f", {machine.max_conversions} times" if machine.max_conversions >= 0 else ""
    there = f", {machine.waiting} there at the start" if machine.waiting else ""
    return f"{machine.name} ({machine.count} on the map): {made} in {machine.cooldown} ticks{limit}{there}"


def _first_ticks(said: Explanation) -> list[str]:
    rows: list[Sequence[str]] = [("first tick of each", "ready", "paid", "sequence", "all ready", "all paid")]
    for p in said.products:
        ticks = (p.one_ready, p.one_paid, p.sequence, p.all_ready, p.all_paid)
        rows.append((p.name, *("never" if tick is None else str(tick) for tick in ticks)))
    note = (
        "ready, paid: one of each building and an agent that hands over at once; sequence: one conversion after the "
        "other, no hand-overs; all: every building and enough agents; walking not counted"
    )
    return [*_table(rows), *_hang("  (", note + ")")]


def _ceilings(said: Explanation) -> list[str]:
    lines = [f"ceiling per agent in {said.max_steps} ticks, walking not counted"]
    for product in said.products:
        limit, *others = product.ceiling.stages or (None,)
        if limit is None:
            continue
        found = f"{product.ceiling.per_agent:.1f}, bottleneck {limit.machine}: {_stage_text(limit)}"
        for stage in others[:1]:
            found += f"; {stage.resource} alone would allow {stage.allows / said.num_agents:.1f}"
        lines += _hang(f"  {product.name}: ", found)
    return lines


def _stage_text(stage: Stage) -> str:
    return (
        f"{stage.machines} x {stage.runs} {stage.resource}, of use between tick {stage.first} and {stage.last}, "
        f"one per {stage.cooldown} ticks"
    )


def _reward_lines(said: Explanation) -> list[str]:
    rows: list[Sequence[str]] = [("first tick of each reward", "paid", "sequence", "all paid", "most per agent")]
    for r in said.rewards:
        ticks = ["never" if tick is None else str(tick) for tick in (r.one_paid, r.sequence, r.all_paid)]
        rows.append((r.text, *ticks, "unknown" if r.ceiling is None else f"{r.ceiling:.1f}"))
    if said.reward_ceiling is not None and len(said.rewards) > 1:
        rows.append(("all rewards, each at its own best", "", "", "", f"{said.reward_ceiling:.1f}"))
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, the first to the left and cut so that the line fits."""
    rows = [(_ascii(row[0]), *row[1:]) for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    widths[0] = min(widths[0], WIDTH - 2 - sum(width + 2 for width in widths[1:]))
    lines = []
    for index, (first, *others) in enumerate(rows):
        name = first if len(first) <= widths[0] else first[: widths[0] - 3] + "..."
        cells = "".join(cell.rjust(width + 2) for cell, width in zip(others, widths[1:], strict=True))
        lines.append((("" if index == 0 else "  ") + name).ljust(widths[0] + 2) + cells)
    return [line.rstrip() for line in lines]


def _hang(start: str, words: str) -> list[str]:
    """A line that goes on under itself."""
    indent = " " * min(len(start), 16)
    return textwrap.wrap(_ascii(start + words), WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _ascii(words: str) -> str:
    return words.encode("ascii", "backslashreplace").decode()
