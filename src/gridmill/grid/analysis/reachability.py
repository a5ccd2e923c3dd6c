"""Reachability: which objects of a drawn map no agent can get to. Maps that are generated guarantee that themselves.

Only fixed pictures are looked at, and only in games where nothing moves or removes obstacles.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gridmill.grid.analysis.productions import all_effects
from gridmill.grid.directions import DIRECTIONS
from gridmill.grid.maps import Ascii, Instances, Map

if TYPE_CHECKING:
    from gridmill.grid.game import Game


def out_of_reach(game: Game) -> Counter[str]:
    """How many objects of each type that does something when bumped into cannot be bumped into from any start."""
    if game.moves == 0 or game.swap or not all(effect.keeps_map for effect in all_effects(game)):
        return Counter()
    if any(kind.pushable for kind in game.objects.values()):
        return Counter()
    return _lost_on(game, game.map)


def _lost_on(game: Game, map: Map) -> Counter[str]:
    if isinstance(map, Instances):
        places, found = map.rows * map.columns, Counter[str]()
        if map.gap == 0:
            return found  # agents may walk from place to place
        for index, part in enumerate(map.maps[:places]):
            times = len(range(index, places, len(map.maps)))
            found.update({name: times * n for name, n in _lost_on(game, part).items()})
        return found
    return _lost_in_picture(game, map) if isinstance(map, Ascii) else Counter()


def _lost_in_picture(game: Game, map: Ascii) -> Counter[str]:
    cells = {(r, c): mark for r, row in enumerate(map.text.strip("\n").split("\n")) for c, mark in enumerate(row)}
    steps = tuple(DIRECTIONS.values())[: game.moves]
    todo = [cell for cell, mark in cells.items() if mark == "@" or mark.isdigit()]
    seen, bumped = set(todo), set[tuple[int, int]]()
    while todo:
        row, column = todo.pop()
        for down, right in steps:
            cell = (row + down, column + right)
            mark = cells.get(cell)
            if mark is None or cell in seen:
                continue
            if mark in map.legend:
                bumped.add(cell)
            elif mark != "#":
                seen.add(cell)
                todo.append(cell)
    used = {
        name
        for name, kind in game.objects.items()
        if kind.converter is not None or kind.assembler is not None or kind.on_use
    }
    named = ((cell, map.legend[mark]) for cell, mark in cells.items() if mark in map.legend)
    return Counter(name for cell, name in named if name in used and cell not in bumped)
