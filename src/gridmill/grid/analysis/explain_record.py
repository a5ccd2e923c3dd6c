"""The record: everything there is to say about a game, as data; `explain_page` makes text of it.

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
from gridmill.grid.analysis.converters import Converters
from gridmill.grid.analysis.earliest import EPISODES, Earliest
from gridmill.grid.analysis.earliest_change import Certainty
from gridmill.grid.analysis.earliest_reward import certainty, first_rewards, leaves, min_first_episode
from gridmill.grid.analysis.explain_faults import faults
from gridmill.grid.analysis.rule_text import NO_CAP, describe
from gridmill.grid.facts import AGENT, MOST
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
    earliest = Earliest(game)
    converters, productions = earliest.converters, earliest.bounds.productions
    if env is None:
        worst, actions, standing = _looked_at(game)
    else:
        worst, actions, standing = env.worst_tokens(0), tuple(env.action_names), Counter[str]()
    products = tuple(
        _product(converters, game, name) for name in _ordered(game, converters) if name not in earliest.ruled
    )
    rewards = _rewards(earliest, products)
    known = [reward.ceiling for reward in rewards]
    bumps = rulebook.bumps(game)
    said = Explanation(
        name=game.name,
        fingerprint=game.fingerprint(),
        num_agents=game.num_agents,
        max_steps=game.max_steps,
        resources={r: tuple(converters.makers(r)) for r in game.resources},
        sources=supplies.sources(game, productions, converters),
        uses=supplies.uses(game, productions, converters),
        counts={name: standing[name] for name in bumps if name != AGENT},
        bumps=bumps,
        by_itself=rulebook.by_itself(game),
        events=rulebook.events(game),
        collectives=rulebook.collectives(game),
        machines=_machines(game, converters),
        products=products,
        gatherings=tuple(_gathering(earliest, r) for r in game.resources if r in earliest.ruled),
        rewards=rewards,
        reward_ceiling=None if None in known else sum(amount for amount in known if amount is not None),
        min_first_episode=min_first_episode(earliest) if first_episode is None else first_episode,
        num_tokens=game.observation.num_tokens,
        worst_tokens=worst,
        window=f"{game.observation.height}x{game.observation.width} {game.observation.window}",
        actions=actions,
        warnings=(),
    )
    return replace(said, warnings=tuple(faults(earliest, said)))


# ---- what is in the record


def _looked_at(game: Game) -> tuple[int, tuple[str, ...], Counter[str]]:
    """The most tokens an agent could see, the actions, and how many of each type stand on the first map."""
    # A token budget that may not do must not stop us: it is one of our own warnings.
    tolerant = game.replace("observation.overflow", "drop")
    with game.env_class()([tolerant], **batch_options(num_worlds=1)) as env:
        env.reset()
        standing = Counter(str(thing["type"]) for thing in env.inspect(0)["objects"])
        return env.worst_tokens(0), tuple(env.action_names), standing


def _ordered(game: Game, converters: Converters) -> list[str]:
    """Products with what they are made of first."""
    made = [r for r in game.resources if converters.makers(r)]
    return sorted(made, key=lambda r: converters.costs.get(r, math.inf))


def _machines(game: Game, converters: Converters) -> tuple[Machine, ...]:
    found = []
    for name, kind in game.objects.items():
        if kind.converter is not None:
            c = kind.converter
            waiting = sum(converters.waiting(name, r) for r in c.outputs) if name in converters.machines else 0
            count = converters.counts.get(name, 0)
            found.append(Machine(name, count, c.inputs, c.outputs, c.cooldown, waiting, c.max_conversions))
    return tuple(found)


def _product(converters: Converters, game: Game, name: str) -> Product:
    horizon = EPISODES * game.max_steps
    plan = converters.plan(name)
    chain = " > ".join(f"{runs} {machine}" for machine, runs in reversed(list(plan.runs.items()) if plan else []))
    one, every = one_of_each(converters, name, 1, horizon), all_buildings(converters, name, 1, horizon)
    return Product(
        name=name,
        chain=chain or ("available from the start" if plan else "its inputs are not available"),
        one_ready=one.ready if one else None,
        one_paid=one.paid if one else None,
        sequence=plan.sequence if plan else None,
        all_ready=every.ready if every else None,
        all_paid=every.paid if every else None,
        ceiling=ceiling(converters, name, game.max_steps),
    )


def _gathering(earliest: Earliest, resource: str) -> Gathering:
    found = earliest.bounds.gained(AGENT, resource)
    acts = dict(found.acts) if found is not None else {}
    return Gathering(resource, acts, earliest.gains("one", resource, 1), earliest.gains("every", resource, 1))


def _rewards(earliest: Earliest, products: Sequence[Product]) -> tuple[Reward, ...]:
    ones, sequences, everys = (first_rewards(earliest, way) for way in ("one", "sequence", "every"))
    made = {product.name: product.ceiling.per_agent for product in products}
    found = []
    for term, one, sequence, every in zip(earliest.game.rewards, ones, sequences, everys, strict=True):
        most = _most_paid(earliest, term, every, made)
        found.append(Reward(describe(term), certainty(earliest, term), one, sequence, every, most))
    return tuple(found)


def _most_paid(earliest: Earliest, term: RewardTerm, first: int | None, made: Mapping[str, float]) -> float | None:
    """The most a term gives one agent in an episode, on average over the agents; loot is not counted."""
    game = earliest.game
    if first is None or first > game.max_steps or term.weight == 0:
        return 0.0
    if term.weight < 0:  # a value that starts at 0 and is never below can only cost
        below = any(isinstance(leaf, Constant) and leaf.value < 0 for leaf in leaves(term.value))
        return None if below or certainty(earliest, term) == "not known" else 0.0
    most = _most(earliest, term.value, made, held=term.mode != "gained")
    if most is None and term.cap >= NO_CAP:
        return None
    most = term.cap if most is None else min(term.cap, most)
    if term.mode == "per_tick":
        return term.weight * most * (game.max_steps - first + 1)
    start = 0.0
    if term.mode == "change" and isinstance(term.value, Inventory) and term.value.of == "actor":
        start = min(term.cap, earliest.converters.start.get(term.value.resource, 0))
    return term.weight * max(0.0, most - start)


def _most(earliest: Earliest, value: GameValue, made: Mapping[str, float], held: bool) -> float | None:
    """The most a game value can come to for one agent; `held`: what does not fit does not count."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Inventory):
        return _most_held(earliest, value, made, held)
    if isinstance(value, Stat):
        head, _, tail = value.name.rpartition(".")
        if value.of == "agent" and head in earliest.game.resources and tail in ("get", "gained", "amount"):
            return None if head in earliest.ruled else made.get(head, 0.0)
        if value.name in ("cell.visited", "frozen.ticks") or head.startswith("action"):
            return float(earliest.game.max_steps)
        return None
    if isinstance(value, Ratio):
        top, by = _most(earliest, value.values[0], made, held), value.values[1]
        least = by.value if isinstance(by, Constant) else 1 if isinstance(by, Index) else 0
        return top / least if top is not None and least > 0 else None
    if not isinstance(value, Sum | Min | Max | Log):
        return None
    parts = [_most(earliest, part, made, held) for part in value.values]
    known = [part for part in parts if part is not None]
    if isinstance(value, Min):
        return min(known, default=None)
    if len(known) < len(parts) or not known:
        return None
    if isinstance(value, Log):
        return math.log1p(max(0.0, known[0]))
    return sum(known) if isinstance(value, Sum) else max(known)


def _most_held(earliest: Earliest, value: Inventory, made: Mapping[str, float], held: bool) -> float | None:
    converters, resource = earliest.converters, value.resource
    if value.of != "actor":
        return None
    start = converters.start.get(resource, 0)
    if resource in earliest.ruled:
        room = converters.most(resource)
        return float(max(room, start)) if held and room < MOST else None
    gained = made.get(resource, 0.0)
    return min(converters.most(resource), gained + start) if held else gained
