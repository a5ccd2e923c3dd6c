"""Contrast over time: against a loop over segments and steps, its head, and that it learns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import tiny
from torch.nn.functional import normalize

from gridmill.config import ConfigError
from gridmill.config.schedule import Progress
from gridmill.losses import Minibatch
from gridmill.losses.contrastive import Contrastive
from gridmill.train.trainer import Trainer

NOW = Progress(0, 1, 0, 1)


def slow(loss: Contrastive, hidden: torch.Tensor, starts: torch.Tensor, weights: torch.Tensor, heads: Any) -> float:
    """One step of one segment at a time."""
    steps, segments, _ = hidden.shape
    total = 0.0
    for n in range(segments):
        later = [normalize(heads["later"](hidden[s, n]), dim=-1) for s in range(loss.offset, steps)]
        for t in range(steps - loss.offset):
            if starts[t + 1 : t + loss.offset + 1, n].any():
                continue
            now = normalize(heads["now"](hidden[t, n]), dim=-1)
            alike = torch.stack([now @ each for each in later]) / NOW.at(loss.temperature)
            total -= float(alike.log_softmax(0)[t]) * float(weights[n])
    return total / (segments * (steps - loss.offset))


@pytest.mark.parametrize("offset", [1, 3])
def test_it_is_what_a_loop_gives(offset: int) -> None:
    draw = torch.Generator().manual_seed(1)
    hidden = torch.randn(7, 4, 16, generator=draw)
    starts = (torch.rand(7, 4, generator=draw) < 0.2).to(torch.uint8)
    weights = torch.rand(4, generator=draw)
    loss = Contrastive(offset=offset, size=8, temperature=0.2)
    heads = loss.heads(None, SimpleNamespace(hidden=16))  # type: ignore[arg-type]
    out: Any = SimpleNamespace(hidden=hidden)
    with torch.no_grad():
        found, metrics = loss(Minibatch(episode_starts=starts, weights=weights), out, NOW, heads)
        expected = slow(loss, hidden, starts, weights, heads)
    assert starts[1:].any()
    assert float(found) == pytest.approx(expected, rel=1e-5)
    assert 0 <= float(metrics["contrastive/found"]) <= 1


def test_its_head_is_trained_and_it_learns() -> None:
    run = tiny(20, optimizer__learning_rate=3e-3).replace("losses.contrastive", {"weight": 1.0, "offset": 2})
    trainer = Trainer(run)
    before = {name: weight.clone() for name, weight in trainer.learner._heads().items()}
    found = [trainer.epoch() for _ in range(20)]
    after = trainer.learner._heads()
    trainer.close()
    assert sorted(before) == [f"heads.contrastive.{a}.{b}" for a in ("later", "now") for b in ("bias", "weight")]
    for name, weight in before.items():
        assert not torch.equal(after[name], weight), name
    assert found[-1]["loss/contrastive"] < 0.9 * found[0]["loss/contrastive"]
    assert found[-1]["contrastive/found"] > found[0]["contrastive/found"]


def test_a_segment_must_be_longer_than_the_offset() -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(2).replace("losses.contrastive", {"offset": 8})
    said = "expected less than trainer.bptt_horizon = 8, got 8 - at `$.losses.contrastive.offset`"
    assert str(caught.value) == said
