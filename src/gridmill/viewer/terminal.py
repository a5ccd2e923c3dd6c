"""Playing in a terminal, for machines without a screen: the world as text, one key per tick, a replay at the end.

Keys come one by one from a terminal in raw mode, or as characters from a pipe, which is how tests play. Escape
sequences of arrow keys are read as such; nothing but the standard library is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from gridmill.config.text import harmless
from gridmill.env import Env, GameConfig
from gridmill.games.make import make
from gridmill.replay import Replay, as_taken, record

ARROWS = {"A": "north", "B": "south", "C": "east", "D": "west"}
LETTERS = {
    "w": "north", "s": "south", "d": "east", "a": "west", "y": "northwest", "u": "northeast", "b": "southwest",
    "m": "southeast",
}  # fmt: skip
IDLE = ("noop", "hold", "stay")
CLEAR = "\x1b[2J\x1b[H"
HELP = "arrows or wasd move, y u b m diagonally, x attack, v vibe, z swap, . wait, : action by name, q end and save"


@dataclass
class Table:
    """One game at a terminal: a person plays one agent, somebody else the others."""

    game: GameConfig
    seed: int
    agent: int
    others: str
    actions: list[NDArray[np.int32]] = field(default_factory=list)
    reward: float = 0.0
    vibe: int = 0
    said: str = ""

    def play(self, keys: Iterator[str], out: TextIO) -> Replay | None:
        """Until the keys or the episode end, or Ctrl-C; the replay, or None if nothing was done."""
        with make(self.game, num_worlds=1, seed=self.seed, masks=True) as env, suppress(KeyboardInterrupt):
            env.reset()
            env.hold_ended()
            answer = self._others(env)
            for key in self._shown(keys, env, out):
                if key == "q":
                    break
                action = self._action(key, env, keys, out)
                if action is None:
                    continue
                actions = answer()
                actions[self.agent] = action
                env.step(actions)
                self.actions.append(as_taken(actions, env.num_actions))
                self.reward += float(env.rewards[self.agent])
                if env.terminals[0] or env.truncations[0]:
                    self.said = "the episode is over"
                    out.write(CLEAR + self._picture(env) + "\n")
                    break
        if not self.actions:
            return None
        who = {"*": self.others, str(self.agent): "human"}
        return record(self.game, self.seed, np.stack(self.actions), who, name="played")

    def _shown(self, keys: Iterator[str], env: Env, out: TextIO) -> Iterator[str]:
        """The world before every key."""
        while True:
            out.write(CLEAR + self._picture(env) + "\n")
            out.flush()
            key = next(keys, "q")
            yield key

    def _picture(self, env: Env) -> str:
        lines = []
        if self.game.has_map:
            lines = [env.render(0, "ansi")]
            held = next(t for t in env.inspect(0)["objects"] if t["agent"] == self.agent)  # type: ignore[attr-defined]
            inside = ", ".join(f"{amount} {name}" for name, amount in held["inventory"].items()) or "nothing"
            lines.append(f"agent {self.agent} at row {held['row']}, column {held['column']} holds {inside}")
        else:
            shown = ", ".join(f"{value:.3g}" for value in env.obs[self.agent][:24])
            lines.append(f"observation: {shown} ...")
        lines.append(f"tick {len(self.actions)}, reward {self.reward:.3f}{self.said and f' - {self.said}'}")
        lines.append(HELP)
        return harmless("\n".join(lines))

    def _action(self, key: str, env: Env, keys: Iterator[str], out: TextIO) -> int | None:
        """What a key means; None if it means nothing here."""
        self.said = ""
        names = list(env.action_names)
        wanted = self._name(key, names, keys, out)
        if wanted in names:
            return names.index(wanted)
        self.said = f"`{wanted}` is not an action of this game" if wanted else "this key does nothing"
        return None

    def _name(self, key: str, names: list[str], keys: Iterator[str], out: TextIO) -> str:
        if key == ":":
            return _line(keys, out)
        if key in (".", " "):
            return next((name for name in IDLE if name in names), names[0])
        if key == "x":
            return next((name for name in names if name.startswith("attack")), "")
        if key == "z":
            return "swap"
        if key == "v":
            vibes = [name for name in names if name.startswith("change_vibe_")]
            self.vibe += 1
            return vibes[self.vibe % len(vibes)] if vibes else ""
        direction = LETTERS.get(key, key)
        if direction not in LETTERS.values():
            return ""
        return {"east": "right", "west": "left"}.get(direction, "") if "right" in names else f"move_{direction}"

    def _others(self, env: Env) -> Callable[[], NDArray[np.int32]]:
        """What everybody else does now."""
        if self.others.startswith("script:"):
            player = self.game.scripts()[self.others.removeprefix("script:")](env, self.seed)
            state: Any = None

            def scripted() -> NDArray[np.int32]:
                nonlocal state
                actions, state = player.act(env.obs, state, env.masks)
                return np.array(actions, np.int32)

            return scripted
        rng = np.random.default_rng(self.seed)
        if self.others == "random":
            return lambda: rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32)
        return lambda: np.zeros(env.num_rows, np.int32)


def _line(keys: Iterator[str], out: TextIO) -> str:
    out.write("action: ")
    out.flush()
    text = ""
    for key in keys:
        if key in ("\r", "\n"):
            break
        if key in ("\x7f", "\b"):
            text = text[:-1]
        elif len(key) == 1 and key.isprintable():  # no arrows, and nothing that the terminal would obey
            text += key
        out.write(f"\raction: {text} ")
        out.flush()
    return text.strip()


@contextmanager
def keys_of(stream: TextIO) -> Iterator[Iterator[str]]:
    """The keys of a terminal, which is put back afterwards; of anything else, its characters."""
    if not stream.isatty():
        yield (key for key in iter(lambda: stream.read(1), "") if key not in "\r\n" or key == "\n")
        return
    import termios
    import tty

    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream)
        yield _pressed(stream.fileno())
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _pressed(descriptor: int) -> Iterator[str]:
    while data := os.read(descriptor, 16):
        text = data.decode("utf-8", "replace")
        if text.startswith("\x1b[") and len(text) >= 3:
            yield ARROWS.get(text[2], "?")
        else:
            yield from text


def play_in_terminal(table: Table) -> Replay | None:
    """At the terminal of this process."""
    with keys_of(sys.stdin) as keys:
        return table.play(keys, sys.stdout)
