"""What a curriculum costs: training with many tasks against training with none, in turns, in one process.

    python bench/curriculum.py                       # 1 000 tasks, 20 blocks: the arena, episodes of 1 000 ticks
    python bench/curriculum.py --max-steps 100       # ten times as many episodes
    python bench/curriculum.py --control             # none against none: what the measurement itself makes of nothing

Both trainers play the arena with a reward term for every stage, with a learning rate of 0, so that they behave alike.
The tasks differ in what the terms pay, which changes the program of every world and nothing that takes time. The pool
is filled before the first block. In a block the two take turns epoch by epoch (a b b a a b ..), so that a noisy machine
disturbs both alike; a line is the median of the blocks' ratios of agent-steps per second, by the clock and by CPU
seconds, with its interval of 95 %. One thread, so that CPU seconds mean something. Then what the authority's own
calls took: no noise, but without what other programs do to the caches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from gridmill import recipes
from gridmill.curriculum import CurriculumConfig, Range, TaskSet
from gridmill.recipes.arena_curriculum import with_stages
from gridmill.run import Run
from gridmill.train.trainer import Trainer
from gridmill.workshop.statistics import median, paired_ratio


def run_of(arguments: argparse.Namespace) -> Run:
    """A run with a curriculum whose tasks take the same time as the game itself: rewards differ by a thousandth.

    With weights from 0 to 1 beside a game whose four terms are worth nothing, the two sides would see and do different
    things.
    """
    weights = {f"rewards.{place}.weight": 0.5 for place in range(4)}
    vary = tuple(Range(path=path, low=0.999 * weight, high=weight) for path, weight in weights.items())
    tasks = CurriculumConfig(
        sets={"arena": TaskSet(vary=vary, target=1.0)}, choose=arguments.choose, tasks=arguments.tasks
    )
    changes: list[tuple[str, Any]] = [
        ("game", with_stages().replace_all([*weights.items(), ("max_steps", arguments.max_steps)])),
        ("curriculum", tasks),
        ("trainer.num_worlds", 16),  # 384 rows x 50 ticks
        ("trainer.batch_size", 19_200),
        ("trainer.minibatch_size", 4_800),
        ("optimizer.learning_rate", 0.0),
        ("trainer.threads", 1),
        ("trainer.device", "cpu"),
    ]
    return recipes.build("arena_curriculum").replace_all(changes)


def trainer_of(run: Run, warm: int) -> Trainer:
    """A trainer whose pool is full and whose memory has been touched."""
    trainer = Trainer(run)
    if trainer.curriculum is not None:
        while len(trainer.curriculum.pool) < run.curriculum.tasks:
            trainer.curriculum._grow()
    for _ in range(warm):
        trainer.epoch()
    return trainer


class Own:
    """CPU seconds of this thread inside the authority's two calls."""

    def __init__(self, trainer: Trainer) -> None:
        self.seconds = 0.0
        if trainer.curriculum is not None:
            trainer.rollout.begun = self.timed(trainer.curriculum.hand_out)
            trainer.curriculum.learn = self.timed(trainer.curriculum.learn)  # type: ignore[method-assign]

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*given: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*given)
            finally:
                self.seconds += time.thread_time() - began

        return inner


def block(trainers: tuple[Trainer, Trainer], epochs: int) -> list[tuple[float, float]]:
    """Agent-steps per second of both, by the clock and by CPU seconds."""
    spent = [[0.0, 0.0], [0.0, 0.0]]
    for turn in range(epochs):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            clock, cpu = time.perf_counter(), time.process_time()
            trainers[which].epoch()
            spent[which][0] += time.perf_counter() - clock
            spent[which][1] += time.process_time() - cpu
    steps = epochs * trainers[0].sizes.batch_size
    return [(steps / seconds, steps / cpu_seconds) for seconds, cpu_seconds in spent]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--tasks", type=int, default=1_000)
    asked.add_argument("--blocks", type=int, default=20)
    asked.add_argument("--epochs", type=int, default=8, help="of each trainer in a block")
    asked.add_argument("--max-steps", type=int, default=1_000, help="ticks of an episode")
    asked.add_argument("--choose", default="learning_progress")
    asked.add_argument("--control", action="store_true")
    arguments = asked.parse_args()
    run = run_of(arguments)
    none = run.replace("curriculum.sets", {})
    tested, plain = (trainer_of(each, 3) for each in (none if arguments.control else run, none))
    own, began = Own(tested), tested.agent_steps
    rates = [block((tested, plain), arguments.epochs) for _ in range(arguments.blocks)]
    what = "none" if arguments.control else f"{arguments.tasks} tasks ({arguments.choose})"
    print(
        f"{what} against none, {arguments.blocks} blocks of {arguments.epochs} epochs, max_steps {arguments.max_steps}"
    )
    for place, unit in enumerate(("second", "CPU second")):
        ours, theirs = ([pair[which][place] for pair in rates] for which in (0, 1))
        found = paired_ratio(ours, theirs)
        print(
            f"per {unit}: {median(ours):,.0f} against {median(theirs):,.0f} agent-steps, "
            f"ratio {found.ratio:.4f} [{found.low:.4f}, {found.high:.4f}]"
        )
    if tested.curriculum is not None:
        needed = (tested.agent_steps - began) / median([pair[0][1] for pair in rates])
        print(f"the authority's own calls: {own.seconds:.3f} of {needed:.1f} CPU seconds, {own.seconds / needed:.3%}")
        print({name: value for name, value in tested.curriculum.metrics.items() if "/s" not in name})
    for trainer in (tested, plain):
        trainer.close()


if __name__ == "__main__":
    main()
