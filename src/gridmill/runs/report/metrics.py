"""Which metrics a report shows, in which order, under which names: first what the score is made of.

The names come from the run's own game: its score, the statistics that it wants beside it, what it rewards and what is
learned from. What never changes, and what another curve shows already, is said in a line instead of drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridmill.runs.figures import number
from gridmill.runs.report.folder import Folder

PER_EPISODE, PER_STEP = "per agent and episode", "per agent step"


@dataclass(frozen=True)
class Metric:
    """A metric by its key in metrics.jsonl: what it is called, what it means, and the title of its axis."""

    key: str
    name: str
    meaning: str = ""
    unit: str = PER_EPISODE
    evaluation: str = ""  # the part of an evaluation that is measured in the same unit: score, reward or a statistic
    from_zero: bool = False  # where a small wobble should look small


RETURN = Metric("episode_return", "episode return", "sum of the game's rewards", evaluation="reward")
REWARD = Metric("reward", "reward", "the game's reward", PER_STEP)
SIGNAL = Metric("signal", "signal", "what the policy learns from instead", PER_STEP)
SPEED = Metric("sps", "speed", "", "agent steps per second", from_zero=True)
LEARNING = (
    Metric("loss/policy", "policy loss", "", "loss"),
    Metric("loss/value", "value loss", "", "loss"),
    Metric("loss/entropy", "entropy", "how uncertain the policy is", "nats"),
    Metric("kl", "KL", "how far one update moves the policy", "nats"),
    Metric("clip_fraction", "clipped", "steps at which the clip was active", "share"),
    Metric("explained_variance", "explained variance", "1 = the critic predicts all returns", "share"),
    Metric("learning_rate", "learning rate", "", "step size"),
    Metric("gradient_norm", "gradient norm", "before clipping", "norm"),
)
ALSO_LEARNING = ("loss/", "gradient/", "weight/")  # how other metrics of learning begin
MACHINE = (
    SPEED,
    Metric("memory/rss", "memory", "of the process", "bytes", from_zero=True),
    Metric("cpu/util", "CPU", "", "share of all cores", from_zero=True),
    Metric("cpu/threads", "threads", "of the process", "threads", from_zero=True),
    Metric("gpu/util", "GPU", "", "share", from_zero=True),
)
OTHERS = {
    "epoch", "agent_steps", "total_timesteps", "seconds", "eta", "episodes", "sps_mean",
    "score", "score_recent", "skipped_updates",
}  # fmt: skip
CURRICULUM = "curriculum/"  # how its metrics begin


def score(folder: Folder) -> Metric:
    """The score, under the name of what it counts."""
    facts = folder.game.get("score")
    facts = facts if isinstance(facts, Mapping) and not folder.settings.get("score") else {}
    per = {"tick": "per agent and tick", "supply": "share of what there is"}.get(str(facts.get("per")), PER_EPISODE)
    title = str(facts.get("title") or folder.score_stat)
    return Metric("score", f"score: {title}" if title else "score", "", per, evaluation="score")


def ingredients(folder: Folder) -> list[Metric]:
    """What the score is made of, in the order that the game says, and what the game pays for it."""
    known, plain = folder.metrics, _is_plain(folder)
    wanted = [] if plain else [folder.score_stat]  # a score per episode is its statistic: one curve is enough
    wanted += [str(name) for name in _listed(folder.game.get("beside"))]
    wanted += [*_named(folder.game.get("rewards")), *_named(_inner(folder.settings, "trainer", "signal"))]
    chosen = dict.fromkeys(name for name in wanted if name in known and not (plain and name == folder.score_stat))
    found = [Metric(name, name, evaluation=name) for name in chosen if name not in ("reward", "length")]
    return [*found, RETURN, REWARD, SIGNAL]


def learning(folder: Folder) -> list[Metric]:
    """The trainer's own, then the losses and statistics that this run has besides."""
    fixed = {metric.key for metric in LEARNING}
    more = [key for key in folder.metrics if key.startswith(ALSO_LEARNING) and key not in fixed]
    return [*LEARNING, *(Metric(key, key.replace("/", " "), "", key.partition("/")[0]) for key in more)]


def of_game(folder: Folder, shown: Sequence[Metric]) -> list[Metric]:
    """The game's other statistics: every number that is nothing else; what agents did comes last."""
    taken = {metric.key for metric in (*shown, *LEARNING, *MACHINE)} | OTHERS
    taken.add(folder.score_stat if any(metric.key == "score" for metric in shown) and _is_plain(folder) else "")
    elsewhere = ("time/", "cpu/", "gpu/", "memory/", CURRICULUM, "player/", *ALSO_LEARNING)
    own = [key for key in folder.metrics if key not in taken and not key.startswith(elsewhere)]
    return [Metric(key, key, evaluation=key) for key in sorted(own, key=lambda key: (key.startswith("action."), key))]


def of_players(folder: Folder) -> list[Metric]:
    """What those get who play beside the policy."""
    return [Metric(key, key.removeprefix("player/")) for key in folder.metrics if key.startswith("player/")]


def of_curriculum(folder: Folder) -> list[Metric]:
    """The metrics of a curriculum."""
    return [Metric(key, key.removeprefix(CURRICULUM), "", "") for key in folder.metrics if key.startswith(CURRICULUM)]


def moving(folder: Folder, metrics: Sequence[Metric], shown: Sequence[Metric] = ()) -> tuple[list[Metric], list[str]]:
    """Those with a curve of their own, and a few words on each of the others: constant, or the same as one `shown`."""
    drawn, told = list[Metric](), list[str]()
    seen = {tuple(folder.column(metric.key)[1]): metric.name for metric in reversed(shown)}
    for metric in metrics:
        values = tuple(folder.column(metric.key)[1])
        if len(values) > 1 and len(set(values)) > 1:
            if values in seen:
                told.append(f"{metric.name} is {seen[values]}")
                continue
            seen[values] = metric.name
        elif not values or not any(values) or len(values) > 1:
            told += [f"{metric.name} = {number(values[0])}"] if values else []
            continue
        drawn.append(metric)
    return drawn, told


def _is_plain(folder: Folder) -> bool:
    facts = folder.game.get("score")
    return not isinstance(facts, Mapping) or facts.get("per", "episode") == "episode"


def _named(tree: Any) -> Iterator[str]:
    """The statistics that rewards or a signal in plain data speak of: `heart` held is `heart.get` counted."""
    if isinstance(tree, Mapping):
        if isinstance(tree.get("resource"), str):
            yield f"{tree['resource']}.get"
        for name in ("name", "value"):
            if isinstance(tree.get(name), str):
                yield tree[name]
        for part in tree.values():
            yield from _named(part)
    for part in _listed(tree):
        yield from _named(part)


def _inner(tree: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        inner = tree.get(name) if isinstance(tree, Mapping) else None
        tree = inner if inner is not None else {}
    return tree


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
