"""What all tests share: hypothesis draws the same examples every time, without a clock.

Being here also puts `tests/` on the import path, for `random_games` and `reference`. No fixtures: each test file
says what it needs.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "gridmill",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gridmill")
