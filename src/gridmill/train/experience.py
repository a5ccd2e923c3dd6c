"""Experience: one rollout as preallocated [T, B] columns, and its segments as minibatches.

The columns are the trainer's own and what the losses need; the table says where each comes from, and the rollout stores
by it. A segment is `bptt_horizon` steps of one row. With prio_alpha = 0 every segment is used exactly once per update
epoch in a shuffled order: steps collected are steps trained on. With it, segments are drawn by |advantage| (Schaul et
al. 2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.config import ConfigError
from gridmill.env.env import Env
from gridmill.env.tokens import NO_TOKEN
from gridmill.losses import Column, Loss, Minibatch
from gridmill.policy.spec import Spec
from gridmill.sizing import Sizes
from gridmill.train.advantage import Trajectory

FORWARD = ("obs", "episode_starts", "masks")  # what a forward reads of every step
LENGTHEN = 16  # tokens by which the longest row grows: a device sees few shapes


@dataclass(frozen=True)
class Stored:
    """One column of the table: its shape behind [T, B], its type, and where it comes from.

    Without a source it is filled by the rollout's drawing of actions or by the learner.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    source: Column | None = None


def core_columns(spec: Spec, masks: bool, signal: bool = False, taught: bool = False) -> dict[str, Stored]:
    """The trainer's own columns; `taught`: there is a teacher who may lead rows."""
    seen = Column(env="obs")
    number = Stored((), torch.float32)
    found = {
        "obs": Stored((spec.num_tokens, 3), torch.uint8, seen)
        if spec.kind == "tokens"
        else Stored((spec.obs_size,), torch.float32, seen),
        "episode_starts": Stored((), torch.uint8),
        "actions": Stored((), torch.int32),
        "log_probs": number,
        "values": Stored((), torch.float32, Column(output="values")),
        "rewards": Stored((), torch.float32, Column(env="rewards", after=True)),
        "terminals": Stored((), torch.bool, Column(env="terminals", after=True)),
        "truncations": Stored((), torch.bool, Column(env="truncations", after=True)),
        "bootstrap": number,
        "advantages": number,
        "returns": number,
        "ratios": number,  # new over old probabilities, as the newest update of each segment left them
    }
    if signal:
        found["signal"] = Stored((), torch.float32, Column(env="signal", after=True))
    if masks:
        found["masks"] = Stored((len(spec.actions),), torch.uint8, Column(env="masks"))
    if taught:
        found["led"] = Stored((), torch.uint8)  # 1 where the teacher acted
    return found


def loss_columns(losses: Mapping[str, Loss], env: Env, spec: Spec, hidden: int) -> dict[str, Stored]:
    """What the losses need beside them; two losses may share a column if they mean the same."""
    found: dict[str, Stored] = {}
    number = Stored((), torch.float32)
    many = Stored((len(spec.actions),), torch.float32)
    outputs = {"logits": many, "values": number, "hidden": Stored((hidden,), torch.float32)}
    of_actors = {"log_probs": many, "values": number, "": Stored((), torch.int32)}
    for loss_name, loss in losses.items():
        for name, column in loss.needs().items():
            where = f"$.losses.{loss_name}"
            if name in core_columns(spec, True, True) or (name in found and found[name].source != column):
                raise ConfigError(f"expected a new name for the column `{name}`, got one that is already used", where)
            if column.env:
                array = getattr(env, column.env, None)
                if not isinstance(array, np.ndarray) or len(array) != env.num_rows:
                    raise ConfigError(f"expected an array of the env with a row per agent, got `{column.env}`", where)
                found[name] = Stored(array.shape[1:], torch.from_numpy(array).dtype, column)
                continue
            known = of_actors if column.actor else outputs
            if column.output not in known:
                raise ConfigError(f"expected one of {', '.join(filter(None, known))}, got `{column.output}`", where)
            found[name] = replace(known[column.output], source=column)
    return found


class Experience:
    """Storage of one rollout; `t` is the step, rows are those of the env. Columns are read as attributes."""

    def __init__(self, sizes: Sizes, table: Mapping[str, Stored], state_size: int, device: torch.device) -> None:
        self.sizes, self.table, self.device = sizes, dict(table), device
        shape = (sizes.horizon, sizes.rows)
        self.columns = {
            name: torch.zeros(*shape, *column.shape, dtype=column.dtype, device=device)
            for name, column in table.items()
        }
        self.last_value = torch.zeros(sizes.rows, device=device)
        self.states = torch.zeros(sizes.segments_per_row, sizes.rows, state_size, device=device)  # before each segment
        self.longest: int | None = None  # tokens of the longest row so far, or a few more; None: not kept
        self.known_starts: NDArray[np.uint8] | None = None  # `episode_starts` on the host, where that is not on it

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self.__dict__["columns"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"no column `{name}` in this experience") from None

    @property
    def masks(self) -> Tensor | None:
        return self.columns.get("masks")

    @property
    def learned_from(self) -> Tensor:
        """The signal of every step, or its reward where there is no signal."""
        return self.columns.get("signal", self.columns["rewards"])

    def trajectory(self, rewards: Tensor) -> Trajectory:
        """What advantages are made of; rewards as the learner sees them."""
        led = self.columns.get("led")
        return Trajectory(rewards, self.values, self.terminals, self.truncations, self.bootstrap, self.last_value, led)

    def estimate(self, advantages: Tensor, returns: Tensor) -> None:
        """Take the learner's estimates [T, B], into the columns: no second pair of them is kept."""
        self.advantages.copy_(advantages)
        self.returns.copy_(returns)

    def by_piece(self, column: Tensor) -> list[Tensor]:
        """The rows of each piece of a column [T, B], with bytes as they would lie if they were all there are."""
        return [part.contiguous() for part in column.chunk(self.sizes.pieces, 1)]

    # ---- what the host knows, so that a device need not be asked

    def lengthen(self, obs: NDArray[np.generic]) -> None:
        """Take note of rows of tokens [rows, K, 3]: a token behind the longest so far makes it longer."""
        while self.longest is not None and self.longest < obs.shape[1] and (obs[:, self.longest, 0] != NO_TOKEN).any():
            self.longest = min(self.longest + LENGTHEN, obs.shape[1])

    def shown(self, obs: Tensor) -> Tensor:
        """Observations [T, N, ...] without the room behind the longest row."""
        return obs if self.longest is None else obs[:, :, : self.longest]

    def starts_of(self, segments: Tensor) -> NDArray[np.uint8] | None:
        """`episode_starts` [bptt_horizon, n] of some segments on the host, if they are known there."""
        if self.known_starts is None:
            return None
        found: NDArray[np.uint8] = self.known_starts.reshape(-1)[self.segment_steps(segments).numpy()]
        return found

    def put_ratios(self, segments: Tensor, ratios: Tensor) -> None:
        """Take an update's ratios [bptt_horizon, n] of some segments."""
        self.ratios.view(-1)[self.segment_steps(segments).view(-1)] = ratios.reshape(-1).to(self.device)

    def segment_steps(self, segments: Tensor) -> Tensor:
        """Flat indices [bptt_horizon, n] into the [T * B] steps; segment s is part s // B of row s % B."""
        part, row = segments // self.sizes.rows, segments % self.sizes.rows
        steps = torch.arange(self.sizes.bptt_horizon, device=segments.device)
        return (part * self.sizes.bptt_horizon + steps[:, None]) * self.sizes.rows + row

    def minibatch(
        self, segments: Tensor, names: Iterable[str], given: Mapping[str, Tensor], weights: Tensor, device: torch.device
    ) -> Minibatch:
        """These columns of the segments, and what a forward reads, on the learner's device.

        `given` are columns [T, B] as the losses shall see them, in the place of those that are stored.
        """
        columns = {**self.columns, **given}
        index = self.segment_steps(segments)
        flat = index.reshape(-1)

        def pick(name: str) -> Tensor:
            x = columns[name]
            # Rows are copied whole; indexing by two arrays would go element by element.
            found = x.reshape(-1, *x.shape[2:]).index_select(0, flat)
            return found.view(*index.shape, *x.shape[2:]).to(device, non_blocking=True)

        states = self.states.flatten(0, 1).index_select(0, segments)
        picked = {name: pick(name) for name in (*FORWARD, *names) if name in columns}
        picked["obs"] = self.shown(picked["obs"])
        rest = {"state": states.to(device, non_blocking=True), "weights": weights.to(device, non_blocking=True)}
        return Minibatch(**picked | rest)


def shuffled(sizes: Sizes, rng: np.random.Generator) -> Tensor:
    """Every segment once: the segments of each minibatch."""
    return torch.from_numpy(rng.permutation(sizes.segments)).view(sizes.minibatches, sizes.minibatch_segments)


def piece_of(sizes: Sizes) -> Sizes:
    """The sizes of one piece by itself."""
    n = sizes.pieces
    return replace(
        sizes,
        rows=sizes.rows // n,
        segments=sizes.segments // n,
        minibatch_segments=sizes.minibatch_segments // n,
        pieces=1,
    )


def from_piece(segments: Tensor, piece: int, sizes: Sizes) -> Tensor:
    """Segments of a piece, numbered by themselves, as they are numbered among those of all pieces here."""
    rows = sizes.rows // sizes.pieces
    return segments // rows * sizes.rows + piece * rows + segments % rows


def prioritised(
    advantages: Tensor, sizes: Sizes, alpha: float, beta: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Segments drawn with probability p ~ (mean |advantage|)^alpha, and weights (S p)^-beta."""
    size = advantages.abs().view(sizes.segments_per_row, sizes.bptt_horizon, sizes.rows).mean(1).reshape(-1)
    priority = (size.double().cpu().numpy() + 1e-6) ** alpha
    chance = priority / priority.sum()
    drawn = rng.choice(sizes.segments, size=(sizes.minibatches, sizes.minibatch_segments), p=chance)
    return torch.from_numpy(drawn), torch.from_numpy((sizes.segments * chance[drawn]) ** -beta)
