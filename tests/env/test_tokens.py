"""The bytes of tokens that Python knows are those that the core writes."""

from __future__ import annotations

import numpy as np

import gridmill
from gridmill.env.tokens import GLOBAL_LOCATION, NO_TOKEN


def test_rows_begin_with_global_tokens_and_end_with_none() -> None:
    with gridmill.make("toy", num_worlds=2, seed=1) as env:
        env.reset()
        location = env.obs[:, :, 0]
        there = location != NO_TOKEN
        assert there.any(axis=1).all()
        assert not there.all(axis=1).any()
        assert (np.diff(there.astype(np.int8), axis=1) <= 0).all()
        assert (env.obs[~there] == NO_TOKEN).all()
        assert (location[:, 0] == GLOBAL_LOCATION).all()
        height, width = env.window
        cells = location[there & (location != GLOBAL_LOCATION)]
        assert ((cells >> 4) < height).all()
        assert ((cells & 15) < width).all()
