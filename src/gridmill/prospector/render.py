"""Pictures of one belt for people: sectors and links, the ship, its tanks, cargo and market; as text and as RGB.

Drawn from what `inspect` gives of a world, so also what the ship has not seen. The same state gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gridmill.config.text import hang
from gridmill.env.picture import Canvas, Colour, Picture, mixed, refuse_huge, text_width
from gridmill.prospector.actions import ACTION_NAMES, COMMODITIES

if TYPE_CHECKING:
    from gridmill.prospector.config import ProspectorConfig
    from gridmill.prospector.env import ProspectorBatchEnv

GROUND: Colour = (22, 26, 38)
INK: Colour = (226, 228, 232)
SOFT: Colour = (132, 140, 156)
LINK: Colour = (56, 66, 88)
TRACK: Colour = (40, 47, 64)
SHIP: Colour = (255, 214, 102)
KINDS: Mapping[str, Colour] = {"station": (98, 190, 240), "cluster": (156, 142, 124), "hazard": (214, 92, 84)}
GOODS: Mapping[str, Colour] = {
    "iron": (176, 124, 104), "nickel": (150, 166, 150), "water_ice": (120, 196, 232), "pge": (222, 190, 110),
    "rare_isotopes": (180, 130, 220), "volatiles": (120, 200, 150),
}  # fmt: skip
TANKS = {"fuel": 1000.0, "hull": 100.0, "heat": 100.0, "tool": 100.0, "alert": 100.0}
HOLD = 200.0  # units of cargo that a ship takes
BAD_WHEN_FULL = ("heat", "alert")
LONGEST = max(map(len, (*TANKS, *COMMODITIES)))  # letters of a name beside a bar
ROUNDS = 300  # of pushing and pulling until a belt lies well
Links = tuple[tuple[int, int, int], ...]


def ascii(env: ProspectorBatchEnv, world: int = 0) -> str:
    """A world of a batch in a few lines."""
    config: Any = env.games[0]
    return ascii_of(env.inspect(world), config, world)


def ascii_of(view: Mapping[str, Any], config: ProspectorConfig, world: int = 0) -> str:
    """A belt in a few lines: where the ship is, what leads where, tanks, cargo and prices."""
    ship = view["ship"]
    here = ship["sector"]
    ways = [
        f"{to} ({view['sectors'][to]['kind']}, {time} tick{'s' * (time != 1)})"
        for start, to, time in view["links"]
        if start == here
    ]
    sector = view["sectors"][here]
    lines = [
        f"world {world}, tick {view['tick']}, episode {view['episode']}, seed {view['seed']}",
        f"sector {here} of {len(view['sectors'])}, {sector['kind']} with {sector['asteroids']} asteroids",
        *hang("ways: ", ", ".join(ways), 6),
        f"credits {ship['credits']:.0f}, time left {ship['time_remaining']:.0f}, last {_last(view)}",
        *(f"{name:>13} {_bar(ship[name] / most)} {ship[name]:.0f}" for name, most in TANKS.items()),
    ]
    for name in COMMODITIES:
        price, base = view["price"][name], getattr(config.commodities, name).base
        lines.append(
            f"{name:>13} {_bar(view['cargo'][name] / HOLD)} {view['cargo'][name]:5.1f} at {price:.0f} ({base:.0f})"
        )
    return "\n".join(lines)


def rgb(env: ProspectorBatchEnv, world: int = 0, scale: int = 8, legend: bool = True) -> Picture:
    """A world of a batch as a picture."""
    config: Any = env.games[0]
    return rgb_of(env.inspect(world), config, scale, legend)


def rgb_of(view: Mapping[str, Any], config: ProspectorConfig, scale: int = 8, legend: bool = True) -> Picture:
    """A belt as an RGB array of 64 x 44 times `scale` pixels, and 34 more to the right for the ship and the market."""
    if not 1 <= scale <= 256:
        raise ValueError(f"scale must be 1 to 256 pixels per unit, got {scale}")
    height, map_width = 44 * scale, 64 * scale
    width = map_width + (34 * scale if legend else 0)
    refuse_huge(height, width, scale)
    canvas = Canvas(height, width, GROUND)
    _draw_belt(canvas, view, map_width, scale)
    if legend:
        _draw_panel(canvas, view, config, map_width, scale)
    return canvas.pixels


# ---- the belt


def _draw_belt(canvas: Canvas, view: Mapping[str, Any], width: int, scale: int) -> None:
    links: Links = tuple((start, to, time) for start, to, time in view["links"] if start < to)
    places = _places(len(view["sectors"]), links)
    margin = 4 * scale
    at = [(margin + y * (canvas.height - 2 * margin - scale), margin + x * (width - 2 * margin)) for x, y in places]
    here = view["ship"]["sector"]
    for start, to, time in links:
        near = here in (start, to)
        canvas.line(at[start], at[to], mixed(LINK, SHIP, 0.35 if near else 0.0), max(1.0, scale / (4 if near else 6)))
        if near and scale >= 6:
            row, column = (int((a + b) / 2) for a, b in zip(at[start], at[to], strict=True))
            size = _letters(scale)
            canvas.box(row - 5 * size, column - 4 * size, 10 * size, 8 * size, GROUND)
            canvas.text(row - 3 * size, column - 2 * size, str(time), SOFT, size)
    for number, sector in enumerate(view["sectors"]):
        colour = KINDS[sector["kind"]]
        radius = scale * (1.5 if number == 0 else 0.55 + 0.05 * sector["asteroids"])
        canvas.disc(*at[number], radius, mixed(GROUND, colour, 1.0 if sector["visited"] or number == 0 else 0.5))
        if sector["visited"] and number:
            canvas.disc(*at[number], radius * 0.45, mixed(colour, INK, 0.5))
    _draw_ship(canvas, at[here], scale)
    foot, left, size = canvas.height - 3 * scale // 2, 2 * scale, _letters(scale)
    for kind, colour in KINDS.items():
        canvas.disc(foot, left, 0.6 * scale, colour)
        left = canvas.text(foot - 3 * size, left + scale, kind, SOFT, size) + 3 * scale // 2
    canvas.text(foot - 3 * size, left, "numbers: ticks", SOFT, size)


def _letters(scale: int) -> int:
    """The size of letters."""
    return max(1, scale // 6)


def _draw_ship(canvas: Canvas, at: tuple[float, float], scale: int) -> None:
    row, column = at
    for turn in np.linspace(0, 2 * math.pi, 17)[:-1]:
        way = (math.sin(turn), math.cos(turn))
        inner, outer = 2.0 * scale, 2.5 * scale
        start, end = ((row + far * way[0], column + far * way[1]) for far in (inner, outer))
        canvas.line(start, end, SHIP, max(1.0, scale / 4))
    canvas.disc(row, column, 0.5 * scale, SHIP)


@lru_cache(maxsize=64)
def _places(count: int, links: Links) -> tuple[tuple[float, float], ...]:
    """Where sectors lie, in [0, 1]: the station in the middle, linked ones near, all apart; always the same way."""
    turns = np.arange(count) * 2.399963  # the golden angle: no two start in one place
    far = np.sqrt(np.arange(count) / max(1, count))
    places = np.stack((far * np.cos(turns), far * np.sin(turns)), axis=1)
    starts, ends = (np.array([link[k] for link in links], np.int64) for k in (0, 1))
    lengths = 0.12 + 0.03 * np.array([time for _, _, time in links], np.float64)
    for step in range(ROUNDS if len(links) else 0):
        between = places[:, None] - places[None]
        squares = np.maximum((between**2).sum(-1), 1e-4)
        push = 0.012 * (between / squares[..., None]).sum(1)
        along = places[ends] - places[starts]
        size = np.maximum(np.linalg.norm(along, axis=1), 1e-6)
        pull = 0.25 * ((size - lengths) / size)[:, None] * along
        np.add.at(push, starts, pull)
        np.add.at(push, ends, -pull)
        limit = 0.2 * (1 - step / ROUNDS)
        norm = np.maximum(np.linalg.norm(push, axis=1, keepdims=True), 1e-9)
        places = places + push * np.minimum(1.0, limit / norm)
    low, high = places.min(axis=0), places.max(axis=0)
    found = (places - low) / np.maximum(high - low, 1e-9)
    return tuple((float(x), float(y)) for x, y in found)


# ---- the ship and the market


def _draw_panel(canvas: Canvas, view: Mapping[str, Any], config: ProspectorConfig, left: int, scale: int) -> None:
    ship, size = view["ship"], _letters(scale)
    step = 2.2 * scale
    row = 1.5 * scale

    def line(text: str, colour: Colour = INK) -> None:
        nonlocal row
        canvas.text(int(row), left, text, colour, size)
        row += step

    line(f"credits {ship['credits']:.0f}", SHIP)
    line(f"time left {ship['time_remaining']:.0f}  tick {view['tick']}", SOFT)
    line(_last(view), SOFT)
    row += 0.6 * scale
    for name, most in TANKS.items():
        share = min(1.0, max(0.0, ship[name] / most))
        good = 1 - share if name in BAD_WHEN_FULL else share
        colour = mixed(KINDS["hazard"], GOODS["volatiles"], good)
        _gauge(canvas, int(row), left, size, name, share, colour, int(26.5 * scale))
        row += step
    row += 0.6 * scale
    total = sum(view["cargo"].values())
    canvas.text(int(row), left + 21 * scale, "price", SOFT, size)
    line(f"cargo {total:.0f} of {HOLD:.0f}", SOFT)
    for name in COMMODITIES:
        base = getattr(config.commodities, name).base
        _gauge(canvas, int(row), left, size, name, min(1.0, view["cargo"][name] / HOLD), GOODS[name], 20 * scale)
        price, before = view["price"][name], view["previous_price"][name]
        colour = GOODS["volatiles"] if price >= base else KINDS["hazard"]
        sign = "+" if price > before else "-" if price < before else "="
        canvas.text(int(row), left + 21 * scale, f"{price:.0f}{sign}", colour, size)
        row += step


def _gauge(canvas: Canvas, top: int, left: int, size: int, name: str, share: float, colour: Colour, end: int) -> None:
    """A name and a bar that is full at 1 and ends so many pixels from the left."""
    canvas.text(top, left, name, INK, size)
    start = text_width("x" * (LONGEST + 1), size)
    length = max(0, end - start)
    canvas.box(top, left + start, 7 * size, length, TRACK)
    canvas.box(top, left + start, 7 * size, round(length * share), colour)


def _last(view: Mapping[str, Any]) -> str:
    action = view["action"]
    name = ACTION_NAMES[action] if view["tick"] and 0 <= action < len(ACTION_NAMES) else "nothing yet"
    return f"{name}{' (invalid)' if view['invalid'] and view['tick'] else ''}"


def _bar(share: float, width: int = 20) -> str:
    full = round(width * min(1.0, max(0.0, share)))
    return "#" * full + "." * (width - full)
