"""Scripted players of grid games for `gridmill eval`: yardsticks that see what a network would see, and nothing else.

A player has the form of a loaded policy (`act`, `reset`, `masks`) and plays any number of rows at once. It knows the
rules of its game, but of the world only its row of the observation and which way each agent was walking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridmill.env.kind import MakePlayer
from gridmill.env.tokens import GLOBAL_LOCATION
from gridmill.grid.analysis.converters import Converters
from gridmill.grid.directions import DIRECTIONS

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv
    from gridmill.grid.game import Game

PRODUCT = "heart"
TURN = 0.02  # chance per tick that an agent without a goal takes another direction
FAR = 14  # steps after which a way inside the window is given up

Board = NDArray[np.uint16]  # [rows, height]: a bit per cell of the window, the column is the bit


def scripts_of(game: Game) -> dict[str, MakePlayer]:
    """The scripts that can play a game, by name."""
    return {"arena": ArenaScript} if game.moves == len(DIRECTIONS) and _chain(game) else {}


@dataclass(frozen=True)
class _Machine:
    """One kind of machine on the way to a heart, in the ids of the batch."""

    tag: int
    outputs: tuple[int, ...]
    inputs: tuple[tuple[int, int], ...]  # (feature, the most one machine stores)


class ArenaScript:
    """Mine -> generator -> altar: walks to the nearest machine in the window that gives or takes something."""

    masks = False

    def __init__(self, env: GridEnv, seed: int) -> None:
        game = env.games[0]
        self._features = {feature.name: feature.id for feature in env.features}
        self._height, width = env.window
        self._middle = (self._height // 2, width // 2)
        self._steps = [(env.action_names.index(f"move_{name}"), *step) for name, step in DIRECTIONS.items()]
        self._inside = np.uint16((1 << width) - 1)
        self._machines = [self._machine(env, game, name) for name in _chain(game)]
        self._rng = np.random.default_rng(seed)

    def act(
        self, obs: NDArray[np.uint8], state: NDArray[np.intp] | None, masks: object = None
    ) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """An action per row; the state is the direction each agent walks in while it sees nothing to do."""
        rows = len(obs)
        heading = self._rng.integers(0, len(DIRECTIONS), rows) if state is None else state
        taken, goals = self._look(obs)
        free = ~taken & self._inside
        choice = self._way(goals, free)
        heading, walked = self._wander(heading, free)
        actions = np.where(choice >= 0, choice, walked)
        numbers = np.array([number for number, _, _ in self._steps] + [0], np.int32)
        return numbers[actions], heading

    def reset(self, state: NDArray[np.intp], ended: NDArray[np.bool_]) -> NDArray[np.intp]:
        """A direction is no memory of the world, so there is nothing to forget."""
        return state

    def _machine(self, env: GridEnv, game: Game, name: str) -> _Machine:
        converter = game.objects[name].converter
        assert converter is not None
        stored = ((self._features[f"inv:{r}"], n * converter.max_input) for r, n in converter.inputs.items())
        made = tuple(self._features[f"inv:{r}"] for r in converter.outputs)
        return _Machine(env.tags.index(f"type:{name}"), made, tuple(stored))

    def _look(self, obs: NDArray[np.uint8]) -> tuple[Board, Board]:
        """What is occupied, and the machines worth a bump: something waits, or fits in that the agent holds."""
        row, spot = np.nonzero(obs[:, :, 0] < GLOBAL_LOCATION)
        place, feature, value = obs[row, spot].T
        line, bit = place >> 4, np.left_shift(np.uint16(1), place & 15, dtype=np.uint16)
        mine = (line == self._middle[0]) & ((place & 15) == self._middle[1])

        def board(where: NDArray[np.bool_]) -> Board:
            found = np.zeros((len(obs), self._height), np.uint16)
            np.bitwise_or.at(found, (row[where], line[where]), bit[where])
            return found

        taken, goals = board(~mine), np.zeros((len(obs), self._height), np.uint16)
        for machine in self._machines:
            worth = board(np.isin(feature, machine.outputs) & ~mine)
            for needed, most in machine.inputs:
                held = np.zeros(len(obs), np.bool_)
                held[row[(feature == needed) & mine]] = True
                full = board((feature == needed) & (value >= most))
                worth |= np.where(held[:, None], ~full, np.uint16(0))
            goals |= worth & board((feature == self._features["tag"]) & (value == machine.tag))
        return taken, goals

    def _way(self, goals: Board, free: Board) -> NDArray[np.intp]:
        """The step of the shortest way inside the window to any goal, as an index of DIRECTIONS; -1 without one."""
        choice = np.full(len(goals), -1)
        reached = goals
        for _ in range(FAR):
            open_rows = choice < 0
            for index, (_, down, right) in enumerate(self._steps):
                there = reached[:, self._middle[0] + down] >> np.uint16(self._middle[1] + right) & np.uint16(1)
                choice[open_rows & (there != 0)] = index
            across = reached | reached << np.uint16(1) | reached >> np.uint16(1)
            grown = across.copy()
            grown[:, 1:] |= across[:, :-1]
            grown[:, :-1] |= across[:, 1:]
            reached = reached | grown & free
        return choice

    def _wander(self, heading: NDArray[np.intp], free: Board) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Straight on; another free direction where something is in the way, and now and then."""
        can = np.stack(
            [
                free[:, self._middle[0] + down] >> np.uint16(self._middle[1] + right) & np.uint16(1)
                for _, down, right in self._steps
            ],
            axis=1,
        )
        rows = np.arange(len(heading))
        turn = (can[rows, heading] == 0) | (self._rng.random(len(heading)) < TURN)
        drawn = np.argmax(can + self._rng.random(can.shape), axis=1)
        heading = np.where(turn, drawn, heading)
        return heading, np.where(can[rows, heading] != 0, heading, len(self._steps))


def _chain(game: Game) -> list[str]:
    """The machines that work for a heart, if hearts are made at all."""
    plan = Converters.of(game).plan(PRODUCT)
    return [] if plan is None else list(plan.runs)
