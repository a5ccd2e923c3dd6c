"""Random agents in the benchmark world: the smallest program that uses the batch."""

import numpy as np

import gridmill


def main(steps: int = 1000) -> None:
    env = gridmill.make("toy", num_worlds=16, seed=0, threads=1)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(rng.integers(0, env.num_actions, env.num_rows))
    episodes = env.take_episodes()
    print(f"{steps * env.num_rows} agent-steps, {len(episodes['world'])} agent-episodes")
    print(f"cells visited per agent and episode: {episodes['cell.visited'].mean():.1f}")


if __name__ == "__main__":
    main()
