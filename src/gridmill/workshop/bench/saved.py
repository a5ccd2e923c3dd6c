"""Runs that `gridmill bench step --output` saved: read, compared with, and a whole folder of them summarised.

It measures nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

from gridmill.config.files import write_whole
from gridmill.config.install import command, pip_install
from gridmill.config.text import count, hang, printable, table
from gridmill.workshop import artefact, machine
from gridmill.workshop.statistics import Point, Ratio, between_runs, independent_ratio, trend_lines

KIND = "bench step"


def read_saved(path: Path) -> dict[str, Any]:
    """A run saved with --output; refused before anything is measured if a part is missing that is read below."""
    saved = artefact.plain_json(path)
    known = (KIND, f"gridmill {KIND}")  # as it was called before artefacts had one form
    try:
        if saved["kind"] not in known:
            raise ValueError(f"expected one of {known}, got another kind")
        _rates(saved["runs"][0])
        _phase_costs(saved["runs"][0])
        _point(path, saved)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError):
        raise ValueError(f"`{path.name}` is not a run saved by `gridmill bench step --output`") from None
    return dict(saved)


def _point(path: Path, saved: Mapping[str, Any]) -> Point:
    """What stands of it in a summary."""
    run_, made = saved["runs"][0], saved["machine"]
    load, rate = run_["load"], run_["per_cpu_second"]
    batch = [count(int(load[f"{noun}s"]), noun) for noun in ("world", "thread", "lane")]
    shape = ", ".join([printable(load["game"]), count(int(run_["num_agents"]), "agent"), *batch])
    commit = printable(made["commit"]["hash"] or "none", 10)
    label, date = printable(saved.get("phase") or ""), printable(made["date"])
    median, cv = float(rate["median"]), float(rate["cv"])
    if not (0.0 < median < math.inf and 0.0 <= cv < math.inf):
        raise ValueError(f"expected a rate above 0 and its variation, got {median} and {cv}")
    return Point(path.stem, label, commit, date, shape, median, cv)


def _rates(run_: Mapping[str, Any]) -> list[float]:
    """Agent-steps per CPU second and round."""
    return [r["agent_steps"] / max(r["cpu_seconds"], 1e-9) for r in run_["rounds"]]


def _phase_costs(run_: Mapping[str, Any]) -> dict[str, list[float]]:
    """ns per agent-step and round, by phase; empty without profiling."""
    rounds = [r for r in run_["rounds"] if r["phases"]]
    names = [name for name in (rounds[0]["phases"] if rounds else ()) if name not in ("wall", "steps")]
    return {name: [r["phases"][name] / r["agent_steps"] for r in rounds] for name in names}


def against_baseline(record: Mapping[str, Any], saved: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Now against a saved run: rates (above 1 is faster) and time by phase (below 1 is faster)."""
    now, then = record["runs"][0], saved["runs"][0]
    rates = [_rates(now), _rates(then)]
    costs, before = _phase_costs(now), _phase_costs(then)
    shared = [name for name in costs if name in before and min(costs[name]) > 0 and min(before[name]) > 0]
    differing = [k for k, v in now["load"].items() if then.get("load", {}).get(k) != v]
    if record["machine"]["cpu"]["model"] != saved["machine"]["cpu"]["model"]:
        differing.append("CPU")
    return {
        "file": name,
        "phase": saved.get("phase"),
        "commit": saved["machine"]["commit"]["hash"],
        "differs_in": differing,
        "per_cpu_second": asdict(between_runs(independent_ratio(*rates))),
        "phases": {name: asdict(between_runs(independent_ratio(costs[name], before[name]))) for name in shared},
    }


def baseline_lines(found: Mapping[str, Any]) -> list[str]:
    """One comparison with a saved run."""
    label = f" ({found['phase']})" if found["phase"] else ""
    lines = ["", f"against {found['file']}{label}, rate now / then: {Ratio(**found['per_cpu_second'])}"]
    lines += hang(
        "",
        "(runs made at different times always differ, which the interval includes; `gridmill ab` is more precise)",
    )
    if found["differs_in"]:
        lines += hang("", f"careful, not the same load: {', '.join(found['differs_in'])} differ")
    rows = [(name, Ratio(**ratio)) for name, ratio in found["phases"].items()]
    return lines + (table(("phase", "time now / then [95 %]"), rows) if rows else [])


def report(folder: Path) -> int:
    """A summary of every saved run in a folder: table, trend by commit, and a plot. Measures nothing."""
    if not folder.is_dir():
        raise ValueError(f"--report takes a folder of saved runs, got `{folder}`")
    points = []
    for path in sorted(folder.glob("*.json")):
        try:
            points.append(_point(path, read_saved(path)))
        except (ValueError, OSError) as reason:
            print(f"left out: {reason}")
    if not points:
        save = command("bench", "step", "--output", "FILE")
        raise ValueError(f"no saved runs in `{folder}`; save one with `{save}`")
    print("\n".join(trend_lines(points)))
    try:
        import matplotlib
    except ImportError:
        needed = list(machine.extras().get("plots", ("matplotlib",)))
        print(f"\nno plot: matplotlib is missing; {pip_install(*needed)}")
        return 0
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for shape in dict.fromkeys(point.shape for point in points):
        own = sorted((p for p in points if p.shape == shape), key=lambda p: p.date)
        axes.plot([p.date[:16] for p in own], [p.median for p in own], marker="o", label=shape)
    axes.set(xlabel="date (UTC)", ylabel="agent-steps per CPU second", title="bench step")
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", rotation=30)
    axes.legend()
    picture = BytesIO()
    figure.savefig(picture)
    pyplot.close(figure)
    write_whole(folder / "report.png", picture.getvalue())  # a link there leads nowhere
    print(f"\nplot: {folder / 'report.png'}")
    return 0
