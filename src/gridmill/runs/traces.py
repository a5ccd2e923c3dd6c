"""Traces: every `interval_epochs` one file with what an epoch did, on one time line: torch's operators of every thread,
our own parts of rollout and learning, and the phases of the core's threads.

`wait_steps`, `warmup_steps` and `active_steps` count steps of the rollout, and then minibatches of the learner: a file
has both. An epoch with fewer of them waits and warms up for less, which a note says. The form is Chrome's, for
ui.perfetto.dev and chrome://tracing; times are microseconds of the monotonic clock since the epoch began.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._C._profiler import _ExperimentalConfig

from gridmill.config.files import write_whole
from gridmill.env import Env
from gridmill.run import ProfilerConfig
from gridmill.sizing import Sizes
from gridmill.train.watch import Kind

CLOCK = "gridmill clock"
ROOM = 200_000  # phases of the core kept for each of its workers


class Plan(NamedTuple):
    """Steps of one kind to wait, warm up and record."""

    wait: int
    warmup: int
    active: int


def plan(config: ProfilerConfig, there: int) -> Plan:
    """What fits into so many steps: recording first, then warming up, then waiting."""
    active = min(config.active_steps, there)
    warmup = min(config.warmup_steps, there - active)
    return Plan(min(config.wait_steps, there - active - warmup), warmup, active)


class Span(NamedTuple):
    """What a thread did; ns of the monotonic clock."""

    name: str
    thread: int
    begin: int
    end: int


class Recording:
    """Torch's profiler over the steps of one kind; also the watch's spans while it is active."""

    def __init__(self, plan: Plan, config: ProfilerConfig) -> None:
        self.plan, self.seen, self.first, self.began, self.ended = plan, 0, 0, 0, 0
        self._clocks: list[tuple[int, int]] = []  # when an operator of our own was run, before and after it
        self.events: list[dict[str, Any]] = []
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Profiler won't be using warmup")  # too few steps have no other way
            schedule = torch.profiler.schedule(wait=plan.wait, warmup=plan.warmup, active=plan.active, repeat=1)
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells stderr when it starts and stops
        self._profiler: Any = torch.profiler.profile(
            activities=activities,
            schedule=schedule,
            on_trace_ready=self._ready,
            record_shapes=config.record_shapes,
            with_stack=config.stacks,
            profile_memory=config.memory,
            # Without it only the thread that starts the profiler is seen, and the other workers are not; with it torch
            # records no allocations.
            experimental_config=_ExperimentalConfig(profile_all_threads=not config.memory, verbose=config.stacks),
        )
        self._profiler.start()
        self._mark()

    @property
    def active(self) -> bool:
        return self._profiler is not None and self.seen >= self.plan.wait + self.plan.warmup

    def step(self) -> None:
        """One more is over."""
        if self._profiler is None:
            return
        self.seen += 1
        self._profiler.step()
        self._mark()
        if self.seen == sum(self.plan):
            self.close()

    def _mark(self) -> None:
        """Run an operator at a time that is known: torch's clock is not ours, and not always read when it says."""
        if not self.active:
            return
        began = time.perf_counter_ns()
        with torch.profiler.record_function(CLOCK):
            pass
        self._clocks.append((began, time.perf_counter_ns()))
        if not self.began:
            self.began, self.first = began, self.seen

    def _ready(self, profiler: Any) -> None:
        self.ended = time.perf_counter_ns()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(file))
            said = json.loads(file.read_text(encoding="utf-8"))
        shift = self._shift(said["traceEvents"])
        for event in said["traceEvents"]:
            if event.get("ph") != "M" and "ts" in event and event["name"] != CLOCK:
                lasted = {"dur": round(1e3 * float(event["dur"]))} if "dur" in event else {}
                # ns, until the file is written
                self.events.append(event | {"ts": round(1e3 * float(event["ts"])) - shift} | lasted)

    def _shift(self, events: list[dict[str, Any]]) -> int:
        """How many ns torch's clock is ahead of ours, by the operator whose time is known best."""
        seen = sorted((e for e in events if e["name"] == CLOCK), key=lambda e: float(e["ts"]))
        known = list(zip(seen, self._clocks, strict=False))
        if not known:
            return 0
        event, (began, ended) = min(known, key=lambda pair: pair[1][1] - pair[1][0])
        return round(1e3 * (float(event["ts"]) + float(event["dur"]) / 2) - (began + ended) / 2)

    def close(self) -> None:
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None


class Traces:
    """Around every epoch; a watch of the trainer while one is traced. Nothing happens unless the settings say so."""

    def __init__(
        self, config: ProfilerConfig, folder: Path, sizes: Sizes, env: Env, note: Callable[[str], None]
    ) -> None:
        self.config, self.folder, self.sizes, self.env, self.note = config, folder, sizes, env, note
        self.recordings: dict[Kind, Recording] = {}
        self.spans: list[Span] = []
        self._core = config.core and env.profiling

    def due(self, epoch: int) -> bool:
        """Whether this epoch is traced."""
        return self.config.enabled and epoch % self.config.interval_epochs == 0

    @contextmanager
    def around(self, epoch: int) -> Iterator[None]:
        """Trace what happens inside, if it is due; the trainer must be told who watches."""
        if not self.due(epoch):
            yield
            return
        self.recordings, self.spans = {}, []
        began = time.perf_counter_ns()
        if self._core:
            self.env.trace_phases(ROOM)
        try:
            yield
        finally:
            self.close()
        self._write(epoch, began)

    def close(self) -> None:
        for recording in self.recordings.values():
            recording.close()

    # ---- the watch

    def step(self, kind: Kind) -> None:
        recording = self.recordings.get(kind)
        if recording is None:
            there = self.sizes.horizon if kind == "rollout" else self.sizes.updates
            fits = plan(self.config, there)
            self._tell(kind, fits, there)
            self.recordings[kind] = Recording(fits, self.config)
        else:
            recording.step()

    def finish(self, kind: Kind) -> None:
        if kind in self.recordings:
            self.recordings[kind].step()
            self.recordings[kind].close()

    def span(self, name: str, began: float, ended: float) -> None:
        if any(recording.active for recording in self.recordings.values()):
            self.spans.append(Span(name, threading.get_native_id(), round(1e9 * began), round(1e9 * ended)))

    def _tell(self, kind: Kind, fits: Plan, there: int) -> None:
        c = self.config
        asked = Plan(c.wait_steps, c.warmup_steps, c.active_steps)
        if fits == asked:
            return
        what = "steps" if kind == "rollout" else "minibatches"
        self.note(
            f"trace: an epoch has {there} {what}, too few to wait {asked.wait}, warm up {asked.warmup} and record "
            f"{asked.active}: using {fits.wait}, {fits.warmup} and {fits.active}"
        )

    # ---- the file

    def _write(self, epoch: int, began: int) -> None:
        windows = [(r.began, r.ended) for r in self.recordings.values() if r.began and r.ended]
        pid, threads = os.getpid(), {threading.get_native_id(): "trainer"}
        events = [event for recording in self.recordings.values() for event in recording.events]
        for span in self.spans:
            threads.setdefault(span.thread, f"worker {len(threads)}")
            events.append(_complete(span.name, "gridmill", pid, span.thread, span.begin, span.end, {}))
        dropped = 0
        if self._core:
            phases, dropped = self.env.take_traced_phases()
            self.env.trace_phases(0)
            for one in phases:
                if any(begin <= one.begin and one.end <= end for begin, end in windows):
                    threads.setdefault(one.thread, f"core {one.worker}")
                    args = {"world": one.world, "worker": one.worker}
                    events.append(_complete(one.phase, "core", pid, one.thread, one.begin, one.end, args))
        nest(events)
        for event in events:
            event["ts"] = (event["ts"] - began) / 1e3
            if "dur" in event:
                event["dur"] /= 1e3
        named = [_name("process_name", pid, 0, "gridmill train")]
        named += [_name("thread_name", pid, thread, name) for thread, name in threads.items()]
        more: dict[str, Any] = {"epoch": epoch, "dropped_phases": dropped, "microbatches": self._microbatches()}
        more["steps"] = {kind: [r.first, r.seen] for kind, r in self.recordings.items()}  # recorded: from, until
        written = {"traceEvents": named + events, "displayTimeUnit": "ms", "gridmill": more}
        write_whole(self.folder / f"profiler_trace_{epoch:08d}.json", json.dumps(written).encode())

    def _microbatches(self) -> int:
        """Of the recorded minibatches: as many backward passes are in the file."""
        recording = self.recordings.get("minibatch")
        return recording.plan.active * self.sizes.microbatches if recording is not None else 0


def _complete(
    name: str, category: str, pid: int, tid: int, begin: int, end: int, args: dict[str, Any]
) -> dict[str, Any]:
    shown = {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "args": args}
    return shown | {"ts": begin, "dur": end - begin}


def nest(events: list[dict[str, Any]]) -> None:
    """Let what began inside something else of its thread end with it at the latest; times are ns.

    Torch's clock is known to fractions of a microsecond only, so an operator may seem to last beyond our part that it
    belongs to, and viewers drop what is not nested.
    """
    threads: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for own in threads.values():
        own.sort(key=lambda event: (event["ts"], -event["dur"]))
        ends: list[int] = []  # of what is not over yet, the innermost last
        for event in own:
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            if ends:
                event["dur"] = min(event["dur"], ends[-1] - event["ts"])
            ends.append(event["ts"] + event["dur"])


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
