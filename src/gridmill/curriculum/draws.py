"""Random numbers that are a function of what they are for, as in the core: nothing is kept but counters."""

from __future__ import annotations

_GOLDEN = 0x9E3779B97F4A7C15
_WHOLE = 2**64 - 1


def bits(*numbers: int) -> int:
    """64 random bits of some numbers."""
    mixed = 0
    for number in numbers:
        mixed = _mix(mixed ^ ((number + 1) * _GOLDEN & _WHOLE))
    return mixed


def share(*numbers: int) -> float:
    """A number in [0, 1) of some numbers."""
    return float(bits(*numbers) >> 11) * 2.0**-53


def _mix(x: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WHOLE
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _WHOLE
    return x ^ x >> 31
