"""What runs in place of the native kernels on a device and in a compiled graph: the same numbers, in few launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kernel_checks import agree, drawn, flags
from second_device import counting, device, near
from small_runs import WORDS, needs_bf16, random_tokens, zeros
from torch import Tensor

from gridmill.policy import sequences
from gridmill.policy.cores import core_for
from gridmill.policy.kernels import Tokens, indexed_bag, parallel_scan, plain_bag, plain_scan, with_nothing
from gridmill.policy.network import Policy
from gridmill.policy.recurrence import linear_scan, scanned
from gridmill.policy.sequences import cut, starts_known
from gridmill.policy.spec import Layout
from gridmill.run import PolicyConfig


def loop(a: Tensor, b: Tensor, first: Tensor) -> Tensor:
    found = []
    for t in range(len(b)):
        first = a[t] * first + b[t]
        found.append(first)
    return torch.stack(found)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 9, 16, 17, 64])
def test_a_linear_recurrence_in_parts(steps: int) -> None:
    inputs = [drawn(steps, 3, 4).sigmoid(), drawn(steps, 3, 4, seed=2), drawn(3, 4, seed=3)]
    agree(linear_scan, loop, inputs)
    a, b, first = inputs
    backwards = loop(a.flip(0), b.flip(0), first).flip(0)
    torch.testing.assert_close(scanned(a, b, first, backwards=True), backwards)


def test_a_linear_recurrence_takes_few_launches() -> None:
    """Of 64 steps, less than one for each; of 256, not four times as many."""
    found = []
    for steps in (64, 256):
        with counting() as counted:
            a, b = torch.rand(steps, 2, device=device()), torch.rand(steps, 2, device=device())
            counted.step("scan")
            scanned(a, b, torch.zeros(2, device=device()))
        found.append(counted.now.kernels.total())
    assert found[0] < 32
    assert found[1] < 2.5 * found[0]


def test_the_scan_as_a_linear_recurrence() -> None:
    starts, inputs = flags(11, 5), [drawn(11, 5, 32), drawn(5, 16, seed=2)]
    agree(lambda g, s: parallel_scan(g, s, starts), lambda g, s: plain_scan(g, s, starts), inputs)


@pytest.mark.parametrize("padded", [False, True])
def test_the_bag_by_torchs_sum_of_embeddings(padded: bool) -> None:
    tokens, obs = Tokens(Layout.of(WORDS), torch.device("cpu")), random_tokens(23, 1)
    for row, strange in enumerate([(0, 200, 1), (0x0F, 0, 0), (0x50, 1, 3), (0, 0, 99), (253, 1, 1), (9, 255, 255)]):
        obs[row, 3] = strange  # what has no word
    seen = torch.from_numpy(obs)
    inputs = [drawn(tokens.layout.rows, 48), drawn(48, seed=4)]
    table: Callable[[Tensor], Tensor] = with_nothing if padded else lambda x: x
    agree(lambda x, b: indexed_bag(table(x), b, seen, tokens), lambda x, b: plain_bag(x, b, seen, tokens), inputs)


# ---- LSTM and GRU by torch's own


def test_segments_are_cut_where_episodes_start() -> None:
    """Every step once, in pieces that begin with a start or with the segment, longest first."""
    starts = flags(9, 6, share=0.25, seed=2).numpy()
    starts[0, 0], starts[3, 0], starts[:, 1] = 1, 1, 0
    pieces = cut(starts)
    assert sorted(pieces.steps) == list(range(54))
    assert np.array_equal(pieces.steps[pieces.places], np.arange(54))
    assert list(pieces.sizes) == sorted(pieces.sizes, reverse=True)
    assert pieces.sizes.sum() == 54
    assert len(pieces.segments) == 6 + int((starts[1:] != 0).sum())
    assert pieces.carried.sum() == 6 - int((starts[0] != 0).sum())
    assert [int(pieces.segments[end]) for end in pieces.ends] == list(range(6))
    first = pieces.steps[: len(pieces.segments)]  # of each piece
    assert np.array_equal(first % 6, pieces.segments)
    assert all(step < 6 or starts[step // 6, step % 6] for step in first)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.8])
def test_a_core_by_torchs_own_module(kind: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the core's own form on a CPU: outputs, the last state and all gradients."""
    core = core_for(kind)(16, np.random.default_rng(3))
    x, state, starts = drawn(7, 5, 16), drawn(5, core.state_size, seed=2), flags(7, 5, share=share)

    def run(given: Tensor, *weights: Tensor) -> Tensor:
        h, last = torch.func.functional_call(core, dict(zip(names, weights, strict=True)), (given, state, starts))
        lasts.append(last)
        return h

    names, weights = zip(*core.named_parameters(), strict=True)
    lasts: list[Tensor] = []

    def theirs(*inputs: Tensor) -> Tensor:
        with monkeypatch.context() as patched:
            patched.setattr(sequences, "fits", lambda x: True)
            return run(*inputs)

    filled = [w.detach() + 0.1 * drawn(*w.shape, seed=8) for w in weights]
    agree(theirs, run, [x, *filled])
    torch.testing.assert_close(lasts[0], lasts[1], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_core_on_a_device_waits_only_for_starts_that_nobody_knows(kind: str) -> None:
    core = core_for(kind)(16, np.random.default_rng(3))
    starts = flags(7, 5)
    with counting() as counted:
        core, x, state = core.to(device()), drawn(7, 5, 16).to(device()), torch.zeros(5, core.state_size).to(device())
        there = starts.to(device())
        counted.step("asked")
        asked, _ = core(x, state, there)
        counted.step("known")
        with starts_known(starts.numpy()):
            known, _ = core(x, state, there)
    assert counted.sections["asked"][0].synchronisations == 1
    assert not counted.sections["known"][0].looks
    assert torch.equal(near(asked), near(known))


# ---- all parts


PARTS = [("bag", core) for core in ("none", "scan", "lstm", "gru")] + [("cnn", "none"), ("attend", "none")]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # of the compiler's own doing
@pytest.mark.parametrize(("encoder", "core"), PARTS)
def test_a_compiled_forward_is_one_graph(encoder: str, core: str) -> None:
    """Without a way back into Python, acting and learning; and it gives the numbers of the native kernels."""
    torch._dynamo.reset()
    policy = Policy(PolicyConfig(encoder=encoder, core=core, hidden=16), WORDS, 3)
    compiled: Any = torch.compile(policy, fullgraph=True, backend="eager")
    obs = torch.from_numpy(random_tokens(12, 1)).view(3, 4, 12, 3)
    masks = torch.ones(3, 4, 4, dtype=torch.uint8)
    inputs = obs, drawn(4, policy.state_size), flags(3, 4), masks
    ours, theirs = policy(*inputs), compiled(*inputs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    parameters = [p for name, p in policy.named_parameters() if "critic" not in name]
    gradients = [torch.autograd.grad(out.logits.square().sum(), parameters) for out in (ours, theirs)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    with torch.inference_mode(), policy.frozen():
        acted = compiled(obs[:1], inputs[1], zeros(1, 4), masks[:1])
        torch.testing.assert_close(acted.values, policy(obs[:1], inputs[1], zeros(1, 4), masks[:1]).values)


@needs_bf16
@pytest.mark.parametrize("kind", ["scan", "lstm", "gru"])
def test_a_state_is_carried_in_float32(kind: str) -> None:
    """In bfloat16 products a slow gate still remembers: 0.88 after 32 steps was 0.70 when states were rounded too."""
    core = core_for(kind)(16, np.random.default_rng(3))
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.zero_()
        keep = 5.5  # a gate of 0.996
        bias = core.into.bias
        assert isinstance(bias, Tensor)
        bias[{"scan": slice(0, 16), "lstm": slice(16, 32), "gru": slice(16, 32)}[kind]] = (
            -keep if kind == "scan" else keep
        )
        if kind == "lstm":
            bias[:16] = -20.0  # nothing new comes in
    state, x = torch.ones(2, core.state_size), torch.zeros(1, 2, 16)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for _ in range(32):
            _, state = core(x, state, zeros(1, 2))
    assert state.dtype == torch.float32
    assert float(state[0, -1]) == pytest.approx(torch.tensor(keep).sigmoid().item() ** 32, abs=2e-3)
