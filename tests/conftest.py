"""What all tests share: hypothesis draws the same examples every time, without a clock; torch has one thread.

Helpers are in tests/support/, which pyproject.toml puts on the import path. No fixtures: each test file says what it
needs.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# As many workers as cores run the tests: a second thread of torch in each, and in processes that tests start, would
# only wait for the others, at a multiple of the cost.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "gridmill",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gridmill")
