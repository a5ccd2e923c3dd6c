"""Trees of valid configs that use every field and every kind of rule, for tests that break them."""

from __future__ import annotations

from typing import Any

COUNTED = {"kind": "count", "tag": "type:crate", "collective": "reds", "resource": "ore"}
# Of a native batch made without Python's checks.
OPTIONS: dict[str, Any] = {
    "num_worlds": 1, "seed": 0, "threads": 1, "lanes": 1, "masks": False, "desync_episodes": False,
    "min_first_episode": -1, "profiling": False, "validation": False, "fast": True, "signal": [],
}  # fmt: skip

ASK: list[dict[str, Any]] = [
    {"kind": "holds", "who": "actor_collective", "amounts": {"ore": 1}},
    {"kind": "has_vibe", "vibe": "calm"},
    {"kind": "has_tag", "tag": "box"},
    {"kind": "same_collective"},
    {"kind": "other_collective"},
    {"kind": "aligned", "to": "reds"},
    {"kind": "within", "distance": 3, "metric": "euclid"},
    {"kind": "near", "tag": "box", "radius": 4, "when": [{"kind": "aligned"}]},
    {"kind": "periodic", "every": 3, "start": 1},
    {"kind": "chance", "probability": 0.5},
    {"kind": "at_least", "value": COUNTED, "number": 1.0},
    {"kind": "empty", "resources": ["heart"]},
    {"kind": "not", "conditions": [{"kind": "same_collective"}]},
    {"kind": "any", "conditions": [{"kind": "same_collective"}, {"kind": "aligned"}]},
]
DO: list[dict[str, Any]] = [
    {"kind": "give", "amounts": {"ore": 1}},
    {"kind": "take", "amounts": {"ore": 1}},
    {"kind": "transfer", "amounts": {"heart": 1}, "remove_empty": True},
    {"kind": "clear", "resources": ["ore"]},
    {"kind": "add", "resource": "ore", "value": COUNTED},
    {"kind": "set_tag", "tag": "lit"},
    {"kind": "clear_tag", "tag": "lit"},
    {"kind": "align", "to": "reds"},
    {"kind": "unalign"},
    {"kind": "change_vibe", "vibe": "angry"},
    {"kind": "freeze", "who": "actor", "ticks": 2},
    {"kind": "move", "direction": "north"},
    {"kind": "push", "distance": 2},
    {"kind": "swap_places"},
    {"kind": "relocate", "to": "random"},
    {"kind": "spawn", "object": "crate"},
    {"kind": "remove"},
    {"kind": "strike"},
    {"kind": "add_stat", "of": "game", "name": "bells", "amount": 2.0},
]
RULES = [{"when": [ASK[i % len(ASK)]], "then": [effect]} for i, effect in enumerate(DO)]


def rich(map_: dict[str, Any]) -> dict[str, Any]:
    """A tree that uses every field at least once."""
    value = {"kind": "sum", "values": [{"kind": "inventory", "resource": "ore"}, {"kind": "constant", "value": 2}]}
    ratio = {"kind": "ratio", "values": [value, {"kind": "log", "values": [{"kind": "stat", "name": "reward"}]}]}
    lowest = {"kind": "min", "values": [ratio, {"kind": "max", "values": [value]}]}
    return {
        "name": "rich",
        "num_agents": 2,
        "max_steps": 20,
        "time_limit": "truncation",
        "moves": 4,
        "resources": ["ore", "heart"],
        "vibes": ["calm", "angry"],
        "agent": {"tags": ["red"], "inventory": {"ore": 300}, "vibe": "angry"},
        "objects": {"wall": {}, "crate": {"tags": ["box"], "inventory": {"heart": 1}, "vibe": "calm"}},
        "map": map_,
        "observation": {
            "window": "square", "height": 5, "width": 7, "num_tokens": 200, "local_position": True,
            "reward_scale": 10.0, "overflow": "drop", "values": [{"name": "shown", "value": lowest, "digits": 2}],
        },
        "rewards": [{"weight": 0.5, "value": ratio, "cap": 3.0, "mode": "gained"}],
        "reward_sharing": 0.5,
    }  # fmt: skip


def ruled(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with every kind of condition and effect, areas, events, collectives and an assembler."""
    area = {
        "radius": 3,
        "affects": "friend",
        "when": ASK[:2],
        "changes": {"ore": -1},
        "enter": {"heart": 1},
        "exit": {"heart": -1},
        "rules": RULES[:2],
        "on_enter": RULES[5:6],
        "on_exit": RULES[6:7],
        "territory": True,
    }
    event = {
        "at": [0, 2],
        "every": 3,
        "targets": "box",
        "when": ASK[5:8],
        "then": DO[5:9],
        "max_targets": 1,
        "fallback": "dusk",
        "priority": 1,
    }
    recipe = {"vibes": ["calm"], "min_agents": 1, "inputs": {"ore": 1}, "outputs": {"heart": 1}}
    crate = tree["objects"]["crate"] | {
        "collective": "reds",
        "use": "all",
        "on_use": RULES,
        "on_tick": RULES[:3],
        "areas": [area],
    }
    return tree | {
        "attack": {"cost": {"ore": 1}},
        "agent": tree["agent"] | {"collectives": ["reds", "blues"], "on_use": RULES[10:14], "on_tick": RULES[:2]},
        "collectives": {"reds": {"inventory": {"ore": 2}}, "blues": {"limits": [{"resources": ["ore"], "base": 9}]}},
        "objects": tree["objects"] | {
            "crate": crate,
            "bench": {"assembler": {"recipes": [recipe], "cooldown": 3, "partial": True, "max_uses": 4}},
            "box": {"counts_as": "crate", "tags": ["box"]},
        },
        "on_tick": [{"when": ASK[8:9], "then": DO[-1:]}],
        "on_tag_added": {"lit": RULES[:1]},
        "on_tag_removed": {"lit": RULES[1:2]},
        "events": {"dawn": event, "dusk": {"then": DO[-1:]}},
        "territory": "strongest",
        "spawn_room": 5,
        "rewards": [{"value": {"kind": "stat", "name": "aligned.crate.held", "of": "collective", "collective": "reds"}},
                    {"value": {"kind": "index", "every": 2, "place": 1}}],
    }  # fmt: skip
