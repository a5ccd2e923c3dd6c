"""Your own game: explorers are rewarded for every new cell, and see how many they have found."""

import numpy as np

import gridmill
from gridmill.grid import Game, ObjectType, Observation, ObservedValue, RewardTerm, Scatter, Stat


def explorers(num_agents: int = 4, map_size: int = 20) -> Game:
    """Agents rewarded for every new cell they stand on, among walls and blocks."""
    found = Stat(name="cell.visited")
    return Game(
        name="explorers",
        num_agents=num_agents,
        max_steps=200,
        objects={"wall": ObjectType(), "block": ObjectType(tags=("soft",))},
        map=Scatter(height=map_size, width=map_size, objects={"wall": 20, "block": 10}),
        observation=Observation(num_tokens=256, values=(ObservedValue(name="found", value=found, digits=2),)),
        rewards=(RewardTerm(weight=0.1, value=found),),
    )


def main() -> None:
    env = gridmill.make(explorers(), num_worlds=8, seed=0, masks=True)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(400):
        assert env.masks is not None
        allowed = rng.random(env.masks.shape) * env.masks  # only actions that would succeed
        env.step(allowed.argmax(axis=1))
    print(f"reward per agent and episode: {env.take_episodes()['reward'].mean():.2f}")


if __name__ == "__main__":
    main()
