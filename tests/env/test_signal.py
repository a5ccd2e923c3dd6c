"""The signal: what is learned from beside what is paid. It leaves no trace in anything else, and adds up by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gridmill
from gridmill import Env, _native
from gridmill.grid import Count, Inventory, Log, Stat, Sum
from gridmill.run import SignalTerm

MOVES = {"ore.get": 0.05, "ore.put": 0.35, "battery.get": 0.05, "battery.put": 0.45, "heart.get": 0.1}
ARENA: dict[str, Any] = {"num_agents": 12, "max_steps": 300}


def terms(weights: dict[str, float]) -> list[SignalTerm]:
    return [SignalTerm(value=name, weight=weight) for name, weight in weights.items()]


def arena(signal: Sequence[SignalTerm] = (), **options: Any) -> Env:
    game = gridmill.games.arena_basic_easy_shaped(**ARENA)
    return gridmill.make(game, **({"num_worlds": 4, "seed": 3, "signal": signal} | options))


def play(env: Env, steps: int, seed: int = 0, first: int = 0) -> np.ndarray[Any, Any]:
    """The signal of every step under random actions that depend on the step alone."""
    seen = []
    for step in range(first, first + steps):
        actions = np.random.default_rng([seed, step]).integers(env.num_actions, size=env.num_rows)
        env.step(actions)
        assert env.signal is not None
        seen.append(env.signal.copy())
    return np.array(seen)


def test_it_is_an_array_of_its_own_if_asked_for() -> None:
    assert arena().signal is None
    env = arena(terms(MOVES))
    assert env.signal is not None
    assert (env.signal.dtype, env.signal.shape) == (np.float32, (48,))
    assert not np.shares_memory(env.signal, env.rewards)
    env.reset()
    play(env, 120)
    assert env.signal is not None
    assert env.signal.any() or play(env, 120).any()
    env.reset()
    assert not env.signal.any()
    env.close()
    assert env.signal.shape == (48,)  # still readable


@pytest.mark.parametrize("game", ["arena_basic_easy_shaped", "cogsguard_arena", "prospector", "corridor"])
def test_nothing_else_changes(game: str) -> None:
    """Observations, rewards, ends, masks, states, saved bytes and records are those of an env without it."""
    value = {"prospector": "net_profit", "corridor": "reached"}.get(game, "cell.visited")
    signal = [SignalTerm(value=value, weight=2.0)]
    plain, other = (
        gridmill.make(game, num_worlds=4, seed=5, masks=True, desync_episodes=True, signal=s) for s in ((), signal)
    )
    total = 0.0
    for env in (plain, other):
        env.reset()
    for step in range(150):
        actions = np.random.default_rng(step).integers(plain.num_actions, size=plain.num_rows)
        for env in (plain, other):
            env.step(actions)
        for name in ("obs", "rewards", "terminals", "truncations", "masks"):
            assert np.array_equal(getattr(plain, name), getattr(other, name)), (step, name)
        assert np.array_equal(plain.state_hash(), other.state_hash())
        assert other.signal is not None
        total += float(np.abs(other.signal).sum())
    assert total > 0
    assert plain.save() == other.save()
    ours, theirs = plain.take_episodes(), other.take_episodes()
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_over_an_episode_it_is_the_weighted_statistics() -> None:
    """Every statistic of the record can be a term, and the changes of an episode add up to it."""
    probe = arena()
    names = [name for name in probe.stat_names if not name.endswith(".amount")]  # amounts need not begin with 0
    weights = dict(zip(names, np.random.default_rng(0).uniform(-1, 1, len(names)), strict=True))
    env = arena(terms(weights))
    env.reset()
    sums = play(env, ARENA["max_steps"]).sum(0, dtype=np.float64)
    assert env.truncations.all()  # its last step is paid too, though the worlds have begun again
    record = env.take_episodes()
    expected = sum(weight * record[name] for name, weight in weights.items())
    row = record["world"] * ARENA["num_agents"] + record["agent"]
    # `cell.visited` counts the first cell before the first step; tokens of the first observation likewise.
    begun = {"cell.visited": 1}
    alone = {name: arena(terms({name: 1.0})) for name in ("cell.visited", "tokens_written", "tokens_dropped")}
    for name, one in alone.items():
        one.reset()
        total = play(one, ARENA["max_steps"]).sum(0, dtype=np.float64)
        assert np.allclose(record[name] - total[row], begun.get(name, record[name] - total[row]))
        expected = expected - weights[name] * (record[name] - total[row])
    assert np.allclose(sums[row], expected, rtol=1e-5, atol=1e-3)


def test_every_term_is_told_apart() -> None:
    """The sum of terms is the sum of signals of single terms; a script makes all five happen."""
    envs = [arena(terms(chosen)) for chosen in (MOVES, *({name: weight} for name, weight in MOVES.items()))]
    for env in envs:
        env.reset()
    script, state = envs[0].games[0].scripts()["arena"](envs[0], 0), None
    happened = np.zeros(len(MOVES), np.bool_)
    for _ in range(200):
        actions, state = script.act(envs[0].obs, state)
        for env in envs:
            env.step(actions)
        whole, *parts = [env.signal.astype(np.float64) for env in envs if env.signal is not None]
        assert np.allclose(whole, np.sum(parts, 0), atol=1e-6)
        happened |= [bool(part.any()) for part in parts]
    assert happened.all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_threads_and_lanes_make_no_difference(threads: int, lanes: int) -> None:
    first = arena(terms(MOVES))
    other = arena(terms(MOVES), threads=threads, lanes=lanes, masks=True)
    for env in (first, other):
        env.reset()
    assert np.array_equal(play(first, 320), play(other, 320))


def test_it_goes_on_where_a_saved_state_was() -> None:
    """A saved state knows nothing of signals: it continues to the bit, under the same signal or under another."""
    env = arena(terms(MOVES))
    env.reset()
    play(env, 150)
    saved = env.save()
    expected = play(env, 200, first=150)
    assert expected.any()
    for made_with in (terms(MOVES), [*terms(MOVES), SignalTerm(value="cell.visited", weight=0.0)]):
        fresh = arena(made_with, seed=99)
        fresh.restore(saved)
        assert fresh.signal is not None
        assert not fresh.signal.any()
        assert np.array_equal(play(fresh, 200, first=150), expected)
    without = arena(seed=99)
    without.restore(saved)
    assert without.save() == saved


def test_worlds_of_several_games_and_of_one_that_came_later() -> None:
    """Statistics are the batch's, game values each game's own."""
    games = [gridmill.games.arena_basic_easy_shaped(**ARENA), gridmill.games.arena_basic(**ARENA)]
    signal = [*terms(MOVES), SignalTerm(value=Sum(values=(Inventory(resource="ore"),)), weight=0.5)]
    env = gridmill.make(games, num_worlds=4, signal=signal)
    number = env.add_game(games[0].replace("max_steps", 200))
    env.assign(range(4), number)
    env.reset()
    assert play(env, 400).any()


def test_game_values_are_terms_too() -> None:
    by_name = arena([SignalTerm(value="ore.get", weight=1.0)])
    by_value = arena([SignalTerm(value=Stat(name="ore.get"), weight=1.0)])
    logs = arena([SignalTerm(value=Log(values=(Stat(name="ore.get"),)), weight=1.0)])
    for env in (by_name, by_value, logs):
        env.reset()
    first, second, third = play(by_name, 299), play(by_value, 299), play(logs, 299)
    assert first.any()
    assert np.array_equal(first, second)
    assert np.allclose(third.sum(0), np.log1p(first.sum(0)), atol=1e-5)


WRONG: list[tuple[str, Any, str]] = [
    ("arena", "battery.putt", "unknown statistic `battery.putt`; did you mean `battery.put`? - at `$.signal[0].value`"),
    ("arena", Inventory(resource="ores"), "unknown resource `ores`"),
    ("arena", Count(tag="type:wall"), "terrain is not counted - at `$.signal[0].value`"),
    ("prospector", "netprofit", "unknown statistic `netprofit`; did you mean `net_profit`? - at `$.signal[0].value`"),
    ("prospector", "step.spend", "unknown statistic `step.spend`; did you mean `step.spent`? - at `$.signal[0].value`"),
    ("prospector", Inventory(resource="ore"), "$.signal[0].value"),
    ("corridor", "reach", "unknown statistic `reach`; did you mean `reached`? - at `$.signal[0].value`"),
]  # fmt: skip


@pytest.mark.parametrize(("game", "value", "said"), WRONG)
def test_what_cannot_be_read_is_refused_by_name(game: str, value: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        gridmill.make(game, num_worlds=1, signal=[SignalTerm(value=value, weight=1.0)])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_game_that_lacks_a_value_is_not_added() -> None:
    """The refusal leaves the batch as it was."""
    ore = SignalTerm(value=Inventory(resource="ore"), weight=1.0)
    toy = gridmill.games.toy(num_agents=4)
    both = [toy.replace("resources", ("ore",)), toy.replace("resources", ("ore", "gem"))]
    env = gridmill.make(both, num_worlds=2, signal=[ore])
    with pytest.raises(ValueError, match="unknown resource `ore`"):
        env.add_game(toy.replace("resources", ("gem",)))
    assert env.add_game(both[0]) == 2
    env.assign(range(2), 2)
    env.reset()
    play(env, 3)


def test_terms_are_checked() -> None:
    with pytest.raises(gridmill.ConfigError, match="expected"):
        SignalTerm(value=3, weight=1.0)  # type: ignore[arg-type]
    with pytest.raises(gridmill.ConfigError, match="weight"):
        SignalTerm(value="ore.get")  # type: ignore[call-arg]
    with pytest.raises(gridmill.ConfigError, match="weight"):
        SignalTerm(value="ore.get", weight=float("nan"))
    with pytest.raises(TypeError, match="signal: expected SignalTerms"):
        gridmill.make("toy", num_worlds=1, signal=["ore.get"])  # type: ignore[call-overload]


@pytest.mark.parametrize("game", ["arena_basic_easy_shaped", "prospector"])
def test_a_thousand_ticks_allocate_nothing(game: str) -> None:
    value = "net_profit" if game == "prospector" else "cell.visited"
    env = gridmill.make(game, num_worlds=4, threads=2, lanes=2, signal=[SignalTerm(value=value, weight=1.0)])
    env.reset()
    env.actions[:] = env.action_names.index("hold") if game == "prospector" else 0
    for _ in range(3):
        env.step()
    before = _native.allocations()
    for _ in range(900):
        env.step()
    assert _native.allocations() == before
