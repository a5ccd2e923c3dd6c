"""Dense layers, heads and the LSTM against their plain forms in torch, and what they do with wrong sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kernel_checks import HIDDEN, agree, drawn, f, flags, gradients, u
from small_runs import WORDS, needs_bf16, random_tokens, zeros
from torch import Tensor

from gridmill.policy.kernels import native
from gridmill.policy.layers import Dense, Heads, dense, lstm, packed, plain_dense, plain_lstm
from gridmill.policy.network import Policy
from gridmill.run import OptimizerConfig, PolicyConfig
from gridmill.train.optimizer import Optimizer

SIZES = [(1, 1, 1), (5, 16, 16), (7, 37, 5), (97, 64, 128), (95, 260, 69), (200, 161, 70), (13, 330, 33)]

# ---- dense


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SIZES)
def test_dense_is_the_plain_product(rows: int, inputs: int, outputs: int, relu: bool) -> None:
    x, weight = drawn(rows, inputs), drawn(outputs, inputs, seed=1) / inputs**0.5
    bias = drawn(outputs, seed=2) + 1
    agree(lambda *a: dense(*a, relu), lambda *a: plain_dense(*a, relu), [x, weight, bias])


def test_dense_of_more_dimensions_and_another_order_of_memory() -> None:
    weight, bias = drawn(24, 16, seed=1), drawn(24, seed=2)
    for x in (drawn(3, 4, 16), drawn(4, 3, 16).transpose(0, 1), drawn(3, 16, 4).transpose(1, 2)):
        torch.testing.assert_close(dense(x, weight, bias, True), plain_dense(x, weight, bias, True))


def test_frozen_dense_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "fast_products", lambda: True)  # the native form also where torch's is faster
    layer, x = Dense(37, 48, relu=True), drawn(3, 50, 37)
    with torch.no_grad():
        loose = layer(x)
        layer.freeze(True)
        frozen = layer(x)
        rows = torch.stack([layer(row) for row in x.view(150, 37)])
    assert torch.equal(loose, frozen)
    assert torch.equal(rows, frozen.view(150, 48)), "a row depends on its neighbours"


def test_weights_that_changed_are_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the default optimizer, of whose changes torch keeps no count."""
    monkeypatch.setattr(native, "fast_products", lambda: True)
    policy = Policy(PolicyConfig(core="lstm", hidden=16, actor_gain=1.0), WORDS)
    inputs = torch.from_numpy(random_tokens(6, 1))[None], torch.zeros(6, policy.state_size), zeros(1, 6), None
    optimizer = Optimizer(OptimizerConfig(), dict(policy.named_parameters()))
    seen = []
    for _ in range(2):
        with policy.frozen() as acting, torch.no_grad():
            frozen = acting(*inputs)
        with torch.no_grad():
            loose = policy(*inputs)
        assert torch.equal(frozen.logits, loose.logits)
        assert torch.equal(frozen.state, loose.state)
        seen.append(frozen.logits)
        versions = [parameter._version for parameter in policy.parameters()]
        for parameter in policy.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert [parameter._version for parameter in policy.parameters()] == versions
    assert not torch.allclose(*seen, atol=1e-4)


def test_frozen_weights_are_not_used_where_gradients_are_wanted() -> None:
    layer = Dense(16, 16)
    layer.freeze(True)
    assert layer(drawn(4, 16)).requires_grad


def test_dense_keeps_what_is_no_number() -> None:
    """A ReLU that turned it to 0 would hide it from the guard."""
    x = drawn(8, 16)
    x[3, 5] = float("nan")
    layer = Dense(16, 32, relu=True)
    found = layer(x)
    assert found[3].isnan().all()
    assert not found[[0, 1, 2, 4, 5, 6, 7]].isnan().any()


def test_dense_asks_for_no_gradient_of_what_wants_none() -> None:
    weight, bias = drawn(16, 8, seed=1).requires_grad_(), drawn(16, seed=2).requires_grad_()
    out = dense(drawn(5, 8), weight, bias, False)
    assert [g.shape for g in torch.autograd.grad(out.sum(), [weight, bias])] == [(16, 8), (16,)]


@needs_bf16
def test_dense_in_bfloat16_is_torchs() -> None:
    layer, x = Dense(16, 32, relu=True), drawn(4, 16)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


@pytest.mark.parametrize("shape", [(6, 16), (3, 2, 16)])
def test_heads_are_the_two_layers(shape: tuple[int, ...]) -> None:
    actor, critic, x = Dense(16, 69), Dense(16, 1), drawn(*shape).requires_grad_()
    leaves = [x, actor.weight, actor.bias, critic.weight, critic.bias]

    def found(first: Tensor, last: Tensor) -> tuple[Tensor, ...]:
        push = (first * drawn(*shape[:-1], 69, seed=5)).sum() + (last * drawn(*shape[:-1], seed=6)).sum()
        return first, last, *torch.autograd.grad(push, leaves)

    plain = plain_dense(x, actor.weight, actor.bias, False), plain_dense(x, critic.weight, critic.bias, False)
    expected = found(plain[0], plain[1].squeeze(-1))
    for one, other in zip(found(*Heads(actor, critic)(x)), expected, strict=True):
        assert float(other.detach().abs().max()) > 0.1
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_frozen_heads_give_the_same_bits() -> None:
    heads, x = Heads(Dense(16, 5), Dense(16, 1)), drawn(3, 7, 16)
    with torch.no_grad():
        loose = heads(x)
        heads.freeze(True)
        frozen = heads(x)
    assert torch.equal(loose[0], frozen[0])
    assert torch.equal(loose[1], frozen[1])
    assert frozen[0].shape == (3, 7, 5)
    assert frozen[1].shape == (3, 7)


# ---- the LSTM


@pytest.mark.parametrize("hidden", [*HIDDEN, 7])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_lstm_is_the_plain_recurrence(hidden: int, share: float) -> None:
    starts, state = flags(6, 5, share=share), drawn(5, 2 * hidden, seed=2)
    into, weight = drawn(6, 5, 4 * hidden), 0.3 * drawn(4 * hidden, hidden, seed=1)
    if share == 1.0:  # nothing flows through the weights: only the forward can be compared by size
        torch.testing.assert_close(
            lstm(into.clone(), weight, state, starts)[0], plain_lstm(into, weight, state, starts)[0]
        )
        assert not gradients(lambda x, w: lstm(x.clone(), w, state, starts)[0], [into, weight])[1][1].any()
        return
    agree(
        lambda x, w: lstm(x.clone(), w, state, starts)[0],
        lambda x, w: plain_lstm(x, w, state, starts)[0],
        [into, weight],
    )
    torch.testing.assert_close(lstm(into.clone(), weight, state, starts)[1], plain_lstm(into, weight, state, starts)[1])


def test_lstm_of_gates_in_another_order_of_memory() -> None:
    """Gates that were transposed: the same numbers, and the same gradients."""
    starts, state = flags(6, 5), drawn(5, 32, seed=2)
    weight = 0.3 * drawn(64, 16, seed=1)

    def turned(form: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
        return lambda x, w: form(x.clone().transpose(0, 1), w, state, starts)[0]

    agree(turned(lstm), turned(plain_lstm), [drawn(5, 6, 64), weight])


def test_lstm_is_torchs_own() -> None:
    hidden, steps, rows = 16, 7, 4
    theirs: Any = torch.nn.LSTM(hidden, hidden)
    x, state = drawn(steps, rows, hidden), drawn(rows, 2 * hidden, seed=2)
    h0, c0 = state.chunk(2, -1)
    expected, (h, c) = theirs(x, (h0[None].contiguous(), c0[None].contiguous()))
    gates = x @ theirs.weight_ih_l0.t() + theirs.bias_ih_l0 + theirs.bias_hh_l0
    found, last = lstm(gates, theirs.weight_hh_l0, state, torch.zeros(steps, rows, dtype=torch.uint8))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(last, torch.cat((h[0], c[0]), -1), rtol=1e-5, atol=1e-6)
    push = drawn(steps, rows, hidden, seed=3)
    ours = torch.autograd.grad((found * push).sum(), [theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_hh_l0])
    torchs = torch.autograd.grad((expected * push).sum(), [theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_hh_l0])
    for a, b in zip(ours, torchs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_lstm_of_very_large_gates_saturates() -> None:
    gates = torch.tensor([[[-1e30, -200.0, -100.0, 1e30] * 4]]).view(1, 1, 16)
    state, starts = drawn(1, 8), torch.zeros(1, 1, dtype=torch.uint8)
    found, expected = (form(gates.clone(), torch.zeros(16, 4), state, starts)[1] for form in (lstm, plain_lstm))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_lstm_with_packed_weights_at_hand_gives_the_same_bits() -> None:
    starts, state, weight = flags(6, 5), drawn(5, 32, seed=2), 0.3 * drawn(64, 16, seed=1)
    gates = drawn(6, 5, 64)
    at_hand = lstm(gates.clone(), weight, state, starts, packed(weight, True))
    assert torch.equal(at_hand[0], lstm(gates.clone(), weight, state, starts)[0])


# ---- wrong sizes

MISUSE: dict[str, Callable[[], Any]] = {
    "pack: packed": lambda: native.pack(f(3, 4), True, f(4 * 3)),
    "dense: packed": lambda: native.dense_forward(f(2, 3), f(3 * 8), f(8), False, f(2, 8), None),
    "dense: out": lambda: native.dense_forward(f(2, 3), f(3 * 16), f(8), False, f(2, 7), None),
    "dense: no output": lambda: native.dense_forward(f(2, 3), f(0), f(0), False, f(2, 0), None),
    "dense: last": lambda: native.dense_forward(f(2, 3), f(3 * 16), f(8), False, f(2, 7), f(3)),
    "dense: out beside last": lambda: native.dense_forward(f(2, 3), f(3 * 16), f(8), False, f(2, 8), f(2)),
    "dense: relu and last": lambda: native.dense_forward(f(2, 3), f(3 * 16), f(8), True, f(2, 7), f(2)),
    "dense: d_out": lambda: native.dense_backward(f(2, 3), None, f(2, 7), None, None, None, f(8, 3), f(8)),
    "dense: d_weight": lambda: native.dense_backward(f(2, 3), None, f(2, 8), None, None, None, f(8, 4), f(8)),
    "dense: d_last": lambda: native.dense_backward(f(2, 3), None, f(2, 7), f(1), None, None, f(8, 3), f(8)),
    "dense: no d_bias": lambda: native.dense_backward(f(2, 3), None, f(2, 0), None, None, None, f(0, 3), f(0)),
    "dense: relu out": lambda: native.dense_backward(f(2, 3), f(2, 7), f(2, 8), None, None, None, f(8, 3), f(8)),
    "dense: relu and d_last": lambda: native.dense_backward(f(2, 3), f(2, 7), f(2, 7), f(2), None, None, f(8, 3), f(8)),
    "dense: no packed": lambda: native.dense_backward(f(2, 3), None, f(2, 8), None, None, f(2, 3), f(8, 3), f(8)),
    "dense: d_x": lambda: native.dense_backward(f(2, 3), None, f(2, 8), None, f(8 * 16), f(2, 4), f(8, 3), f(8)),
    "lstm: packed": lambda: native.lstm_forward(u(2, 3), f(60), f(2, 3, 16), f(3, 3, 4), f(3, 3, 4)),
    "lstm: gates": lambda: native.lstm_forward(u(2, 3), f(64), f(2, 3, 15), f(3, 3, 4), f(3, 3, 4)),
    "lstm: h": lambda: native.lstm_forward(u(2, 3), f(64), f(2, 3, 16), f(2, 3, 4), f(3, 3, 4)),
    "lstm: cell": lambda: native.lstm_forward(u(2, 3), f(64), f(2, 3, 16), f(3, 3, 4), f(2, 3, 4)),
    "lstm: starts": lambda: native.lstm_forward(u(2, 2), f(64), f(2, 3, 16), f(3, 3, 4), f(3, 3, 4)),
    "lstm: straight": lambda: native.lstm_backward(u(2, 3), f(64), f(2, 3, 16), f(3, 3, 4), f(2, 3, 4), f(2, 3, 16)),
    "lstm: d_h": lambda: native.lstm_backward(u(2, 3), f(256), f(2, 3, 16), f(3, 3, 4), f(3, 3, 4), f(2, 3, 16)),
    "lstm: d_gates": lambda: native.lstm_backward(u(2, 3), f(256), f(2, 3, 16), f(3, 3, 4), f(2, 3, 4), f(2, 3, 15)),
}


@pytest.mark.parametrize("name", MISUSE)
def test_wrong_sizes_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        MISUSE[name]()


def test_packed_weights_hold_every_number_where_the_product_looks() -> None:
    """In panels of 64 columns, or of 16 where registers are few; the last has whole lanes of 16."""
    matrix = np.arange(70 * 3, dtype=np.float32).reshape(70, 3) + 1
    transposed, plain = (packed(torch.from_numpy(matrix), t) for t in (True, False))
    wide = 16 if np.array_equal(transposed[:48].reshape(3, 16), matrix[:16].T) else 64
    for first in range(0, 64, wide):
        panel = transposed[3 * first : 3 * (first + wide)].reshape(3, wide)
        assert np.array_equal(panel, matrix[first : first + wide].T)
    assert np.array_equal(transposed[3 * 64 :].reshape(3, 16)[:, :6], matrix[64:].T)
    assert not transposed[3 * 64 :].reshape(3, 16)[:, 6:].any()
    assert np.array_equal(plain.reshape(70, 16)[:, :3], matrix)
