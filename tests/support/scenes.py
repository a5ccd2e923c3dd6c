"""Small scripted worlds for tests: an ASCII map, actions by name, and questions about who holds what where.

Used by the tests of machines, limits, combat and games. It knows no rules; the tests say what should happen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from random_games import agents_of, quiet_make

from gridmill import Env, Game
from gridmill.grid import Ascii, Converter, ObjectType

Place = tuple[int, int]
STEPS: dict[str, Place] = {
    "north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1),
    "northwest": (-1, -1), "northeast": (-1, 1), "southwest": (1, -1), "southeast": (1, 1),
}  # fmt: skip


def play(text: str, kinds: Mapping[str, ObjectType | Converter] = {}, **fields: Any) -> Env:
    """One world, reset. `kinds` names the letters of the map: a type per letter; an agent per `@` or digit."""
    objects: dict[str, ObjectType] = {"wall": ObjectType()}
    legend = {}
    for letter, kind in kinds.items():
        objects[f"kind {letter}"] = ObjectType(converter=kind) if isinstance(kind, Converter) else kind
        legend[letter] = f"kind {letter}"
    options = {name: fields.pop(name) for name in ("num_worlds", "masks", "seed", "validation") if name in fields}
    fields.setdefault("num_agents", sum(c in "@0123456789" for c in text))
    game = Game(name="scene", objects=objects, map=Ascii(text=text, legend=legend), **fields)
    env = quiet_make(game, **({"num_worlds": 1, "validation": True} | options))
    env.reset()
    return env


def do(env: Env, *names: str) -> list[bool]:
    """One tick, an action name per agent of the only world; which of them succeeded."""
    actions = [env.action_names.index(name) for name in names]
    env.step(np.array(actions, np.int32))
    ended = (env.terminals | env.truncations)[:, None]
    shown = np.where(ended, env.final_obs[:, 1], env.obs[:, 1])  # the token `last_action`: 0 where it failed
    assert {env.features[feature].name for feature in shown[:, 1]} == {"last_action"}
    report = env.observation_validation
    assert report is None or report.mismatches == 0, report
    return [bool(value == action) for value, action in zip(shown[:, 2], actions, strict=True)]


def bump(env: Env, direction: str = "east", *others: str) -> bool:
    """One move of the first agent, the others as said or at noop; the mask must have said how it ends."""
    name = f"move_{direction}"
    assert env.masks is not None
    allowed = bool(env.masks[0, env.action_names.index(name)])
    worked = do(env, name, *others, *["noop"] * (env.num_rows - 1 - len(others)))[0]
    assert worked == allowed
    return worked


def agent(env: Env, index: int = 0) -> dict[str, Any]:
    return agents_of(env.inspect(0))[index]


def places(env: Env) -> list[Place]:
    return [(a["row"], a["column"]) for a in agents_of(env.inspect(0))]


def held(env: Env, index: int = 0) -> dict[str, int]:
    """What an agent holds, without zeros."""
    return dict(agent(env, index)["inventory"])


def thing(env: Env, letter: str) -> dict[str, Any]:
    """The only object of a letter's kind."""
    found = [o for o in env.inspect(0)["objects"] if o["type"] == f"kind {letter}"]
    assert len(found) == 1
    return found[0]


def where(env: Env, letter: str) -> Place:
    return thing(env, letter)["row"], thing(env, letter)["column"]


def stored(env: Env, letter: str) -> dict[str, int]:
    return dict(thing(env, letter)["inventory"])


def tokens_at(env: Env, row: int, column: int, seen_by: int = 0) -> dict[str, int]:
    """What an agent sees in a cell relative to it, tags left out."""
    seen = [t for t in env.decode(seen_by) if (t.row, t.column) == (row, column) and t.feature != "tag"]
    named = {t.feature: t.value for t in seen}
    assert len(named) == len(seen)
    return named


def finish(env: Env, agents: Sequence[int] | None = None) -> dict[str, list[float]]:
    """Plays noops to the end of the episode: every stat that is not 0 for all, as a list by agent."""
    while not (taken := env.take_episodes())["world"].size:
        env.step(np.zeros(env.num_rows, np.int32))
    return {name: column.tolist() for name, column in taken.items() if column.any()}
