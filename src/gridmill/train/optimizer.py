"""Optimizers by name, from their libraries, behind one small class: step, rates, state as tensors. One of the user's
own is in own_optimizer.py.

Muon takes the matrices inside the network; tables, biases and heads go to AdamW, as its authors advise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gridmill.config import user_code
from gridmill.config.schedule import Progress
from gridmill.run import OptimizerConfig
from gridmill.train import own_optimizer
from gridmill.train.restored import refuse_other_moments

# What a group of parameters counts, of schedule-free AdamW. All else in a group is a setting.
STATE = ("k", "weight_sum", "lr_max", "scheduled_lr", "train_mode")


class Optimizer:
    """One or two optimizers that step together."""

    def __init__(self, config: OptimizerConfig, named: dict[str, nn.Parameter]) -> None:
        self.config, self.own = config, user_code.is_own(config.kind)
        if self.own:
            own_optimizer.refuse_unfit(config.kind)
        self.parts = _build(config, named)
        self.schedule_free = all(own_optimizer.has_two_forms(part) for part in self.parts)
        self.set(Progress(0, 1, 0, 1))

    def set(self, now: Progress) -> float:
        """Take the numbers that the settings have now; the learning rate."""
        numbers = _numbers(self.config, now)
        for part in self.parts:
            for group in part.param_groups:
                if not self.own and "betas" not in group:  # Muon has a momentum and an eps of its own
                    group |= {name: numbers[name] for name in ("lr", "weight_decay")}
                else:
                    known = [name for name in numbers if name in group]
                    group |= {
                        name: numbers[name] for name in known if own_optimizer.is_like(numbers[name], group[name])
                    }
        return float(numbers["lr"])

    @property
    def can_skip(self) -> bool:
        """Whether a device can leave out a step by itself; the others count steps on the host."""
        return self.config.kind in ("adam", "adamw")

    def step(self, skip: Tensor | None = None) -> None:
        """Along the gradients, which are then gone: a parameter without a new one stays where it is.

        Where `skip`, a number on the device, is 1, everything stays as it is.
        """
        for part in self.parts:
            if skip is not None:
                part.grad_scale, part.found_inf = None, skip
            part.step()
            part.zero_grad()

    @torch.no_grad()
    def clip(self, limit: float) -> None:
        """Keep every weight within +-limit; of schedule-free ones both forms, and so whatever lies between them."""
        self.use("eval")
        for part in self.parts:
            for group in part.param_groups:
                for weight in group["params"]:
                    weight.clamp_(-limit, limit)
                    state = part.state.get(weight, {})
                    if "z" in state:
                        state["z"].clamp_(-limit, limit)
        self.use("train")

    def use(self, what: str) -> None:
        """Schedule-free weights have two forms, one to learn with ("train") and one to act and save with ("eval")."""
        if self.schedule_free:
            for part in self.parts:
                getattr(part, what)()

    # ---- as tensors, for a checkpoint: nothing else is in these states

    def tensors(self) -> dict[str, Tensor]:
        if self.own:
            return {f"optimizer.0.{name}": tensor for name, tensor in own_optimizer.tensors(self.parts[0]).items()}
        found: dict[str, Tensor] = {}
        for i, part in enumerate(self.parts):
            state = part.state_dict()
            for index, entries in state["state"].items():
                for name, value in entries.items():
                    found[f"optimizer.{i}.{index}.{name}"] = torch.as_tensor(value).clone()
            for g, group in enumerate(state["param_groups"]):
                for name in STATE:
                    if name in group:  # float64 holds every such number exactly
                        found[f"optimizer.{i}.group.{g}.{name}"] = torch.tensor(float(group[name]), dtype=torch.float64)
        return found

    def restore(self, tensors: dict[str, Tensor]) -> None:
        if self.own:
            start = "optimizer.0."
            saved = {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
            own_optimizer.restore(self.config.kind, self.parts[0], saved)
            return
        usual = _usual_state(self.config)
        for i, part in enumerate(self.parts):
            parameters = [parameter for group in part.param_groups for parameter in group["params"]]
            refuse_other_moments(tensors, f"optimizer.{i}.", parameters, usual[type(part)])
            state = part.state_dict()
            state["state"] = {}
            for key, value in tensors.items():
                head, _, rest = key.partition(f"optimizer.{i}.")
                if head or not rest:
                    continue
                first, _, name = rest.partition(".")
                if first == "group":
                    g, _, name = name.partition(".")
                    if name not in STATE:  # older checkpoints hold settings too, which are the run's to say
                        continue
                    old = state["param_groups"][int(g)][name]
                    state["param_groups"][int(g)][name] = type(old)(value.item())
                else:
                    state["state"].setdefault(int(first), {})[name] = value
            part.load_state_dict(state)


def _usual_state(config: OptimizerConfig) -> dict[type, dict[str, Tensor]]:
    """What each of the optimizers keeps of a parameter: one step is taken with small ones to see it."""
    small = {"core.small": nn.Parameter(torch.ones(2, 2)), "small": nn.Parameter(torch.ones(2))}
    found: dict[type, dict[str, Tensor]] = {}
    for part in _build(config, small):
        for parameter in small.values():
            parameter.grad = torch.ones_like(parameter)
        if config.kind == "schedule_free":
            part.train()
        part.step()
        first = part.param_groups[0]["params"][0]
        found[type(part)] = {name: torch.as_tensor(value) for name, value in part.state[first].items()}
    return found


def _numbers(config: OptimizerConfig, now: Progress) -> dict[str, Any]:
    """What the settings say now, by the names that torch has for it."""
    return {
        "eps": now.at(config.eps),
        "weight_decay": now.at(config.weight_decay),
        "lr": now.at(config.learning_rate),
        "betas": (now.at(config.beta1), now.at(config.beta2)),
    }


def _build(config: OptimizerConfig, named: dict[str, nn.Parameter]) -> list[Any]:
    """Made with their libraries' numbers; ours are set before every epoch."""
    fused: dict[str, Any] = {"fused": True}
    parameters = list(named.values())
    if user_code.is_own(config.kind):
        return [own_optimizer.made(config.kind, parameters, _numbers(config, Progress(0, 1, 0, 1)))]
    if config.kind == "adam":
        return [torch.optim.Adam(parameters, **fused)]
    if config.kind == "adamw":
        return [torch.optim.AdamW(parameters, **fused)]
    if config.kind == "muon":
        inner = {name: p for name, p in named.items() if p.ndim == 2 and name.startswith(("dense", "core"))}
        rest = [p for name, p in named.items() if name not in inner]
        adamw = torch.optim.AdamW(rest, **fused)
        if not inner:  # no dense layer and no core
            return [adamw]
        return [torch.optim.Muon(list(inner.values()), adjust_lr_fn="match_rms_adamw"), adamw]
    from schedulefree import AdamWScheduleFree  # type: ignore[import-untyped]

    return [AdamWScheduleFree(parameters)]


def clip_norm(gradients: list[Tensor], limit: float) -> Tensor:
    """Scale gradients in place so that their common norm is at most `limit` (0 = any); the norm they had."""
    norms = torch._foreach_norm(gradients)
    norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
    if limit > 0:
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


def add_up(several: Iterable[list[Tensor]]) -> list[Tensor]:
    """The sum of lists of gradients, in their order; the first list is changed."""
    first, *others = several
    for other in others:
        torch._foreach_add_(first, other)
    return first
