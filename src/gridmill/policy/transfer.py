"""Transfer: a policy begins with the weights of another, which may know another game: words are matched by name.

What both have a word for (a feature's value, an action, a place in the window; windows share their centre) takes the
other's weights; what only the new policy knows keeps its initial ones and is learned.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.policy.config import PolicyConfig
from gridmill.policy.encoders import encoder_for, name_for
from gridmill.policy.network import Policy
from gridmill.policy.spec import Spec, places_of, slots_of

Index = NDArray[np.int64]  # for each of ours the number of theirs, -1 where they have none


def transfer(policy: Policy, theirs: dict[str, Tensor], config: PolicyConfig, spec: Spec) -> str:
    """Take over what has a name in both; one line about what has. ValueError if the networks are not alike."""
    if not policy.config.network:
        _refuse_other_observations(policy, spec)
    refuse_unlike(policy.config, config, spec)
    known = _known(policy, spec)
    with torch.no_grad():
        for name, own in policy.named_parameters():
            if name not in theirs:
                raise ValueError(f"{name}: expected weights of this name, got none")
            other = theirs[name]
            if name not in known:
                if own.shape != other.shape:
                    raise ValueError(f"{name}: expected the shape {tuple(own.shape)}, got {tuple(other.shape)}")
                own.copy_(other)
                continue
            axis, index = known[name]
            ours = torch.from_numpy(np.flatnonzero(index >= 0))
            taken = other.index_select(axis, torch.from_numpy(index[index >= 0]))
            own.index_copy_(axis, ours.to(own.device), taken.to(own.device))
    return _told(policy.spec, spec)


def refuse_unlike(own: PolicyConfig, other: PolicyConfig, spec: Spec) -> None:
    """ValueError naming the first setting in which two networks have not the same shape; `spec` is the other's."""
    names = {"network": (own.network, other.network)}
    if not own.network and not other.network:
        names["encoder"] = name_for(own, spec), name_for(other, spec)
        for name in ("core", "hidden", "layers", *encoder_for(other, spec).shaped_by):
            names[name] = getattr(own, name), getattr(other, name)
    for name, (ours, theirs) in names.items():
        if ours != theirs:
            raise ValueError(f"expected policy.{name} = {theirs!r} as in the initial weights, got {ours!r}")


def _refuse_other_observations(policy: Policy, spec: Spec) -> None:
    if (policy.spec.kind, policy.spec.obs_size) != (spec.kind, spec.obs_size):
        raise ValueError("the initial weights read other observations: tokens, or a vector of another size")
    if policy.encoder.fixed_window and policy.spec.window != spec.window:
        raise ValueError(f"expected the window {spec.window} of the initial weights, got {policy.spec.window}")


def _known(policy: Policy, other: Spec) -> dict[str, tuple[int, Index]]:
    """By parameter: the axis whose numbers have names, and whose numbers there they are."""
    if policy.config.network:  # it has no words that could be matched by name
        policy.read(other)
        if policy.spec.actions != other.actions:
            raise ValueError("with your own network, both runs must have the same actions")
        return {}
    own = policy.spec
    actions = _index(own.actions, other.actions)
    found = {"actor.weight": (0, actions), "actor.bias": (0, actions)}
    if own.kind == "tokens":
        slots, count = _index(slots_of(own), slots_of(other)), len(slots_of(other))
        places = places_of(other.window, own.window)
        rows, columns = (_centred(o, t) for o, t in zip(own.window, other.window, strict=True))
        listed = {
            "places": places,
            "slots": slots,
            "places x slots": _pairs(places, slots, count),
            "rows x slots": _pairs(rows, slots, count),
            "columns x slots": _pairs(columns, slots, count),
        }
        for name, (axis, what) in policy.encoder.named_axes.items():
            found[f"encoder.{name}"] = axis, listed[what]
    return found


def _index(own: tuple[object, ...], other: tuple[object, ...]) -> Index:
    at = {word: number for number, word in enumerate(other)}
    return np.array([at.get(word, -1) for word in own], np.int64)


def _centred(own: int, other: int) -> Index:
    shifted = np.arange(own) + other // 2 - own // 2
    return np.where((shifted >= 0) & (shifted < other), shifted, -1)


def _pairs(first: Index, second: Index, count: int) -> Index:
    """Numbers of pairs, the second of `count` fastest."""
    both = first[:, None] * count + second
    return np.where((first[:, None] >= 0) & (second >= 0), both, -1).reshape(-1)


def _told(own: Spec, other: Spec) -> str:
    new = [f"{feature}={value}" if value else feature for feature, value in slots_of(own) if value != "amount"]
    old = {f"{feature}={value}" if value else feature for feature, value in slots_of(other)}
    strange = [word for word in new if word not in old] + [f"action {a}" for a in own.actions if a not in other.actions]
    words = len(new) + len(own.actions)
    first = ", ".join(strange[:8]) + (", ..." if len(strange) > 8 else "")
    return f"{words - len(strange)} of {words} words known" + (f"; new: {first}" if strange else "")
