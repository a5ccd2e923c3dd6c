"""The timing tree: where the time of one rollout went, row by row, for the log; the same figures are in the metrics.

Rows are seconds of the trainer's clock and add up to the rollout. What the core's threads did meanwhile stands below in
seconds of their own: scripts run there, beside the worlds, and cost the rollout only what it waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridmill.config.install import command
from gridmill.config.text import hang

ROWS = (
    ("env", "env wait"),
    ("copy", "copy"),
    ("act", "student forward"),
    ("teacher", "teacher"),
    ("teacher_forward", "  forward"),
    ("teacher_store", "  store"),
    ("players", "players forward"),
    ("store", "store"),
)
CORE = (("core", "all work"), ("teacher_calls", "teacher calls"), ("player_calls", "player calls"))
SUMS = ("teacher",)


def remedies() -> dict[str, str]:
    """What to change when a part of the rollout takes most of the time."""
    find = command("profile", "step")
    shorter = "a shorter supervised phase, or losses.clone.until, so that imitation ends"
    return {
        "env": f"raise trainer.threads, set trainer.async_factor=2, or run `{find}` to find the slow phase",
        "copy": "smaller observations (fewer tokens), trainer.experience_device=auto",
        "act": "more rows per forward pass (trainer.num_worlds), a smaller policy.hidden, on a GPU lower precision",
        "teacher": shorter,
        "teacher_forward": shorter,
        "teacher_store": shorter,
        "players": "a smaller share of frozen players",
        "store": "fewer columns: losses that need none, trainer.masks=false where it does not cost score",
        "rest": "more rows per step (trainer.num_worlds), which share what a step costs in Python",
    }


def timing_tree(metrics: Mapping[str, Any]) -> list[str]:
    """Lines of the tree; the row that takes most is marked, and what helps against it is below."""
    total = metrics["time/rollout"]
    rows = {name: float(metrics[f"time/{name}"]) for name, _ in ROWS if f"time/{name}" in metrics}
    rows["rest"] = max(0.0, total - sum(seconds for name, seconds in rows.items() if name not in SUMS))
    most = max((name for name in rows if name not in SUMS), key=lambda name: rows[name])
    lines = [f"rollout timing, epoch {metrics['epoch']} (agent steps {metrics['agent_steps']:_})"]
    lines.append(_line("rollout total", total, total))
    for name, label in (*ROWS, ("rest", "rest")):
        if name in rows:
            lines.append("  " + _line(label, rows[name], total) + ("  <- most" if name == most else ""))
        if name == most:
            lines += hang("    try ", remedies()[most])
    core = {label: metrics[f"time/{name}"] for name, label in CORE if f"time/{name}" in metrics}
    if core:
        lines.append("core threads, in the same time")
        lines += ["  " + _line(label, seconds, core["all work"]) for label, seconds in core.items()]
    return lines


def _line(label: str, seconds: float, of: float) -> str:
    share = seconds / of if of > 0 else 0.0
    return f"{label:<18}{1000 * seconds:10.2f} ms{100 * share:7.1f} %"
