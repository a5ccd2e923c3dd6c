"""The settings of the network, and the form in which its parts report their sizes. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, Field

from gridmill.config import Config, ConfigError, did_you_mean, user_code

FOLDER = Path(__file__).parent


def _one_of(folder: str, *more: str) -> Any:
    """The name of a file in a folder beside this one, or a class of the user's own."""

    def check(name: str) -> str:
        known = [*more, *user_code.names(FOLDER / folder)]
        if name in known or user_code.is_own(name):
            return user_code.settled(name)
        hint = did_you_mean(name, known)
        raise ConfigError(f"expected {', '.join(known)}, FILE.py:Class or package.module:Class, got {name!r}{hint}")

    return AfterValidator(check)


class PolicyConfig(Config):
    """The network: encoder -> core -> actor and critic. Sizes of inputs and outputs come from the environment."""

    encoder: Annotated[str, _one_of("encoders", "auto")] = "auto"  # auto: bag for tokens, mlp for vectors
    core: Annotated[str, _one_of("cores")] = "scan"
    hidden: Annotated[int, Field(ge=16, le=4096, multiple_of=16)] = 128
    layers: Annotated[int, Field(ge=0, le=8)] = 1  # dense layers after the encoder's first
    latents: Annotated[int, Field(ge=1, le=64)] = 8  # of the encoder `attend`
    heads: Annotated[int, Field(ge=1, le=64)] = 4  # of the encoder `attend`
    actor_gain: Annotated[float, Field(gt=0.0, le=1e12)] = 0.01  # of the initial weights
    init_from: str = ""  # a run or checkpoint whose weights a new run begins with; words of another game match by name

    renamed: ClassVar[Mapping[str, str]] = {"start": "init_from"}


class Size(NamedTuple):
    """What a part of a network takes; known without making it, for the estimate of memory."""

    parameters: int
    activations: int  # floats kept per step for the way back, about
    state: int = 0  # floats of recurrent state per row
