"""Numbers that no option takes, or that nothing could ever reach, are refused by name, in one line and at once."""

from __future__ import annotations

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from gridmill import cli
from gridmill.cli.groups import Command

HUGE = "99999999999999999999999"
REFUSED = [
    ("eval toy --episodes 99999999999999", 2, "--episodes must be at most 1000000000, got 99999999999999"),
    (f"eval toy --episodes {HUGE}", 2, "--episodes: expected a number of at most 64 bits, got one of 77"),
    ("eval toy --temperature nan", 2, "--temperature: expected a finite number, got nan"),
    ("eval toy --temperature=-inf", 2, "--temperature: expected a finite number, got -inf"),
    (f"eval toy --seed -{HUGE}", 2, "--seed: expected a number of at most 64 bits, got one of 77"),
    (
        "watch arena --from 99999999999 --to 99999999999999",
        2,
        "--from must be below --to, --to at most 1000000, got 99999999999 and 99999999999999",
    ),
    ("watch arena --fps nan", 2, "--fps: expected a finite number, got nan"),
    ("watch arena --fps 1e9", 2, "--fps must be at most 1000, got 1000000000"),
    (f"watch arena --agent {HUGE}", 2, "--agent: expected a number of at most 64 bits, got one of 77"),
    ("watch arena --agent 24", 2, "--agent must be 0 to 23 in arena, got 24"),
    ("watch arena --agent -1", 2, "--agent must be 0 to 23 in arena, got -1"),
    ("watch arena --every 1000001", 2, "--every must be at most 1000000, got 1000001"),
    ("show arena --steps 1000001", 2, "--steps must be at most 1000000, got 1000001"),
    ("show arena --scale 1000", 2, "--scale must be at most 256, got 1000"),
    ("bench step --density nan", 64, "--density: expected a finite number, got nan"),
    (f"bench step --rounds {HUGE}", 64, "--rounds: expected a number of at most 64 bits, got one of 77"),
    ("gate --planted inf", 2, "--planted: expected a finite number, got inf"),
    ("throughput --target-steps-per-sec nan", 2, "--target-steps-per-sec: expected a finite number, got nan"),
    ("compare-presets --seconds nan", 2, "--seconds: expected a finite number, got nan"),
    ("profile train ci --expected-sps nan", 2, "--expected-sps: expected a finite number, got nan"),
    (f"sweep ci --trials {HUGE}", 2, "--trials: expected a number of at most 64 bits, got one of 77"),
    ("view toy --port 65536", 2, "--port must be 0 to 65535, got 65536"),
    (f"play arena --agent {HUGE}", 2, "--agent: expected a number of at most 64 bits, got one of 77"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED, ids=[words for words, _, _ in REFUSED])
def test_what_is_no_number_is_refused_at_once(words: str, code: int, said: str) -> None:
    done = CliRunner().invoke(cli.app, words.split())
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", f"gridmill: {said}\n")


def test_every_command_looks_at_its_numbers() -> None:
    found = dict(get_command(cli.app).commands)  # type: ignore[attr-defined]
    for name, group in list(found.items()):
        if hasattr(group, "commands"):
            del found[name]
            found |= {f"{name} {inner}": command for inner, command in group.commands.items()}
    assert [name for name, command in found.items() if not isinstance(command, Command)] == []
    assert len(found) > 30
