"""Callbacks after every epoch: one saves the best policy, one ends a run that no longer explores; then a loop."""

from gridmill import recipes
from gridmill.runs import Epoch, epochs, overrides, train

SHORT = ["run=watched", "trainer.total_timesteps=69_120"]


class Best:
    """Saves a checkpoint whenever the mean score of the newest episodes is the highest so far."""

    score = float("-inf")

    def __call__(self, epoch: Epoch) -> None:
        score = epoch.metrics.get("score_recent", self.score)  # there once an episode has ended
        if score > self.score:
            self.score = score
            epoch.log(f"best so far: {score:.3f}, in {epoch.save()}")


def stop_when_certain(epoch: Epoch) -> None:
    if epoch.metrics["loss/entropy"] < 0.1:
        epoch.stop("the policy no longer explores")


def main() -> None:
    run = overrides.apply(recipes.build("ci"), SHORT)
    done = train(run, panel=False, fresh=True, callbacks=[Best(), stop_when_certain])
    print(f"{done.epochs} epochs, score {done.score}")
    with epochs(run, panel=False, fresh=True) as loop:
        for epoch in loop:
            if epoch.number == 2:
                break  # the run is saved and can be resumed
    print(loop.result, epoch.checkpoint)


if __name__ == "__main__":
    main()
