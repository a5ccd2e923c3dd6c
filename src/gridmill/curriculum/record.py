"""A curriculum for people: its settings in a few lines; sets, tasks with their chances now, and what was evicted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridmill.curriculum.authority import Curriculum
    from gridmill.curriculum.pool import Played
    from gridmill.curriculum.tasks import Tasks


def record(curriculum: Curriculum) -> dict[str, Any]:
    """What `curriculum.json` of a run holds. Goes over the pool: for now and then, not for every episode."""
    tasks, config = curriculum.tasks, curriculum.config
    counts = ("drawn", "compiles", "refused", "episodes", "completed", "learned", "given_up")
    return {
        "choose": config.choose,
        **{name: getattr(curriculum, name) for name in counts},
        "refusal": curriculum.refusal,
        "sets": set_records(tasks, {name: len(places) for name, places in curriculum.members.items()}),
        "tasks": [
            task_record(tasks, played) | {"chance": chance, "worlds": played.users}
            for played, chance in zip(curriculum.pool, chances(curriculum), strict=True)
        ],
        "evicted": list(curriculum.evicted),
    }


def chances(curriculum: Curriculum) -> list[float]:
    """How likely each task of the pool is the next one."""
    tasks, config, weights = curriculum.tasks, curriculum.config, curriculum.levels.weights
    total = sum(weights)
    by_progress = 1.0 - config.explore if config.choose == "learning_progress" and total > 0.0 else 0.0
    found = []
    for played in curriculum.pool:
        name = played.task.set
        by_set = tasks.shares[name] / len(curriculum.members[name])
        found.append((1.0 - by_progress) * by_set + by_progress * (weights[played.place] / total if total else 0.0))
    return found


def set_records(tasks: Tasks, in_pool: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Every set: what it varies, how much of it there is."""
    return {
        name: {
            "game": tasks.base(name).name,
            "share": tasks.shares[name],
            "target": one.target,
            "all": None if math.isinf(one.count) else int(one.count),
            "tasks": in_pool.get(name, 0),
            "vary": {vary.path: vary.text() for vary in one.vary},
        }
        for name, one in tasks.sets.items()
    }


def task_record(tasks: Tasks, played: Played) -> dict[str, Any]:
    """A task and what came of its episodes."""
    return {
        "id": played.task.id,
        "task": tasks.text(played.task),
        "episodes": played.episodes,
        "completed": played.completed,
        "score": played.fast,
        "slow": played.slow,
        "best": played.best,
        "progress": played.progress,
    }


def short_settings(tree: Any) -> Any:
    """Plain settings of a curriculum in which a game is its name and what varies a text."""
    if isinstance(tree, dict) and {"kind", "name", "num_agents", "score"} <= tree.keys():
        return tree["name"]
    if isinstance(tree, dict) and {"path", "values"} <= tree.keys() and isinstance(tree["values"], list):
        return f"{', '.join(map(str, tree['values']))} for {tree['path']}"
    if isinstance(tree, dict) and {"path", "low", "high"} <= tree.keys():
        return f"{tree['low']} to {tree['high']} for {tree['path']}"
    if isinstance(tree, dict):
        return {key: short_settings(value) for key, value in tree.items()}
    return [short_settings(value) for value in tree] if isinstance(tree, list) else tree


def lines(tasks: Tasks) -> list[str]:
    """The sets of a curriculum, and a task of each."""
    found = []
    for name, one in set_records(tasks, {}).items():
        size = "endless" if one["all"] is None else f"{one['all']:,} task{'' if one['all'] == 1 else 's'}"
        found.append(f"{name}: {one['share']:.0%} of new tasks, {size}, completed from a score of {one['target']:g}")
        task = next((t for t in map(tasks.task, range(10_000)) if t.set == name), None)
        if task is not None:
            found.append(f"  task {task.id} is {tasks.text(task)}")
    return found
