"""Format 2: what is written is read, old files are read, honest files keep the cap, and other bytes are refused."""

from __future__ import annotations

import json
import os
import socket
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tapes import joined, moves, parts, small
from tiny import berries

from gridmill import games, replay
from gridmill.config.text import printable
from gridmill.games.make import make
from gridmill.replay import blocks
from gridmill.replay.blocks import RATIO, Packed, ReplayError, pack
from gridmill.replay.reader import decode, is_replay, read
from gridmill.replay.tape import Keyframe, Replay
from gridmill.replay.tools import append_branch, info, merge, text

DATA = Path(__file__).resolve().parents[1] / "data" / "replays"
OLD = DATA.parent / "4590d82"


@pytest.fixture(scope="module")
def data() -> bytes:
    return replay.encode(small())


def test_what_is_written_is_read(data: bytes) -> None:
    tape = decode(data)
    assert replay.encode(tape) == data
    assert [(b.name, b.parent, b.fork_tick, b.end) for b in tape.branches] == [
        ("the episode", None, 0, 250), ("fork 0", 0, 40, 250), ("fork 1", 1, 80, 240),
    ]  # fmt: skip
    assert [b.ended for b in tape.branches] == [True, True, False]
    assert (tape.seed, tape.agents, tape.policy, tape.game) == (7, 2, "script:x", berries().replace("max_steps", 250))
    assert tape.who(2) == ["script:x", "human"]
    assert [frame.tick for frame in tape.branches[1].keyframes] == [50, 100, 150, 200]
    assert np.array_equal(tape.actions_along(2)[40:80], tape.branches[1].actions[:40])


def test_the_head_is_as_the_page_says(data: bytes) -> None:
    head, body = parts(data)
    tape = decode(data)
    assert (head["format"], head["kind"], head["seed"], head["agents"], head["action_bytes"]) == (2, "grid", "7", 2, 1)
    assert head["core"] == tape.game.core_tree()
    assert head["saved_name"] == f"berries {head['fingerprint']}"
    first = head["branches"][0]
    block = first["actions"]
    assert zlib.decompress(body[block["at"] : block["at"] + block["size"]]) == tape.actions.tobytes()
    assert len(first["hashes"]["values"]) == 3
    assert first["hashes"]["last"].startswith("00000000")
    assert len(head["branches"][2]["hashes"]["last"]) == 16
    said = set((Path(__file__).parents[2] / "docs" / "replays.md").read_text().replace(",", " ").split())
    assert {f"`{key}`" for key in (*head, *first)} <= said


def test_a_number_above_what_json_readers_know_is_kept() -> None:
    game = berries()
    tape = replay.record(game, 2**64 - 1, moves(5, 2), {"*": "human"})
    assert decode(replay.encode(tape)).seed == 2**64 - 1


@pytest.mark.parametrize("version", [1, 2])
def test_golden_files(version: int) -> None:
    """Files of both formats, written once (tests/data/replays/write.py), play to their hashes for ever."""
    for name in ("grid", "prospector"):
        tape = read(OLD / f"{name}.replay" if version == 1 else DATA / f"{name}.replay")
        assert tape.format == version
        assert all(finding.equal for finding in replay.check(tape))


def test_old_files_become_new_ones() -> None:
    old = read(OLD / "grid.replay")
    tape = replay.record(old.game, old.seed, old.actions, old.branches[0].who, old.played_by)
    assert tape.branches[0].hashes == old.branches[0].hashes
    assert all(finding.equal for finding in replay.check(decode(replay.encode(tape))))


@pytest.mark.parametrize("name", ["grid", "prospector"])
def test_old_files_are_forked_and_merged(tmp_path: Path, name: str) -> None:
    """What comes of a file of format 1 is one of format 2 that can be read; by itself the old one is not written."""
    path = tmp_path / "old.replay"
    path.write_bytes((OLD / f"{name}.replay").read_bytes())
    old = read(path)
    other = 1 - old.actions[3:5].clip(0, 1).astype(int)
    with pytest.raises(ReplayError, match="of format 2 to write, got format 1"):
        replay.encode(old)
    merged = decode(replay.encode(merge([old])))
    assert append_branch(path, 0, 3, other, {"*": "human"}) == 1
    tape = read(path)
    assert (tape.format, len(tape.branches), merged.format) == (2, 2, 2)
    assert np.array_equal(tape.actions, old.actions)
    assert tape.who(0) == old.who(0)
    assert all(finding.equal for finding in (*replay.check(tape), *replay.check(merged)))
    assert len(merge([old, tape]).branches) == 2


def test_an_old_file_that_plays_otherwise_is_not_taken_over() -> None:
    old = read(OLD / "grid.replay")
    own = replace(old.branches[0], hashes=("0" * 16, *old.branches[0].hashes[1:]))
    with pytest.raises(ReplayError, match="plays this file of format 1 differently"):
        replay.fork(replace(old, branches=(own,)), 0, 3, old.actions[3:5], {})


def test_keys_of_a_later_version_are_kept(data: bytes) -> None:
    head, body = parts(data)
    head |= {"later": {"a": [1]}}
    head["branches"][1]["colour"] = "red"
    again, _ = parts(replay.encode(decode(joined(head, body))))
    assert again["later"] == {"a": [1]}
    assert again["branches"][1]["colour"] == "red"


# ---- the cap


@pytest.mark.F3
def test_honest_files_keep_the_cap() -> None:
    """Ten thousand ticks of a thousand agents who wait: 10 MB of zeros are written, read and stay below 200:1."""
    waiting = np.zeros((10_000, 1000), np.uint8)
    block = pack(waiting.tobytes())
    assert len(zlib.compress(waiting.tobytes(), 6)) * RATIO < block.raw  # deflate alone would not
    assert block.raw <= RATIO * len(block.data)
    assert block.unpack() == waiting.tobytes()
    assert zlib.decompress(block.data) == waiting.tobytes()
    for size in (1, 199, 200, 201, 5000, 100_000):
        small_block = pack(bytes(size))
        assert small_block.raw <= RATIO * len(small_block.data)
        assert small_block.unpack() == bytes(size)


@pytest.mark.F3
def test_an_episode_in_which_nobody_moves() -> None:
    game = games.build("toy").replace("max_steps", 2000)
    tape = replay.record(game, 1, np.zeros((2000, game.num_agents), int), {"*": "human"}, keyframes_every=0)
    data = replay.encode(tape)
    assert not decode(data).actions.any()
    assert len(data) < 40_000


@pytest.mark.F3
def test_more_than_was_said_is_not_unpacked() -> None:
    bomb = zlib.compress(bytes(50_000_000), 9)
    with pytest.raises(ReplayError, match="a block does not have 250000 bytes"):
        Packed(bomb, 250_000).unpack()


# ---- refused


def changed(head: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    head = json.loads(json.dumps(head))
    *most, last = path.split(".")
    node: Any = head
    for key in most:
        node = node[int(key) if key.isdigit() else key]
    if value is ...:
        del node[last]
    else:
        node[int(last) if last.isdigit() else last] = value
    return head


BROKEN: dict[str, tuple[str, Any]] = {
    "expected format 2, got '3'": ("format", 3),
    "expected `seed`, got nothing": ("seed", ...),
    "a number below 2**64": ("seed", "18446744073709551616"),
    "text of at most 20": ("seed", 7),
    "expected a number in [1, 65535], got '0'": ("agents", 0),
    "expected a number in [1, 65535], got '2.0'": ("agents", 2.0),
    "at `$.branches[0].actions.raw`": ("agents", 3),
    "expected the name of an action": ("action_names", []),
    "expected actions below 2": ("action_names", ["a", "b"]),
    "expected a number in [1, 2]": ("action_bytes", 4),
    "expected at least one branch": ("branches", []),
    "expected a list of at most 1024": ("branches", {}),
    "expected no parent": ("branches.0.parent", 0),
    "expected a number in [0, 1], got '2'": ("branches.2.parent", 2),
    "expected `parent`": ("branches.1.parent", None),
    "a tick of its parent's own, in [40, 249]": ("branches.2.fork_tick", 39),
    "in [0, 249]": ("branches.1.fork_tick", 250),
    "expected a number in [0, 10000000], got '-1'": ("branches.1.fork_tick", -1),
    "got '9999999999999999999999'": ("branches.0.ticks", 9999999999999999999999),
    "expected 500 bytes": ("branches.0.actions.raw", 501),
    "at `$.branches[0].actions.size`": ("branches.0.actions.size", 10**7),
    "expected a number in [0, 67108864]": ("branches.0.keyframes.0.state.raw", 1 << 40),
    "expected at most 200 times": ("branches.0.keyframes.0.state.raw", 60 << 20),
    "expected a number in [51, 249]": ("branches.0.keyframes.1.tick", 50),
    "expected 3 hashes, one every 100 ticks": ("branches.0.hashes.values", ["0" * 16]),
    "expected 16 hex digits": ("branches.0.hashes.last", "no"),
    "expected 250 hashes": ("branches.0.hashes.every", 1),
    "expected true or false": ("branches.0.ended", "yes"),
    "expected a number or text": ("branches.0.result.score", [1]),
    "expected text": ("names", {"game": 1}),
    "expected an object": ("policy", []),
    "expected a number, got": ("policy.gamma", "much"),
    "expected `tensors`, got nothing": ("policy.weights", {"at": 0, "size": 0, "raw": 0}),
}


@pytest.mark.F3
@pytest.mark.parametrize("said", BROKEN)
def test_a_changed_head_is_refused_in_one_line(data: bytes, said: str) -> None:
    head, body = parts(data)
    with pytest.raises(ReplayError) as refused:
        decode(joined(changed(head, *BROKEN[said]), body))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.X5
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 100_000, "expected a head of JSON"),
        (b"[" * 1_000_000, "at most 100000 parts"),
        (b"[" * 500 + b"]" * 500, "at most 64 levels"),
        (b"[" + b"[]," * 600_000 + b"[]]", "at most 100000 parts"),
        (b"[" + b"[]," * 150_000 + b"[]]", "at most 100000 parts"),
        (b'{"format":2,"agents":' + b"9" * 10_000 + b"}", "expected a head of JSON"),
        (b'{"format":NaN}', "expected numbers in the head"),
        (b'{"format":2,"seed":1e999}', "got nothing"),
        (b"\xff\xfe{}", "expected a head of JSON"),
        (b"7", "expected an object"),
        (b"null", "expected an object"),
        (b" " * (3 << 20), "the head is longer than"),
    ],
)
def test_hostile_json(text: bytes, said: str) -> None:
    with pytest.raises(ReplayError, match=said):
        decode(blocks.MAGIC + text + b"\n")


EVIL = "\x1b]0;mine\x07\r\n\u202e\ud800\x9b2J" + "x" * 1000


def harmless(shown: str) -> bool:
    return shown.isprintable() and shown.encode() != b""


@pytest.mark.X5
def test_words_of_strangers_do_nothing_to_a_terminal(data: bytes, tmp_path: Path) -> None:
    """Names are shown with escapes and cut, in the page about a file and in what is wrong with it."""
    assert printable("caf\u00e9 \u732b") == "caf\u00e9 \u732b"
    assert printable("\x1b[2J\ud800\n") == "\\x1b[2J\\ud800\\n"
    assert len(printable(EVIL)) == 200
    head, body = parts(data)
    head |= {"gridmill": EVIL, "commit": EVIL, "kind": EVIL, "game": head["game"] | {"name": EVIL}}
    head["policy"]["name"] = EVIL
    head["branches"][0] |= {"name": EVIL, "tags": [EVIL], "who": {"*": EVIL}}
    head["branches"][0]["result"]["score_name"] = EVIL
    path = tmp_path / "evil.replay"
    path.write_bytes(joined(head, body))
    lines = text(info(read(path)))
    assert all(harmless(shown) and len(shown) < 500 for shown in lines)
    assert any("\\x1b]0;mine\\x07\\r\\n\\u202e\\ud800\\x9b2J" in shown for shown in lines)
    with pytest.raises(ReplayError) as refused:
        read(path).game  # noqa: B018
    assert harmless(str(refused.value))
    for wrong in ({"names": {EVIL: 1}}, {"names": {EVIL: None}}, {"policy": EVIL}, {"seed": EVIL}):
        with pytest.raises(ReplayError) as refused:
            decode(joined(head | wrong, body))
        assert harmless(str(refused.value))
        assert len(str(refused.value)) < 400


@pytest.mark.X5
def test_blocks_that_share_their_bytes_are_counted_each_time(data: bytes) -> None:
    """A thousand branches that name one block would unpack to more than the file may."""
    head, body = parts(data)
    size = len(body)
    head["branches"][0]["keyframes"] = [
        {"tick": tick, "state": {"at": 0, "size": size, "raw": 199 * size}} for tick in range(1, 249)
    ]
    with pytest.raises(ReplayError, match="at most 200 times what is in the file"):
        decode(joined(head, body))


@pytest.mark.F3
def test_only_plain_files_are_opened(tmp_path: Path, data: bytes) -> None:
    """Nothing that never ends or leads elsewhere: pipes, devices, folders, sockets, links, names with a NUL."""
    good = tmp_path / "good.any_suffix"
    good.write_bytes(data)
    assert read(good).seed == 7
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.replay").symlink_to(good)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for bad in (tmp_path / "pipe", tmp_path / "link.replay", tmp_path, Path("/dev/zero"), tmp_path / "socket"):
            with pytest.raises(ReplayError) as refused:
                read(bad)
            assert "\n" not in str(refused.value)
    for name in ("nul\0", "none.replay", "x" * 5000):
        with pytest.raises(ReplayError, match="cannot read"):
            read(tmp_path / name)
    with open(tmp_path / "large", "wb") as file:
        file.truncate(blocks.MOST_FILE + 1)
    with pytest.raises(ReplayError, match="expected at most 67108864 bytes"):
        read(tmp_path / "large")


def test_what_is_taken_for_a_replay(tmp_path: Path, data: bytes) -> None:
    for name, content in (("a", data), ("b", (OLD / "grid.replay").read_bytes()), ("c", b"{}"), ("d.py", b"import x")):
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    found = [is_replay(tmp_path / name) for name in ("a", "b", "c", "d.py", "pipe", "none", "none.replay")]
    assert found == [True, True, False, False, False, False, True]


def test_a_block_that_leaves_the_file(data: bytes) -> None:
    head, body = parts(data)
    head["branches"][0]["actions"]["at"] = len(body) - 5
    with pytest.raises(ReplayError, match=f"expected a block within {len(body)} bytes"):
        decode(joined(head, body))


# ---- branches in a file


def test_a_person_plays_on_in_a_file(tmp_path: Path) -> None:
    """What a server calls: a branch more in the same file, and where a fork of a fork belongs."""
    path = tmp_path / "a.replay"
    replay.write(path, small(forks=1))
    number = append_branch(path, 1, 100, moves(20, 2, 9), {"0": "human"}, "by hand")
    again = append_branch(path, number, 60, moves(5, 2, 8), {"0": "human"})
    tape = read(path)
    assert (number, again, len(tape.branches)) == (2, 3, 4)
    assert (tape.branches[3].parent, tape.branches[3].fork_tick) == (1, 60)
    assert tape.who(2) == ["human", "human"]
    assert all(finding.equal for finding in replay.check(tape))
    with pytest.raises(ReplayError, match=r"a fork at a tick in \[0, 120\]"):
        append_branch(path, 2, 121, moves(5, 2), {})
    with pytest.raises(ReplayError, match=r"in \[0, 249\]"):
        append_branch(path, 0, 250, moves(5, 2), {})
    with pytest.raises(ReplayError, match="the episode ends at tick 250"):
        append_branch(path, 0, 240, moves(11, 2), {})
    with pytest.raises(ReplayError, match="do not fit"):
        append_branch(path, 0, 3, moves(5, 2) + 100, {})
    with pytest.raises(ReplayError, match=r"whole numbers \[ticks, 2\]"):
        append_branch(path, 0, 3, moves(5, 3), {})
    assert len(read(path).branches) == 4


def without(place: int, **changes: Any) -> Replay:
    tape = small(60, forks=1, keyframes_every=0)
    changed_branch = replace(tape.branches[place], **changes)
    return replace(tape, branches=(*tape.branches[:place], changed_branch, *tape.branches[place + 1 :]))


@pytest.mark.parametrize(
    ("tape", "said"),
    [
        (lambda: replace(small(60, 0), branches=small(60, 0).branches * 1025), "a list of at most 1024"),
        (lambda: without(1, keyframes=(Keyframe(50, Packed(b"", 300)),)), "at most 200 times"),
        (lambda: without(1, keyframes=(Keyframe(1, pack(b"x")),)), "a number in"),
        (lambda: without(0, tags=("x",) * 101), "a list of at most 100"),
        (lambda: without(0, result={"score": float("nan")}), "cannot be written as JSON"),
        (lambda: without(0, result={"score": float("inf")}), "cannot be written as JSON"),
        (lambda: without(0, result={"score": np.float32(1)}), "cannot be written as JSON"),
        (lambda: without(0, more={"later": [[]] * 100_001}), "at most 100000 parts"),
    ],
)
def test_what_nobody_could_read_is_not_written(tmp_path: Path, tape: Callable[[], Replay], said: str) -> None:
    """The caps of readers are those of the writer, and the file that was there stays."""
    path = tmp_path / "a.replay"
    path.write_bytes(b"as it was")
    with pytest.raises(ReplayError, match=said) as refused:
        replay.write(path, tape())
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == b"as it was"
    assert [file.name for file in tmp_path.iterdir()] == ["a.replay"]


# ---- who played


def chained(count: int, agents: int, first: dict[str, str], then: dict[str, str]) -> Replay:
    """Branches that each fork from the one before; nobody can play it."""
    tape = small(60, forks=0)
    own = replace(tape.branches[0], actions=np.zeros((1, agents), np.uint8), ended=False, who=first)
    rest = [replace(own, parent=number, who=then) for number in range(count - 1)]
    return replace(tape, branches=(own, *rest))


def test_a_chain_of_branches_says_who_played() -> None:
    tape = chained(1024, 3, {"*": "script:x", "1": "random"}, {})
    assert tape.who(1023) == ["script:x", "random", "script:x"]
    assert info(tape)["branches"][1023]["who"] == {"script:x": 2, "random": 1}
    last = replace(tape.branches[1023], who={"2": "human", "1": "", "7": "nobody", "02": "nobody"})
    tape = replace(tape, branches=(*tape.branches[:1023], last))
    assert tape.who(1023) == ["script:x", "random", "human"]
    assert info(tape)["branches"][1023]["who"] == {"script:x": 1, "random": 1, "human": 1}
    assert chained(3, 2, {"0": "human"}, {}).who(2) == ["human", ""]


@pytest.mark.X5
def test_agents_are_counted_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file may have 65 535 agents in each of 1024 branches, or as many names: no page of all of them."""
    monkeypatch.delattr(Replay, "who")
    found = info(chained(1024, 65_535, {"*": "policy"}, {"3": "human"}))["branches"]
    assert all(branch["who"] == {"policy": 65_534, "human": 1} for branch in found[1:])
    found = info(chained(2, 1000, {str(agent): f"script:{agent}" for agent in range(1000)}, {}))["branches"]
    assert len(found[1]["who"]) == 17
    assert found[1]["who"]["others"] == 984


def test_a_world_alone_plays_what_a_world_of_a_batch_plays() -> None:
    """The seed that `seed_alone` gives: every game, several worlds, the same observations and rewards."""
    for name in ("toy", "arena_basic_easy_shaped", "navigation", "cogsguard_arena", "prospector", "corridor"):
        game = games.build(name)
        rng = np.random.default_rng(3)
        with make(game, num_worlds=4, seed=11, masks=True) as env:
            alone = [make(game, num_worlds=1, seed=game.seed_alone(11, world), masks=True) for world in range(4)]
            for one in (env, *alone):
                one.reset()
            for _ in range(30):
                actions = rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32)
                env.step(actions)
                for world, one in enumerate(alone):
                    rows = slice(world * env.num_agents, (world + 1) * env.num_agents)
                    one.step(actions[rows])
                    assert np.array_equal(one.obs, env.obs[rows]), (name, world)
                    assert np.array_equal(one.rewards, env.rewards[rows])
            for one in alone:
                one.close()


def test_values_of_a_policy_are_kept() -> None:
    tape = small(forks=0)
    rng = np.random.default_rng(0)
    values, chances = rng.normal(size=(250, 2)).astype(np.float32), rng.random((250, 2, 5)).astype(np.float32)
    chances = chances[..., : len(tape.action_names)]
    tape = decode(replay.encode(replay.annotated(tape, 0, values, chances)))
    kept, shares = tape.branches[0].values, tape.branches[0].probabilities
    assert kept is not None
    assert shares is not None
    assert np.array_equal(np.frombuffer(kept.unpack(), "<f4").reshape(250, 2), values)
    assert np.abs(np.frombuffer(shares.unpack(), "u1") / 255 - chances.ravel()).max() <= 0.5 / 255 + 1e-6
    with pytest.raises(ReplayError, match="expected values"):
        replay.annotated(tape, 0, values[:3], chances)
    assert replace(tape, names={}).names == {}
