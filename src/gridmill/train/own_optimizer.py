"""An optimizer of the user's own: any `torch.optim.Optimizer` that keeps what it remembers in its state, as tensors and
numbers.

It is tried when it is made, on two small parameters: one that would step elsewhere after a resume is refused then, and
not found out after a day. The contract is in docs/own-parts.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gridmill.config import ConfigError, user_code

SETTING = "$.optimizer.kind"
NUMBERS = ("lr", "betas", "eps", "weight_decay")  # of a group, which are the run's to say
TRIAL: dict[str, Any] = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-5, "weight_decay": 0.01}


def made(kind: str, parameters: Sequence[nn.Parameter], numbers: Mapping[str, Any]) -> torch.optim.Optimizer:
    """Of the class, with those of the numbers that its constructor has a name for."""
    found = user_code.find(kind, __name__, torch.optim.Optimizer, "optimizer")
    taken = _taken(found, numbers)
    try:
        inspect.signature(found).bind(list(parameters), **taken)
    except TypeError as error:
        said = f"expected a class that is called with parameters and some of {', '.join(NUMBERS)}"
        raise ConfigError(f"{said}, got {found.__name__}{inspect.signature(found)}: {error}", SETTING) from None
    with user_code.one_line(kind):
        return found(list(parameters), **taken)


def _taken(found: Callable[..., Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    takes = {name: each.default for name, each in inspect.signature(found).parameters.items()}
    return {name: number for name, number in numbers.items() if name in takes and is_like(number, takes[name])}


def is_like(number: Any, default: Any) -> bool:
    """Whether a number of ours is what a class means by the name: some have two eps, or three betas."""
    if isinstance(default, tuple | list):
        return isinstance(number, tuple) and len(number) == len(default)
    return default in (None, inspect.Parameter.empty) or not isinstance(number, tuple)


def has_two_forms(part: torch.optim.Optimizer) -> bool:
    """Whether it is schedule-free: its weights have one form to learn with and another to act with."""
    return all(callable(getattr(part, name, None)) for name in ("train", "eval"))


# ---- its state as tensors


def tensors(part: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All that it remembers, by the place of the parameter and a name (`3.exp_avg`) or by its group (`group.0.k`)."""
    state = part.state_dict()
    for name in state.keys() - {"state", "param_groups"}:
        raise ConfigError(f"expected state_dict() to have only state and param_groups, got `{name!s:.60}`", SETTING)
    found: dict[str, Tensor] = {}
    for place, entries in state["state"].items():
        if not isinstance(place, int):
            raise ConfigError(f"expected a state for each parameter, got one of `{place!s:.60}`", SETTING)
        for name, value in entries.items():
            if not isinstance(value, Tensor | bool | int | float):
                what = f"{type(value).__name__} in `{name}`"
                raise ConfigError(f"expected a state of tensors and numbers, which can be saved, got {what}", SETTING)
            found[f"{place}.{name}"] = _as_tensor(value)
    for number, group in enumerate(state["param_groups"]):
        for name, value in group.items():
            if name not in NUMBERS and isinstance(value, Tensor | bool | int | float):
                found[f"group.{number}.{name}"] = _as_tensor(value)
    return found


def restore(kind: str, part: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Go on from saved tensors; ValueError naming the first that is not as the optimizer's own would be."""
    own = _after_one_step(kind, part)
    unknown = sorted(saved.keys() - own.keys())
    if unknown:
        raise ValueError(f"optimizer.0.{unknown[0]:.200}: this optimizer has no such value")
    begun = {name.partition(".")[0] for name in saved}
    for name, value in own.items():
        if name not in saved:
            if name.partition(".")[0] in begun:
                raise ValueError(f"optimizer.0.{name}: expected a tensor of this name, got none")
            continue
        usual, tensor = _as_tensor(value), saved[name]
        if (tensor.dtype, tensor.shape) != (usual.dtype, usual.shape):
            raise ValueError(
                f"optimizer.0.{name}: expected {usual.dtype} of the shape {tuple(usual.shape)}, got {tensor.dtype} of "
                f"{tuple(tensor.shape)}"
            )
    parameters = [parameter for group in part.param_groups for parameter in group["params"]]
    for name, tensor in saved.items():
        first, _, rest = name.partition(".")
        value = tensor.clone() if isinstance(own[name], Tensor) else tensor.item()
        if first == "group":
            number, _, rest = rest.partition(".")
            part.param_groups[int(number)][rest] = value
        else:  # not by load_state_dict, which gives every number the type of its parameter
            tensor_or_number = value.to(parameters[int(first)].device) if isinstance(value, Tensor) else value
            part.state[parameters[int(first)]][rest] = tensor_or_number


def _as_tensor(value: Any) -> Tensor:
    """A copy; of a number one that holds it exactly."""
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _after_one_step(kind: str, part: torch.optim.Optimizer) -> dict[str, Any]:
    """What it remembers of such parameters, by name: a step is taken with copies of them to see it."""
    copies = [
        nn.Parameter(torch.zeros_like(parameter, device="cpu"))
        for group in part.param_groups
        for parameter in group["params"]
    ]
    other = made(kind, copies, TRIAL)
    _step(other, copies, 1)
    state = other.state_dict()
    by_place = {f"{place}.{name}": value for place, values in state["state"].items() for name, value in values.items()}
    groups = {
        f"group.{number}.{name}": value
        for number, group in enumerate(state["param_groups"])
        for name, value in group.items()
        if name not in NUMBERS and isinstance(value, Tensor | bool | int | float)
    }
    return by_place | groups


# ---- the trial


def refuse_unfit(kind: str) -> None:
    """ConfigError, or one line with the place of its error, for an optimizer that a run could not be resumed with."""
    straight, resumed = _small(), _small()
    one, other = made(kind, straight, TRIAL), made(kind, resumed, TRIAL)
    with torch.random.fork_rng(devices=[]), user_code.their_own(kind):  # not seeded: one that draws differs
        before = [parameter.detach().clone() for parameter in straight]
        _walk(one, straight, 0)
        if all(torch.equal(*pair) for pair in zip(before, straight, strict=True)):
            raise ConfigError(
                "expected step() without arguments to change the weights, but they did not change", SETTING
            )
        _walk(one, straight, 2)
        _walk(other, resumed, 0)
        saved = tensors(other)
        again = [nn.Parameter(parameter.detach().clone()) for parameter in resumed]
        third = made(kind, again, TRIAL)
        try:
            restore(kind, third, saved)
        except ValueError as error:
            raise ConfigError(f"expected a state that is complete after the first step: {error}", SETTING) from None
        _walk(third, again, 2)
        if not all(torch.equal(*pair) for pair in zip(straight, again, strict=True)):
            raise ConfigError(
                "steps differ after a resume: it draws random numbers, or remembers something that is not in its state",
                SETTING,
            )


def _small() -> list[nn.Parameter]:
    return [nn.Parameter(torch.linspace(-1, 1, 12).view(4, 3)), nn.Parameter(torch.linspace(0, 1, 3))]


def _walk(part: torch.optim.Optimizer, parameters: Sequence[nn.Parameter], first: int) -> None:
    """Two steps as an epoch takes them."""
    two: Any = part if has_two_forms(part) else None
    if two is not None:
        two.train()
    for number in (first, first + 1):
        _step(part, parameters, number)
    if two is not None:
        two.eval()


def _step(part: Any, parameters: Sequence[nn.Parameter], number: int) -> None:
    if has_two_forms(part):
        part.train()
    for parameter in parameters:
        angles = torch.arange(parameter.numel(), dtype=parameter.dtype) + number
        parameter.grad = angles.cos().view(parameter.shape)
    part.step()
    part.zero_grad()
