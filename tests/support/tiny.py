"""A game and a run so small that whole trainings take a second: berries on an 8x8 map, two agents, episodes of 20."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from gridmill.grid import AgentType, Converter, Game, Inventory, Limit, ObjectType, Observation, RewardTerm, Scatter
from gridmill.policy import checkpoint
from gridmill.run import CheckpointConfig, PolicyConfig, Run, TrainerConfig

SUPPORT = Path(__file__).resolve().parent
EPOCH = 128  # agent-steps: 4 worlds x 2 agents x 16 ticks


def berries(num_agents: int = 2) -> Game:
    """Bushes bear a berry every few ticks; a move into one takes it."""
    return Game(
        name="berries",
        num_agents=num_agents,
        max_steps=20,
        moves=4,
        resources=("berry",),
        agent=AgentType(limits=(Limit(resources=("berry",), base=50),)),
        objects={"wall": ObjectType(), "bush": ObjectType(converter=Converter(outputs={"berry": 1}, cooldown=5))},
        map=Scatter(height=8, width=8, objects={"wall": 2, "bush": 6}),
        observation=Observation(num_tokens=64, overflow="drop"),
        rewards=(RewardTerm(weight=0.1, value=Inventory(resource="berry")),),
    )


def tiny(epochs: int = 2, core: str = "scan", **changes: Any) -> Run:
    """Four minibatches an epoch in two pieces each; no checkpoint but the last unless asked for. `a__b` is `a.b`."""
    run = Run(
        recipe="tiny",
        game=berries(),
        score="berry.get",
        policy=PolicyConfig.load({"core": core, "hidden": 16}),
        trainer=TrainerConfig(
            total_timesteps=epochs * EPOCH,
            num_worlds=4,
            threads=1,
            batch_size=EPOCH,
            minibatch_size=32,
            max_microbatch=16,
            bptt_horizon=8,
            device="cpu",
            reward="scaled",
        ),
        checkpoint=CheckpointConfig(seconds=0),
    )
    return run.replace_all([(path.replace("__", "."), value) for path, value in changes.items()])


def epochs_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, but for evaluations."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if "evaluation" not in record]


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    """What must be equal in two runs of one seed."""
    clocks = ("sps", "sps_mean", "eta", "seconds", "last_checkpoint")
    return {
        name: value
        for name, value in record.items()
        if name not in clocks and not name.startswith(("time/", "memory/", "cpu/", "gpu/"))
    }


def difference(one: Path, other: Path) -> float:
    """The largest absolute difference of two runs' newest checkpoints over all tensors; bytes count as numbers."""
    a, b = (checkpoint.newest(folder)[0] for folder in (one, other))
    assert a.epoch == b.epoch
    largest = 0.0
    for mine, theirs in ((a.policy, b.policy), (a.trainer, b.trainer)):
        assert mine.keys() == theirs.keys()
        for name, tensor in mine.items():
            assert tensor.shape == theirs[name].shape, name
            apart = (tensor.double() - theirs[name].double()).abs()
            largest = max(largest, float(apart.max()) if apart.numel() else 0.0)
            assert torch.equal(tensor, theirs[name]) == (not apart.any()), name
    return largest
