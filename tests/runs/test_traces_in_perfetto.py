"""A trace in Perfetto: its trace processor, in a real browser, has all of it on one time line and drops nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import perfetto
import pytest
from tiny import tiny

from gridmill.runs import train

OURS = ("gridmill", "core", "cpu_op")
BY_THREAD = """
select thread.name, slice.category, count(*) from slice
join thread_track on slice.track_id = thread_track.id join thread using (utid)
where slice.category in ('gridmill', 'core', 'cpu_op') group by 1, 2
"""
AROUND = """
select distinct outside.name from slice join slice as outside on slice.parent_id = outside.id
where slice.name like 'autograd::engine::evaluate_function%' and outside.category = 'gridmill'
"""


@pytest.mark.long
def test_perfetto_reads_every_thread_and_drops_nothing(tmp_path: Path, record_property) -> None:
    """Two threads, four minibatches of two microbatches: eight backward passes, the core's phases, operators."""
    sizes = {"trainer__threads": 2, "trainer__num_worlds": 64, "trainer__batch_size": 2048, "profiler__enabled": True}
    sizes |= {"profiler__wait_steps": 0, "profiler__warmup_steps": 0, "profiler__active_steps": 4}
    sizes |= {"trainer__minibatch_size": 512, "trainer__max_microbatch": 256, "trainer__async_factor": 1}
    folder = train(tiny(1, run="traced", **sizes), tmp_path, panel=False).folder
    file = folder / "traces" / "profiler_trace_00000000.json"
    said = json.loads(file.read_text())
    names = {e["tid"]: e["args"]["name"] for e in said["traceEvents"] if e.get("name") == "thread_name"}
    written = Counter((names[e["tid"]], e["cat"]) for e in said["traceEvents"] if e.get("cat") in OURS)
    with perfetto.opened(file) as (_, ask):
        read = {(thread, category): number for thread, category, number in ask(BY_THREAD)}
        lost = ask("select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
        ((backward,),) = ask("select count(*) from slice where name = 'backward' and category = 'gridmill'")
        around = ask(AROUND)
    assert read == dict(written)
    assert lost == []
    assert backward == said["gridmill"]["microbatches"] == 8
    assert around == [["backward"]]
    assert {category for _, category in read} == set(OURS)
    told = f"{sum(read.values())} slices of {len(names)} threads, {backward} backward passes"
    record_property("figure", f"{told}, 0 dropped")
