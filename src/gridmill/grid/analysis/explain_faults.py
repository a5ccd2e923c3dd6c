"""Faults: what would starve learning in a game, said once each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gridmill.grid.analysis.earliest import Earliest
from gridmill.grid.analysis.earliest_change import first_attack
from gridmill.grid.analysis.productions import shown_as
from gridmill.grid.analysis.reachability import out_of_reach

if TYPE_CHECKING:
    from gridmill.grid.game import Game

if TYPE_CHECKING:
    from gridmill.grid.analysis.explain_record import Explanation


def faults(earliest: Earliest, said: Explanation) -> Iterator[str]:
    """All warnings about a game."""
    yield from _rewards(earliest.game, said)
    yield from _tokens(earliest.game, said)
    yield from _supplies(earliest, said)
    game = earliest.game
    if game.attack is not None and first_attack(game, lambda r, n: earliest.gains("one", r, n)) is None:
        cost = ", ".join(f"{n} {r}" for r, n in game.attack.cost.items())
        yield f"attack can never succeed: it costs {cost}" if game.num_agents > 1 else "attack has no possible target"


def _rewards(game: Game, said: Explanation) -> Iterator[str]:
    if not game.rewards:
        yield "no reward terms: every reward is 0"
    for reward in said.rewards:
        bound = "not before" if reward.certainty == "at least" else "at"
        if reward.all_paid is None:
            yield f"reward `{reward.text}` can never be earned"
        elif reward.all_paid > game.max_steps:
            yield (
                f"reward `{reward.text}` is unreachable within max_steps = {game.max_steps}: "
                f"it can first be earned {bound} tick {reward.all_paid}"
            )
        elif reward.one_paid is not None and reward.one_paid > said.min_first_episode:
            yield (
                f"a first episode of {said.min_first_episode} ticks (desync_episodes) ends before reward "
                f"`{reward.text}` can be earned with one of each building, {bound} tick {reward.one_paid}"
            )


def _tokens(game: Game, said: Explanation) -> Iterator[str]:
    if said.worst_tokens <= said.num_tokens:
        return
    found = f"an agent could see {said.worst_tokens} tokens at worst, there is room for {said.num_tokens}"
    error = ", and observation.overflow = 'error' would stop the run"
    yield f"token overflow possible: {found}" + (
        error if game.observation.overflow == "error" else "; the nearest are kept"
    )


def _supplies(earliest: Earliest, said: Explanation) -> Iterator[str]:
    game, bounds = earliest.game, earliest.bounds
    none = [r for r, makers in said.resources.items() if not makers and not said.sources[r]]
    if none:
        yield f"nothing makes {', '.join(none)}"
    for machine in said.machines:
        if machine.count == 0 and bounds.comes(("there", machine.name, "")) is None:
            yield f"{machine.name} is declared but is not on the map"
            continue
        place = shown_as(game, machine.name)
        lacking = [r for r, n in machine.inputs.items() if n > 0 and bounds.held(place, r, n) is None]
        if lacking:
            yield f"{machine.name} can never run: its inputs are not available ({', '.join(lacking)})"
    for name, n in out_of_reach(game).items():
        yield f"{n} of {earliest.converters.counts[name]} {name} on the map cannot be reached by any agent"
