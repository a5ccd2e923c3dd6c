"""`make`: a game, or several of one kind, compiled into one batch of worlds and seen as arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, overload

import psutil

from gridmill import games
from gridmill.config import did_you_mean, memory, user_code
from gridmill.config.schedule import Progress
from gridmill.env import Env, GameConfig
from gridmill.env.env import batch_options
from gridmill.env.scripts import Part
from gridmill.games.signal import SignalTerm

if TYPE_CHECKING:
    from gridmill.grid.env import GridEnv
    from gridmill.grid.game import Game
    from gridmill.prospector.config import ProspectorConfig
    from gridmill.prospector.env import ProspectorBatchEnv


BEGINNING = Progress(0, 1, 0, 1)


# What an editor shall know of the result: the two games that ship have an Env with more than every Env has.
@overload
def make(
    game: Literal["prospector"] | ProspectorConfig | Sequence[ProspectorConfig],
    num_worlds: int = ...,
    seed: int = ...,
    threads: int = ...,
    lanes: int = ...,
    masks: bool = ...,
    signal: Sequence[SignalTerm] = ...,
    desync_episodes: bool = ...,
    min_first_episode: int | None = ...,
    profiling: bool | None = ...,
    validation: bool | None = ...,
    implementation: str = ...,
    teacher: str = ...,
    players: Mapping[str, Part] | None = ...,
    first_world: int = ...,
    all_worlds: int = ...,
    **sizes: Any,
) -> ProspectorBatchEnv: ...
@overload
def make(
    game: str | Game | Sequence[str | Game],
    num_worlds: int = ...,
    seed: int = ...,
    threads: int = ...,
    lanes: int = ...,
    masks: bool = ...,
    signal: Sequence[SignalTerm] = ...,
    desync_episodes: bool = ...,
    min_first_episode: int | None = ...,
    profiling: bool | None = ...,
    validation: bool | None = ...,
    implementation: str = ...,
    teacher: str = ...,
    players: Mapping[str, Part] | None = ...,
    first_world: int = ...,
    all_worlds: int = ...,
    **sizes: Any,
) -> GridEnv: ...
@overload
def make(
    game: GameConfig | Sequence[GameConfig],
    num_worlds: int = ...,
    seed: int = ...,
    threads: int = ...,
    lanes: int = ...,
    masks: bool = ...,
    signal: Sequence[SignalTerm] = ...,
    desync_episodes: bool = ...,
    min_first_episode: int | None = ...,
    profiling: bool | None = ...,
    validation: bool | None = ...,
    implementation: str = ...,
    teacher: str = ...,
    players: Mapping[str, Part] | None = ...,
    first_world: int = ...,
    all_worlds: int = ...,
    **sizes: Any,
) -> Env: ...
def make(
    game: str | GameConfig | Sequence[str | GameConfig],
    num_worlds: int = 64,
    seed: int = 0,
    threads: int = 1,
    lanes: int = 1,
    masks: bool = False,
    signal: Sequence[SignalTerm] = (),
    desync_episodes: bool = False,
    min_first_episode: int | None = None,
    profiling: bool | None = None,
    validation: bool | None = None,
    implementation: str = "native",
    teacher: str = "",
    players: Mapping[str, Part] | None = None,
    first_world: int = 0,
    all_worlds: int = 0,
    **sizes: Any,
) -> Any:
    """Create an environment of `num_worlds` worlds of one game, or of several games assigned in turn.

    Other keywords are sizes of a game by its name: make("arena", num_agents=12).
    `desync_episodes` shortens each world's first episode by a different amount, never below `min_first_episode`;
    by default that is the tick by which every reachable reward could have been earned with one of each building.
    `implementation` is native, or for games that have one the slow and obvious reference. `teacher` and `players` name
    scripts of the game: `env.teacher_actions` has what the teacher would do; players act in a share of the rows, or
    for the given agents or team: {"arena": 0.25}, {"arena": (0, 1)}, {"arena": "red"}.
    `signal` is a list of terms whose sum is in `env.signal` after every step; it does not change the rewards.
    `first_world` and `all_worlds` are for several processes: the worlds are a part of `all_worlds` and play as there.
    """
    built = _built(game, sizes)
    options = batch_options(
        num_worlds,
        seed,
        threads,
        lanes,
        masks,
        desync_episodes,
        min_first_episode,
        profiling,
        validation,
        teacher,
        players,
        first_world,
        all_worlds,
    )
    for term in signal:
        if not isinstance(term, SignalTerm):
            raise TypeError(f"signal: expected SignalTerms, got {term!r:.60}")
    # A weight that follows a schedule begins here; the trainer moves it with `weigh_signal`.
    options["signal"] = [term.core_tree(BEGINNING.at(term.weight)) for term in signal]
    if not built[0].has_validation:
        if validation:
            raise ValueError(f"validation: {built[0].name} has only one observation path")
        options["validation"] = False
    if threads > (os.cpu_count() or 1):
        warnings.warn(
            f"threads={threads} is more than the {os.cpu_count()} cores of this machine; results stay the same, "
            "but it will not be faster",
            stacklevel=2,
        )
    if desync_episodes and min_first_episode is None:
        # One number for the batch: what the slowest of its games needs; the core cuts it to each game's max_steps.
        options["min_first_episode"] = max(item.min_first_episode() for item in built)
    known = built[0].implementations()
    if implementation not in known:
        raise ValueError(f"implementation: expected {' or '.join(known)} for {built[0].name}, got {implementation!r}")
    if implementation != "native" and all_worlds:
        raise ValueError(f"all_worlds: expected 0 with implementation = {implementation!r}, got {all_worlds}")
    if implementation != "native" and (teacher or players):
        raise ValueError(f"teacher, players: scripts need implementation='native', got {implementation!r}")
    env_class = built[0].env_class(implementation)
    _refuse_more_than_allowed(env_class, built, options)
    return env_class(built, **options)


def _built(game: Any, sizes: Mapping[str, Any]) -> list[GameConfig]:
    """The games of a batch, which are of one kind."""
    if not isinstance(game, str | GameConfig | Sequence):
        raise TypeError(f"game: expected a name, a Game or a list of them, got {type(game).__name__}")
    items = [game] if isinstance(game, str | GameConfig) else list(game)
    if not items:
        raise ValueError("game: expected a name, a Game or a list of them, got an empty list")
    built = [sized(item, sizes) if isinstance(item, str) or sizes else item for item in items]
    for item in built:
        if not isinstance(item, GameConfig):
            raise TypeError(f"game: expected a name or a Game, got {type(item).__name__}")
    kinds = list(dict.fromkeys(item.kind for item in built))
    if len(kinds) > 1:
        raise ValueError(f"game: games of one batch must be of one kind, got {' and '.join(kinds)}")
    return built


def _refuse_more_than_allowed(env_class: type[Env], games: list[GameConfig], options: dict[str, Any]) -> None:
    """The core compares with the machine's memory. Where this process may have less, a world is made and looked at."""
    most, worlds = memory.limit(), options["num_worlds"]
    if worlds == options["lanes"] or most == psutil.virtual_memory().total:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when all of them are made
        with env_class(games, **options | {"num_worlds": options["lanes"], "threads": 1}) as few:
            masks = 0 if few.masks is None else few.masks.nbytes
            size = few.bytes_per_world + (2 * few.obs.nbytes + masks) // few.num_worlds
    if worlds * size > most:
        said = f"{worlds} worlds x {size} bytes = {memory.mebibytes(worlds * size)}"
        raise ValueError(f"not enough memory: {said}, {memory.limit_in_words()}; lower num_worlds")


def sized(game: str | GameConfig, sizes: Mapping[str, Any]) -> GameConfig:
    """A game by its name, with parameters of its function."""
    if not isinstance(game, str):
        raise TypeError(f"sizes {sorted(sizes)} need a game name, got a Game: build it with these sizes instead")
    if user_code.is_own(game):
        return games.build(game, **sizes)
    parameters = signature(games.maker(game)).parameters
    takes, open_ended = list(parameters), any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for name in sizes:
        if name not in takes and not open_ended:  # a game that takes any settings says itself which are wrong
            hint = did_you_mean(name, [*takes, *signature(make).parameters])
            raise TypeError(f"unknown argument `{name}`{hint} - sizes of {game}: {', '.join(takes) or 'none'}")
    return games.build(game, **sizes)
