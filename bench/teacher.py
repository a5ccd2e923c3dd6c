"""What a teacher costs: training with a script to imitate against training without, in turns, in one process.

    python bench/teacher.py extractor_hub_supervised_to_ppo
    python bench/teacher.py cogsguard_supervised_to_ppo --blocks 5 --epochs 1

Three trainers of a recipe take turns epoch by epoch: one that only imitates (its supervised steps), one that learns
from rewards with a pull to the script, one without a teacher. The policy acts in all of them, with a learning rate of
0, so that they come to the same places. A line is the median of the blocks' ratios of agent-steps per CPU second to
those of the last one, with its interval of 95 %. One thread, so that CPU seconds mean something.
"""

from __future__ import annotations

import argparse
import time

from gridmill import recipes
from gridmill.run import Run
from gridmill.train.trainer import Trainer
from gridmill.workshop.statistics import median, paired_ratio

WITHOUT = "no teacher"


def runs_of(name: str) -> dict[str, Run]:
    """The recipe's three forms, by what they are called."""
    run = recipes.build(name).replace_all(
        [
            ("optimizer.learning_rate", 0.0),
            ("trainer.threads", 1),
            ("trainer.device", "cpu"),
            ("losses.clone.lead", 0.0),
            ("losses.clone.weight", 1.0),
        ]
    )
    losses = {each: loss for each, loss in run.losses.items() if each != "clone"}
    plain = run.replace_all([("supervised_steps", 0), ("losses", losses), ("teacher", "")])
    return {"imitating": run, "learning with a pull": run.replace("supervised_steps", 0), WITHOUT: plain}


def block(trainers: dict[str, Trainer], epochs: int) -> dict[str, float]:
    """Agent-steps per CPU second of each, in turns that begin with another one every time."""
    spent = dict.fromkeys(trainers, 0.0)
    names = list(trainers)
    for turn in range(epochs * len(names)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            began = time.process_time()
            trainers[name].epoch()
            spent[name] += time.process_time() - began
    steps = epochs * len(names) * trainers[WITHOUT].sizes.batch_size
    return {name: steps / seconds for name, seconds in spent.items()}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("recipe")
    asked.add_argument("--blocks", type=int, default=9)
    asked.add_argument("--epochs", type=int, default=1, help="of each trainer in each of the three turns of a block")
    arguments = asked.parse_args()
    trainers = {name: Trainer(run) for name, run in runs_of(arguments.recipe).items()}
    for trainer in trainers.values():
        trainer.epoch()
    rates = [block(trainers, arguments.epochs) for _ in range(arguments.blocks)]
    print(f"{arguments.recipe}, {arguments.blocks} blocks, agent-steps per CPU second, one thread")
    without = [rate[WITHOUT] for rate in rates]
    for name in trainers:
        ours = [rate[name] for rate in rates]
        found = paired_ratio(ours, without)
        print(f"{name}: {median(ours):,.0f}, ratio {found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]")
    for trainer in trainers.values():
        trainer.close()


if __name__ == "__main__":
    main()
