"""Any config is taken or refused in one line with the path; no traceback of another kind, no native crash.

Valid trees are mutated: wrong types, unknown and missing keys, extreme numbers, deep nesting, odd text. The same
trees also go straight to the native decoder, which must not rely on Python having looked first.
"""

from __future__ import annotations

import copy
from typing import Any

import draws
import pytest
from config_trees import OPTIONS, rich, ruled
from hypothesis import given, settings
from hypothesis import strategies as st
from random_games import agents_of, attempt, games, quiet_make, random_actions

import gridmill
from gridmill import Game, _native

pytestmark = pytest.mark.F1

BASES = [
    rich({"kind": "ascii", "text": "#####\n#@.1#\n#.X.#\n#####", "legend": {"X": "crate"}}),
    rich({"kind": "scatter", "height": 8, "width": 9, "border": 1, "objects": {"crate": 2, "wall": 3}, "groups": 2}),
    gridmill.games.toy(num_agents=2, map_size=8).tree(),
]
BASES += [ruled(base) for base in BASES[:2]]
DEEP: Any = {}
for _ in range(5_000):
    DEEP = {"values": [DEEP]}
NESTED: Any = {"kind": "constant", "value": 1.0}
for _ in range(40):
    NESTED = {"kind": "sum", "values": [NESTED]}

NUMBERS = [
    -1,
    0,
    1,
    2,
    3,
    4,
    8,
    255,
    256,
    4096,
    4097,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32,
    2**63 - 1,
    2**63,
    -(2**63),
]
JUNK = draws.one_of(
    draws.sampled_from([*NUMBERS, 10**30, -(10**30), None, True, False]),
    draws.sampled_from([0.5, -0.0, 1e9, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), 5e-324]),
    draws.sampled_from(
        ["", "x", "ore", "wall", "agent", "type:wall", "square", "disc", "drop", "\x00", "é", "🙂", "\u202e"]
    ),
    draws.text(control=False, max_size=8),
    draws.sampled_from([[], {}, [1], ["a", "a"], {"kind": "sum"}, {"kind": "sum", "values": []}, {"kind": 3}, [[[]]]]),
    draws.sampled_from([NESTED, {"a": {"b": {"c": []}}}]),
)
WORDS = draws.one_of(
    draws.sampled_from(["kind", "name", "nmae", "num_agent", "objcts", "widht", "", "$", "a.b", "[0]", "\x00", "é"]),
    draws.text(control=False, max_size=6),
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all nodes below the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = []
    for key, value in items:
        found += [(*path, key), *places(value, (*path, key))]
    return found


@draws.composite
def mutated(draw: draws.Draw) -> Any:
    tree = copy.deepcopy(draw(draws.sampled_from(BASES)))
    for _ in range(draw(draws.integers(1, 3))):
        spots = places(tree)
        if not spots:
            return tree
        *above, key = spots[draw(draws.integers(0, len(spots) - 1))]
        parent: Any = tree
        for step in above:
            parent = parent[step]
        what = draw(draws.sampled_from(["replace", "replace", "replace", "delete", "add", "rename", "repeat"]))
        if what == "delete":
            del parent[key]
        elif what == "repeat" and isinstance(parent, list):
            parent.extend(copy.deepcopy(parent) * draw(draws.sampled_from([1, 40])))
        elif what in ("add", "rename") and isinstance(parent, dict):
            parent[draw(WORDS)] = parent.pop(key) if what == "rename" else copy.deepcopy(draw(JUNK))
        else:
            parent[key] = copy.deepcopy(draw(JUNK))
    return tree


def is_small(game: Game) -> bool:
    cells = game.map.height * game.map.width if game.map.kind == "scatter" else len(game.map.text)
    return cells < 20_000 and game.num_agents * game.observation.num_tokens < 50_000


def one_line_with_a_path(error: Exception) -> None:
    text = str(error)
    assert "`$" in text, text
    assert "\n" not in text, text
    assert len(text) < 1_000, text


def try_config(tree: Any) -> bool:
    """True when the config is valid; then it also runs for three ticks."""
    try:
        game = Game.load(tree)
        if not is_small(game):
            return True
        env = quiet_make(game, num_worlds=1)
    except (ValueError, TypeError) as error:
        one_line_with_a_path(error)
        return False
    with env:
        fault = attempt(env.reset, _native.WorldFault)
        if isinstance(fault, Exception):  # a map that cannot be drawn says so when it is drawn
            assert "scatter found no layout" in str(fault)
            return True
        for _ in range(3):
            env.step()
    return True


@settings(max_examples=3_000)
@given(draws.seeded(mutated()))
def test_3000_mutated_configs(tree: Any) -> None:
    try_config(tree)


@pytest.mark.long
@settings(max_examples=20_000)
@given(draws.seeded(mutated()))
def test_20000_mutated_configs(tree: Any) -> None:
    try_config(tree)


def test_the_mutations_start_from_valid_configs() -> None:
    assert all(try_config(tree) for tree in BASES)


def decode_alone(tree: Any) -> None:
    """ValueError or TypeError, also where Python would have refused already."""
    sizes = [tree.get("num_agents"), tree.get("observation"), tree.get("map")]
    if any(str(n) in str(sizes) for n in (4096, 65535)):
        return  # legal and large: test_F2 makes those
    batch = attempt(lambda: _native.GridBatch([tree], ["f"], **OPTIONS), ValueError, TypeError)
    if isinstance(batch, Exception):
        assert str(batch)
        return
    fault = attempt(lambda: batch.reset(0), _native.WorldFault)
    if fault is None:
        batch.step()
    else:
        assert "scatter found no layout" in str(fault)
    batch.close()


@settings(max_examples=2_000)
@given(draws.seeded(mutated()))
def test_the_native_decoder_alone(tree: Any) -> None:
    decode_alone(tree)


@pytest.mark.long
@settings(max_examples=20_000)
@given(draws.seeded(mutated()))
def test_the_native_decoder_alone_20000_times(tree: Any) -> None:
    decode_alone(tree)


@settings(max_examples=200)
@given(games(most_agents=3))
def test_random_valid_games_survive_the_trip_through_text(game: Game) -> None:
    again = Game.load(game.tree())
    assert again == game
    assert again.fingerprint() == game.fingerprint()
    assert again.diff(game) == {}
    quiet_make(again, num_worlds=1).close()


def run_within_limits(game: Game, seed: int) -> None:
    """Fifty ticks from empty hands: whatever rules do, nobody ever holds more than its limits allow."""
    game = game.replace("agent.inventory", {}).replace("max_steps", 100)
    with quiet_make(game, num_worlds=1, seed=seed) as env:
        env.reset()
        actions = random_actions(env, seed)
        for _ in range(50):
            env.step(actions())
            for agent in agents_of(env.inspect(0)):
                held = agent["inventory"]
                for limit in game.agent.limits:
                    bonus = sum(each * held.get(name, 0) for name, each in limit.bonus.items())
                    assert sum(held.get(name, 0) for name in limit.resources) <= min(limit.max, max(limit.base, bonus))


@settings(max_examples=100)
@given(games(), st.integers(0, 2**32))
def test_random_games_run_within_limits(game: Game, seed: int) -> None:
    run_within_limits(game, seed)


@pytest.mark.long
@settings(max_examples=5_000)
@given(games(), st.integers(0, 2**32))
def test_5000_random_games_run_within_limits(game: Game, seed: int) -> None:
    run_within_limits(game, seed)


PATHS = draws.lists(
    draws.one_of(
        draws.sampled_from(["observation", "map", "rewards", "0", "1", "objects", "wall", "value", "kind"]), WORDS
    ),
    min_size=1,
    max_size=4,
).map(".".join)


@settings(max_examples=1_000)
@given(draws.seeded(PATHS), draws.seeded(JUNK))
def test_overrides(path: str, value: Any) -> None:
    game = Game.load(BASES[0])
    try:
        changed = game.replace(path, value)
    except (ValueError, TypeError) as error:
        one_line_with_a_path(error)
        return
    assert Game.load(changed.tree()) == changed
    try_config(changed.tree())


def test_an_override_below_a_name_that_does_not_exist() -> None:
    game = Game.load(BASES[0])
    with pytest.raises(ValueError, match=r"^unknown setting `crat`; did you mean `crate`\? - at `\$.objects`$"):
        game.replace("objects.crat.vibe", "calm")
    assert game.replace("objects.crate.vibe", "angry").objects["crate"].vibe == "angry"
    assert "box" in game.replace("objects.box", {"vibe": "calm"}).objects


@pytest.mark.parametrize("root", [None, 3, "game", [], [BASES[0]], True, 1.5, {}, {"game": BASES[0]}])
def test_roots_that_are_no_game(root: Any) -> None:
    assert not try_config(root)
    with pytest.raises((ValueError, TypeError)):
        _native.GridBatch([root], ["f"], **OPTIONS)


@pytest.mark.parametrize("where", ["map", "observation", "objects", "name", "rewards", "new"])
def test_deep_nesting(where: str) -> None:
    """Deep enough to exhaust a stack: refused by both sides."""
    for deep in (DEEP, NESTED, [NESTED], {"x": DEEP}):
        tree = {**BASES[0], where: deep}
        assert not try_config(tree)
        with pytest.raises((ValueError, TypeError)):
            _native.GridBatch([tree], ["f"], **OPTIONS)


def test_a_config_that_contains_itself() -> None:
    tree = copy.deepcopy(BASES[0])
    tree["objects"]["wall"] = tree
    assert not try_config(tree)
    with pytest.raises(ValueError):
        _native.GridBatch([tree], ["f"], **OPTIONS)


def changed(**fields: Any) -> dict[str, Any]:
    tree = copy.deepcopy(BASES[0])
    for name, value in fields.items():
        part, _, field = name.partition("__")
        if field:
            tree[part][field] = value
        else:
            tree[part] = value
    return tree


TYPICAL = {
    "misspelt field": (changed(num_agent=3), "unknown setting `num_agent`; did you mean `num_agents`? - at `$`"),
    "misspelt nested field": (
        changed(observation__widht=3),
        "unknown setting `widht`; did you mean `width`? - at `$.observation`",
    ),
    "nothing like it": (changed(zzz=3), "unknown setting `zzz` - at `$`"),
    "text for a number": (changed(max_steps="many"), "expected a valid integer, got 'many' - at `$.max_steps`"),
    "too small": (changed(max_steps=0), "expected greater than or equal to 1, got 0 - at `$.max_steps`"),
    "too many agents": (changed(num_agents=4097), "expected less than or equal to 4096, got 4097 - at `$.num_agents`"),
    "no such choice": (
        changed(observation__window="circle"),
        "expected 'square' or 'disc', got 'circle' - at `$.observation.window`",
    ),
    "five directions": (changed(moves=5), "expected 0, 4 or 8, got 5 - at `$.moves`"),
    "even window": (changed(observation__height=4), "expected an odd number, got 4 - at `$.observation.height`"),
    "disc not round": (
        changed(observation__window="disc"),
        "a disc window must be as wide as it is high: expected 5, got 7 - at `$.observation.width`",
    ),
    "unknown resource": (
        changed(agent__inventory={"oar": 3}), "unknown resource `oar`; did you mean `ore`? - at `$.agent.inventory`",
    ),
    "unknown vibe": (changed(agent__vibe="anrgy"), "unknown vibe `anrgy`; did you mean `angry`? - at `$.agent.vibe`"),
    "unknown stat": (
        changed(rewards=[{"value": {"kind": "stat", "name": "cel.visited"}}]),
        "unknown stat `cel.visited`; did you mean `cell.visited`? - at `$.rewards[0].value.name`",
    ),
    "unknown kind": (
        changed(rewards=[{"value": {"kind": "inventroy", "resource": "ore"}}]),
        "expected a kind among `inventory`, `stat`, `count`, `index`, "
        "`constant`, `sum`, `ratio`, `min`, `max`, `log`, got 'inventroy'; "
        "did you mean `inventory`? - at `$.rewards[0].value.kind`",
    ),
    "no kind": (changed(map={"text": "@@"}), "expected a `kind`, got none - at `$.map`"),
    "misspelt field of a map": (
        changed(map={"kind": "scatter", "hieght": 3}), "unknown setting `hieght`; did you mean `height`? - at `$.map`",
    ),
    "amount too high": (
        changed(agent__inventory={"ore": 70_000}),
        "expected less than or equal to 65535, got 70000 - at `$.agent.inventory.ore`",
    ),
    "unknown object in a legend": (
        changed(map__legend={"X": "crat"}), "unknown object type `crat`; did you mean `crate`? - at `$.map.legend.X`",
    ),
    "listed twice": (changed(resources=["ore", "heart", "ore"]), "`ore` is listed twice - at `$.resources[2]`"),
    "missing": ({"name": "x"}, "expected a value, got nothing - at `$.map`"),
    "ratio of three": (
        changed(rewards=[{"value": {"kind": "ratio", "values": [{"kind": "constant"}] * 3}}]),
        "a ratio takes 2 values, got 3 - at `$.rewards[0].value.values`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", TYPICAL)
def test_typical_mistakes_word_for_word(mistake: str) -> None:
    tree, text = TYPICAL[mistake]
    with pytest.raises(ValueError) as caught:
        gridmill.make(Game.load(tree), num_worlds=1)
    assert str(caught.value) == text


def test_games_by_name() -> None:
    with pytest.raises(ValueError, match=r"^unknown game `toi`; did you mean `toy`\? - games: arena, "):
        gridmill.make("toi")
    with pytest.raises(TypeError, match=r"^game: expected a name or a Game, got int$"):
        gridmill.make([3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"^game: expected a name, a Game or a list of them, got an empty list$"):
        gridmill.make([])


ODD_TEXT = {
    "a field": {"a\nb": 3},
    "an object": {"objects": {"a\nb": 3}},
    "a resource": {"agent": {"inventory": {"a\nb": 3}}},
    "a vibe": {"agent": {"vibe": "a\nb"}},
    "a window": {"observation": {"window": "a\nb"}},
    "a legend": {"map": {"kind": "ascii", "text": "@@", "legend": {"a\nb": "wall"}}},
    "a kind": {"map": {"kind": "a\nb"}},
    "a stat": {"rewards": [{"value": {"kind": "stat", "name": "a\nb"}}]},
}  # fmt: skip


@pytest.mark.parametrize("spot", ODD_TEXT)
def test_the_error_is_one_line_whatever_the_names(spot: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        gridmill.make(Game.load({**BASES[0], **ODD_TEXT[spot]}), num_worlds=1)
    one_line_with_a_path(caught.value)


@pytest.mark.parametrize(
    "tree",
    [
        changed(name="\ud800"), changed(observation__window="\udfff"), {**BASES[0], "\ud800": 1},
        changed(map__text="\udc80"),
    ],
    ids=["a name", "a choice", "a key", "a map"],
)  # fmt: skip
def test_text_that_is_no_text(tree: Any) -> None:
    """Half a surrogate pair has no UTF-8: refused by both sides as a bad value, not as an inner failure."""
    assert not try_config(tree)
    with pytest.raises((ValueError, TypeError)):
        _native.GridBatch([tree], ["f"], **OPTIONS)


@pytest.mark.parametrize(
    "text", ["é" * 40, "x" + "é" * 40, "🙂" * 20, "a" * 100], ids=["two bytes", "shifted", "four bytes", "one byte"]
)
def test_long_text_is_cut_between_characters(text: str) -> None:
    with pytest.raises(ValueError, match=r" - at `\$.observation.window`$") as caught:
        _native.GridBatch([changed(observation__window=text)], ["f"], **OPTIONS)
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"name": "tag", "value": {"kind": "constant"}}, None),
        ({"name": "last_reward", "value": {"kind": "constant"}}, None),
        ({"name": "inv:ore", "value": {"kind": "constant"}}, None),
        ({"name": "x", "value": {"kind": "constant"}, "digits": 2}, {"name": "x:p1", "value": {"kind": "constant"}}),
    ],
    ids=["tag", "last_reward", "inv:ore", "second digit"],
)
def test_a_shown_value_may_not_take_the_name_of_another_feature(first: Any, second: Any) -> None:
    """Two things under one feature id cannot be told apart by any policy."""
    tree = changed(observation__values=[first] if second is None else [first, second])
    with pytest.raises(ValueError, match=r"`\$.observation.values"):
        gridmill.make(Game.load(tree), num_worlds=1)
