"""The settings of the network, and the form in which its parts report their sizes. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, Field

from gridmill.config import Config, ConfigError, user_code
from gridmill.config.describe import Takes

FOLDER = Path(__file__).parent


def _one_of(folder: str, *more: str) -> Any:
    """The name of a file in a folder beside this one, or a class of the user's own."""

    def check(name: str) -> str:
        return user_code.one_of(name, [*more, *user_code.names(FOLDER / folder)])

    return AfterValidator(check)


def _own(name: str) -> str:
    if name and not user_code.is_own(name):
        raise ConfigError(f"expected FILE.py:Class or package.module:Class, got {name!r}")
    try:
        return user_code.settled(name)
    except user_code.CodeNeeded as error:
        raise ConfigError(str(error)) from error


def _listed(folder: str, *more: str) -> Takes:
    known = (*more, *user_code.names(FOLDER / folder))
    return Takes(", ".join([*known, "FILE.py:Class"]), known)


class PolicyConfig(Config):
    """The network: encoder -> core -> actor and critic. Sizes of inputs and outputs come from the environment."""

    network: Annotated[str, AfterValidator(_own), Takes("FILE.py:Class", ())] = ""
    """Your own whole network instead of all the settings below; `policy=FILE.py:Class` for short."""
    encoder: Annotated[str, _one_of("encoders", "auto"), _listed("encoders", "auto")] = "auto"
    """The part that reads the observation; auto = bag for tokens, mlp for vectors."""
    core: Annotated[str, _one_of("cores"), _listed("cores")] = "scan"
    """The recurrent part, which is the memory; or none."""
    hidden: Annotated[int, Field(ge=16, le=4096, multiple_of=16)] = 128
    """Width of the network."""
    layers: Annotated[int, Field(ge=0, le=8)] = 1
    """Dense layers after the encoder's first."""
    latents: Annotated[int, Field(ge=1, le=64)] = 8
    """Latent vectors of the encoder `attend`."""
    heads: Annotated[int, Field(ge=1, le=64)] = 4
    """Heads of the encoder `attend`."""
    name_agents: bool = False
    """A word for each agent's number in worlds of at most 16 agents, so that each can learn its own role."""
    actor_gain: Annotated[float, Field(gt=0.0, le=1e12)] = 0.01
    """Scale of the actor's initial weights; small = the first actions are nearly uniform."""
    init_from: str = ""
    """A run or checkpoint whose weights a new run starts with; words of another game match by name."""

    renamed: ClassVar[Mapping[str, str]] = {"start": "init_from"}

    @classmethod
    def upgraded(cls, tree: Any) -> Any:
        """Runs that were saved before agents could have words say nothing of it."""
        found = super().upgraded(tree)
        return {"name_agents": False} | found if isinstance(found, dict) else found


class Size(NamedTuple):
    """What a part of a network takes; known without making it, for the estimate of memory."""

    parameters: int
    activations: int  # floats kept per step for the way back, about
    state: int = 0  # floats of recurrent state per row
