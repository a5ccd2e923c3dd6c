"""GameConfig: what every game brings of its own, whatever engine plays it. This file knows no game.

A game is a frozen record with a `kind`, a class of `Env` that plays it, a score, and what it knows about itself:
scripted players, the shortest useful first episode, an explanation. Everything above (make, replays, runs, training,
evaluation, the command line) asks these names and never for a class. `gridmill.games.kinds` lists the kinds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gridmill import _native
from gridmill.config import Config, ConfigError, did_you_mean, refuse_endless
from gridmill.config.text import clipped
from gridmill.env.episodes import is_figure

if TYPE_CHECKING:
    from gridmill.env.env import Env


class Score(Config):
    """The one number per agent and episode that tables, panels and checkpoints compare.

    It is what the game is about, which need not be what it rewards. `per` divides the statistic: by nothing, by the
    ticks of the episode, or by an agent's share of what the world holds at the start, so that a mean of 1 is all of it.
    """

    stat: str = "reward"
    per: Literal["episode", "tick", "supply"] = "episode"
    title: str = ""  # what tables call it; empty = the statistic


class PlayerLike(Protocol):
    """Who plays: rows of observations in, actions out; what `gridmill.policy.load` returns, or a script."""

    masks: bool  # whether it wants to be told which actions would succeed

    def act(self, obs: Any, state: Any, masks: Any = None) -> tuple[Any, Any]:
        """Actions and the next state; the state before the first step is None."""

    def reset(self, state: Any, ended: NDArray[np.bool_]) -> Any:
        """The state with the rows forgotten whose episode has ended."""


MakePlayer = Callable[[Any, int], PlayerLike]  # of an env of the game and a seed


class GameConfig(Config):
    """A game. A subclass adds its settings, gives `kind` a Literal of its own and says which Env plays it."""

    kind: str
    name: str
    num_agents: int
    score: Score = Score()
    beside: tuple[str, ...] = ("length",)  # statistics worth a line under score and reward

    obs_kind: ClassVar[Literal["tokens", "vector"]]
    has_map: ClassVar[bool] = False  # whether its worlds are cells that its Env can `inspect`
    has_picture: ClassVar[bool] = False  # whether its Env can draw a world
    has_validation: ClassVar[bool] = False  # whether its observations can be computed in a second, slow way
    gymnasium_entry: ClassVar[str] = ""  # an env of its own for Gymnasium, as `module:Class`
    not_compiled: ClassVar[tuple[str, ...]] = ("kind", "score", "beside")  # settings that the core is not told

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        refuse_endless(self)  # only what is made of objects can be larger than it looks; a file is written out

    def __repr__(self) -> str:
        agents = f"{self.num_agents} agent{'s' if self.num_agents != 1 else ''}"
        return f"<{type(self).__name__} {self.name}: {agents}, {self.fingerprint()}>"

    @classmethod
    def env_class(cls, implementation: str = "native") -> type[Env]:
        """The Env that plays it; `implementation` is one of `implementations`."""
        raise NotImplementedError

    @classmethod
    def implementations(cls) -> tuple[str, ...]:
        """What `trainer.env_impl` may be, apart from auto."""
        return ("native",)

    def core_tree(self) -> dict[str, Any]:
        """What the core compiles: the settings that make the world what it is."""
        return {name: value for name, value in self.tree().items() if name not in self.not_compiled}

    def fingerprint(self) -> str:
        """Twelve hex digits that name this world; how it is scored does not matter."""
        text = json.dumps(self.core_tree(), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def saved_name(self) -> str:
        """What a saved state calls this game: for people the name, for the machine the fingerprint."""
        return f"{self.name} {self.fingerprint()}"

    def seed_alone(self, seed: int, world: int) -> int:
        """The seed with which a world alone plays what a world of a batch plays in its first episode."""
        return int(_native.seed_alone(seed, world, 0))

    def scripts(self) -> Mapping[str, MakePlayer]:
        """Scripted agents of this game by name, as players; those of the core can be teachers as well."""
        return {}

    def expect_script(self, name: str, where: str) -> None:
        """Refuse a script that this game does not have."""
        known = self.scripts()
        if name not in known:
            hint, listed = did_you_mean(name, list(known)), ", ".join(known) or "none"
            raise ValueError(f"{where}: no script `{clipped(name)}` for {self.name}{hint} - its scripts: {listed}")

    def teams(self) -> list[str]:
        """The team of each agent, for games that have some; they stay the same from episode to episode."""
        return []

    def baselines(self) -> tuple[str, ...]:
        """Policies to hold a trained one against, as `--policy` names them."""
        return ("random",)

    def min_first_episode(self) -> int:
        """The shortest first episode in which everything that is rewarded could happen; -1: nothing is known."""
        return -1

    def ceilings(self) -> Mapping[str, float]:
        """The most of a statistic that agents can have on average in an episode, where a bound is known."""
        return {}

    def explain(self, first_episode: int | None = None) -> tuple[Any, str] | None:
        """What the game means for learning, as a record and as a page of text; None if nothing can be said."""
        return None

    def unforeseen(self) -> str:
        """What masks do not know of the next tick, so that an action they allow may fail; empty if they are exact."""
        return ""

    def brief(self, env: Any, warnings: bool = True) -> list[str]:
        """Lines for the heading of a run, with or without warnings; by default the settings that are not the usual."""
        try:
            usual = type(self)()  # a kind whose settings all have defaults
        except ConfigError:
            return []
        return [f"  {path}: {mine} (usually {theirs})" for path, (mine, theirs) in self.diff(usual).items()]

    def supply(self, stat: str) -> float:
        """An agent's share of what the world holds at the start of what a statistic counts."""
        raise ConfigError(f"expected per = episode or tick for a game of kind {self.kind}, got supply", "$.score.per")

    def score_title(self, stat: str = "") -> str:
        """What the score is called; `stat` (`Run.score`) takes the place of the game's own."""
        return stat or self.score.title or self.score.stat

    def score_of(self, episodes: Mapping[str, NDArray[np.generic]], stat: str = "") -> NDArray[np.float64]:
        """The score of every agent-episode in a record of `Env.take_episodes`."""
        found = _column(episodes, stat or self.score.stat)
        if stat or self.score.per == "episode":
            return found
        if self.score.per == "tick":
            return found / np.maximum(1, _column(episodes, "length"))
        return found / self.supply(self.score.stat)


def _column(episodes: Mapping[str, NDArray[np.generic]], name: str) -> NDArray[np.float64]:
    if name not in episodes:
        known = [other for other in episodes if is_figure(other)]
        raise ValueError(f"score: unknown statistic `{clipped(name)}`{did_you_mean(name, known)}")
    return np.asarray(episodes[name], np.float64)
