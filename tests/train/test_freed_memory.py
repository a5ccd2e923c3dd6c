"""A trainer's blocks of memory stay with its process: an epoch asks the system for next to none."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

EPOCHS = """
import resource
from gridmill.train.trainer import Trainer
from gridmill.workshop.bench.train import run_of

trainer = Trainer(run_of("arena_basic_easy_shaped", None, ["policy.core=scan", "trainer.threads=1"]))
for _ in range(2):  # these take what all others use again
    trainer.epoch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
trainer.epoch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep what is freed")
def test_an_epoch_takes_no_new_pages() -> None:
    """Without `keep_freed_memory` some 25 000 pages an epoch, with it some 30."""
    done = subprocess.run([sys.executable, "-c", EPOCHS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2_000
