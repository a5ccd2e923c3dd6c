"""PCG32 and the draws Prospector makes from it, plain and obvious; native/prospector/random.hpp is its twin."""

from __future__ import annotations

import math

MULTIPLIER, INCREMENT = 6364136223846793005, 54 << 1 | 1
MASK64 = (1 << 64) - 1


class Pcg32:
    """XSH-RR 64/32 (O'Neill 2014), stream 54. `state` is all there is."""

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        self.state = 0
        self.next()
        self.state = (self.state + seed) & MASK64
        self.next()

    def next(self) -> int:
        """32 random bits."""
        old = self.state
        self.state = (old * MULTIPLIER + INCREMENT) & MASK64
        mixed = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return (mixed >> turn | mixed << (32 - turn)) & 0xFFFFFFFF

    def below(self, low: int, high: int) -> int:
        """An int in [low, high), by plain modulo."""
        return low + self.next() % (high - low)

    def rand(self) -> float:
        return self.next() / 4294967296.0

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self.rand()

    def exponential(self) -> float:
        return -math.log(max(self.rand(), 1e-8))

    def normal(self, mean: float, sigma: float) -> float:
        """Box-Muller; the second value is thrown away."""
        u1, u2 = self.rand(), self.rand()
        magnitude = math.sqrt(-2.0 * math.log(max(u1, 1e-8)))
        return mean + sigma * (magnitude * math.cos(2.0 * math.pi * u2))

    def lognormal(self, mean: float, sigma: float) -> float:
        return math.exp(self.normal(mean, sigma))

    def dirichlet6(self) -> list[float]:
        parts = [self.exponential() for _ in range(6)]
        total = in_order(parts)
        return [1.0 / 6.0] * 6 if total <= 0.0 else [part / total for part in parts]

    def beta32(self) -> float:
        a = 0.0 + self.exponential() + self.exponential() + self.exponential()
        b = 0.0 + self.exponential() + self.exponential()
        return 0.5 if a + b <= 0.0 else a / (a + b)


def in_order(values: list[float]) -> float:
    """A sum from left to right, beginning at 0 (`sum` compensates since Python 3.12)."""
    total = 0.0
    for value in values:
        total = total + value
    return total
