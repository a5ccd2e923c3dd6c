"""A whole network of the user's own: a plain `nn.Module` in the place of encoder, core, actor and critic.

The contract is in docs/own-parts.md. A network is tried when it is made, on two steps of three rows: what would make
acting and learning disagree, or one row depend on another, is refused then and not found out after a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.config import ConfigError, user_code
from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.network import FORBIDDEN, Output, Policy
from gridmill.policy.spec import Spec

SETTING = "$.policy.network"
STEPS, ROWS = 2, 3  # of a trial


class OwnPolicy(Policy):
    """The user's module under the names of a Policy."""

    def _make(self, rng: np.random.Generator) -> None:
        self.net = _made(self.config, self.spec)
        self.gives_hidden, self.activations = _tried(self, rng)

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.parameters())
        return f"<Policy {self.config.network}: {count:,} parameters, {len(self.spec.actions)} actions>"

    @property
    def state_size(self) -> int:
        return int(getattr(self.net, "state_size", 0))

    @property
    def any_length(self) -> bool:
        return False

    def place(self, device: torch.device) -> Policy:
        return self.to(device)

    @staticmethod
    def size(config: PolicyConfig, spec: Spec) -> Size:
        """Of a network that is made for it and thrown away."""
        made = OwnPolicy(config, spec)
        return Size(sum(p.numel() for p in made.parameters()), made.activations, made.state_size)

    def freeze(self, frozen: bool) -> None:
        """Nothing is made ahead of time of modules that we do not know."""

    def read(self, seen: Spec) -> None:
        """Bytes of another game mean something else, and only a network that is made of words could be told."""
        differ = sorted({path.split(".")[0] for path in self.spec.diff(seen)} - {"actions"})
        if differ:
            raise ValueError(
                f"policy: `{self.config.network}` reads the observations of the game it was trained on; in this one "
                f"{', '.join(differ)} differ"
            )

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor, masks: Tensor | None) -> Output:
        steps, rows = episode_starts.shape
        if self.state_size:
            logits, values, last, *hidden = self.net(obs, state, episode_starts)
        else:
            logits, values, *hidden = self.net(obs.reshape(steps * rows, *obs.shape[2:]))
            last = state
        logits, values = logits.float().reshape(steps, rows, -1), values.float().reshape(steps, rows)
        if masks is not None:
            logits = logits.masked_fill(masks == 0, FORBIDDEN)
        seen = hidden[0].reshape(steps, rows, -1) if hidden else logits.new_empty(steps, rows, 0)
        return Output(logits, values, last.detach().float(), seen)


def _made(config: PolicyConfig, spec: Spec) -> nn.Module:
    found = user_code.find(config.network, __name__, nn.Module, "network")
    try:
        signature(found).bind(spec, config)
    except TypeError as error:
        raise ConfigError(f"expected a class that is called with (spec, config), got {error}", SETTING) from error
    with user_code.one_line(config.network):
        made = found(spec, config)
    size = getattr(made, "state_size", 0)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ConfigError(f"expected state_size to be a whole number of floats per row, got {size!r:.60}", SETTING)
    return made


# ---- the trial


def _tried(policy: OwnPolicy, rng: np.random.Generator) -> tuple[bool, int]:
    """Whether the network gives `hidden`, and how many floats a step keeps for the way back."""
    spec, size = policy.spec, policy.state_size
    obs, never = observations(spec, rng), torch.zeros(STEPS, ROWS, dtype=torch.uint8)
    state = torch.from_numpy(rng.standard_normal((ROWS, size)).astype(np.float32))
    shown = [tensor.clone() for tensor in (obs, state, never)]
    kept: list[int] = []

    def count(tensor: Tensor) -> Tensor:
        kept.append(0 if isinstance(tensor, nn.Parameter) else tensor.numel())
        return tensor

    with user_code.their_own(policy.config.network):
        hooks = torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor)
        with torch.inference_mode(False), torch.enable_grad(), hooks:
            given = policy.net(obs, state, never) if size else policy.net(obs.flatten(0, 1))
        hidden = _refuse_other_shapes(given, policy)
        _refuse_deaf(given)
        if not all(map(torch.equal, shown, (obs, state, never))):
            raise ConfigError("expected forward not to change its inputs, but it did", SETTING)
        with torch.no_grad():
            _refuse_disagreement(policy, obs, state, never)
    return hidden, sum(kept) // (STEPS * ROWS)


def observations(spec: Spec, rng: np.random.Generator) -> Tensor:
    """Some rows that a game with this spec could show: [STEPS, ROWS, ...]."""
    if spec.kind == "vector":
        return torch.from_numpy(rng.uniform(-1, 1, (STEPS, ROWS, spec.obs_size)).astype(np.float32))
    obs = np.full((STEPS, ROWS, spec.num_tokens, 3), 255, np.uint8)
    there = rng.integers(1, min(spec.num_tokens, 8) + 1)
    shape = (STEPS, ROWS, there)
    obs[..., :there, 0] = rng.integers(spec.window[0], size=shape) << 4 | rng.integers(spec.window[1], size=shape)
    obs[..., :there, 1] = rng.integers(len(spec.features), size=shape)
    obs[..., :there, 2] = rng.integers(2, size=shape)
    return torch.from_numpy(obs)


def _refuse_other_shapes(given: Any, policy: OwnPolicy) -> bool:
    """What came back, by name and shape; True if `hidden` is among it."""
    rows, actions = (STEPS, ROWS) if policy.state_size else (STEPS * ROWS,), len(policy.spec.actions)
    names = ["logits", "values", *(["state"] if policy.state_size else []), "hidden"]
    if not isinstance(given, Sequence | tuple) or not len(names) - 1 <= len(given) <= len(names):
        got = f"{len(given)} values" if isinstance(given, tuple | list) else type(given).__name__
        raise ConfigError(f"expected forward to return {', '.join(names[:-1])} and maybe hidden, got {got}", SETTING)
    wanted: dict[str, list[tuple[int, ...]]] = {
        "logits": [(*rows, actions)],
        "values": [rows, (*rows, 1)],
        "state": [(ROWS, policy.state_size)],
        "hidden": [(*rows, policy.config.hidden)],
    }
    for name, tensor in zip(names, given, strict=False):
        shape = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
        if shape not in wanted[name]:
            where = f"for {STEPS} steps of {ROWS} rows" if policy.state_size else f"for {STEPS * ROWS} rows"
            raise ConfigError(f"expected {name} of shape {wanted[name][0]} {where}, got {shape}", SETTING)
        if not bool(torch.isfinite(tensor).all()):
            raise ConfigError(f"expected {name} to be finite, got NaN or infinity", SETTING)
    return len(given) == len(names)


def _refuse_deaf(given: Sequence[Tensor]) -> None:
    """A network that no gradient reaches would train to its end and learn nothing."""
    for name, tensor in zip(("logits", "values"), given, strict=False):
        if not tensor.requires_grad:
            said = f"expected {name} that depend on parameters, got some without a gradient"
            raise ConfigError(f"{said} (detach, no_grad, or no trainable parameters?)", SETTING)


def _refuse_disagreement(policy: OwnPolicy, obs: Tensor, state: Tensor, never: Tensor) -> None:
    """What two steps of three rows give must not hang on how they are shown."""
    whole = policy(obs, state, never, None)
    if not _alike(policy(obs, state, never, None), whole):
        raise ConfigError("outputs differ between two calls with the same inputs (dropout?)", SETTING)
    alone = [policy(obs[:, i : i + 1], state[i : i + 1], never[:, :1], None) for i in range(ROWS)]
    logits, values = (torch.cat([row[part] for row in alone], 1) for part in (0, 1))
    if not _alike(Output(logits, values, torch.cat([row.state for row in alone]), whole.hidden), whole):
        raise ConfigError("expected a row's outputs not to depend on other rows (batch norm?)", SETTING)
    first = policy(obs[:1], state, never[:1], None)
    second = policy(obs[1:], first.state, never[1:], None)
    logits, values = (torch.cat((first[part], second[part])) for part in (0, 1))
    if not _alike(Output(logits, values, second.state, whole.hidden), whole):
        raise ConfigError("expected two steps in one call to give the same result as two calls", SETTING)
    begins = torch.ones_like(never[:1])
    if not _alike(policy(obs[:1], state, begins, None), policy(obs[:1], torch.zeros_like(state), begins, None)):
        raise ConfigError("expected the state to be reset where episode_starts is 1", SETTING)


def _alike(one: Output, other: Output) -> bool:
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(one[:3], other[:3], strict=True))
