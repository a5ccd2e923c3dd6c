"""A policy from its settings: parts of ours, or a whole network of the user's own; what it takes, and what it is."""

from __future__ import annotations

from pathlib import Path

from gridmill.config import user_code
from gridmill.policy.config import PolicyConfig, Size
from gridmill.policy.encoders import name_for
from gridmill.policy.network import Policy
from gridmill.policy.own_network import OwnPolicy
from gridmill.policy.spec import Spec


def build(config: PolicyConfig, spec: Spec, seed: int = 0) -> Policy:
    """A new network with initial weights of a seed."""
    return (OwnPolicy if config.network else Policy)(config, spec, seed)


def size(config: PolicyConfig, spec: Spec) -> Size:
    """What a network of these settings takes."""
    return (OwnPolicy if config.network else Policy).size(config, spec)


def headline(policy: Policy, native: bool) -> str:
    """What a policy is made of, in one line; `native`: whether our kernels run where there are some."""
    config, count = policy.config, sum(parameter.numel() for parameter in policy.parameters())
    if config.network:
        return f"{_short(config.network)}, {count:,} parameters, in plain torch instead of the native kernels"
    parts = {"encoder": name_for(config, policy.spec), "core": config.core}
    text = f"encoder {_short(parts['encoder'])}, core {_short(parts['core'])}, hidden {config.hidden}"
    text += f", {count:,} parameters"
    own = [name for name, part in parts.items() if user_code.is_own(part)]
    if own and native:
        return f"{text}; your own {' and '.join(own)} in plain torch, the rest in native kernels"
    return text if native else f"{text}; in plain torch: native kernels are for fp32 on a CPU without compile"


def _short(text: str) -> str:
    """A part by its name, or by its file's without the folders."""
    place, name = user_code.split(text)
    return f"{Path(place).name}{':' if name else ''}{name}" if place.endswith(".py") else text
