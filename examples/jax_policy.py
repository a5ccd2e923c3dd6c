"""A network in JAX learns in the batch: policy gradient, compiled by jax.jit. It needs `pip install jax`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from custom_game import explorers

import gridmill


def logits(weights: Any, boxes: Any) -> Any:
    return jnp.tanh((boxes.reshape(len(boxes), -1) > 0) @ weights["hidden"]) @ weights["actor"]


def learn(weights: Any, boxes: Any, actions: Any, gains: Any) -> Any:
    def loss(now: Any) -> Any:
        return -(jax.nn.log_softmax(logits(now, boxes))[jnp.arange(len(actions)), actions] * gains).mean()

    return jax.tree.map(lambda weight, slope: weight - 2.0 * slope, weights, jax.grad(loss)(weights))


if __name__ == "__main__":
    env = gridmill.make(explorers(), num_worlds=64)
    boxes = np.zeros((env.num_rows, *env.dense_shape), np.uint8)
    env.dense_into(boxes)  # every step writes them
    env.reset()
    sizes = {"hidden": (boxes[0].size, 64), "actor": (64, env.num_actions)}
    key = jax.random.key(0)
    weights = {name: 0.05 * jax.random.normal(key, size) for name, size in sizes.items()}
    act = jax.jit(lambda weights, boxes, key: jax.random.categorical(key, logits(weights, boxes)))
    learn = jax.jit(learn)
    for tick in range(2_000):
        actions = np.asarray(act(weights, seen := boxes.copy(), jax.random.fold_in(key, tick)), np.int32)
        env.step(actions)
        weights = learn(weights, seen, actions, env.rewards - env.rewards.mean())
        if tick % 400 == 399:  # two episodes
            print(f"tick {tick + 1}: reward of an episode {env.take_episodes()['reward'].mean():.2f}")
