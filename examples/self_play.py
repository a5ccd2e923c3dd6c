"""Several policies in one world: train, continue against an earlier checkpoint, then evaluate both beside a script.

gridmill train ci run=second policy.init_from=runs/past players='{"runs/past": 0.5}'
"""

from gridmill import recipes
from gridmill.env.scripts import Part
from gridmill.evaluate import evaluate
from gridmill.runs import overrides, train

SHORT = ["trainer.total_timesteps=18_432", "checkpoint.epochs=1"]


def main() -> None:
    run = overrides.apply(recipes.build("ci"), [*SHORT, "run=past"])
    past = str(train(run, panel=False, fresh=True).folder)
    # Half of the agents of every world are played by the first checkpoint of the earlier run, whose weights stay as
    # they are; the new policy starts with the newest ones and learns from its own rows.
    run = run.replace_all([("run", "second"), ("policy.init_from", past), ("players", {f"{past}@1": 0.5})])
    done = train(run, panel=False, fresh=True)
    print(f"{done.agent_steps:,} steps against {past}@1, score {done.score}")
    # A quarter plays the past, agents 0 and 1 follow a script, all others are the policy's; figures are of these.
    players: dict[str, Part] = {past: 0.25, "arena": (0, 1)}
    result = evaluate(run.game.replace("max_steps", 100), str(done.folder), episodes=2, players=players)
    print(f"{result.policy} beside {', '.join(players)}: {result.score_name} {result.score.mean:.3f}")


if __name__ == "__main__":
    main()
