"""Replays for the viewer's tests, the pages that show them, and what the native engine says about a tick."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromium
import numpy as np

import gridmill
from gridmill import games, replay
from gridmill.env import GameConfig
from gridmill.viewer import engine
from gridmill.viewer.export import page_files
from gridmill.viewer.serve import serve

SEED = 11


def tape_of(game: GameConfig, ticks: int, seed: int = SEED) -> replay.Replay:
    """A replay in which everybody does what the masks allow, by chance."""
    rng = np.random.default_rng(seed)
    rows = []
    with gridmill.make(game, num_worlds=1, seed=seed, masks=True) as env:
        env.reset()
        for _ in range(ticks):
            draws = rng.random(env.masks.shape) * env.masks
            rows.append(draws.argmax(axis=1).astype(np.int32))
            env.step(rows[-1])
            if env.terminals[0] or env.truncations[0]:
                break
    return replay.record(game, seed, np.stack(rows), {"*": "random"}, name="recorded")


def small_game(name: str) -> GameConfig:
    return games.build(name)


def new_policy() -> replay.PolicyRecord:
    """A policy of the arena that has learned nothing, weights and all."""
    import hashlib

    import torch

    from gridmill.policy.config import PolicyConfig
    from gridmill.policy.network import Policy
    from gridmill.policy.spec import Spec

    with gridmill.make(games.arena(), num_worlds=1) as env:
        spec = Spec.of(env)
    torch.manual_seed(1)
    weights = Policy(PolicyConfig(), spec).state_dict()
    data = b"".join(tensor.detach().numpy().astype("<f4").tobytes() for tensor in weights.values())
    return replay.PolicyRecord(
        "untrained",
        hash=hashlib.sha256(data).hexdigest(),
        masks=True,
        config=PolicyConfig().tree(),
        spec=spec.tree(),
        tensors=tuple((name, tuple(tensor.shape)) for name, tensor in weights.items()),
        weights=replay.pack(data),
    )


def truth(tape: replay.Replay, tick: int, branch: int = 0) -> dict[str, Any]:
    """What the native engine shows at a tick of a grid game."""
    with replay.Playback(tape, branch) as playback:
        playback.seek(tick)
        found: dict[str, Any] = playback.env.inspect(0)  # type: ignore[attr-defined]
        return found


def hash_at(tape: replay.Replay, tick: int) -> str | None:
    """The hash of the state before a tick; none of an episode's end, which another world would have left."""
    with replay.Playback(tape) as playback:
        playback.seek(tick)
        return None if playback.ended else f"{int(playback.env.state_hash()[0]):016x}"


@contextmanager
def served(start: Mapping[str, Any], files: Mapping[str, bytes | Path], root: Path) -> Iterator[str]:
    """The address of a page that begins with this."""
    with serve(page_files(start, engine.read(), files), root) as running:
        yield running.url


@contextmanager
def shown(running: Any, tape: replay.Replay, root: Path, **options: Any) -> Iterator[tuple[Any, chromium.Faults]]:
    """A page that shows a replay."""
    start = {"files": [{"name": "a.replay", "url": "a.replay"}]}
    with (
        served(start, {"a.replay": replay.encode(tape)}, root) as url,
        chromium.page_of(running, url, **options) as (page, faults),
    ):
        yield page, faults


def open_bytes(page: Any, data: bytes, name: str = "x.replay") -> None:
    """Give a file to a page, as if it had been dropped; whatever is wrong with it becomes a card."""
    page.evaluate(
        """async ([text, name]) => {
          const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
          await gridmill.commands.openFiles([new File([bytes], name)]);
        }""",
        [base64.b64encode(data).decode(), name],
    )


def dropped(page: Any, tapes: Sequence[replay.Replay]) -> list[bool]:
    """Drag replays over a page and drop them; whether it showed that it takes them, before and after."""
    files = [[f"{number}.replay", base64.b64encode(replay.encode(tape)).decode()] for number, tape in enumerate(tapes)]
    found: list[bool] = page.evaluate(
        """(files) => {
          const dataTransfer = new DataTransfer();
          for (const [name, text] of files) {
            dataTransfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
          }
          const shown = [];
          for (const kind of ["dragenter", "drop"]) {
            document.body.dispatchEvent(new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}));
            shown.push(document.body.classList.contains("dropping"));
          }
          return shown;
        }""",
        files,
    )
    return found


def seek(page: Any, tick: int) -> None:
    """To a tick, and wait until its picture is there."""
    page.evaluate("(tick) => gridmill.seek(tick)", tick)
    page.wait_for_function("(tick) => gridmill.arrived && gridmill.pane.drawnTick === tick", arg=tick)


def verified(page: Any) -> None:
    page.wait_for_selector("#badge.verified, #badge.differs")
    assert page.inner_text("#badge").strip() == "✓ verified"
