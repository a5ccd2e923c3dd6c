"""The lines of log.txt: titles, an epoch, an evaluation; what writes them and what reads them again share these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridmill.config.text import hang
from gridmill.runs.figures import count, duration, number

COLUMNS = {"epoch": 6, "steps": 9, "sps": 8, "score": 9, "reward": 9, "policy": 9, "value": 9, "entropy": 9, "eta": 10}
TITLES = "".join(name.rjust(width) for name, width in COLUMNS.items())
ENDED = "ended: "


def epoch_line(metrics: Mapping[str, Any]) -> str:
    """One line of log.txt, under TITLES."""
    cells = {
        "epoch": str(metrics.get("epoch", "")),
        "steps": count(metrics.get("agent_steps")),
        "sps": count(metrics.get("sps")),
        "score": number(metrics.get("score_recent", metrics.get("score"))),
        "reward": number(metrics.get("reward")),
        "policy": number(metrics.get("loss/policy")),
        "value": number(metrics.get("loss/value")),
        "entropy": number(metrics.get("loss/entropy")),
        "eta": duration(metrics.get("eta")),
    }
    return "".join(cells[name].rjust(width) for name, width in COLUMNS.items())


def evaluation_lines(record: Mapping[str, Any]) -> list[str]:
    """An evaluation in words, a line for each game and policy."""
    lines: list[str] = []
    results = evaluation_results(record)
    for result in results:
        said = [
            f"{what} {number(result[what].get('mean'))} +- {number(result[what].get('se'))}"
            for what in ("score", "reward")
            if isinstance(result.get(what), Mapping)
        ]
        words = f"evaluation, epoch {record.get('epoch')}: {', '.join(said)} ({result.get('episodes', '?')} episodes)"
        if len(results) > 1:
            words += f" in {result.get('game', '?')}"
        lines += hang("", words, 4)
    return lines


def evaluation_results(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results inside a line of metrics.jsonl that has an evaluation."""
    evaluation = record.get("evaluation")
    results = evaluation.get("results", [evaluation]) if isinstance(evaluation, Mapping) else []
    return [result for result in results if isinstance(result, Mapping)]
