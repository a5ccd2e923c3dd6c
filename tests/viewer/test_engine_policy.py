"""A policy in a page does what it does in Python with the portable kernels: every encoder and every core."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from engine_node import ask, node
from policy_cases import case, traces

import gridmill

CASES = {
    "bag scan": case("toy", "bag", "scan"),
    "bag lstm": case("toy", "bag", "lstm"),
    "bag none, without masks": case("toy", "bag", "none", masks=False),
    "bag scan, products of torch": case("toy", "bag", "scan", exact=False),
    "bag gru": case("toy", "bag", "gru"),
    "cnn none": case("toy", "cnn", "none"),
    "attend scan": case("toy", "attend", "scan"),
    "mlp none": case("prospector", "mlp", "none"),
    "mlp lstm": case("corridor", "mlp", "lstm"),
    "attend none, greedy": case("toy", "attend", "none", greedy=True),
}


def jobs_for(cases: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "do": "policy",
            "open": trace["game"] | {"seed": str(given["seed"])},
            "head": trace["head"],
            "weights": trace["weights"],
            **{key: given[key] for key in ("steps", "every", "greedy")},
            "seed": str(given["seed"]),
            "taken": None if given["exact"] else trace["actions"],  # one near tie would lead into another episode
        }
        for given, trace in zip(cases, found, strict=True)
    ]


@pytest.fixture(scope="module")
def both() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """What Python and the page say, of all cases at once."""
    node()  # skips first
    native = traces(list(CASES.values()))
    page = ask(*jobs_for(list(CASES.values()), native))
    return dict(zip(CASES, zip(native, page, strict=True), strict=True))


def numbers(rows: list[str]) -> Any:
    return np.stack([np.frombuffer(base64.b64decode(row), np.float32) for row in rows])


def compare(given: dict[str, Any], native: dict[str, Any], page: dict[str, Any]) -> None:
    expected, found = numbers(native["logits"]), numbers(page["logits"])
    if given["exact"]:
        assert page["actions"] == native["actions"]
        assert found.tobytes() == expected.tobytes()
        assert np.asarray(page["values"], np.float32).tobytes() == np.asarray(native["values"], np.float32).tobytes()
    else:  # torch rounds as the machine likes: a choice between two that are nearly alike may be the other one
        assert np.mean(np.asarray(page["actions"]) == np.asarray(native["actions"])) > 0.9
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(page["values"], native["values"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_actions_and_logits_equal_pythons(name: str, both: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """To the bit where all of it is ours; over the end of an episode, where memory is lost."""
    native, page = both[name]
    assert len({action for row in native["actions"] for action in row}) > 1
    compare(CASES[name], native, page)


@pytest.mark.long
@pytest.mark.parametrize("core", ["none", "scan", "lstm", "gru"])
@pytest.mark.parametrize("encoder", ["bag", "cnn", "attend"])
def test_a_whole_episode_of_the_arena(encoder: str, core: str) -> None:
    node()  # skips first
    given = case("arena", encoder, core, steps=1_000, max_steps=1_000, every=100)
    [native] = traces([given])
    [page] = ask(*jobs_for([given], [native]))
    compare(given, native, page)


def test_what_does_not_fit_is_refused_in_one_line(both: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> None:
    native = both["bag scan"][0]
    [job] = jobs_for([CASES["bag scan"]], [native])
    head = job["head"]

    def changed(**parts: Any) -> dict[str, Any]:
        return job | {"head": head | parts}

    shorter = [
        [name, [*shape[:-1], shape[-1] - 1]] if name == "actor.bias" else [name, shape]
        for name, shape in head["tensors"]
    ]
    wrong = {
        "expected none, scan, lstm or gru in a page, got 'own.py:Core' - at `$.config.core`": changed(
            config=head["config"] | {"core": "own.py:Core"}
        ),
        "expected bag, cnn or attend for tokens in a page, got 'mlp' - at `$.config.encoder`": changed(
            config=head["config"] | {"encoder": "mlp"}
        ),
        "expected a multiple of 16, got 17 - at `$.config.hidden`": changed(config=head["config"] | {"hidden": 17}),
        "unknown field `hiden`; did you mean `hidden`? - at `$.config`": changed(config={"hiden": 32}),
        "expected a tensor `encoder.bias`, got none - at `$.tensors`": changed(tensors=[]) | {"weights": ""},
    }
    answers = ask(*wrong.values(), changed(tensors=shorter))
    assert [answer["refused"] for answer in answers[:-1]] == list(wrong)
    assert " - at `$.tensors" in answers[-1]["refused"]


def test_a_policy_of_vectors_cannot_read_tokens(both: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> None:
    [job] = jobs_for([CASES["mlp none"]], [both["mlp none"][0]])
    toy = both["bag scan"][0]["game"]
    [answer] = ask(job | {"open": toy | {"seed": "0"}})
    assert answer["refused"] == "the policy was trained on vectors of 260 numbers and cannot read token observations"


def test_a_policy_plays_another_game_by_the_words_both_know(
    both: dict[str, tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """Actions it has no word for are never taken."""
    native = both["bag scan"][0]
    [job] = jobs_for([CASES["bag scan"]], [native])
    arena = gridmill.games.build("arena")
    [page] = ask(job | {"open": {"kind": "grid", "tree": arena.core_tree(), "seed": "1"}, "steps": 10})
    with gridmill.make(arena, num_worlds=1) as env:
        known = {i for i, name in enumerate(env.action_names) if name in native["head"]["spec"]["actions"]}
        assert len(known) < env.num_actions
    assert {action for row in page["actions"] for action in row} <= known
