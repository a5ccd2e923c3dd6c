"""Train the bench's network with pufferlib-core's trainer on our worlds, on request.

`gridmill bench train --peers` starts this file with the python of .venv-peers-train and drives it over pipes, so that
its rounds alternate with ours. One JSON line goes out when it is ready; then one line per request {"epochs": N}; end of
input ends it. Failures are one line {"error": ...}, exit 2. The loop is pufferlib's own, but for its dashboard, which
is not drawn; the worlds, the network and every setting come from gridmill's record of the run, given as JSON.
"""

import importlib
import importlib.metadata
import json
import os
import sys
import time
from typing import Any, TextIO

import torch
from gymnasium import spaces

import gridmill
from gridmill.run import PPO, Run, Value
from gridmill.workshop.bench import plain_network

NEVER = 2**40


class PeerError(Exception):
    """Anything that ends the worker with an {"error": ...} line."""


def load_wheel() -> tuple[Any, Any]:
    """pufferlib and its trainer; the trainer needs the extension that `make peers-train` builds for this torch."""
    try:
        pufferlib, pufferl = importlib.import_module("pufferlib"), importlib.import_module("pufferlib.pufferl")
    except ImportError as error:
        raise PeerError(f"cannot import pufferlib's trainer: {error}; run `make peers-train`") from error
    if not pufferl._C_AVAILABLE:
        raise PeerError("pufferlib's extension does not load with this torch; run `make peers-train`")
    return pufferlib, pufferl


def make_env(pufferlib: Any, run: Run) -> Any:
    """Our batch as one native PufferEnv that lends its arrays; it gathers no statistics, which only helps its speed."""
    batch = gridmill.make(
        run.game,
        num_worlds=run.trainer.num_worlds,
        seed=run.seed,
        threads=run.trainer.threads,
        desync_episodes=run.trainer.desync_episodes,
    )

    class Worlds(pufferlib.PufferEnv):  # type: ignore[misc]  # pufferlib ships no types
        def __init__(self) -> None:
            self.single_observation_space = spaces.Box(-1.0, 1.0, batch.obs.shape[1:], batch.obs.dtype.type)
            self.single_action_space = spaces.Discrete(batch.num_actions)
            self.num_agents = self.agents_per_batch = batch.num_rows
            super().__init__()
            self.observations, self.rewards = batch.obs, batch.rewards
            self.terminals, self.truncations = batch.terminals, batch.truncations

        def reset(self, seed: int | None = None) -> tuple[Any, list[Any]]:
            batch.reset(seed=seed)
            return self.observations, []

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[Any]]:
            batch.step(actions)
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self) -> None:
            batch.close()

    return Worlds()


class Policy(torch.nn.Module):
    """The plain network's encoder and heads under the words pufferlib calls; its own wrapper adds the LSTM."""

    is_continuous = False

    def __init__(self, run: Run, env: Any) -> None:
        super().__init__()
        self.hidden_size = run.policy.hidden
        size = env.single_observation_space.shape[0]
        self.parts = plain_network.build(run.replace("policy.core", "none"), size, int(env.single_action_space.n))

    def encode_observations(self, obs: torch.Tensor, state: Any = None) -> torch.Tensor:
        return self.parts["encoder"](obs)  # type: ignore[no-any-return]

    def decode_actions(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.parts["actor"](hidden), self.parts["critic"](hidden)

    def forward(self, obs: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        return self.decode_actions(self.encode_observations(obs))

    forward_eval = forward


def make_policy(pufferlib: Any, run: Run, env: Any) -> Any:
    policy = Policy(run, env)
    if run.policy.core == "none":
        return policy
    return pufferlib.models.LSTMWrapper(env, policy, run.policy.hidden, run.policy.hidden)


def settings(run: Run) -> dict[str, Any]:
    """The run in the words of pufferlib's trainer; its switches that slow it down are off."""
    trainer, optimizer = run.trainer, run.optimizer
    ppo, value = run.losses["ppo"], run.losses["value"]
    assert isinstance(ppo, PPO)
    assert isinstance(value, Value)
    numbers = {
        "learning_rate": optimizer.learning_rate,
        "clip_coef": ppo.clip,
        "ent_coef": ppo.entropy_weight,
        "vf_coef": value.weight,
        "max_grad_norm": optimizer.max_grad_norm,
        "gamma": trainer.gamma,
        "gae_lambda": trainer.gae_lambda,
        "vtrace_rho_clip": trainer.rho_clip,
        "vtrace_c_clip": trainer.c_clip,
        "vf_clip_coef": value.clip or 1e6,  # it always clips; so far away it changes nothing
        "prio_alpha": trainer.prio_alpha,
        "prio_beta0": trainer.prio_beta0,
    }
    for name, number in numbers.items():
        if not isinstance(number, float):
            raise PeerError(f"expected a plain number, got a schedule - at {name}; the peer's settings do not move")
    return numbers | {
        "env": run.game.name,
        "seed": run.seed,
        "torch_deterministic": False,
        "device": "cpu",
        "cpu_offload": False,
        "use_rnn": run.policy.core != "none",
        "batch_size": trainer.batch_size,
        "minibatch_size": trainer.minibatch_size,
        "max_minibatch_size": trainer.minibatch_size,
        "bptt_horizon": trainer.bptt_horizon,
        "update_epochs": trainer.update_epochs,
        "compile": False,
        "precision": "float32",
        "optimizer": "adam",
        "adam_beta1": optimizer.beta1,
        "adam_beta2": optimizer.beta2,
        "adam_eps": optimizer.eps,
        "anneal_lr": False,
        "total_timesteps": NEVER,
        "checkpoint_interval": NEVER,
        "data_dir": "",
    }


def train(trainer: Any, epochs: int, batch_size: int) -> dict[str, Any]:
    """Whole epochs: collect, then learn, each on both clocks."""
    watch = plain_network.Stopwatch()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        with watch("rollout"):
            trainer.evaluate()
        with watch("learn"):
            trainer.train()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "epochs": epochs,
        "agent_steps": epochs * batch_size,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "phases": watch.wall,
        "cpu_phases": watch.cpu,
    }


def read_request(line: str) -> int:
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    epochs = request.get("epochs") if isinstance(request, dict) and len(request) == 1 else None
    if type(epochs) is not int or epochs < 1:
        raise PeerError(f'expected {{"epochs": int >= 1}}, got {line.strip()!r} - at standard input')
    return epochs


def serve(arguments: list[str], out: TextIO) -> None:
    def say(record: dict[str, Any]) -> None:
        print(json.dumps(record), file=out, flush=True)

    if len(arguments) != 1:
        raise PeerError(f"expected one argument, the run as JSON, got {len(arguments)} - at the command line")
    run = Run.model_validate_json(arguments[0])
    if run.policy.core not in ("none", "lstm"):
        raise PeerError(f"expected none or lstm, got {run.policy.core} - at $.policy.core; its trainer knows no other")
    torch.set_num_threads(run.trainer.threads)
    torch.manual_seed(run.seed)
    pufferlib, pufferl = load_wheel()
    pufferl.PuffeRL.print_dashboard = lambda *_, **__: None
    env = make_env(pufferlib, run)
    policy = make_policy(pufferlib, run, env)
    trainer = pufferl.PuffeRL(settings(run), env, policy)
    try:
        say(
            {
                "ready": True,
                "name": f"pufferlib-core {importlib.metadata.version('pufferlib-core')}",
                "torch": torch.__version__,
                "torch_threads": torch.get_num_threads(),
                "num_weights": plain_network.num_weights(policy),
            }
        )
        for line in sys.stdin:
            say(train(trainer, read_request(line), run.trainer.batch_size))
    finally:
        trainer.utilization.stop()  # its own close() would write a checkpoint
        env.close()


def main() -> int:
    # Libraries greet on standard output, so the file descriptor itself is turned away, not only sys.stdout.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.argv[1:], out)
    except Exception as error:
        text = str(error) if isinstance(error, PeerError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"error": " ".join(text.split())}), file=out, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
