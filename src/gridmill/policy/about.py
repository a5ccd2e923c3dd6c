"""What a saved policy is, in words and as plain data: network, game, words, hash, steps, and what can be done with it.

Read from the checkpoint alone, so a policy from anybody can be looked at: no code that it names is run, and its words
are shown so that nothing in them moves a cursor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gridmill.config import user_code
from gridmill.config.install import command
from gridmill.config.text import hang, printable
from gridmill.policy import checkpoint, pin, which
from gridmill.policy.checkpoint import RECORD, Checkpoint, CheckpointError
from gridmill.policy.encoders import name_for
from gridmill.policy.record import Record, clock, refuse_large

OWN = ("network", "encoder", "core")  # settings that may name code
PARTS = ("encoder", "dense", "core", "actor", "critic")
NAMED = 13  # columns of what a line is about
MOST = 60  # words that a line lists


def of(path: Path | str) -> dict[str, Any]:
    """What the newest policy under a path is, as plain data; `runs/x@best` and `runs/x#HASH` are others of its run."""
    return describe(checkpoint.latest(Path(path), checkpoint.load_policy))


def describe(found: Checkpoint) -> dict[str, Any]:
    """Of a loaded checkpoint; CheckpointError if its record is none."""
    saved, own = _read(found)
    spec, config, last = saved.spec, saved.run.policy, clock(found).last
    run = found.record["run"]
    network = {name: value for name, value in config.tree().items() if name not in ("init_from", "actor_gain")}
    network |= {"encoder": name_for(config, spec)} | own
    parts: dict[str, int] = {}
    for name, tensor in sorted(found.policy.items(), key=lambda each: _order(each[0])):
        part = ".".join(
            name.split(".")[: 2 if name.startswith("net.") else 1]
        )  # `net` is a whole one of somebody's own
        parts[part] = parts.get(part, 0) + tensor.numel()
    score = found.score if found.score is not None else last.get("score_recent")
    words = {"features": spec.features, "tags": spec.tags, "vibes": spec.vibes, "actions": spec.actions}
    return {
        "path": str(found.path),
        "sha256": found.sha256,
        "recipe": str(run.get("recipe", "")),
        "game": str(_inside(run, "game", "name")),
        "fingerprint": str(found.record.get("fingerprint", "")),
        "seed": run.get("seed") if isinstance(run.get("seed"), int) else None,
        "epoch": found.epoch,
        "agent_steps": int(last.get("agent_steps", 0)),
        "score": score if score is None or math.isfinite(score) else None,
        "network": network,
        "code": sorted(set(own.values())),
        "parameters": parts,
        "masks": saved.run.trainer.masks,
        "observation": {
            "kind": spec.kind,
            **({"size": spec.obs_size} if spec.kind == "vector" else {}),
            **({"tokens": spec.num_tokens, "window": list(spec.window)} if spec.kind == "tokens" else {}),
        },
        **{name: list(listed) for name, listed in words.items()},
        "versions": _texts(found.record.get("versions")),
        "commit": str(found.record.get("commit", "")),
    }


def text(known: Mapping[str, Any], typed: str) -> str:
    """Lines of 80 columns for people; `typed` is what the policy was called."""
    network, parts, observation = known["network"], known["parameters"], known["observation"]
    made = f"{short(network['network'])}, in plain torch"
    if not network["network"]:
        sizes = f"hidden {network['hidden']}, layers {network['layers']}"
        made = f"encoder {short(network['encoder'])}, core {short(network['core'])}, {sizes}"
    shape = f"a vector of {observation['size']} numbers" if "size" in observation else _tokens(observation)
    lines = {
        "policy": known["path"],
        "hash": f"sha256 {known['sha256'][: pin.SHOWN]}; {_pinned(typed, known['sha256'])} is exactly this one",
        "network": made,
        "parameters": f"{sum(parts.values()):,}: {', '.join(f'{name} {count:,}' for name, count in parts.items())}",
        "game": f"{known['game']} {known['fingerprint']}, recipe {known['recipe']}, seed {known['seed']}",
        "trained": f"{known['agent_steps']:,} agent-steps, epoch {known['epoch']}, {_score(known['score'])}",
        "sees": shape,
        **{name: _listed(known[name]) for name in ("features", "tags", "vibes") if known[name]},
        "actions": f"{_listed(known['actions'])}; {'with' if known['masks'] else 'without'} masks",
        "versions": ", ".join(f"{name} {version}" for name, version in known["versions"].items()),
    }
    if known["code"]:
        lines["code"] = f"{', '.join(known['code'])}; it runs only if you name it: --code FILE"
    found = [line for name, said in lines.items() for line in hang(f"{name:<{NAMED}}", printable(said, 8000), NAMED)]
    return "\n".join([*found, "", *(f"{name:<{NAMED}}{word}" for name, word in next_commands(known, typed).items())])


def next_commands(known: Mapping[str, Any], typed: str) -> dict[str, str]:
    """What can be done with it, as commands that work as they are."""
    folder, _ = which.split(pin.split(typed)[0])
    run, path = str(folder), Path(known["path"])
    code = [word for text in known["code"] for word in ("--code", user_code.place_of(text))]
    beside = [] if run == typed else ["--policy", typed]
    recipe = known["recipe"] if known["recipe"].isidentifier() else "RECIPE"
    found = {
        "evaluate": command("eval", run, *beside, *code),
        "watch": command("watch", run, *code),
        "export": command("policy", "export", typed, "policy.onnx", *code),
        "start from": command("train", recipe, f"policy.init_from={typed}", *code),
    }
    if path.parent.name == "checkpoints":
        found["resume"] = command("resume", run, *code)
    return {name: printable(word, 8000) for name, word in found.items()}


def _read(found: Checkpoint) -> tuple[Record, dict[str, str]]:
    """The record without the code that it names, and that code by setting."""
    try:
        tree = Record.upgraded(found.record)
        policy = dict(tree["run"]["policy"])
        own = {name: policy.pop(name) for name in OWN if user_code.is_own(str(policy.get(name, "")))}
        saved = Record.load({**tree, "run": {**tree["run"], "policy": policy}})
        refuse_large(saved.spec)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"expected the record of a policy, got {error!s:.200}", found.path / RECORD) from None
    return saved, {name: str(text) for name, text in own.items()}


def _order(name: str) -> int:
    """In the order in which a step goes through them."""
    first = name.split(".")[0]
    return PARTS.index(first) if first in PARTS else len(PARTS)


def _inside(tree: Any, *names: str) -> Any:
    for name in names:
        tree = tree.get(name, "") if isinstance(tree, dict) else ""
    return tree


def _texts(tree: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in tree.items()} if isinstance(tree, dict) else {}


def short(value: Any) -> Any:
    """A part by its name, or by its file's without the folders; numbers as they are."""
    place, name = user_code.split(value) if isinstance(value, str) else ("", "")
    return f"{Path(place).name}:{name}" if place.endswith(".py") else value


def _tokens(observation: Mapping[str, Any]) -> str:
    height, width = observation["window"]
    return f"at most {observation['tokens']} tokens in a window of {height} x {width}"


def _pinned(typed: str, sha256: str) -> str:
    folder, _ = which.split(pin.split(typed)[0])
    return f"{folder}#{sha256[: pin.SHOWN]}"


def _score(score: float | None) -> str:
    return "no score: no episode had ended" if score is None else f"score {score:.4g}"


def _listed(words: Sequence[str]) -> str:
    more = f", and {len(words) - MOST} more" if len(words) > MOST else ""
    return f"{len(words)}: {', '.join(map(str, words[:MOST]))}{more}"
