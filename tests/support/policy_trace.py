"""What policies with drawn weights do in Python. Cases come as JSON on stdin, answers go to stdout.

A case names a game, the settings of a network, how many steps and whether dense layers shall be the core's own
(`exact`) instead of torch's, which Python prefers where the core has no fast products.
"""

from __future__ import annotations

import base64
import json
import sys
import warnings
from typing import Any

import numpy as np
import torch

import gridmill
from gridmill.grid.env import TokenBudgetWarning
from gridmill.policy import portable
from gridmill.policy.config import PolicyConfig
from gridmill.policy.layers import Dense
from gridmill.policy.network import Policy
from gridmill.policy.player import Player
from gridmill.policy.spec import Spec


def drawn(config: PolicyConfig, spec: Spec, exact: bool) -> Policy:
    """A network with weights that make a difference everywhere, biases included."""
    policy = Policy(config, spec, seed=3)
    rng = np.random.default_rng(5)
    with torch.no_grad():
        for weight in policy.parameters():
            weight += torch.from_numpy(rng.normal(0, 0.05, tuple(weight.shape)).astype(np.float32))
    for layer in policy.modules():
        if isinstance(layer, Dense) and exact:
            layer._fast = True
    policy.heads._fast = exact or policy.heads._fast
    policy.freeze(True)
    return policy


def traced(case: dict[str, Any]) -> dict[str, Any]:
    game = gridmill.games.build(case["game"])
    if "max_steps" in case:
        game = game.replace("max_steps", case["max_steps"])
    config = PolicyConfig(**case["config"])
    with gridmill.make(game, num_worlds=1, seed=case["seed"], masks=True) as env:
        env.reset()
        policy = drawn(config, Spec.of(env), case["exact"])
        player = Player(policy, masks=case["masks"])
        player.bind(env, seed=case["seed"])
        state, logits, values, actions = None, [], [], []
        for step in range(case["steps"]):
            thought = player.think(env.obs, state, env.masks)
            if step % case["every"] == 0:
                logits += [base64.b64encode(row.numpy().tobytes()).decode() for row in thought.logits]
                values += [float(value) for value in thought.values]
            chosen = player.choose(thought, step)
            if case["greedy"]:
                chosen = thought.log_probs().argmax(-1).numpy().astype(np.int32)
            actions.append(chosen.tolist())
            env.step(chosen)
            state = player.reset(thought.state, env.terminals | env.truncations)
    tensors = {name: tensor.detach().contiguous() for name, tensor in policy.state_dict().items()}
    weights = b"".join(tensor.numpy().tobytes() for tensor in tensors.values())
    head = {
        "config": portable.settings_of(config),
        "spec": policy.spec.tree(),
        "masks": case["masks"],
        "tensors": [[name, list(tensor.shape)] for name, tensor in tensors.items()],
    }
    return {
        "head": head,
        "weights": base64.b64encode(weights).decode(),
        "game": {"kind": game.kind, "tree": game.core_tree()},
        "actions": actions,
        "logits": logits,
        "values": values,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", TokenBudgetWarning)
    torch.set_num_threads(1)
    json.dump([traced(case) for case in json.load(sys.stdin)], sys.stdout)
