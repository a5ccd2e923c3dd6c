"""The record: everything there is to say about a game, as data; `page` makes text of it, `faults` the warnings.

It asks the other files of this folder; only the ceilings of rewards are its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gridmill.env.env import batch_options
from gridmill.grid.analysis import explain_rulebook as rulebook
from gridmill.grid.analysis import explain_supplies as supplies
from gridmill.grid.analysis.ceiling import Ceiling, ceiling
from gridmill.grid.analysis.converter_schedule import all_buildings, one_of_each
from gridmill.grid.analysis.converters import MOST, Plant
from gridmill.grid.analysis.earliest import EPISODES, Outlook
from gridmill.grid.analysis.earliest_change import Certainty
from gridmill.grid.analysis.earliest_reward import certainty, first_rewards, leaves, min_first_episode
from gridmill.grid.analysis.explain_faults import faults
from gridmill.grid.analysis.productions import AGENT
from gridmill.grid.analysis.rule_text import NO_CAP, describe
from gridmill.grid.parts import RewardTerm
from gridmill.grid.values import Constant, GameValue, Index, Inventory, Log, Max, Min, Ratio, Stat, Sum

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv
    from gridmill.grid.game import Game


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
    """A resource only machines make; ticks are None where it cannot be had."""

    name: str
    chain: str
    one_ready: int | None  # one of each building, a scripted agent that hands over at once
    one_paid: int | None
    sequence: int | None  # every conversion after the one before, no hand-overs
    all_ready: int | None  # all buildings and enough agents
    all_paid: int | None
    ceiling: Ceiling


@dataclass(frozen=True)
class Gathering:
    """A resource that rules, areas, events or assemblers bring: the first ticks are bounds; None: it cannot be had."""

    name: str
    acts: Mapping[str, int]  # what agents must do for the first unit, whatever else they do
    alone: int | None
    together: int | None


@dataclass(frozen=True)
class Reward:
    """A reward term: the first tick it pays in the three ways, and the most it gives one agent in an episode."""

    text: str
    certainty: Certainty  # of the ticks
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
    sources: Mapping[str, tuple[str, ...]]  # resource -> what else provides it, in words
    uses: Mapping[str, tuple[str, ...]]  # resource -> what it is spent on, in words
    counts: Mapping[str, int]  # type that does something -> how many of it stand on the map drawn first
    bumps: Mapping[str, tuple[str, ...]]  # type -> what a bump into it does
    by_itself: tuple[str, ...]
    events: tuple[str, ...]
    collectives: tuple[str, ...]
    machines: tuple[Machine, ...]
    products: tuple[Product, ...]
    gatherings: tuple[Gathering, ...]
    rewards: tuple[Reward, ...]
    reward_ceiling: float | None
    min_first_episode: int
    num_tokens: int
    worst_tokens: int
    window: str
    actions: tuple[str, ...]
    warnings: tuple[str, ...]


def explain(game: Game, first_episode: int | None = None, env: GridEnv | None = None) -> Explanation:
    """What a game means for learning. `first_episode` is the `min_first_episode` to be judged, default the game's own.

    Ticks beyond ten episodes count as never. An env that plays the game saves compiling it again; then nothing is said
    of what stands on its first map.
    """
    outlook = Outlook(game)
    plant, deeds = outlook.plant, outlook.series.deeds
    if env is None:
        worst, actions, standing = _looked_at(game)
    else:
        worst, actions, standing = env.worst_tokens(0), tuple(env.action_names), Counter[str]()
    products = tuple(_product(plant, game, name) for name in _ordered(game, plant) if name not in outlook.ruled)
    rewards = _rewards(outlook, products)
    known = [reward.ceiling for reward in rewards]
    bumps = rulebook.bumps(game)
    said = Explanation(
        name=game.name,
        fingerprint=game.fingerprint(),
        num_agents=game.num_agents,
        max_steps=game.max_steps,
        resources={r: tuple(plant.makers(r)) for r in game.resources},
        sources=supplies.sources(game, deeds, plant),
        uses=supplies.uses(game, deeds, plant),
        counts={name: standing[name] for name in bumps if name != AGENT},
        bumps=bumps,
        by_itself=rulebook.by_itself(game),
        events=rulebook.events(game),
        collectives=rulebook.collectives(game),
        machines=_machines(game, plant),
        products=products,
        gatherings=tuple(_gathering(outlook, r) for r in game.resources if r in outlook.ruled),
        rewards=rewards,
        reward_ceiling=None if None in known else sum(amount for amount in known if amount is not None),
        min_first_episode=min_first_episode(game) if first_episode is None else first_episode,
        num_tokens=game.observation.num_tokens,
        worst_tokens=worst,
        window=f"{game.observation.height}x{game.observation.width} {game.observation.window}",
        actions=actions,
        warnings=(),
    )
    return replace(said, warnings=tuple(faults(outlook, said)))


# ---- what is in the record


def _looked_at(game: Game) -> tuple[int, tuple[str, ...], Counter[str]]:
    """The most tokens an agent could see, the actions, and how many of each type stand on the first map."""
    # A token budget that may not do must not stop us: it is one of our own warnings.
    tolerant = game.replace("observation.overflow", "drop")
    with game.env_class()([tolerant], **batch_options(num_worlds=1)) as env:
        env.reset()
        standing = Counter(str(thing["type"]) for thing in env.inspect(0)["objects"])
        return env.worst_tokens(0), tuple(env.action_names), standing


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


def _gathering(outlook: Outlook, resource: str) -> Gathering:
    found = outlook.series.gained(AGENT, resource)
    acts = dict(found.acts) if found is not None else {}
    return Gathering(resource, acts, outlook.gains("one", resource, 1), outlook.gains("every", resource, 1))


def _rewards(outlook: Outlook, products: Sequence[Product]) -> tuple[Reward, ...]:
    ones, sequences, everys = (first_rewards(outlook, way) for way in ("one", "sequence", "every"))
    made = {product.name: product.ceiling.per_agent for product in products}
    found = []
    for term, one, sequence, every in zip(outlook.game.rewards, ones, sequences, everys, strict=True):
        most = _most_paid(outlook, term, every, made)
        found.append(Reward(describe(term), certainty(outlook, term), one, sequence, every, most))
    return tuple(found)


def _most_paid(outlook: Outlook, term: RewardTerm, first: int | None, made: Mapping[str, float]) -> float | None:
    """The most a term gives one agent in an episode, on average over the agents; loot is not counted."""
    game = outlook.game
    if first is None or first > game.max_steps or term.weight == 0:
        return 0.0
    if term.weight < 0:  # a value that starts at 0 and is never below can only cost
        below = any(isinstance(leaf, Constant) and leaf.value < 0 for leaf in leaves(term.value))
        return None if below or certainty(outlook, term) == "not known" else 0.0
    most = _most(outlook, term.value, made, held=term.mode != "gained")
    if most is None and term.cap >= NO_CAP:
        return None
    most = term.cap if most is None else min(term.cap, most)
    if term.mode == "per_tick":
        return term.weight * most * (game.max_steps - first + 1)
    start = 0.0
    if term.mode == "change" and isinstance(term.value, Inventory) and term.value.of == "actor":
        start = min(term.cap, outlook.plant.start.get(term.value.resource, 0))
    return term.weight * max(0.0, most - start)


def _most(outlook: Outlook, value: GameValue, made: Mapping[str, float], held: bool) -> float | None:
    """The most a game value can come to for one agent; `held`: what does not fit does not count."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Inventory):
        return _most_held(outlook, value, made, held)
    if isinstance(value, Stat):
        head, _, tail = value.name.rpartition(".")
        if value.of == "agent" and head in outlook.game.resources and tail in ("get", "gained", "amount"):
            return None if head in outlook.ruled else made.get(head, 0.0)
        if value.name in ("cell.visited", "frozen.ticks") or head.startswith("action"):
            return float(outlook.game.max_steps)
        return None
    if isinstance(value, Ratio):
        top, by = _most(outlook, value.values[0], made, held), value.values[1]
        least = by.value if isinstance(by, Constant) else 1 if isinstance(by, Index) else 0
        return top / least if top is not None and least > 0 else None
    if not isinstance(value, Sum | Min | Max | Log):
        return None
    parts = [_most(outlook, part, made, held) for part in value.values]
    known = [part for part in parts if part is not None]
    if isinstance(value, Min):
        return min(known, default=None)
    if len(known) < len(parts) or not known:
        return None
    if isinstance(value, Log):
        return math.log1p(max(0.0, known[0]))
    return sum(known) if isinstance(value, Sum) else max(known)


def _most_held(outlook: Outlook, value: Inventory, made: Mapping[str, float], held: bool) -> float | None:
    plant, resource = outlook.plant, value.resource
    if value.of != "actor":
        return None
    start = plant.start.get(resource, 0)
    if resource in outlook.ruled:
        room = plant.most(resource)
        return float(max(room, start)) if held and room < MOST else None
    gained = made.get(resource, 0.0)
    return min(plant.most(resource), gained + start) if held else gained
