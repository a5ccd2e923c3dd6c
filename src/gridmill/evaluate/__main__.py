"""`python -m gridmill.evaluate RUN --policy CHECKPOINT`: what training runs in a process of its own."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gridmill.config import user_code
from gridmill.evaluate import ReplayOptions, as_record, evaluate, run_of
from gridmill.evaluate.others import write_baselines


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate a policy on the game of a run and print the record."""
    asked = argparse.ArgumentParser(prog="python -m gridmill.evaluate", description=main.__doc__)
    asked.add_argument("run", type=Path, help="folder of the run whose game is played")
    asked.add_argument("--policy", required=True)
    asked.add_argument("--episodes", type=int, default=100)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--replay", type=Path, default=None)
    asked.add_argument("--replay-weights", action="store_true")
    asked.add_argument("--baselines", type=Path, default=None, help="make this file, if it is not there")
    asked.add_argument("--code", action="append", default=[], help="code that the run may name")
    given = asked.parse_args(arguments)
    try:
        user_code.take(given.code)
        kept = None if given.replay is None else ReplayOptions(given.replay, weights=given.replay_weights)
        result = evaluate(run_of(given.run), given.policy, given.episodes, given.seed, str(given.run), kept)
        if given.baselines is not None and not given.baselines.exists():
            write_baselines(given.baselines, run_of(given.run), given.episodes, given.seed)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"gridmill: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(as_record([result], given.seed)))


if __name__ == "__main__":
    main()
