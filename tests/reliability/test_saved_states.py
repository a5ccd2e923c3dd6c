"""Saved worlds changed by somebody who writes the hash as well: refused in one line, or played on.

Most of it is in `tests/native/saved/` and runs under ASan and UBSan; here is what Python adds: the refusal as people
see it, checkpoints, memory, and states that nobody changed.
"""

from __future__ import annotations

import json
import random
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from config_trees import OPTIONS
from random_games import random_actions
from tiny import tiny

import gridmill
from gridmill import Env, _native, games
from gridmill.grid import (
    AddStat,
    AgentType,
    Constant,
    Game,
    ObjectType,
    Observation,
    Ratio,
    RewardTerm,
    Rule,
    Scatter,
    Stat,
    Sum,
)
from gridmill.policy import checkpoint
from gridmill.runs import resume, train

pytestmark = pytest.mark.F8

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def hash_of(data: bytes) -> int:
    """As hash_bytes() of native/core/snapshot.hpp."""
    a, b = mix(GOLDEN), mix((len(data) + 2 * GOLDEN) & MASK)
    whole = len(data) // 16 * 16
    for x, y in struct.iter_unpack("<QQ", data[:whole]):
        a = (a ^ x) * 0xD6E8FEB86659FD93 & MASK
        b = (b ^ y) * 0xA0761D6478BD642F & MASK
        a ^= a >> 32
        b ^= b >> 29
    for byte in data[whole:]:
        a = mix(a ^ byte)
    return mix(a ^ mix(b))


def sealed(data: bytes) -> bytes:
    """Changed bytes with a hash that fits."""
    return data[:-8] + struct.pack("<Q", hash_of(data[:-8]))


def started(game: Any = "toy", **options: Any) -> Env:
    env = gridmill.make(game, num_worlds=2, **options)
    env.reset()
    return env


def names_end(saved: bytes) -> int:
    """Where the first world begins: behind the magic, the shapes, the words and the list of games."""
    at = 8 + 4 + 17 + 8
    (count,) = struct.unpack_from("<I", saved, at)
    at += 4
    for _ in range(count):
        (size,) = struct.unpack_from("<I", saved, at)
        at += 4 + size
    return at + 8


def test_the_hash_here_is_the_one_there() -> None:
    with started() as env:
        saved = env.save()
        assert sealed(saved) == saved


def test_what_is_wrong_is_said_in_one_line() -> None:
    with started() as env:
        saved = env.save()
        block = names_end(saved) + 64  # behind the header: `cell`, a number of four bytes for each object
        before = env.state_hash().tolist()
        for change, said in {
            b"\xff\xff\xff\x7f": "object 0 is not where its position says",
            b"\0\0\0\0": "object 0 is an agent and has no cell",
        }.items():
            with pytest.raises(ValueError, match=r"^restore: saved world 0 is invalid: ") as caught:
                env.restore(sealed(saved[:block] + change + saved[block + 4 :]))
            assert said in str(caught.value)
            assert "\n" not in str(caught.value)
        assert env.state_hash().tolist() == before


def test_bytes_behind_the_last_world_are_refused() -> None:
    with started() as env, pytest.raises(ValueError, match=r"^restore: 5 bytes follow the last saved world$"):
        env.restore(sealed(env.save()[:-8] + b"extra" + bytes(8)))


def test_no_memory_is_taken_for_what_is_only_claimed() -> None:
    """A few kilobytes that claim four billion games."""
    with started() as env:
        saved = env.save()
        at = 8 + 4 + 17 + 8
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ValueError, match=r"too short for the 4294967295 games it lists$"):
            env.restore(sealed(saved[:at] + b"\xff" * 4 + saved[at + 4 :]))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_name_that_cannot_be_shown_is_not_shown() -> None:
    with started() as env:
        saved = env.save()
        at = 8 + 4 + 17 + 8 + 4
        (size,) = struct.unpack_from("<I", saved, at)
        long = bytes(range(256)) * 400
        longer = saved[:at] + struct.pack("<I", len(long)) + long + saved[at + 4 + size :]
        with pytest.raises(ValueError, match=r"^restore: this batch does not have the game ") as caught:
            env.restore(sealed(longer))
        assert len(str(caught.value)) < 300
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("seed", range(4))
def test_a_checkpoint_with_such_a_state_is_refused_by_name(tmp_path: Path, seed: int) -> None:
    """Its manifest fits, and so does the hash of its worlds; the indices in it do not."""
    folder = train(tiny(2, run="mine"), tmp_path, panel=False).folder
    found, _ = checkpoint.newest(folder)
    worlds = found.trainer["worlds"].numpy()
    saved, draw = worlds.tobytes(), random.Random(seed)
    block = names_end(saved) + 64 + 4 * draw.randrange(4)
    hostile = sealed(saved[:block] + b"\xff\xff\xff\x7f" + saved[block + 4 :])
    found.trainer["worlds"] = type(found.trainer["worlds"])(list(hostile)).byte()
    checkpoint.save(folder / "checkpoints", found.epoch, found.policy, found.trainer, found.record, 5, None)
    with pytest.raises(checkpoint.CheckpointError, match=r"restore: saved world 0 is invalid: .* - in `.*`$"):
        resume(folder, ["trainer.total_timesteps=1_000_000"], panel=False)


@pytest.mark.parametrize("name", ["toy", "arena_basic_easy_shaped", "navigation", "prospector", "corridor"])
def test_states_that_nobody_changed_are_taken(name: str) -> None:
    """Every few ticks, over the ends of episodes, with scripts where there are some."""
    game = games.build(name)
    script = next(iter(game.scripts()), None)
    options = {"teacher": script} if script else {}
    with started(game, masks=True, desync_episodes=True, **options) as env:
        actions = random_actions(env, 3)
        for _ in range(8):
            saved = env.save()
            env.restore(saved)
            assert env.save() == saved
            for _ in range(25):
                env.step(actions())


def ratio(deep: int) -> Any:
    value: Any = Constant(value=1e12)
    for _ in range(deep):
        value = Ratio(values=(value, Constant(value=1e-300)))
    return value


def test_the_largest_numbers_that_a_game_can_make_are_taken() -> None:
    """A statistic that had become infinite was saved, and refused when it was to be restored (found by a fuzzer)."""
    rule = Rule(then=(AddStat(name="much", amount=-1e12), AddStat(of="game", name="more", amount=1e12)))
    sums = Sum(values=(Sum(values=(ratio(4),) * 32),) * 32)
    largest = Sum(values=(sums, Stat(name="more", of="game")))
    game = Game(
        name="large",
        num_agents=2,
        objects={"wall": ObjectType()},
        agent=AgentType(on_tick=(rule,) * 64),
        map=Scatter(height=8, width=8),
        rewards=(RewardTerm(value=largest, weight=1e12),),
        observation=Observation(overflow="drop"),
    )
    with gridmill.make(game, num_worlds=1) as env:
        env.reset()
        for _ in range(20):
            env.step()
            saved = env.save()
            env.restore(saved)
            assert env.save() == saved
        assert np.isfinite(env.rewards).all()


@pytest.mark.parametrize("make", [lambda: Constant(value=1.1e12), lambda: AddStat(name="much", amount=-1e308)])
def test_numbers_that_would_become_infinite_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"^expected (less|greater) than or equal to -?1000000000000, got "):
        make()


def test_the_core_refuses_them_too() -> None:
    tree = games.build("arena").core_tree()
    tree["rewards"][0]["value"] = {"kind": "constant", "value": -1e13}
    with pytest.raises(ValueError, match=r"got -1\d+ - at `\$\.rewards\[0\]\.value\.value`$"):
        _native.GridBatch([tree], ["arena"], **OPTIONS)


def test_states_of_a_curriculum_are_taken() -> None:
    """Worlds that play several games, change them at their resets, and go where games have other numbers."""
    levels = [games.build("toy").replace("max_steps", steps) for steps in (7, 11, 30)]
    with (
        gridmill.make(levels, num_worlds=6, masks=True) as env,
        gridmill.make(levels[::-1], num_worlds=6, masks=True) as other,
    ):
        env.reset()
        actions, draw = random_actions(env, 5), np.random.default_rng(1)
        for _ in range(60):
            env.assign(range(6), draw.integers(0, 3, 6).tolist())
            env.step(actions())
            other.restore(env.save())
        assert json.dumps(other.game_of_world.tolist()) == json.dumps((2 - env.game_of_world).tolist())
