"""Whether a checkpoint can be used: its numbers by a network, its settings by a run that wants to go on from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gridmill.config import Config, flatten, user_code
from gridmill.policy.checkpoint import POLICY, RECORD, TRAINER, Checkpoint, CheckpointError

# Settings that the saved tensors and worlds were made for, or that only the beginning of a run reads; everything
# else may change at a resume.
FIXED = (
    "run",
    "seed",
    "policy",
    "game",
    "curriculum.sets",
    "optimizer.kind",
    "trainer.num_worlds",
    "trainer.masks",
    "trainer.desync_episodes",
    "players",
)
UNSAID = {"run.policy.init_from": "", "run.policy.network": ""}  # what a record from before the setting existed means


def refuse_unusable(found: Checkpoint, own: Mapping[str, Tensor]) -> None:
    """CheckpointError naming the first weight that is not finite, or is not as the network's own is."""
    if own.keys() != found.policy.keys():
        other = sorted(own.keys() ^ found.policy.keys())[0]
        said = (
            "expected a tensor of this name, got none" if other in own else "expected no tensor of this name, got one"
        )
        raise CheckpointError(f"{other:.200}: {said}", found.path / POLICY)
    for name, tensor in found.policy.items():
        for what in ("dtype", "shape"):
            mine, theirs = getattr(own[name], what), getattr(tensor, what)
            if mine != theirs:
                raise CheckpointError(f"{name}: expected {_of(mine)}, got {_of(theirs)}", found.path / POLICY)
    refuse_infinite(found)


def refuse_infinite(found: Checkpoint) -> None:
    """CheckpointError naming the first number that is none: a score, or a run, comes out of any numbers."""
    for file, tensors in ((POLICY, found.policy), (TRAINER, found.trainer)):
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise CheckpointError(f"{name:.200}: expected finite numbers, got NaN or infinity", found.path / file)


def changed_code(found: Checkpoint, tree: Any) -> list[str]:
    """Of code that settings name, what is not the code that they were saved with."""
    saved = found.record.get("code")
    hashes = {user_code.meant(text): was for text, was in saved.items()} if isinstance(saved, dict) else {}
    return [
        f"{text} has changed since the run was saved: sha256 {now[:12]}, was {was!s:.12}"
        for text in user_code.named_in(tree)
        if (was := hashes.get(user_code.meant(text))) is not None and (now := user_code.sha256(text)) != was
    ]


def _of(what: torch.dtype | torch.Size) -> str:
    return str(what) if isinstance(what, torch.dtype) else f"the shape {tuple(what)}"


def refuse_mismatch(record: Mapping[str, Any], run: Config, spec: Config | None) -> None:
    """CheckpointError naming each field in which a saved record and the run that wants to go on from it differ.

    Compared are record["spec"] with the environment's, if there is one, and of record["run"] the settings in FIXED.
    """
    saved = UNSAID | flatten({**record, "run": run.upgraded(record.get("run"))})
    wanted = flatten({"run": run.tree(), "spec": record.get("spec") if spec is None else spec.tree()})
    fixed = ("spec", *(f"run.{name}" for name in FIXED))
    paths = [path for path in {**saved, **wanted} if any(f"{path}.".startswith(f"{part}.") for part in fixed)]
    absent: dict[str, Any] = {}  # and so is what has no parts
    differing = [path for path in paths if _meant(saved.get(path, absent)) != _meant(wanted.get(path, absent))]
    if differing:
        name = "run.game.name"  # of another game, most else follows from that
        told = [path for path in differing if not path.startswith(("run.game.", "spec.")) or path == name]
        first = (told if name in differing else differing)[:10]
        shown = [f"{path.removeprefix('run.')} was {_show(saved, path)}, is {_show(wanted, path)}" for path in first]
        left = len(differing) - len(first)
        more = f"; and {left} more" if left else ""
        raise CheckpointError(
            f"these settings cannot change at a resume: {'; '.join(shown)}{more}; leave them out, or start a new run",
            Path(RECORD),
        )


def _meant(value: Any) -> Any:
    """Code may lie elsewhere than when it was saved: what was taken for it is the same."""
    return user_code.meant(value) if isinstance(value, str) else value


def _show(flat: Mapping[str, Any], path: str) -> str:
    return f"{flat[path]!r:.60}" if path in flat else "absent"
