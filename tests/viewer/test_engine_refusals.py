"""What the engine of pages refuses, it refuses in one line, and goes on."""

from __future__ import annotations

import base64
import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from engine_node import ask, opening

import gridmill
from gridmill.viewer import engine

TOY = gridmill.games.build("toy")


def message(**given: Any) -> str:
    [answer] = ask({"do": "play", "open": opening(TOY, 0) | given, "steps": 1})
    assert set(answer) == {"refused"}, answer
    assert "\n" not in answer["refused"]
    return str(answer["refused"])


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(TOY.core_tree())
    at: Any = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return tree


TREES: list[tuple[list[Any], Any]] = [
    (["max_steps"], 0),
    (["max_steps"], "many"),
    (["observation", "height"], 4),
    (["no_such_field"], 1),
    (["num_agents"], 10**9),
    (["observation"], None),
]


@pytest.mark.parametrize(("path", "value"), TREES, ids=lambda x: str(x)[:30])
def test_a_bad_tree_is_refused_as_python_refuses_it(path: list[Any], value: Any) -> None:
    from gridmill import _native

    tree = changed(path, value)
    options = {"threads": 1, "lanes": 1, "masks": True, "desync_episodes": False, "min_first_episode": -1}
    options |= {"profiling": False, "validation": False, "fast": True}
    with pytest.raises((ValueError, TypeError)) as native:
        _native.GridBatch([tree], ["x"], num_worlds=1, seed=0, **options)
    said = message(tree=tree)
    assert said == str(native.value)
    assert " - at `$" in said


TEXTS = {
    "": "JSON: expected a value, got the end at byte 0 - at `$`",
    "{": "JSON: expected a key in quotes, got the end at byte 1 - at `$`",
    '{"a": [1, 2,]}': "JSON: expected a value, got `]` at byte 12 - at `$.a[2]`",
    '{"a": 1} x': "JSON: expected nothing after the value, got `x` at byte 9 - at `$`",
    '{"a": 01}': "JSON: expected `,` or `}`, got `1` at byte 7 - at `$`",
    '{"a": .5}': "JSON: expected a value, got `.` at byte 6 - at `$.a`",
    '{"a": 1.}': "JSON: expected a digit after the decimal point, got `}` at byte 8 - at `$.a`",
    '{"a": NaN}': "JSON: expected a value, got `N` at byte 6 - at `$.a`",
    '{"a": 1e999}': "expected a finite number, got one that is too large - at `$.a`",
    '{"a": 9223372036854775808}': "expected an int of at most 64 bits, got a larger one - at `$.a`",
    '{"a": 1, "a": 2}': "expected every key once, got `a` twice - at `$`",
    '{"a": "\\ud800"}': 'JSON: expected both halves of a surrogate pair, got `"` at byte 13 - at `$.a`',
    '{"a": "\\x"}': 'JSON: expected a JSON escape after a backslash, got `"` at byte 9 - at `$.a`',
    '{"a": "\n"}': "JSON: expected text without control characters and a closing quote, got `\\n` at byte 7 - at `$.a`",
    "[" * 100_000: "expected a config at most 64 levels deep, got more - at `$`",
    "true": "expected a dict, got true - at `$`",
}


def test_text_that_is_no_json_is_refused_where_it_breaks() -> None:
    jobs = [{"do": "play", "open": opening(TOY, 0) | {"tree": text}, "steps": 1} for text in TEXTS]
    assert [answer.get("refused") for answer in ask(*jobs)] == list(TEXTS.values())


def test_numbers_and_escapes_are_read_as_python_reads_them() -> None:
    """A tree as text plays as the tree; JSON.parse on the way would change large ints."""
    text = json.dumps(TOY.core_tree()).replace('"', ' "', 1).replace("toy", "t\\u006fy")
    plain, spaced = ask(
        *({"do": "play", "open": opening(TOY, 0) | {"tree": t}, "steps": 1} for t in (TOY.core_tree(), text))
    )
    assert plain == spaced


@pytest.mark.parametrize("seed", ["-1", "18446744073709551616", "7.5", "", "x"])
def test_a_bad_seed_is_refused(seed: str) -> None:
    assert message(seed=seed) == f"expected an int in [0, 2**64) as decimal text, got '{seed}' - at `$.seed`"


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    said = message(kind="gird")
    assert said == "expected a kind among corridor, grid, prospector, got 'gird'; did you mean `grid`? - at `$.kind`"


def test_damaged_states_are_refused() -> None:
    """Every way a state can be broken that its checksum sees; the world plays on as before."""
    rng = random.Random(5)
    with gridmill.make(TOY, num_worlds=1, seed=0, masks=True) as env:
        env.reset()
        saved = env.save([0])
    broken = [b"", b"x", saved[:-1], saved + b"x", saved[: len(saved) // 2]]
    for _ in range(20):
        at = rng.randrange(len(saved))
        broken.append(saved[:at] + bytes([saved[at] ^ (1 << rng.randrange(8))]) + saved[at + 1 :])
    jobs = [
        {"do": "play", "open": opening(TOY, 0), "steps": 1, "state": base64.b64encode(data).decode()} for data in broken
    ]
    for answer in ask(*jobs)[1:]:  # an empty state is none at all
        assert answer["refused"].startswith("restore: "), answer


def test_a_state_of_another_game_is_refused() -> None:
    with gridmill.make("arena", num_worlds=1, seed=0, masks=True) as env:
        env.reset()
        state = base64.b64encode(env.save([0])).decode()
    [answer] = ask({"do": "play", "open": opening(TOY, 0), "steps": 1, "state": state})
    assert answer["refused"].startswith("restore: saved from a batch with other shapes")


def test_misuse_is_refused_and_leaves_the_engine_whole() -> None:
    [said] = ask({"do": "misuse", "open": opening(TOY, 0)})
    agents = TOY.num_agents
    assert said.pop("same") is True
    assert said.pop("script").startswith("no script `nobody`")
    assert said == {
        "few actions": f"actions: expected {agents} numbers, got {agents + 1}",
        "no actions": f"actions: expected {agents} numbers, got none",
        "agent": f"agent {agents} is not in [0, {agents})",
        "policy before begin": "expected a value, got nothing - at `$.spec.kind`",
        "closed": "this world is closed",
    }


def test_a_game_too_large_for_a_page_is_refused() -> None:
    """Sizes that 32-bit addresses cannot hold are an error, not a smaller number; very large worlds are refused too."""

    def said(size: int, agents: int) -> str:
        land = {"kind": "scatter", "height": size, "width": size, "border": 1, "objects": {}, "groups": 1}
        return message(tree=changed(["map"], land) | {"num_agents": agents})

    assert "expected a world that this machine can address" in said(4096, 4096)
    assert re.fullmatch(
        r"not enough memory: 1 worlds x \(\d+ bytes of state \+ 4000 rows x \d+ bytes\) = \d+ MiB, "
        r"this machine has 128 MiB; lower num_worlds",
        said(1000, 4000),
    )


# ---- the module itself


def test_the_version_names_package_and_commit() -> None:
    [version] = ask({"do": "version"})
    assert version.split()[0] == gridmill.__version__


def test_without_a_module_the_message_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MODULE", tmp_path / "engine.wasm")
    monkeypatch.setattr(engine, "BUILDER", tmp_path / "none.py")
    with pytest.raises(engine.EngineMissing, match=r"made without one \(GRIDMILL_PAGES=OFF\); install a wheel"):
        engine.path()
    monkeypatch.setattr(engine, "BUILDER", Path(__file__))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(engine.EngineMissing, match=r"-m pip install ziglang==0\.17\.0` and `make viewer` build it"):
        engine.path()
