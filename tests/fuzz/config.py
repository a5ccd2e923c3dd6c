"""F1: what reads settings, for a coverage-guided fuzzer: `make fuzz-config` runs this file with atheris.

The first byte of an input says what the rest is: a preset in TOML, a run or a game in JSON, overrides, or a list of
changes of a valid game. Each is taken, and then is the same after a trip through text, or is refused in one line.
"""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
INSTRUMENTED = ["gridmill.config", "gridmill.run", "gridmill.runs", "gridmill.grid", "gridmill.losses", "tomllib"]
if __name__ == "__main__":
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from gridmill.runs import overrides, presets
from config_trees import rich, ruled  # noqa: E402

import gridmill  # noqa: E402
from gridmill import Game  # noqa: E402
from gridmill.config import Config, flatten  # noqa: E402
from gridmill.run import Run  # noqa: E402
from gridmill.runs import overrides, presets  # noqa: E402

warnings.simplefilter("ignore")  # games that are odd are told so
MOST = 4096  # bytes; settings that people write are shorter
MOST_CELLS = 4_000
RUN = Run(recipe="fuzzed", game=gridmill.games.toy(num_agents=2, map_size=8))
TREE = ruled(rich({"kind": "ascii", "text": "#####\n#@.1#\n#.X.#\n#####", "legend": {"X": "crate"}}))
PATHS = sorted(flatten(TREE))


class Finding(AssertionError):
    """A refusal that is none, or settings that do not survive."""


def preset(data: bytes) -> Config:
    plain, presets.load = presets.load, lambda name: presets.parsed(data, name)  # without a file
    try:
        return presets.merged(RUN, "fuzzed.toml")
    finally:
        presets.load = plain


def whole(data: bytes) -> Config:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    is_game = isinstance(tree, dict) and "map" in tree
    return Game.load(tree) if is_game else Run.load(tree)


def typed(data: bytes) -> Config:
    return overrides.apply(RUN, data.decode("utf-8", "surrogateescape").split("\n"))


def changed(data: bytes) -> Config:
    """Pairs of a place and a value, one a line: `12 {"kind": "sum"}`; the number is that of a path."""
    tree = json.loads(json.dumps(TREE))
    for line in data.decode("utf-8", "replace").split("\n")[:8]:
        number, _, text = line.partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 9:
            put(tree, PATHS[int(number) % len(PATHS)], value_of(text))
    return Game.load(tree)


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def put(tree: Any, path: str, value: Any) -> None:
    """Set what is there; where an earlier change has taken the place away, nothing happens."""
    *above, last = path.split(".")
    for name in above:
        tree = tree[int(name)] if isinstance(tree, list) and int(name) < len(tree) else tree
        tree = tree.get(name) if isinstance(tree, dict) else tree
    if isinstance(tree, dict):
        tree[last] = value


READERS = (preset, whole, typed, changed)


def one(data: bytes) -> bool:
    """Whether the settings were taken; `Finding`, or whatever else was raised, is a fault of ours."""
    if not data or len(data) > MOST:
        return False
    try:
        found = READERS[data[0] % len(READERS)](data[1:])
    except ValueError as refused:
        said = str(refused)
        if not said or "\n" in said or "\r" in said or len(said) > 6_000:
            raise Finding(f"expected a refusal in one line, got {said[:300]!r}") from refused
        return False
    if zlib.crc32(data) % 4 == 0:  # most inputs are near others; what costs most is tried for some of them
        try_out(found)
    return True


def try_out(found: Config) -> None:
    if type(found).load(found.tree()) != found:
        raise Finding(f"not the same after a trip through text: {found!r:.300}")
    if isinstance(found, Game) and is_small(found):
        build(found)


def is_small(game: Game) -> bool:
    map_ = game.map
    cells = len(map_.text) if map_.kind == "ascii" else getattr(map_, "height", 99) * getattr(map_, "width", 99)
    return bool(cells <= MOST_CELLS and game.num_agents * game.observation.num_tokens <= 20_000)


def build(game: Game) -> None:
    """The core may still refuse it, with a place."""
    try:
        gridmill.make(game, num_worlds=1).close()
    except ValueError as refused:
        if "`$" not in str(refused) or "\n" in str(refused):
            raise Finding(f"expected a refusal with its place, got {refused}") from refused


def main() -> None:
    atheris.Setup(sys.argv, lambda data: one(data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
