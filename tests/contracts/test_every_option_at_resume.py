"""Every setting that is changed at a resume takes effect, or is refused in one line: none is silently ignored.

What there is to see of each is said in the table of test_every_option.py; here a run of some epochs is resumed for as
many, once as it was and once with the change.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import test_every_option as every
from small_runs import hash_of
from test_every_option import TABLE, WITH_BF16, needs_bf16
from tiny import tiny

from gridmill.config import Config
from gridmill.policy import checkpoint
from gridmill.run import Run
from gridmill.runs import overrides, resume, train

pytestmark = pytest.mark.xdist_group("options at resume")  # one process, for they begin with the same few runs

REFUSED = {
    "run", "seed", "game", "optimizer.kind", "trainer.num_worlds", "trainer.masks", "trainer.desync_episodes",
    "curriculum.sets", "players", *(path for path in TABLE if path.startswith("policy.")),
}  # fmt: skip
BEGINS = tuple(path for path in TABLE if path.startswith("losses.") and path.endswith(".begin"))
# What still lies ahead after a resume.
VALUES: dict[str, tuple[Any, ...]] = dict.fromkeys(BEGINS, (1_000.0,)) | {"supervised_steps": (10_000,)}
HEADS = {"losses.contrastive.size"}  # what a saved module is as large as


def text(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, Config):
        return json.dumps(value.tree())
    if isinstance(value, dict | tuple):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@functools.cache
def half(run: Run) -> Path:
    return train(run.replace("run", "half"), tempfile.mkdtemp(), panel=False).folder


def resumed(run: Run, changes: Sequence[str]) -> tuple[Path, int]:
    """A run resumed for as many epochs as it had, unless the changes say otherwise; its folder and exit code."""
    folder = Path(tempfile.mkdtemp()) / "half"
    shutil.copytree(half(run), folder)
    longer = f"trainer.total_timesteps={2 * run.trainer.total_timesteps}"
    return folder, resume(folder, [longer, *changes], panel=False).exit_code


def look(see: Callable[[Run], Any], run: Run, *changes: str) -> str:
    """What the table looks at, in a run that is resumed with changes."""
    if see is every.weights:
        folder, _ = resumed(run, changes)
        return hash_of(dict(sorted(checkpoint.load(checkpoint.find(folder)).policy.items())))
    if see is every.exit_code:
        return str(resumed(run, changes)[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(every, "session", lambda _: resumed(run, changes)[0])
        return repr(see(overrides.apply(run, changes)))


@functools.cache
def steady(see: Callable[[Run], Any], run: Run) -> str:
    """The same in a run resumed as it was: twice, for it does not change by itself, and once for all settings."""
    if see in (every.evaluations, every.wandb):
        look(see, run)  # what the run to be resumed says itself is heard here
    first = look(see, run)
    assert look(see, run) == first
    return first


def test_what_is_refused_are_settings() -> None:
    assert set(TABLE) >= REFUSED


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_it_is_refused_in_one_line(path: str) -> None:
    case = TABLE[path]
    base = case.base()
    for value in case.values:
        with pytest.raises(ValueError, match=rf"resume: (.*; )?{path.replace('.', '[.]')}[. ].*was ") as caught:
            resumed(base, [f"{path}={text(value)}"])
        assert "\n" not in str(caught.value)


def marks_of(path: str) -> list[pytest.MarkDecorator]:
    """Two runs a setting take a second: on every change each third of those whose runs are short."""
    costly = path.startswith(("profiler.", "evaluation.", "checkpoint.keep")) or list(TABLE).index(path) % 3 > 0
    return [needs_bf16] * (path in WITH_BF16) + [pytest.mark.long] * costly


@pytest.mark.parametrize("values", [1, pytest.param(None, marks=pytest.mark.long)], ids=["first", "all"])
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=marks_of(p)) for p in TABLE if p not in REFUSED | HEADS],
)
def test_it_takes_effect(path: str, values: int | None) -> None:
    """The first of the other values; long: all of them."""
    case = TABLE[path]
    base = case.base()
    seen = [steady(case.see, base)]
    for value in VALUES.get(path, case.values)[:values]:
        seen.append(look(case.see, base, f"{path}={text(value)}"))
    assert len(set(seen)) == len(seen), seen


@pytest.mark.parametrize("path", sorted(HEADS))
def test_a_module_of_another_size_is_refused_in_one_line(path: str) -> None:
    case = TABLE[path]
    with pytest.raises(ValueError, match=r"^losses: the run was saved with the modules of"):
        resumed(case.base(), [f"{path}={text(case.values[0])}"])


def test_worlds_of_another_implementation_are_refused_in_one_line() -> None:
    """Its table looks at a trainer that was made; the saved worlds are what does not fit."""
    base = tiny(2, **every.VECTORS, trainer__batch_size=64, trainer__minibatch_size=16)
    with pytest.raises(
        ValueError, match=r"^expected worlds of the reference; resume with the trainer\.env_impl of the"
    ):
        resumed(base, ["trainer.env_impl=reference"])


def test_other_lanes_threads_and_microbatches_go_on() -> None:
    """Of them, too, the table looks at a trainer that was made."""
    changes = ["trainer.async_factor=4", "trainer.threads=2", "trainer.max_microbatch=8", "trainer.tf32=false"]
    assert resumed(tiny(2), changes)[1] == 0
