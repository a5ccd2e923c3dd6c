"""A run that diverges (KL too large, no entropy left, a critic worse than none) is warned about, and stopped if
asked for. Three scripted runs, each with a setting that really makes it go wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import epochs_of, tiny

from gridmill.runs import train

pytestmark = pytest.mark.N2

# What makes it go wrong, where the guard is set, and what it says.
SCRIPTS: dict[str, tuple[dict[str, Any], str]] = {
    "kl": ({"optimizer__learning_rate": 1.0, "optimizer__max_grad_norm": 0.0}, "warning: KL "),
    "entropy": (
        {"optimizer__learning_rate": 0.3, "losses__ppo__entropy_weight": -10.0, "guard__max_kl": 1e12},
        "warning: entropy ",
    ),
    "critic": (
        {
            "optimizer__learning_rate": 0.03,
            "trainer__gamma": 0.0,  # returns are rewards, so the critic cannot make its own
            "losses__value__weight": -1.0,
            "guard__max_kl": 1e12,
            "guard__min_entropy": 0.0,
        },
        "warning: explained variance ",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_divergence_is_said_once(name: str, tmp_path: Path) -> None:
    """The run goes on to its end, with one line that says what is wrong and where the limit is."""
    changes, said = SCRIPTS[name]
    result = train(tiny(20, run="mine", **changes), tmp_path, panel=False)
    told = [line for line in (result.folder / "log.txt").read_text().splitlines() if line.startswith(said)]
    assert len(told) == 1, told
    assert (result.exit_code, result.epochs) == (0, 20)


@pytest.mark.parametrize("name", SCRIPTS)
def test_divergence_stops_the_run_if_asked_for(name: str, tmp_path: Path) -> None:
    """With guard.stop the first warning ends the run with exit code 5."""
    changes, said = SCRIPTS[name]
    result = train(tiny(20, run="mine", guard__stop=True, **changes), tmp_path, panel=False)
    log = (result.folder / "log.txt").read_text().splitlines()
    assert result.exit_code == 5
    assert result.epochs == len(epochs_of(result.folder)) < 20
    assert any(line.startswith(said) for line in log)
    assert log[-1] == "ended: stopped by the guard"


def test_a_healthy_run_is_not_warned_about(tmp_path: Path) -> None:
    result = train(tiny(20, run="mine", guard__stop=True), tmp_path, panel=False)
    assert (result.exit_code, result.epochs) == (0, 20)
    assert "warning" not in (result.folder / "log.txt").read_text()
