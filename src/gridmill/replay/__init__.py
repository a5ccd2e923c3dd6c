"""Replays: an episode as a small file that plays again, tick by tick, in the same engine; forks are in the same file.

A file has the game, the seed, the actions and hashes; the world follows. docs/replays.md is the format. `read` gives a
`Replay`, `play` and `Playback` the world at its ticks, `check` compares it with what this build plays, `record` and
`fork` make new ones.
"""

from gridmill.replay.blocks import ReplayError, pack
from gridmill.replay.checking import Finding, check, expect_equal
from gridmill.replay.playback import Playback
from gridmill.replay.reader import decode, is_replay, read
from gridmill.replay.recording import Recorder, annotated, as_taken, fork, record
from gridmill.replay.tape import EVERY, SUFFIX, Branch, Keyframe, PolicyRecord, Replay
from gridmill.replay.writer import encode, write

FORMAT = 2

__all__ = [
    "EVERY",
    "FORMAT",
    "SUFFIX",
    "Branch",
    "Finding",
    "Keyframe",
    "Playback",
    "PolicyRecord",
    "Recorder",
    "Replay",
    "ReplayError",
    "annotated",
    "as_taken",
    "check",
    "decode",
    "encode",
    "expect_equal",
    "fork",
    "is_replay",
    "pack",
    "read",
    "record",
    "write",
]
