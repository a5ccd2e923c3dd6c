"""From an id to a game: pure, by the weights, and refused with its path where it cannot be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tiny import berries, tiny

import gridmill
from gridmill import games, recipes
from gridmill.config import ConfigError
from gridmill.curriculum import CurriculumConfig, Range, Tasks, TaskSet, Values
from gridmill.run import Run

BUSHES = Values(path="map.objects.bush", values=(2, 4, 6))
LIMIT = Range(path="max_steps", low=5, high=20)
PAY = Range(path="rewards.0.weight", low=0.0, high=1.0)


def of(**sets: TaskSet) -> Tasks:
    return Tasks(CurriculumConfig(sets=sets), berries())


def test_an_id_is_its_values() -> None:
    one, other = (of(all=TaskSet(vary=(BUSHES, LIMIT, PAY), target=1.0)) for _ in range(2))
    for id in range(200):
        task = one.task(id)
        assert task == other.task(id)
        bushes, limit, pay = task.values
        assert bushes in (2, 4, 6)
        assert limit in range(5, 21)
        assert 0.0 <= pay < 1.0
        game: Any = one.game_of(task)
        assert (game.map.objects["bush"], game.max_steps, game.rewards[0].weight) == task.values
    assert one.task(7).values == (4, 9, 0.20804351612862804)  # a saved id means the same for ever


def test_every_value_is_as_likely() -> None:
    tasks = of(all=TaskSet(vary=(BUSHES, LIMIT), target=1.0))
    drawn = [tasks.task(id).values for id in range(9_600)]
    for counts, share in ((Counter(v[0] for v in drawn), 1 / 3), (Counter(v[1] for v in drawn), 1 / 16)):
        assert len(counts) == round(1 / share)
        assert all(abs(n / 9_600 - share) < 5 * (share / 9_600) ** 0.5 for n in counts.values())


def test_sets_are_drawn_by_weight_and_counted() -> None:
    tasks = of(
        often=TaskSet(vary=(BUSHES,), weight=3.0, target=1.0),
        rarely=TaskSet(game=berries().replace("name", "other"), vary=(BUSHES, LIMIT), target=1.0),
    )
    found = Counter(tasks.task(id).set for id in range(4_000))
    assert 0.72 < found["often"] / 4_000 < 0.78
    assert tasks.count == 3 + 3 * 16
    rare = next(tasks.task(id) for id in range(100) if tasks.task(id).set == "rarely")
    assert tasks.game_of(rare).name == "other"
    assert of(all=TaskSet(vary=(PAY,), target=0.0)).count == float("inf")


def test_a_set_without_variation_is_one_task() -> None:
    tasks = of(plain=TaskSet(target=1.0))
    assert tasks.count == 1
    assert tasks.game_of(tasks.task(3)) == berries()
    assert tasks.text(tasks.task(3)) == "plain"


# ---- refused


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Values(path="x", values=()), r"at least 1 item.* - at `\$\.values`"),
        (lambda: Values(path="x", values=(1, 1)), r"expected values that differ, got \[1, 1\] - at `\$\.values`"),
        (lambda: Range(path="x", low=2, high=2), r"expected more than low = 2, got 2 - at `\$\.high`"),
        (lambda: Range(path="x", low=0.0, high=1e300), r"expected numbers up to 2\*\*48"),
        (lambda: TaskSet(vary=(BUSHES, BUSHES), target=1.0), r"each path once, got `map\.objects\.bush` again"),
        (lambda: TaskSet(), r"expected a value, got nothing - at `\$\.target`"),
        (lambda: CurriculumConfig(fast=0.1, slow=0.1), r"expected less than fast = 0\.1, got 0\.1 - at `\$\.slow`"),
        (
            lambda: CurriculumConfig(tasks=1, sets={"a": TaskSet(target=0.0), "b": TaskSet(target=0.0)}),
            r"expected at least one for each of the 2 sets, got 1 - at `\$\.tasks`",
        ),
        (
            lambda: tiny(curriculum={"sets": {"a": {"target": 1}, "b": {"target": 1, "weight": 1e-9}}}),
            r"^expected at least 0\.0001 of all weights, 0\.0001 of 1, got 1e-09; raise it, or leave the set out - at "
            r"`\$\.curriculum\.sets\.b\.weight`$",
        ),
        (
            lambda: tiny(curriculum={"sets": {"a": {"game": games.toy(3).tree(), "target": 1}}}),
            r"expected 2 as in the run's game, got 3 - at `\$\.curriculum\.sets\.a\.game\.num_agents`",
        ),
        (
            lambda: tiny(curriculum={"sets": {"a": {"game": games.prospector().tree(), "target": 1}}}),
            r"expected grid as in the run's game, got prospector - at `\$\.curriculum\.sets\.a\.game\.kind`",
        ),
        (
            lambda: recipes.build("prospector").replace_all(
                [("curriculum.sets", {"a": {"target": 1}}), ("trainer.env_impl", "reference")]
            ),
            r"expected auto or native with a curriculum, got reference - at `\$\.trainer\.env_impl`",
        ),
    ],
)
def test_settings_that_cannot_be(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        (
            Values(path="observation.num_tokens", values=(64, 32)),
            "`observation.num_tokens` = 32 cannot be played in one batch with the other tasks: games of one batch "
            "must have the same shape: expected 2 agents, obs 64x3, 5 actions, window 11x11 square, got 2 agents, "
            "obs 32x3, 5 actions, window 11x11 square",
        ),
        (
            Values(path="agent.vibe", values=("calm",)),
            "`agent.vibe` = 'calm' cannot be played in one batch with the other tasks: ",
        ),
        (
            Values(path="moves", values=(4, 8)),
            "`moves` = 8 cannot be played in one batch with the other tasks: this game would add actions",
        ),
        (
            Range(path="map.objects.bush", low=1, high=1_000),
            "`map.objects.bush` = 1000 cannot be played in one batch with the other tasks: ",
        ),
        (Values(path="max_stepz", values=(1,)), "unknown setting `max_stepz`; did you mean `max_steps`?"),
    ],
)
def test_a_value_that_cannot_share_the_batch_is_named(vary: Values | Range, said: str) -> None:
    tasks = of(good=TaskSet(target=1.0), bad=TaskSet(vary=(LIMIT, vary), target=1.0))
    with gridmill.make(berries(), num_worlds=2) as env, pytest.raises(ConfigError) as caught:
        tasks.refuse_unfit(env)
    assert said in str(caught.value)
    assert str(caught.value).endswith(" - at `$.curriculum.sets.bad.vary[1]`")
    assert "\n" not in str(caught.value)


def test_a_run_with_a_curriculum_is_read_again_as_it_was() -> None:
    run = recipes.build("arena_curriculum")
    assert Run.load(run.tree()) == run
    assert run.trained_games[0] == games.arena()
    assert len(recipes.build("navigation").trained_games) == 4


def test_the_buckets_of_the_arena() -> None:
    run = recipes.build("arena_curriculum")
    tasks = Tasks(run.curriculum, run.game)
    assert tasks.count == 5**4 * 2**4 * 2 * 2**5
    game: Any = tasks.game_of(tasks.task(1))
    assert [term.value.resource for term in game.rewards] == ["ore", "battery", "laser", "armor", "heart"]
    assert set(tasks.settings(tasks.task(1))) >= {
        "attack.cost.laser",
        "rewards.0.weight",
        "rewards.0.cap",
    }


def test_every_land_and_number_of_altars_can_be_drawn() -> None:
    """Few and many altars in each land, for some worlds; the supply is what a share of hearts is of."""
    run = recipes.build("navigation")
    tasks = Tasks(run.curriculum, run.game)
    assert tasks.count == 3 * 48 + 18**3
    for name in tasks.sets:
        own = name == "all"  # the game itself: three places that are drawn, and a picture with ten altars
        for altars in (3, 20 if own else 50):
            paths = [f"map.maps.{place}.layers.1.counts.altar" for place in range(3 if own else 1)]
            game = tasks.base(name).replace_all([(path, altars) for path in paths])
            standing = 3 * altars + 10 if own else 4 * altars
            assert game.supply("heart.get") == standing / 4
            with gridmill.make(game, num_worlds=50) as env:
                env.reset(seed=1)
                assert sum(thing["type"] == "altar" for thing in env.inspect(0)["objects"]) == standing
