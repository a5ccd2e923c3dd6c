"""`gridmill bench rollout`: how fast steps are collected: the env and a policy that acts, without learning.

The measurement is that of `bench train` (whole epochs, so the policy really changes, with step, rollout and train shown
together); the comparisons are those of the rollout: with torch's own act on as many rows, and with the peer's rollout.
"""

from __future__ import annotations

from gridmill.workshop.bench import train as bench_train

KIND = "bench rollout"


def run(settings: bench_train.Settings) -> int:
    """Measure, print, save. 0 fine, 1 unstable, 130 stopped."""
    return bench_train.run(settings, KIND, bench_train.ROLLOUT)
