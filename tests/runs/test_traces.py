"""Traces: a run of any length leaves one, with every thread's work on one time line; too short is said."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny

from gridmill import recipes
from gridmill.run import ProfilerConfig
from gridmill.runs import overrides, traces, train

SEED_004 = {"enabled": True, "wait_steps": 2, "warmup_steps": 2, "active_steps": 4}


def traced(epochs: int, folder: Path, **changes: Any) -> tuple[Path, str]:
    settings = {f"profiler__{name}": value for name, value in SEED_004.items()} | changes
    made = train(tiny(epochs, run="traced", **settings), folder, panel=False).folder
    return made / "traces", (made / "log.txt").read_text()


def events_of(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text())["traceEvents"]  # type: ignore[no-any-return]


def refuse_overlaps(events: list[dict[str, Any]]) -> None:
    """On a thread everything lies inside of something else, or beside it; to the nanosecond."""
    threads: dict[Any, list[tuple[int, int, str]]] = {}
    for e in events:
        if e["ph"] == "X":
            begin, lasted = round(1e3 * e["ts"]), round(1e3 * e["dur"])
            threads.setdefault((e["pid"], e["tid"]), []).append((begin, -lasted, e["name"]))
    for own in threads.values():
        ends: list[int] = []
        for begin, lasted, name in sorted(own):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - lasted <= ends[-1], f"{name} at {begin} ns ends after what it is in"
            ends.append(begin - lasted)


def test_what_seems_to_last_beyond_what_it_is_in_ends_with_it() -> None:
    def event(name: str, ts: int, dur: int, tid: int = 1) -> dict[str, Any]:
        return {"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}

    events = [event("act", 0, 100), event("beside", 100, 50), event("operator", 90, 30), event("its own", 95, 20)]
    events += [event("elsewhere", 95, 500, tid=2), event("inside", 10, 20), {"ph": "s", "ts": 5}]
    traces.nest(events)
    lasted = {e["name"]: e["dur"] for e in events if e["ph"] == "X"}
    assert lasted == {"act": 100, "beside": 50, "operator": 10, "its own": 5, "elsewhere": 500, "inside": 20}


def test_what_does_not_fit_is_shortened_recording_last() -> None:
    config = ProfilerConfig(wait_steps=2, warmup_steps=2, active_steps=4)
    fits = {there: tuple(traces.plan(config, there)) for there in (1, 4, 5, 6, 7, 8, 99)}
    assert fits == {1: (0, 0, 1), 4: (0, 0, 4), 5: (0, 1, 4), 6: (0, 2, 4), 7: (1, 2, 4), 8: (2, 2, 4), 99: (2, 2, 4)}


def test_a_run_of_one_epoch_leaves_a_trace_and_says_what_was_too_short(tmp_path: Path) -> None:
    folder, log = traced(1, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["profiler_trace_00000000.json"]
    said = " ".join(log.split())
    assert "an epoch has 4 minibatches, too few to wait 2, warm up 2 and record 4: using 0, 0 and 4" in said
    assert "steps, too few" not in said  # a rollout has 16


@pytest.mark.parametrize("threads", [1, 2])
def test_every_thread_is_in_the_trace(threads: int, tmp_path: Path) -> None:
    """Four minibatches in two microbatches each: eight backward passes, whoever makes them; both cores of the core."""
    changes = {"trainer__threads": threads, "trainer__num_worlds": 64, "trainer__batch_size": 2048}
    changes |= {"trainer__minibatch_size": 512, "trainer__max_microbatch": 256, "trainer__async_factor": 1}
    folder, _ = traced(1, tmp_path, **changes)
    file = folder / "profiler_trace_00000000.json"
    record, events = json.loads(file.read_text()), events_of(file)
    steps = {"rollout": [2 + 2, 8], "minibatch": [0, 4]}
    assert record["gridmill"] == {"epoch": 0, "dropped_phases": 0, "microbatches": 8, "steps": steps}
    spans = Counter(event["name"] for event in events if event.get("cat") == "gridmill")
    assert (spans["backward"], spans["forward"], spans["env wait"]) == (8, 8, 4)
    torch_ops = [event for event in events if event.get("cat") == "cpu_op"]
    backwards = Counter(event["name"] for event in torch_ops)
    assert backwards["autograd::engine::evaluate_function: AddBackward0"] % 8 == 0  # the sum of the losses
    assert backwards["autograd::engine::evaluate_function: AddBackward0"] > 0
    core = [event for event in events if event.get("cat") == "core"]
    assert {event["name"] for event in core} >= {"actions", "observations", "rewards"}
    assert {event["args"]["worker"] for event in core} <= set(range(threads))  # one may take all chunks
    assert {event["args"]["world"] for event in core} == set(range(64))
    workers = {event["tid"] for event in events if event.get("cat") == "gridmill" and event["name"] == "backward"}
    assert len({event["tid"] for event in torch_ops} & workers) == len(workers)
    refuse_overlaps(events)
    # One clock: every operator of a backward pass lies in a span of ours, on its own thread.
    inside = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == "backward"]
    for event in torch_ops:
        if event["name"].startswith("autograd::engine"):
            middle = event["ts"] + event["dur"] / 2
            assert any(t == event["tid"] and a - 5_000 <= middle <= b + 5_000 for t, a, b in inside), event


def test_one_active_step_is_small(tmp_path: Path) -> None:
    small, _ = traced(1, tmp_path / "one", profiler__active_steps=1)
    large, _ = traced(1, tmp_path / "four")
    sizes = [next(folder.iterdir()).stat().st_size for folder in (small, large)]
    assert sizes[0] < 0.5 * sizes[1]


def test_the_profiled_run_from_supervised_to_ppo(tmp_path: Path) -> None:
    """The run that people profile: so short that it ends inside of its first steps, in fewer worlds."""
    words = [
        "run=profile", "supervised_steps=5_000", "trainer.total_timesteps=2_048", "trainer.profiler.enabled=True",
        "trainer.profiler.wait_steps=2", "trainer.profiler.warmup_steps=2", "trainer.profiler.active_steps=4",
        "trainer.profiler.record_shapes=True", "profiler.rollout_timing=1", "evaluator.evaluate_local=False",
        "trainer.num_worlds=4", "trainer.batch_size=1_024", "trainer.minibatch_size=512",
    ]  # fmt: skip
    run = overrides.apply(recipes.build("extractor_hub_supervised_to_ppo"), words)
    result = train(run, tmp_path, panel=False)
    assert result.exit_code == 0
    (file,) = (result.folder / "traces").glob("profiler_trace_*.json")
    assert {"teacher", "observations"} <= {e["name"] for e in events_of(file) if e.get("cat") == "core"}
    log = (result.folder / "log.txt").read_text()
    assert "teacher calls" in log
    assert "core phases during rollouts:" in log
