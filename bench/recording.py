"""What recording replays costs: an evaluation that saves some against one that saves none, in turns, in one process.

    python bench/recording.py                                  # the arena's script, 100 episodes, one replay
    python bench/recording.py --policy runs/demo --replays 3   # a trained policy, three replays
    python bench/recording.py --control                        # none against none

In a block the two take turns (a b b a), so that a noisy machine disturbs both alike; the first line is the median of
the blocks' ratios of CPU seconds with its interval of 95 %. The second adds up what recording itself took in the same
evaluations, which tells tenths of a percent where the ratio tells five.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridmill import evaluate, replay
from gridmill.workshop.statistics import paired_ratio

spent = [0.0]  # CPU seconds in what only recording calls


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*words: Any, **named: Any) -> Any:
        began = time.process_time()
        try:
            return call(*words, **named)
        finally:
            spent[0] += time.process_time() - began

    return timed


def seconds(arguments: argparse.Namespace, folder: Path | None) -> float:
    """CPU seconds of one evaluation."""
    kept = None
    if folder is not None:
        many = arguments.replays > 1
        first = None if many else folder / "first.replay"
        kept = evaluate.ReplayOptions(first, folder if many else None, arguments.replays if many else 0)
    began = time.process_time()
    evaluate.evaluate(arguments.game, arguments.policy, arguments.episodes, 0, replay=kept)
    return time.process_time() - began


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--game", default="arena_basic_easy_shaped")
    asked.add_argument("--policy", default="script:arena")
    asked.add_argument("--episodes", type=int, default=100)
    asked.add_argument("--replays", type=int, default=1)
    asked.add_argument("--blocks", type=int, default=10)
    asked.add_argument("--control", action="store_true")
    given = asked.parse_args()
    for holder, calls in ((replay.Recorder, ["after"]), (evaluate, ["recorded", "save"])):
        for call in calls:
            setattr(holder, call, counted(getattr(holder, call)))
    shares = list[float]()
    with tempfile.TemporaryDirectory() as name:
        folder = None if given.control else Path(name)
        seconds(given, folder)  # memory is touched, code is loaded
        plain, recorded = list[float](), list[float]()
        for _ in range(given.blocks):
            spent[0] = 0.0
            a, b = seconds(given, None), seconds(given, folder)
            c, d = seconds(given, folder), seconds(given, None)
            shares.append(spent[0] / (b + c - spent[0]))
            plain.append(a + d)
            recorded.append(b + c)
    print(f"{given.episodes} episodes of {given.game}, {given.policy}: {sum(plain) / 2 / given.blocks:.3f} CPU s")
    found = paired_ratio(recorded, plain)
    print(f"recording {given.replays} of them: {found} of that")
    print(f"its own parts: {statistics.median(shares):.2%} [{min(shares):.2%}, {max(shares):.2%}] of the rest")


if __name__ == "__main__":
    main()
