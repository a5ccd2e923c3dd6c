"""`gridmill profile step`: where the time of a step goes, phase by phase, for each game.

It compares nothing and judges nothing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gridmill.config.text import count, hang, short
from gridmill.runs.core_report import phase_lines
from gridmill.workshop import artefact, machine
from gridmill.workshop.progress import Progress, between_pieces
from gridmill.workshop.runner import Load, Runner, game_of

KIND = "profile step"
PROFILED = ("toy", "arena", "cogsguard", "prospector")
PIECES = 10  # of a profiled game, between which it can be stopped


@dataclass(frozen=True)
class Settings:
    """Which games, in which shape, how long."""

    games: tuple[str, ...] = ()
    load: Load = field(default_factory=Load)
    steps: int = 15_000
    warmup: int = 5_000
    as_json: bool = False
    output: Path | None = None
    resume: Path | None = None

    def check(self) -> None:
        for name, value, least in (("--steps", self.steps, 1), ("--warmup", self.warmup, 0)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")

    def tree(self) -> dict[str, Any]:
        """For the artefact, and to see whether it can be continued."""
        shown: dict[str, Any] = {"games": list(self.games or PROFILED), "steps": self.steps, "warmup": self.warmup}
        return shown | {"worlds": self.load.worlds, "threads": self.load.threads, "teacher": self.load.teacher}


def profile_game(
    load: Load, settings: Settings, stopped: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, Any] | None:
    """Measure one game with profiling on, in pieces; None if it was stopped before the last of them."""
    runner = Runner(replace(load, profiling=True))
    try:
        taken = []
        for total, kept in ((settings.warmup, False), (settings.steps, True)):
            for piece in pieces(total):
                if stopped:
                    return None
                one = runner.run(piece)
                if kept:
                    taken.append(one)
                    if progress is not None:
                        progress.step(load.game)
        return {
            "game": load.game,
            "load": asdict(runner.load),
            "agents": int(runner.env.num_agents),
            "actions": int(runner.env.num_actions),
            "steps": settings.steps,
            "warmup": settings.warmup,
            "wall_seconds": sum(one.wall_seconds for one in taken),
            "cpu_seconds": sum(one.cpu_seconds for one in taken),
            "per_cpu_second": sum(one.agent_steps for one in taken) / sum(one.cpu_seconds for one in taken),
            "phases_ns": {name: sum((one.phases or {})[name] for one in taken) for name in taken[0].phases or {}},
        }
    finally:
        runner.close()


def pieces(steps: int) -> list[int]:
    """Steps in at most ten pieces of about the same size."""
    ends = [round(k * steps / PIECES) for k in range(PIECES + 1)]
    return [b - a for a, b in itertools.pairwise(ends) if b > a]


def lines_of(record: Mapping[str, Any], load: Load) -> list[str]:
    """A table for each game, and why others have none."""
    lines = machine.headline(record["machine"])
    for one in record["games"]:
        shape = ", ".join((count(load.worlds, "world"), count(load.threads, "thread"), count(one["steps"], "step")))
        lines += ["", f"{one['game']}: {count(one['agents'], 'agent')}, {shape}"]
        lines.append(f"{short(one['per_cpu_second'])} agent-steps per CPU second, with profiling on")
        if load.teacher:
            share = one["phases_ns"]["teacher"] / max(one["phases_ns"]["total"], 1)
            calls = short(one["per_cpu_second"] / max(share, 1e-9))
            lines.append(f"script {load.teacher}: about {calls} rows per second of its CPU time; its actions are taken")
        lines += phase_lines(one["phases_ns"], one["steps"], one["wall_seconds"])
    for missing in record["skipped"]:
        lines += ["", *hang("", f"{missing['game']}: skipped: {missing['reason']}")]
    return lines


def run(settings: Settings) -> int:
    """Profile each game; print a table each, or one JSON record; save it. 0 fine, 130 stopped."""
    settings.check()
    measured: list[dict[str, Any]] = []
    if settings.resume is not None:
        measured = artefact.continued(settings.resume, KIND, settings.tree(), "games")["games"]
    artefact.refuse_unsaved(KIND, settings.output)
    left, skipped = [], list[dict[str, str]]()
    for game in settings.games or PROFILED:
        try:
            built = game_of(replace(settings.load, game=game))
            if settings.load.teacher:
                built.expect_script(settings.load.teacher, "--teacher")
        except (ValueError, TypeError) as error:
            skipped.append({"game": game, "reason": machine.without_paths(str(error))})
            continue
        if all(one["game"] != game for one in measured):
            left.append(game)
    if not measured and not left:
        raise ValueError("; ".join(f"{s['game']}: {s['reason']}" if len(skipped) > 1 else s["reason"] for s in skipped))
    progress = Progress(len(left) * len(pieces(settings.steps)), "pieces")
    with between_pieces() as stopped:
        for game in left:
            one = profile_game(replace(settings.load, game=game), settings, stopped, progress)
            measured += [] if one is None else [one]
    progress.close()
    rates = {one["game"]: artefact.sample([one["per_cpu_second"]], "agent-steps/CPU s") for one in measured}
    record = artefact.record(KIND, settings.load.seed, settings.tree(), rates, games=measured, skipped=skipped)
    record |= {"finished": not stopped, "exit_code": artefact.INTERRUPTED if stopped else 0}
    path = artefact.write(record, settings.output or artefact.place(record, "-".join(settings.games or ("all",))))
    if settings.as_json:
        print(json.dumps(record, indent=1))
        return int(record["exit_code"])
    print("\n".join(lines_of(record, settings.load)))
    for reason in stopped:
        print(f"\n{reason} after {count(len(measured), 'game')}; continue with --resume {path}")
    print(f"\nsaved to {path}")
    return int(record["exit_code"])
