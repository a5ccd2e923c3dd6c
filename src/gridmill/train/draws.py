"""Drawing actions on a device from the numbers that the native kernel draws from on a CPU (native/learn, `sample`).

A number is a function of seed, step and row alone, so the numbers of a whole rollout are made at once. An action is
where the running sum of the probabilities passes it. Sums are rounded in another order than the kernel's, so about one
action in a million may differ where a number lies on an edge.
"""

from __future__ import annotations

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
LARGEST_BELOW_ONE = 1.0 - 2.0**-24  # of float32


def uniforms(seed: int, first_step: int, steps: int, rows: int, device: torch.device, first_row: int = 0) -> Tensor:
    """A number in [0, 1] for each of some steps and rows, float32 [steps, rows]."""
    row = torch.arange(first_row, first_row + rows, device=device) << 32
    step = torch.arange(first_step, first_step + steps, device=device)[:, None]
    key = _mix(_scalar(_mix_number((seed + GOLDEN) % 2**64)) ^ (row | (step >> 32)))
    bits = _mix(_mix(key ^ ((step & 0xFFFFFFFF) << 32)) + _scalar(GOLDEN))
    return (_shifted(bits, 11).double() * 2.0**-53).float()


def draw(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Actions int32 [rows] and their log-probs, from masked logits [rows, actions] and a number for each row."""
    log_probs = logits.log_softmax(-1)
    sums = log_probs.exp().cumsum(-1)
    left = uniform.clamp(max=LARGEST_BELOW_ONE)[:, None] * sums[:, -1:]
    chosen = (sums <= left).sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
    return chosen.squeeze(-1).int(), log_probs.gather(-1, chosen).squeeze(-1)


# ---- SplitMix64 in signed numbers of 64 bits, which wrap as unsigned ones do


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 30)) * _scalar(0xBF58476D1CE4E5B9)
    x = (x ^ _shifted(x, 27)) * _scalar(0x94D049BB133111EB)
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, with zeros coming in: a signed shift would repeat the sign."""
    found: Tensor = (x >> bits) & (2 ** (64 - bits) - 1)
    return found


def _mix_number(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def _scalar(x: int) -> int:
    """The same 64 bits as a signed number."""
    return x - 2**64 if x >= 2**63 else x
