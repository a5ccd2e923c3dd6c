"""A search for settings that learn well, with Optuna (extra `tune`): every trial is a run with its folder.

    python examples/sweep.py

Scores of short runs with one seed are noisy: take more steps, and check the best with several seeds.
"""

import optuna

from gridmill import recipes
from gridmill.runs import overrides, train

STEPS = 55_296  # the first whole episodes end just before
TRIALS = 2


def objective(trial: optuna.Trial) -> float:
    changes = [
        f"run=sweep-{trial.number}",
        f"trainer.total_timesteps={STEPS}",
        f"optimizer.learning_rate={trial.suggest_float('rate', 1e-4, 1e-2, log=True)}",
        f"trainer.gamma={trial.suggest_float('gamma', 0.95, 0.999)}",
        f"losses.ppo.entropy_weight={trial.suggest_float('entropy', 1e-3, 5e-2, log=True)}",
    ]
    result = train(overrides.apply(recipes.build("ci"), changes), panel=False, fresh=True)
    return result.score or 0.0  # None while no episode has ended


def main() -> None:
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=TRIALS)
    print(f"best of {TRIALS}: {study.best_value:.2f} with {study.best_params}")


if __name__ == "__main__":
    main()
