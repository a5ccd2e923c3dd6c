"""Losses: each is a file here with its settings and its computation, found by its name; or a custom class.

A loss is a pure function of a minibatch and the one forward that all losses share. It does not run the policy, touch
the environment or know the trainer. It says what the rollout must store for it (`needs`), which of the trainer's own
columns it reads (`reads`), and creates its own modules (`heads`), which are trained and saved with the policy. The
learner adds up the active losses of `Run.losses` in their order. Settings import no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pydantic import Field, computed_field, model_validator

from gridmill.config import Config, ConfigError, did_you_mean, user_code
from gridmill.config.schedule import Number, Progress
from gridmill.config.text import clipped

if TYPE_CHECKING:
    from torch import Tensor, nn

    from gridmill.policy.config import PolicyConfig
    from gridmill.policy.network import Output
    from gridmill.policy.spec import Spec
    from gridmill.run import Run

LossResult: TypeAlias = "tuple[Tensor, dict[str, Tensor]]"  # the loss, and metrics by name


TEACHER = "teacher_actions"  # the array of the env with what its teacher would do


@dataclass(frozen=True)
class Column:
    """Where one entry of every step comes from: the env, the acting policy or another one. Stored as [T, rows, ...]."""

    env: str = ""  # an array of the env, by its name
    after: bool = False  # of an env's array: as it is after the step, not before it
    actor: str = ""  # the folder of a checkpoint or run: a policy that is shown the same; it runs once for all columns
    output: str = (
        ""  # of the acting policy: logits, values or hidden. Of an actor: log_probs, values; empty = an action
    )

    def __post_init__(self) -> None:
        if bool(self.env) == bool(self.actor or self.output):
            raise ValueError(f"expected an array of the env, an output of the policy or an actor, got {self}")


@dataclass(frozen=True)
class Recorded:
    """Replays whose steps a loss is shown in the place of the rollout's."""

    files: str  # a pattern of files
    who: tuple[str, ...] = ()  # whose steps: human, script, script:NAME, policy, random; none = everybody's


class Minibatch:
    """Whole segments, by column: exactly what the forward pass and the active losses read.

    All are [T, N, ...], except `state` [N, state_size] before the segments and their importance `weights` [N]. `acted`
    is the weight of a step in losses that use only the policy's own actions: 0 where the teacher acted, with a mean of
    1 over the minibatch; None if the policy took every step. `counted` is 0 for recorded steps with nothing to learn.
    """

    masks: Tensor | None = None
    acted: Tensor | None = None
    counted: Tensor | None = None

    def __init__(self, **columns: Tensor | None) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Tensor:
        raise AttributeError(f"no column `{name}` in this minibatch: a loss names what it reads in `reads` or `needs`")


class Loss(Config):
    """Base class of all losses. A subclass adds settings and `__call__`."""

    weight: Number = 1.0
    """Weight of the loss in the sum."""
    begin: float = Field(default=0.0, ge=0.0)
    """Agent-steps after which the loss is active."""
    until: float = Field(default=0.0, ge=0.0)
    """Agent-steps up to which the loss is active; 0 = to the end of the run."""

    reads: ClassVar[tuple[str, ...]] = ()  # of the trainer's own columns: actions, log_probs, values, advantages, ...
    reads_hidden: ClassVar[bool] = False  # `out.hidden`, which a network of your own may not give

    def needs(self) -> Mapping[str, Column]:
        """What the rollout must store in addition to the trainer's own columns."""
        return {}

    def recorded(self) -> Recorded | None:
        """Replays to learn from: a minibatch then consists of their steps, with `teacher_actions` and `counted`."""
        return None

    def heads(self, spec: Spec, config: PolicyConfig) -> nn.Module | None:
        """Its own modules, created before the optimizer and passed to `__call__`."""
        return None

    def __call__(self, batch: Minibatch, out: Output, now: Progress, heads: nn.Module | None = None) -> LossResult:
        """The mean over the batch, without the weight, and metrics: numbers by name. `now.at` reads a Number."""
        raise NotImplementedError

    def weighted(
        self, batch: Minibatch, out: Output, now: Progress, share: float, heads: nn.Module | None
    ) -> LossResult:
        """What the learner adds up: the weighted loss of a batch that is this share of a minibatch."""
        loss, metrics = self(batch, out, now, heads)
        return share * now.at(self.weight) * loss, metrics

    def check(self, run: Run) -> None:
        """Raise a ConfigError if it cannot work in this run; the path is relative to the loss."""

    def teaches(self) -> bool:
        """Whether it learns from another player: the env's teacher, an actor or one in replays."""
        return self.recorded() is not None or any(
            column.actor or column.env == TEACHER for column in self.needs().values()
        )

    def leads(self, now: Progress) -> float:
        """The share of rows, from 0 to 1, in which the env's teacher should act instead of the policy."""
        return 0.0

    def term(self, rest: dict[str, Loss]) -> Callable[..., LossResult]:
        """What the learner calls, with the arguments of `weighted`.

        `rest` are the active losses that come later; one that is computed in the same pass is taken out of it.
        """
        return self.weighted

    def active(self, now: Progress) -> bool:
        """Whether it is active now; an inactive loss is not computed, and its columns are not read."""
        return self.begin <= now.steps and (not self.until or now.steps < self.until)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kind(self) -> str:
        """The file's name, or where the user's class is: what finds the class again when a record is read."""
        return kind_of(type(self))

    @model_validator(mode="after")
    def _counts_at_some_time(self) -> Loss:
        if 0 < self.until <= self.begin:
            raise ConfigError(f"expected more than begin = {self.begin:g}, or 0, got {self.until:g}", "$.until")
        return self

    @model_validator(mode="before")
    @classmethod
    def _of_this_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and "kind" in data:
            data = dict(data)
            if (kind := data.pop("kind")) != kind_of(cls):
                raise ConfigError(f"expected {kind_of(cls)!r}, got {kind!r}", "$.kind")
        return data


def names() -> list[str]:
    """The losses that ship."""
    return sorted({name for folder in __path__ for name in user_code.names(Path(folder))})


def kind_of(loss: type[Loss]) -> str:
    return user_code.name_of(loss, __name__)


def read(losses: Any) -> Any:
    """Plain data of `Run.losses` as losses; what is none is left for the validation to refuse.

    The name is the kind of a loss that ships; a loss of the user's own has a name of its own and its place as `kind`.
    """
    if not isinstance(losses, Mapping):
        return losses
    found = {}
    for name, data in losses.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(f"expected letters, digits and underscores as the name of a loss, got {name!r:.60}")
        if isinstance(data, Loss) or not isinstance(data, Mapping):
            found[name] = data
            continue
        kind = str(data.get("kind", name))
        if not user_code.is_own(kind) and kind not in names():
            hint = did_you_mean(kind, names()) or f"; losses: {', '.join(names())}, or package.module:Class"
            raise ConfigError(f"unknown loss `{clipped(kind)}`{hint}", f"$.{name}")
        if not user_code.is_own(kind) and kind != name:
            raise ConfigError(f"expected `{kind}` as the name of a loss of this kind, got `{name}`", f"$.{name}")
        rest = {key: value for key, value in data.items() if key != "kind"}
        try:
            found[name] = user_code.find(kind, __name__, Loss, "loss").load(rest)
        except ConfigError as error:
            raise ConfigError(error.what, f"$.{name}{error.path[1:]}") from None
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(str(error), f"$.{name}.kind") from None
    return found


def terms(losses: Mapping[str, Loss]) -> list[tuple[str, Callable[..., LossResult]]]:
    """What to call for some losses, in their order; several that are computed in one pass are one call."""
    rest, found = dict(losses), []
    while rest:
        name = next(iter(rest))
        found.append((name, rest.pop(name).term(rest)))
    return found


def head_parameters(losses: Mapping[str, Loss], spec: Spec, config: PolicyConfig) -> int:
    """How many numbers the modules of some losses have; none of them takes memory here."""
    import torch

    with torch.device("meta"):
        heads = [loss.heads(spec, config) for loss in losses.values()]
    return sum(parameter.numel() for head in heads if head is not None for parameter in head.parameters())
