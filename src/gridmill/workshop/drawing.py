"""Samples of artefacts as a picture: SVG without any library, so that a page and a file are the same thing.

One row for each list of values: every value a dot, the median a bar with its 95 % interval; lists of one unit share an
axis. Nothing here reads or measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gridmill.config.text import short
from gridmill.workshop.statistics import bootstrap_interval, median

WIDTH, LABEL, ROW = 760, 230, 24
MOST_ROWS = 200
MOST_DOTS = 1_000  # of a row; the interval of more values would be narrower than the median's bar


def strips(samples: Mapping[str, Mapping[str, Any]]) -> str:
    """All samples of an artefact; nothing if there are none."""
    groups: dict[tuple[str, str], dict[str, Sequence[float]]] = {}
    for name, sample in list(samples.items())[:MOST_ROWS]:
        if sample["values"]:
            groups.setdefault((str(sample["unit"]), str(sample["better"])), {})[name] = sample["values"]
    parts, top = [], 0
    for (unit, better), rows in groups.items():
        parts.append(f'<g transform="translate(0 {top})">{_group(unit, better, rows)}</g>')
        top += ROW * (len(rows) + 2)
    if not parts:
        return ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    return f'{head} font-family="sans-serif" font-size="12" role="img">{"".join(parts)}</svg>'


def _group(unit: str, better: str, rows: Mapping[str, Sequence[float]]) -> str:
    low = min(min(values) for values in rows.values())
    high = max(max(values) for values in rows.values())
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    low, high = low - room, high + room

    def x(value: float) -> float:
        return LABEL + (WIDTH - LABEL - 20) * (value - low) / (high - low)

    said = [f'<text x="0" y="14" fill="#666">{escape(unit)}, {escape(better)} is better</text>']
    for number, (name, values) in enumerate(rows.items()):
        y = ROW * (number + 1) + ROW / 2
        middle = median(values)
        left, right = bootstrap_interval(values) if len(values) <= MOST_DOTS else (middle, middle)
        dots = values[:: len(values) // MOST_DOTS + 1]
        said.append(f'<text x="0" y="{y + 4:.0f}">{escape(name[:36])}</text>')
        said += [f'<circle cx="{x(v):.1f}" cy="{y:.1f}" r="3" fill="#27c" fill-opacity="0.45"/>' for v in dots]
        said.append(f'<rect x="{x(left):.1f}" y="{y - 2:.1f}" width="{max(1.0, x(right) - x(left)):.1f}" height="4"'
                    ' fill="#d50" fill-opacity="0.5"/>')  # fmt: skip
        said.append(f'<rect x="{x(middle) - 1:.1f}" y="{y - 8:.1f}" width="2" height="16" fill="#d50"/>')
        said.append(f"<title>{escape(name)}: median {short(middle)} {escape(unit)}</title>")
    y = ROW * (len(rows) + 1) + 12
    for value, anchor in ((low + room, "start"), (high - room, "end")):
        said.append(f'<text x="{x(value):.0f}" y="{y}" fill="#666" text-anchor="{anchor}">{short(value)}</text>')
    return "".join(said)
