"""What recording replays costs: an evaluation that saves some against one that saves none, in turns, in one process.

    python bench/recording.py                                  # the arena's script, 100 episodes, one replay
    python bench/recording.py --policy runs/demo --replays 3   # a trained policy, three replays
    python bench/recording.py --control                        # none against none

In a block the two take turns (a b b a), so that a noisy machine disturbs both alike; the line is the median of the
blocks' ratios of CPU seconds with its interval of 95 %.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from gridmill import evaluate
from gridmill.workshop.statistics import paired_ratio


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
    with tempfile.TemporaryDirectory() as name:
        folder = None if given.control else Path(name)
        seconds(given, folder)  # memory is touched, code is loaded
        plain, recorded = list[float](), list[float]()
        for _ in range(given.blocks):
            a, b = seconds(given, None), seconds(given, folder)
            c, d = seconds(given, folder), seconds(given, None)
            plain.append(a + d)
            recorded.append(b + c)
    print(f"{given.episodes} episodes of {given.game}, {given.policy}: {sum(plain) / 2 / given.blocks:.3f} CPU s")
    found = paired_ratio(recorded, plain)
    print(f"recording {given.replays} of them: x {found}")


if __name__ == "__main__":
    main()
