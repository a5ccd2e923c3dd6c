"""Small scenes that once went wrong, one test each; the name says what must hold."""

from __future__ import annotations

from scenes import do, held, places, play, stored

from gridmill.grid import (
    ObjectType,
    Remove,
    Rule,
    Transfer,
)


def test_what_was_removed_is_no_side_of_a_transfer() -> None:
    """Removed a second time it would clear the corner beyond the map, and an agent could walk out."""
    bump = Rule(then=(Remove(), Transfer(amounts={"ore": 1}, remove_empty=True)))
    env = play("@X", {"X": ObjectType(inventory={"ore": 1}, on_use=(bump,))}, resources=("ore",), masks=True)
    assert env.masks is not None
    assert not env.masks[0, env.action_names.index("move_east")]
    assert do(env, "move_east") == [False]
    assert stored(env, "X") == {"ore": 1}
    assert do(env, "move_northwest") == [False]
    assert places(env) == [(0, 0)]


def test_a_later_rule_finds_nobody_where_the_target_was_removed() -> None:
    rules = (Rule(then=(Remove(),)), Rule(then=(Transfer(amounts={"ore": 5}),)))
    env = play("@X", {"X": ObjectType(use="all", inventory={"ore": 9}, on_use=rules)}, resources=("ore",))
    assert do(env, "move_east") == [True]
    assert held(env) == {}
