"""Wrote the files beside it, with the first build that had format 2: they must play to their hashes for ever.

    python tests/data/replays/write.py

The episodes are those of tests/data/4590d82, which have format 1; to each comes a fork, by hand so to speak.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gridmill import replay

HERE = Path(__file__).resolve().parent


def main() -> None:
    for name in ("grid", "prospector"):
        old = replay.read(HERE.parent / "4590d82" / f"{name}.replay")
        first = old.branches[0]
        tape = replay.record(
            old.game, old.seed, old.actions, first.who, old.played_by, name, ["best"], keyframes_every=100
        )
        actions = np.random.default_rng(0).integers(0, 4, (5, tape.agents))
        tape = replay.fork(tape, 0, 30, actions, {"0": "human"}, "a fork")
        replay.write(HERE / f"{name}.replay", tape)


if __name__ == "__main__":
    main()
