"""Your own network, a plain nn.Module instead of the built-in one: a GRU over the mean of what an agent sees.

gridmill train ci run=gru policy=examples/own_network.py:Remembers policy.hidden=64 trainer.total_timesteps=96_000
"""

import torch
from torch import Tensor, nn

from gridmill import recipes
from gridmill.policy import PolicyConfig, Spec
from gridmill.train.trainer import Trainer


class Remembers(nn.Module):
    """Tokens are (place, feature, value); an unused one is 255 255 255."""

    def __init__(self, spec: Spec, config: PolicyConfig) -> None:
        super().__init__()
        self.state_size = config.hidden  # floats of memory per row; without it, forward gets obs [rows, ...] alone
        self.parts = nn.ModuleList(nn.Embedding(256, config.hidden) for _ in range(3))
        self.memory = nn.GRUCell(config.hidden, config.hidden)
        self.actor, self.critic = nn.Linear(config.hidden, len(spec.actions)), nn.Linear(config.hidden, 1)

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        there = (obs[..., :1] != 255).float()
        seen = sum(part(obs[..., i].long()) for i, part in enumerate(self.parts)) * there
        x, found = torch.relu(seen.sum(-2) / there.sum(-2).clamp(min=1)), []
        for t in range(len(x)):
            state = self.memory(x[t], state * (1 - episode_starts[t, :, None]))  # forgotten where an episode begins
            found.append(state)
        y = torch.stack(found)
        return self.actor(y), self.critic(y), state  # [T, rows, actions], [T, rows, 1], [rows, state_size]


if __name__ == "__main__":
    trainer = Trainer(recipes.build("ci").replace("policy", f"{__file__}:Remembers").replace("policy.hidden", 32))
    print(trainer.policy, trainer.epoch()["loss/policy"])
    trainer.close()
