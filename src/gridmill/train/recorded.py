"""Steps of replays to learn from. Files are played again, some of them for each epoch: observations are never stored,
so any encoder can learn from any file of its game, and memory is that of a rollout: of an episode that is longer than
that, an epoch plays a window.

Which episodes an epoch has is a function of the seed and the epoch, so nothing of this is in a checkpoint. A segment is
read with the one before it: from there the recurrent state comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from glob import glob
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.config import ConfigError
from gridmill.config.text import printable
from gridmill.losses import Minibatch, Recorded
from gridmill.policy.spec import Spec
from gridmill.replay import Playback, Replay, ReplayError, read

STREAM = 0x5265_706C  # of the seed: draws nobody else makes


@dataclass(frozen=True)
class Episode:
    """The agents of a branch whose steps count."""

    tape: Replay
    branch: int
    agents: NDArray[np.int64]
    file: str


@dataclass(frozen=True)
class Excerpt:
    """What an epoch takes of an episode: some agents, and parts of a segment's length, from the first to the last."""

    agents: NDArray[np.int64]
    first: int
    last: int  # the part after the last one

    @property
    def segments(self) -> int:
        return len(self.agents) * (self.last - self.first)


@dataclass(frozen=True)
class Segments:
    """Segments of equal length; all [segments, steps, ...]."""

    obs: Tensor
    masks: Tensor | None
    actions: Tensor
    counted: Tensor
    starts: Tensor
    before: Tensor  # [segments]: the one before each; itself at the beginning of an episode
    used: Tensor  # the segments in which something counts

    def order(self, count: int, rng: np.random.Generator) -> Tensor:
        """So many segments in a random order, each once before any comes again."""
        rounds = -(-count // len(self.used))
        drawn = np.concatenate([rng.permutation(len(self.used)) for _ in range(rounds)])[:count]
        return self.used[torch.from_numpy(drawn)]

    def minibatch(self, chosen: Tensor, device: torch.device) -> tuple[Minibatch, Minibatch]:
        """Some segments as a loss and a forward read them, and those before them."""
        ones = torch.ones(len(chosen), device=device)

        def pick(column: Tensor, which: Tensor) -> Tensor:
            return column.index_select(0, which).transpose(0, 1).contiguous().to(device, non_blocking=True)

        found = []
        for which in (chosen, self.before[chosen]):
            found.append(
                Minibatch(
                    obs=pick(self.obs, which),
                    masks=None if self.masks is None else pick(self.masks, which),
                    teacher_actions=pick(self.actions, which),
                    counted=pick(self.counted, which),
                    episode_starts=pick(self.starts, which),
                    weights=ones,
                )
            )
        return found[0], found[1]


class RecordedSteps:
    """The episodes of some files; `epoch` plays as many of them again as an epoch has segments."""

    def __init__(
        self, wanted: Recorded, spec: Spec, masks: bool, steps: int, segments: int, seed: int, where: str
    ) -> None:
        self.spec, self.masks, self.steps, self.segments, self.seed = spec, masks, steps, segments, seed
        self.where = where
        files = sorted(glob(wanted.files, recursive=True))
        if not files:
            raise ConfigError(f"expected replay files, found none that match {wanted.files!r}", where)
        self.episodes = [episode for file in files for episode in self._episodes(file, wanted)]
        if not self.episodes:
            found = ", ".join(wanted.who)
            raise ConfigError(f"expected steps of {found} in {len(files)} files, got none", where)
        self._expect_the_same_words()

    def _episodes(self, file: str, wanted: Recorded) -> list[Episode]:
        try:
            tape = read(Path(file))
        except ReplayError as error:
            raise ConfigError(str(error), self.where) from None
        found, everybody = [], np.arange(tape.agents)
        for branch in range(len(tape.branches)):
            # By what the file says, not agent by agent: it may have many of them in many branches.
            named = tape.who_by_key(branch)
            meant = {key: not wanted.who or _is(name, wanted.who) for key, name in {"*": "", **named}.items()}
            agents = everybody
            if len(set(meant.values())) > 1:
                agents = everybody[[meant.get(str(agent), meant["*"]) for agent in range(tape.agents)]]
            elif not meant["*"]:
                continue
            if len(agents):
                found.append(Episode(tape, branch, agents, file))
        return found

    def _expect_the_same_words(self) -> None:
        """Every game of the files shows what the policy reads, and has its actions."""
        seen = set[str]()
        for episode in self.episodes:
            try:
                name = episode.tape.game.fingerprint()
                if name in seen:
                    continue
                seen.add(name)
                with Playback(episode.tape) as playback:
                    theirs = Spec.of(playback.env, self.spec.names_agents)
                    self.num_actions = playback.env.num_actions  # of all of them, if their words are the same
            except ReplayError as error:
                raise ConfigError(f"{error} - in `{episode.file}`", self.where) from None
            differing = [field for field in Spec.model_fields if getattr(theirs, field) != getattr(self.spec, field)]
            if differing:
                name = printable(episode.tape.game.name)
                raise ConfigError(
                    f"expected replays of a game with the same words as the run's, got {name} with other "
                    f"{', '.join(differing)}",
                    self.where,
                )

    def epoch(self, number: int) -> Segments:
        """What an epoch learns from."""
        rng = np.random.default_rng([self.seed, STREAM, number])
        parts, left = list[Segments](), self.segments
        for place in rng.permutation(len(self.episodes)):
            episode = self.episodes[int(place)]
            window = self._window(episode, left, rng)
            if window is None:
                continue
            try:
                parts.append(self._played(episode, window))
            except ReplayError as error:
                raise ReplayError(f"{error} - in `{episode.file}`, branch {episode.branch}") from None
            left -= window.segments
            if left <= 0:
                break
        if not parts:
            raise ReplayError(f"replay: expected actions to learn from, got none - in `{self.episodes[0].file}`")
        return _joined(parts)

    def _window(self, episode: Episode, left: int, rng: np.random.Generator) -> Excerpt | None:
        """No more segments than are left, with something to learn in them; None if nobody did anything.

        All that counts of as many agents as fit, or of one agent a part that begins where it did something.
        """
        branch = episode.tape.branches[episode.branch]
        counted = branch.actions[:, episode.agents] < self.num_actions
        acting = episode.agents[counted.any(0)]
        if not len(acting):
            return None
        first, last = branch.fork_tick // self.steps, -(-branch.end // self.steps)
        rows = min(len(acting), max(1, left // (last - first)))
        agents = np.sort(rng.permutation(acting)[:rows])
        if last - first > left:
            ticks = branch.fork_tick + np.flatnonzero(branch.actions[:, agents[0]] < self.num_actions)
            first = min(int(rng.choice(ticks)) // self.steps, last - left)
            last = first + left
        return Excerpt(agents, first, last)

    def _played(self, episode: Episode, window: Excerpt) -> Segments:
        """A window's steps, padded with steps that do not count, and those of the segments before it."""
        tape, branch, agents = episode.tape, episode.tape.branches[episode.branch], window.agents
        with Playback(tape, episode.branch) as playback:
            first = max(0, window.first - 1)  # of it comes the state
            env, parts, begin = playback.env, window.last - first, first * self.steps
            ticks = min(playback.end, window.last * self.steps) - begin
            counts_from = max(branch.fork_tick, window.first * self.steps) - begin
            shape = (parts * self.steps, len(agents))
            obs = np.zeros((*shape, *env.obs.shape[1:]), env.obs.dtype)
            masks = np.ones((*shape, env.num_actions), np.uint8) if self.masks else None
            actions, counted, starts = np.zeros(shape, np.int32), np.zeros(shape, np.float32), np.zeros(shape, np.uint8)
            actions[:ticks] = playback.actions[begin : begin + ticks, agents]
            counted[counts_from:ticks] = actions[counts_from:ticks] < env.num_actions
            actions[actions >= env.num_actions] = 0  # no action, which nobody can learn
            starts[0] = begin == 0
            playback.seek(begin)
            for tick in range(ticks):
                playback.compare()
                obs[tick] = env.obs[agents]
                if masks is not None and env.masks is not None:
                    masks[tick] = env.masks[agents]
                playback.step()
        before = np.arange(parts * len(agents)) - len(agents)
        before[: len(agents)] += len(agents)
        counts = self._cut(counted)
        return Segments(
            obs=self._cut(obs),
            masks=None if masks is None else self._cut(masks),
            actions=self._cut(actions),
            counted=counts,
            starts=self._cut(starts),
            before=torch.from_numpy(before),
            used=counts.any(1).nonzero().squeeze(1),
        )

    def _cut(self, column: NDArray[np.generic]) -> Tensor:
        """[parts * steps, rows, ...] -> [parts * rows, steps, ...]"""
        parts, rows = len(column) // self.steps, column.shape[1]
        apart = column.reshape(parts, self.steps, rows, *column.shape[2:]).swapaxes(1, 2)
        return torch.from_numpy(np.ascontiguousarray(apart).reshape(parts * rows, self.steps, *column.shape[2:]))


def _is(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether somebody is meant by one of some words: `script` means any script."""
    return any(name == word or name.startswith(f"{word}:") for word in wanted)


def _joined(parts: list[Segments]) -> Segments:
    """Several lists of segments as one."""
    firsts = np.cumsum([0, *(len(part.before) for part in parts)])[:-1].tolist()
    masks = [part.masks for part in parts if part.masks is not None]
    return Segments(
        obs=torch.cat([part.obs for part in parts]),
        masks=torch.cat(masks) if masks else None,
        actions=torch.cat([part.actions for part in parts]),
        counted=torch.cat([part.counted for part in parts]),
        starts=torch.cat([part.starts for part in parts]),
        before=torch.cat([part.before + first for part, first in zip(parts, firsts, strict=True)]),
        used=torch.cat([part.used + first for part, first in zip(parts, firsts, strict=True)]),
    )
