"""Two teams in one world: the policy learns as red while another policy plays blue; then red is evaluated.

gridmill train examples/teams.py run=red players='{"examples/own_policy.py:walker": "blue"}'
"""

from pathlib import Path

from gridmill import grid
from gridmill.env.scripts import Part
from gridmill.evaluate import evaluate
from gridmill.run import PolicyConfig, Run, TrainerConfig
from gridmill.runs import train

BLUE: dict[str, Part] = {f"{Path(__file__).parent}/own_policy.py:walker": "blue"}


def teams() -> Run:
    """Two red and two blue agents pick the same berries."""
    bush = grid.ObjectType(converter=grid.Converter(outputs={"berry": 1}, cooldown=20))
    game = grid.Game(
        name="teams",
        num_agents=4,
        max_steps=100,
        resources=("berry",),
        agent=grid.AgentType(collectives=("red", "blue")),  # of the two groups that the map places
        collectives={"red": grid.Collective(), "blue": grid.Collective()},
        objects={"wall": grid.ObjectType(), "bush": bush},
        map=grid.Scatter(height=12, width=12, objects={"bush": 8}, groups=2),
        observation=grid.Observation(num_tokens=128, overflow="drop"),
        rewards=(grid.RewardTerm(weight=0.1, value=grid.Inventory(resource="berry")),),
    )
    sizes = TrainerConfig(total_timesteps=4_096, num_worlds=8, batch_size=2_048, minibatch_size=512, reward="scaled")
    return Run(recipe="teams", game=game, score="berry.get", policy=PolicyConfig(hidden=32), trainer=sizes)


if __name__ == "__main__":
    run = teams().replace("players", BLUE)
    result = evaluate(run.game, str(train(run, panel=False, fresh=True).folder), episodes=4, players=BLUE)
    print(f"red, against a walker as blue: {result.stats['berry.get'].mean:.1f} berries per agent")
