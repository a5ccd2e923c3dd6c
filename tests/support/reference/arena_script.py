"""The arena's script, slow and obvious, over all rows at once: native/grid/scripts/arena.cpp must decide the same.

It reads the game as Python has it and the observations by the names of the env. `draws` are the 64 random bits of each
row, as `script_draws` of native/core/script.hpp has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridmill.grid import Game
from gridmill.grid.analysis.converters import Converters
from gridmill.grid.env import GridEnv

GLOBAL = 0xFE  # the first location that is no cell
TURN = 1_311  # of 65 536: chance per tick that an agent without a goal takes another direction
FAR = 14  # steps after which a way inside the window is given up
STEPS = {
    "north": (-1, 0),
    "south": (1, 0),
    "west": (0, -1),
    "east": (0, 1),
    "northwest": (-1, -1),
    "northeast": (-1, 1),
    "southwest": (1, -1),
    "southeast": (1, 1),
}
WORD = 2**64

Board = NDArray[np.uint16]  # [rows, height]: a bit per cell of the window, the column is the bit


@dataclass(frozen=True)
class _Machine:
    """One kind of machine on the way to a heart, in the ids of the batch."""

    tag: int
    outputs: tuple[int, ...]
    inputs: tuple[tuple[int, int], ...]  # (feature, the most one machine stores)


class ArenaScript:
    """Mine -> generator -> altar: walks to the nearest machine in the window that gives or takes something."""

    def __init__(self, env: GridEnv) -> None:
        game = env.games[0]
        self._features = {feature.name: feature.id for feature in env.features}
        self._height, width = env.window
        self._middle = (self._height // 2, width // 2)
        self._steps = [(env.action_names.index(f"move_{name}"), *step) for name, step in STEPS.items()]
        self._inside = np.uint16((1 << width) - 1)
        plan = Converters.of(game).plan("heart")
        assert plan is not None
        self._machines = [self._machine(env, game, name) for name in plan.runs]

    def act(
        self, obs: NDArray[np.uint8], heading: NDArray[np.intp] | None, draws: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """An action per row, and the direction each agent walks in without a goal; None: an episode begins."""
        if heading is None:
            heading = (draws % np.uint64(len(STEPS))).astype(np.intp)
        taken, goals = self._look(obs)
        free = ~taken & self._inside
        choice = self._way(goals, free)
        heading, walked = self._wander(heading, free, draws)
        actions = np.where(choice >= 0, choice, walked)
        numbers = np.array([number for number, _, _ in self._steps] + [0], np.int32)
        return numbers[actions], heading

    def _machine(self, env: GridEnv, game: Game, name: str) -> _Machine:
        converter = game.objects[name].converter
        assert converter is not None
        stored = ((self._features[f"inv:{r}"], n * converter.max_input) for r, n in converter.inputs.items())
        made = tuple(self._features[f"inv:{r}"] for r in converter.outputs)
        return _Machine(env.tags.index(f"type:{name}"), made, tuple(stored))

    def _look(self, obs: NDArray[np.uint8]) -> tuple[Board, Board]:
        """What is occupied, and the machines worth a bump: something waits, or fits in that the agent holds."""
        row, spot = np.nonzero(obs[:, :, 0] < GLOBAL)
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
        """The step of the shortest way inside the window to any goal, as an index of STEPS; -1 without one."""
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

    def _wander(
        self, heading: NDArray[np.intp], free: Board, draws: NDArray[np.uint64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Straight on; another free direction where something is in the way, and now and then."""
        can = np.stack(
            [
                free[:, self._middle[0] + down] >> np.uint16(self._middle[1] + right) & np.uint16(1)
                for _, down, right in self._steps
            ],
            axis=1,
        )
        rows = np.arange(len(heading))
        turn = (can[rows, heading] == 0) | ((draws >> np.uint64(8) & np.uint64(0xFFFF)) < TURN)
        drawn = np.array([_drawn(open_, int(draw)) for open_, draw in zip(can, draws, strict=True)])
        heading = np.where(turn, drawn, heading)
        return heading, np.where(can[rows, heading] != 0, heading, len(self._steps))


def _drawn(can: NDArray[np.uint16], draw: int) -> int:
    """One of the free directions, or of all if none is."""
    among = np.flatnonzero(can) if can.any() else np.arange(len(can))
    return int(among[(draw >> 32) * len(among) >> 32])


def script_draws(seed: int, world: int, episode: int, tick: int, agent: int) -> int:
    """The random bits that a script gets, as native/core/random.hpp draws them."""
    golden = 0x9E3779B97F4A7C15
    start = _mix((seed + golden) % WORD)
    start = _mix(start ^ (world << 32 | episode))
    start = _mix(start ^ (tick << 32 | 0xFFFFFFFF))
    return _mix((start + (agent + 1) * golden) % WORD)


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)
