"""Your own game and recipe in one file, outside the package. From the parent folder:

    gridmill explain examples/own_game.py:harvest
    gridmill train examples/own_game.py run=mine
    gridmill eval examples/own_game.py:harvest --policy runs/mine --policy random
    gridmill resume runs/mine trainer.total_timesteps=400_000

`:name` selects a function of the file; without it, the function with the same name as the file is used.
"""

from gridmill.grid import AgentType, Converter, Game, Inventory, Limit, ObjectType, Observation, RewardTerm, Scatter
from gridmill.run import OptimizerConfig, PolicyConfig, Run, Schedule, TrainerConfig


def harvest(num_agents: int = 8, max_steps: int = 200) -> Game:
    """Bushes bear a berry now and then; a basket holds fifty."""
    return Game(
        name="harvest",
        num_agents=num_agents,
        max_steps=max_steps,
        moves=4,
        resources=("berry",),
        agent=AgentType(limits=(Limit(resources=("berry",), base=50),)),
        objects={"wall": ObjectType(), "bush": ObjectType(converter=Converter(outputs={"berry": 1}, cooldown=20))},
        map=Scatter(height=16, width=16, objects={"wall": 10, "bush": 12}),
        observation=Observation(num_tokens=128, overflow="drop"),
        rewards=(RewardTerm(weight=0.1, value=Inventory(resource="berry")),),
    )


def own_game() -> Run:
    """The recipe: a small network, 128 rows x 64 ticks a batch, a few seconds."""
    return Run(
        recipe="own_game",
        game=harvest(),
        score="berry.get",
        policy=PolicyConfig(hidden=64),
        optimizer=OptimizerConfig(learning_rate=Schedule(start=3e-3, end=3e-4)),
        trainer=TrainerConfig(
            total_timesteps=200_000, num_worlds=16, batch_size=8_192, minibatch_size=2_048, reward="scaled"
        ),
    )


def main() -> None:
    """The same from Python."""
    from gridmill.runs import train

    result = train(own_game())
    print(f"{result.agent_steps} agent-steps, {result.score} berries per agent and episode, in {result.folder}")


if __name__ == "__main__":
    main()
