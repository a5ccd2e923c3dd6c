"""Draws in proportion to weights that change."""

from __future__ import annotations

import random
from collections import Counter

from gridmill.curriculum.draws import bits, share
from gridmill.curriculum.levels import Levels


def drawn(levels: Levels, count: int) -> Counter[int | None]:
    return Counter(levels.draw(lambda i, k=k: share(5, k, i)) for k in range(count))  # type: ignore[misc]


def test_draws_are_in_proportion() -> None:
    weights = [0.5, 0.0, 1.0, 0.03, 0.25, 0.999, 1e-9, 0.07]
    levels = Levels()
    for entry, weight in enumerate(weights):
        levels.set(entry, weight)
    found = drawn(levels, 20_000)
    total = sum(weights)
    for entry, weight in enumerate(weights):
        expected = 20_000 * weight / total
        assert abs(found[entry] - expected) <= 5 * expected**0.5 + 0.01, (entry, found[entry], expected)


def test_nothing_weighs() -> None:
    levels = Levels()
    assert levels.draw(lambda i: 0.5) is None
    levels.set(0, 0.0)
    assert levels.draw(lambda i: 0.5) is None


def test_the_lists_follow_every_change() -> None:
    """After thousands of changes: the same as if the weights had been set once, but for the order in the lists."""
    rng, levels = random.Random(3), Levels()
    weights: list[float] = []
    for _ in range(5_000):
        entry = rng.randrange(len(weights) + 1) if len(weights) < 40 else rng.randrange(40)
        weight = rng.choice([0.0, rng.random(), rng.random() ** 8, 3.0])
        weights[entry : entry + 1] = [weight]
        levels.set(entry, weight)
    plain = Levels()
    for entry, weight in enumerate(weights):
        plain.set(entry, weight)
    assert levels.weights == plain.weights
    assert sorted(levels.order()) == sorted(plain.order()) == [e for e, w in enumerate(plain.weights) if w > 0.0]
    for entry in levels.order():
        level, place = levels._place[entry]
        assert levels._lists[level][place] == entry


def test_random_bits_are_what_they_were() -> None:
    """Ids of tasks in checkpoints depend on them."""
    assert [bits(0), bits(1, 2), bits(2**63, 0, 7)] == [16294208416658607535, 2549061549998628137, 9590839198534047844]
    assert len({bits(seed, k) for seed in range(30) for k in range(30)}) == 900
    assert all(0.0 <= share(k) < 1.0 for k in range(100))
