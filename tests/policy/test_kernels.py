"""The native kernels against the plain forms in torch, forward and backward, and what they do with wrong sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kernel_checks import HIDDEN, agree, drawn, f, flags, u
from small_runs import WORDS, random_tokens

from gridmill.policy.kernels import Tokens, bag, native, native_fits, plain_bag, plain_scan, scan
from gridmill.policy.spec import Layout

# ---- the bag


def tokens_of(layout: Layout | None = None) -> Tokens:
    return Tokens(Layout.of(WORDS) if layout is None else layout, torch.device("cpu"))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_bag_is_the_plain_sum(hidden: int) -> None:
    tokens, obs = tokens_of(), torch.from_numpy(random_tokens(23, 1))
    table = drawn(tokens.layout.rows, hidden)
    bias = drawn(hidden, seed=4)
    agree(lambda x, b: bag(x, b, obs, tokens), lambda x, b: plain_bag(x, b, obs, tokens), [table, bias])


def test_bag_row_by_row() -> None:
    """Against a loop over tokens that shares no line with either form."""
    tokens, obs = tokens_of(), random_tokens(15, 2)
    layout, table = tokens.layout, drawn(tokens.layout.rows, 16).numpy()
    bias = drawn(16, seed=4)
    expected = np.tile(bias.numpy().astype(np.float64), (15, 1))
    for row in range(15):
        for location, feature, value in obs[row]:
            if location == 255:
                break
            at = layout.place[location] * layout.slots + layout.slot[feature, value]
            expected[row] += table[at]
            if layout.amount[feature, value]:
                expected[row] += layout.amount[feature, value] * table[at + 1]
    assert np.array_equal(expected[0], bias)  # an empty row
    found = bag(torch.from_numpy(table), bias, torch.from_numpy(obs), tokens)
    np.testing.assert_allclose(found, np.maximum(expected, 0), atol=1e-5)


def test_bag_does_not_look_at_what_has_no_word() -> None:
    tokens, obs = tokens_of(), random_tokens(9, 3)
    strange = obs.copy()
    wrong = [(0, 200, 1), (0x0F, 0, 0), (0x50, 1, 3), (0, 0, 99), (254, 4, 3), (253, 1, 1)]
    for row in range(9):
        there = int((obs[row, :, 0] != 255).sum())
        for k in range(there, 12):
            strange[row, k] = wrong[k % len(wrong)]
    table, bias = drawn(tokens.layout.rows, 48), drawn(48, seed=4)
    for form in (bag, plain_bag):
        seen = form(table, bias, torch.from_numpy(strange), tokens)
        torch.testing.assert_close(seen, form(table, bias, torch.from_numpy(obs), tokens), rtol=0, atol=1e-6)


def test_bag_stops_at_the_end_of_a_row() -> None:
    tokens, table = tokens_of(), drawn(Layout.of(WORDS).rows, 16)
    obs = np.full((1, 12, 3), 255, np.uint8)
    obs[0, 0] = (0, 1, 7)
    one = bag(table, torch.zeros(16), torch.from_numpy(obs), tokens)
    place = tokens.layout.slot[1, 7]
    expected = table[place] + 0.75 * table[place + 1]  # log2(1 + 7) / 4
    torch.testing.assert_close(one[0], expected.relu())


# ---- the scan


@pytest.mark.parametrize("hidden", [*HIDDEN, 7])
@pytest.mark.parametrize("steps", [1, 6])
def test_scan_is_the_plain_recurrence(hidden: int, steps: int) -> None:
    starts = flags(steps, 5)
    inputs = [drawn(steps, 5, 2 * hidden), drawn(5, hidden, seed=2)]
    # The native form writes over its gates: it is given a copy, as a layer's output is nobody else's.
    agree(lambda g, s: scan(g.clone(), s, starts), lambda g, s: plain_scan(g, s, starts), inputs)


def test_scan_of_gates_in_another_order_of_memory() -> None:
    starts, inputs = flags(6, 5), [drawn(5, 6, 32), drawn(5, 16, seed=2)]
    agree(
        lambda g, s: scan(g.clone().transpose(0, 1), s, starts),
        lambda g, s: plain_scan(g.transpose(0, 1), s, starts),
        inputs,
    )


def test_where_the_native_forms_run() -> None:
    assert native_fits(torch.zeros(1))
    assert not native_fits(torch.zeros(1, dtype=torch.bfloat16))
    assert not native_fits(torch.zeros(1, device="meta"))


# ---- sampling


def sample(logits: Any, masks: Any = None, seed: int = 0, step: int = 0, first: int = 0) -> tuple[Any, Any]:
    actions, log_probs = np.full(len(logits), -7, np.int32), np.full(len(logits), np.nan, np.float32)
    native.sample_actions(logits, masks, seed, step, first, actions, log_probs)
    return actions, log_probs


def test_sampling_follows_the_probabilities() -> None:
    count = 200_000
    logits = np.tile(np.array([[1.0, -1.0, 0.0, 2.0, -30.0]], np.float32), (count, 1))
    actions, log_probs = sample(logits, seed=3)
    expected = torch.from_numpy(logits[:1]).double().log_softmax(-1)[0].numpy()
    found = np.bincount(actions, minlength=5) / count
    chance = np.exp(expected)
    assert np.all(np.abs(found - chance) < 5 * np.sqrt(chance * (1 - chance) / count) + 1e-6)
    np.testing.assert_allclose(log_probs, expected[actions], atol=2e-6)


def test_sampling_respects_masks() -> None:
    count = 50_000
    logits = np.tile(np.array([[1.0, 9.0, 0.0, 2.0]], np.float32), (count, 1))
    masks = np.tile(np.array([[1, 0, 1, 1]], np.uint8), (count, 1))
    masks[: count // 2] = [0, 0, 1, 0]
    actions, log_probs = sample(logits, masks, seed=4)
    assert (actions[: count // 2] == 2).all()
    assert not log_probs[: count // 2].any()
    chance = np.exp([1.0, -np.inf, 0.0, 2.0]) / np.exp([1.0, -np.inf, 0.0, 2.0]).sum()
    found = np.bincount(actions[count // 2 :], minlength=4) / (count // 2)
    assert found[1] == 0
    np.testing.assert_allclose(found, chance, atol=0.015)
    np.testing.assert_allclose(log_probs[count // 2 :], np.log(chance[actions[count // 2 :]]), atol=2e-6)


def test_sampling_is_a_function_of_seed_step_and_row() -> None:
    logits = np.zeros((600, 7), np.float32)
    whole, _ = sample(logits, seed=5, step=9)
    for first, last in ((0, 1), (17, 300), (599, 600)):
        assert np.array_equal(sample(logits[first:last], seed=5, step=9, first=first)[0], whole[first:last])
    assert np.array_equal(sample(logits, seed=5, step=9)[0], whole)
    for others in ({"seed": 6, "step": 9}, {"seed": 5, "step": 10}, {"seed": 5, "step": 9 + 2**32}):
        same = (sample(logits, **others)[0] == whole).mean()
        assert 0.05 < same < 0.25  # one in seven, by chance
    assert 0.05 < (whole[1:] == whole[:-1]).mean() < 0.25


def test_sampling_where_nothing_is_allowed_or_a_number() -> None:
    """The first action where none is allowed, any without numbers; and a log-prob that the learner's guard will see."""
    actions, log_probs = sample(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.uint8))
    assert actions.tolist() == [0, 0]
    assert not np.isfinite(log_probs).any()
    actions, log_probs = sample(np.full((2, 3), np.nan, np.float32))
    assert ((actions >= 0) & (actions < 3)).all()
    assert np.isnan(log_probs).all()


# ---- wrong sizes


def new_bag(**changes: Any) -> Any:
    usual: dict[str, Any] = {"place": [0] * 256, "slot": [0] * 256, "amount": [1.0] * 256, "slots": 2}
    return native.TokenBag(**(usual | changes))


def loss(actions: Any = (0, 1, 2, 0), **changes: Any) -> None:
    """A loss of four rows and three actions in two segments."""
    usual: dict[str, Any] = {
        "logits": f(4, 3), "values": f(4), "actions": np.array(actions, np.int32), "rows": [f(4)] * 4 + [f(2)],
        "acted": None, "numbers": [1.0] * 5, "d_logits": f(4, 3), "d_values": f(4), "ratios": f(4),
        "means": np.zeros(5),
    }  # fmt: skip
    native.ppo_loss(**(usual | changes))


MISUSE: dict[str, Callable[[], Any]] = {
    "bag: places": lambda: new_bag(place=[0] * 255),
    "bag: no feature": lambda: new_bag(slot=[], amount=[]),
    "bag: part of a feature": lambda: new_bag(slot=[0] * 300, amount=[0.0] * 300),
    "bag: amounts": lambda: new_bag(amount=[1.0] * 255),
    "bag: slot": lambda: new_bag(slot=[2] * 256),
    "bag: slot of an amount": lambda: new_bag(slot=[1] * 256),
    "bag: slots": lambda: new_bag(slots=0),
    "bag: token": lambda: new_bag().forward(u(4, 5, 2), f(2, 16), f(16), f(4, 16)),
    "bag: hidden": lambda: new_bag().forward(u(4, 5, 3), f(2, 17), f(17), f(4, 17)),
    "bag: none": lambda: new_bag().forward(u(4, 5, 3), f(2, 0), f(0), f(4, 0)),
    "bag: table": lambda: new_bag().forward(u(4, 5, 3), f(1, 16), f(16), f(4, 16)),
    "bag: bias": lambda: new_bag().forward(u(4, 5, 3), f(2, 16), f(15), f(4, 16)),
    "bag: out": lambda: new_bag().forward(u(4, 5, 3), f(2, 16), f(16), f(3, 16)),
    "bag: gradient": lambda: new_bag().backward(u(4, 5, 3), f(4, 16), f(4, 16), f(1, 16), f(16)),
    "scan: starts": lambda: native.scan_forward(u(2, 3), f(2, 4, 16), f(4, 8), f(2, 4, 8)),
    "scan: gates": lambda: native.scan_forward(u(2, 4), f(2, 4, 15), f(4, 8), f(2, 4, 8)),
    "scan: state": lambda: native.scan_forward(u(2, 4), f(2, 4, 16), f(3, 8), f(2, 4, 8)),
    "scan: h": lambda: native.scan_forward(u(2, 4), f(2, 4, 16), f(4, 8), f(1, 4, 8)),
    "scan: d_gates": lambda: native.scan_backward(
        u(2, 4), f(2, 4, 16), f(4, 8), f(2, 4, 8), f(2, 4, 8), f(2, 4, 15), f(4, 8)
    ),
    "scan: d_h": lambda: native.scan_backward(
        u(2, 4), f(2, 4, 16), f(4, 8), f(2, 4, 8), f(2, 4, 7), f(2, 4, 16), f(4, 8)
    ),
    "scan: d_state": lambda: native.scan_backward(
        u(2, 4), f(2, 4, 16), f(4, 8), f(2, 4, 8), f(2, 4, 8), f(2, 4, 16), f(4, 7)
    ),
    "loss: actions": lambda: loss(actions=[0, 3, 0, 0]),
    "loss: no action": lambda: loss(actions=[0, -1, 0, 0]),
    "loss: values": lambda: loss(values=f(3)),
    "loss: segments": lambda: loss(rows=[f(4)] * 4 + [f(3)]),
    "loss: rows": lambda: loss(rows=[f(5)] * 4 + [f(2)]),
    "loss: no segment": lambda: loss(rows=[f(4)] * 4 + [f(0)]),
    "loss: acted": lambda: loss(acted=f(3)),
    "loss: means": lambda: loss(means=np.zeros(4)),
    "loss: gradient": lambda: loss(d_logits=f(4, 2)),
    "sample: masks": lambda: native.sample_actions(f(3, 4), u(3, 3), 0, 0, 0, np.zeros(3, np.int32), f(3)),
    "sample: actions": lambda: native.sample_actions(f(3, 4), None, 0, 0, 0, np.zeros(2, np.int32), f(3)),
    "sample: log-probs": lambda: native.sample_actions(f(3, 4), None, 0, 0, 0, np.zeros(3, np.int32), f(4)),
}


@pytest.mark.parametrize("name", MISUSE)
def test_wrong_sizes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        MISUSE[name]()


def test_wrong_kinds_are_refused() -> None:
    with pytest.raises(TypeError):
        native.scan_forward(u(2, 4), f(2, 4), f(4, 8), f(2, 4, 8))
    with pytest.raises(TypeError):
        native.sample_actions(f(3, 4), None, 0, 0, 0, f(3, 1), f(3))
