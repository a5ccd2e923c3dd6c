"""Stable-Baselines3 on the fast batch: every agent of every world is one env of its VecEnv, and a step is one call.

python examples/stable_baselines.py
"""

import warnings

from gridmill import games
from gridmill.adapters import vec_env
from gridmill.evaluate import evaluate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what importing it may warn about
    from stable_baselines3 import PPO

GAME = "arena_basic_easy_shaped"


def main() -> None:
    env = vec_env(GAME, num_worlds=2, obs="dense", seed=0)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=512, n_epochs=1, seed=0, device="cpu")
    model.learn(2 * 32 * env.num_envs)
    print(f"{model.num_timesteps:,} steps in {env.num_envs} envs of one batch")
    # The model plays like any other policy; a short game, since this is only an example.
    result = evaluate(games.build(GAME).replace("max_steps", 50), model, episodes=1, greedy=True)
    print(f"{result.policy}: {result.score_name} {result.score.mean:.3f}")
    env.close()


if __name__ == "__main__":
    main()
