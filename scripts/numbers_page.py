"""Writes docs/numbers.md from what lies in bench/results/.

The tables of `tables/*.json` are shown as they are: title, columns, rows, machine, commit, commands and the outputs
they were taken from. Rollout and train come straight from what `gridmill bench train --output` wrote. Nothing is
measured or computed here; `tests/contracts/test_numbers.py` holds the page, the tables and the outputs in step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "numbers.md"
INTRO = """# Numbers

This page is written by `python scripts/numbers_page.py` from the files in `bench/results/`, without measuring. Every
table names its machine, its commit and its commands. The machines were shared and noisy: compare within a table, not
between tables. Intervals are 95 % of the median paired ratio. `make bench` runs the commands again.

How the figures were measured, and others that are not repeated here: [the engine](lab/engine.md),
[the trainer](lab/trainer.md), [the recipes](lab/recipes.md). What each tool measures: [the workshop](workshop.md).
"""
SECTIONS = {
    "step": "the environment alone, without a policy",
    "rollout": "the environment and a policy that acts",
    "train": "whole epochs, rollout and learning",
    "learning": "what was learned, and how soon",
    "peers": "other projects, in turns with ours (pufferlib-core is under rollout and train)",
}
TRAINED = {"LSTM": "train_lstm.json", "MLP": "train_mlp.json"}
NETWORK = (
    "Prospector, 1 024 worlds x 64 steps, minibatches of 8 192, one update epoch, Adam, dense layers of 128 and 128, "
    "with an LSTM of 128 or without (MLP), no masks, one lane. "
)
SPEEDS = {
    "rollout": {
        "gridmill": "rollout",
        "pufferlib-core 3.0.23": "pufferlib-core 3.0.23 rollout",
        "torch's act alone": "torch's act",
    },
    "train": {
        "gridmill": "train",
        "pufferlib-core 3.0.23": "pufferlib-core 3.0.23 train",
        "torch's act + learn alone": "torch's act + learn",
        "... with sampling and loss": "... + sampling + loss",
    },
}
RATIOS = {
    "rollout": {
        "gridmill / pufferlib-core": "rollout / peer's rollout",
        "gridmill / torch's act": "rollout / torch's act",
        "gridmill / torch's act with sampling": "rollout / ... + sampling",
    },
    "train": {
        "gridmill / pufferlib-core": "train / peer",
        "gridmill / act + learn": "train / torch's act + learn",
        "gridmill / act + learn with sampling and loss": "train / ... + sampling + loss",
    },
}


def tables() -> list[dict[str, Any]]:
    """The tables of bench/results/tables, in the order of their names, then those of `bench train`."""
    found = [json.loads(path.read_text()) for path in sorted((RESULTS / "tables").glob("*.json"))]
    return [*found, *(trained(section) for section in SPEEDS)]


def trained(section: str) -> dict[str, Any]:
    """The table of rollout or of train: a column for each network and number of threads."""
    records = {network: json.loads((RESULTS / file).read_text()) for network, file in TRAINED.items()}
    runs = [(network, run) for network, record in records.items() for run in record["runs"]]
    heads = [f"{network}, {run['threads']} thread{'s' * (run['threads'] > 1)}" for network, run in runs]
    rows = [
        [label, *(f"{run['speeds'][name]['wall']['median'] / 1e3:.1f}" for _, run in runs)]
        for label, name in SPEEDS[section].items()
    ]
    rows += [[label, *(_ratio(run, name) for _, run in runs)] for label, name in RATIOS[section].items()]
    machine, rounds = next(iter(records.values()))["machine"], runs[0][1]["speeds"]["train"]["wall"]["count"]
    cpu = machine["cpu"]
    return {
        "section": section,
        "title": "Prospector",
        "lead": f"{NETWORK}Thousands of agent-steps per wall second, medians of {rounds} rounds.",
        "columns": ["", *heads],
        "rows": rows,
        "machine": f"{cpu['cores']} shared cores, {cpu['model']}, {machine['native']['isa']} path",
        "commit": machine["commit"]["hash"][:7],
        "date": machine["date"][:10],
        "commands": [" ".join(_without_output(record["machine"]["command"])) for record in records.values()],
        "outputs": list(TRAINED.values()),
    }


def _ratio(run: dict[str, Any], name: str) -> str:
    found = next(c for c in run["comparisons"] if c["name"] == name and c["clock"] == "wall")
    return f"{found['ratio']:.2f}x [{found['low']:.2f}, {found['high']:.2f}]"


def _without_output(command: list[str]) -> list[str]:
    at = command.index("--output")
    return command[:at] + command[at + 2 :]


def text(table: dict[str, Any]) -> str:
    """One table with everything that must stand beside its figures."""
    lines = [f"### {table['title']}", "", table["lead"], ""]
    lines += [_row(table["columns"]), _row(["---"] * len(table["columns"])), *map(_row, table["rows"])]
    measured = f"Commit {table['commit']}; {table['machine']}" + (f"; {table['date']}" if table["date"] else "")
    outputs = ", ".join(f"`{name}`" for name in table["outputs"])
    lines += ["", measured + (f"; outputs: {outputs}." if outputs else "; no output was kept."), ""]
    return "\n".join([*lines, *(f"- `{command}`" for command in table["commands"]), ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole of docs/numbers.md."""
    parts = [INTRO]
    for section, what in SECTIONS.items():
        parts.append(f"## {section.capitalize()}: {what}\n")
        parts += [text(table) for table in tables() if table["section"] == section]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")
