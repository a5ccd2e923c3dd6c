"""The page: an explanation as plain lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from gridmill.config.text import WIDTH, ascii_only, hang
from gridmill.grid.analysis.ceiling import Stage
from gridmill.grid.analysis.explain_record import Explanation, Gathering, Machine, Reward


def text(said: Explanation) -> str:
    """An explanation as lines of at most 80 characters."""
    lines = hang(f"{said.name}: ", f"{said.num_agents} agents, {said.max_steps} ticks, {said.fingerprint}")
    if said.resources:
        lines += ["", *_resources(said)]
    lines += _rules(said)
    if said.products:
        lines += ["", "chains, for the first unit with one of each building"]
        for product in said.products:
            lines += hang(f"  {product.name}: ", product.chain)
        lines += ["", *_first_ticks(said), "", *_ceilings(said)]
    if said.gatherings:
        lines += ["", *_gatherings(said)]
    if said.rewards:
        lines += ["", *_reward_lines(said)]
    lines += ["", f"tokens: at worst {said.worst_tokens}, room for {said.num_tokens}, window {said.window}"]
    lines += hang(f"actions ({len(said.actions)}): ", ", ".join(said.actions))
    ticks = "1 tick" if said.min_first_episode == 1 else f"{said.min_first_episode} ticks"
    lines.append(f"first episode with desync_episodes: at least {ticks}")
    if said.warnings:
        lines.append("")
    for warning in said.warnings:
        lines += hang("warning: ", warning)
    return "\n".join(lines)


def _resources(said: Explanation) -> list[str]:
    lines = ["resources: sources and uses"]
    for resource, makers in said.resources.items():
        made = [machine_text(m) for m in said.machines if m.name in makers]
        lines += hang(f"  {resource}: ", "; ".join([*made, *said.sources[resource]]) or "nothing makes it")
        if said.uses[resource]:
            lines += hang("      for ", "; ".join(said.uses[resource]))
    return lines


def _rules(said: Explanation) -> list[str]:
    lines: list[str] = []
    if said.bumps:
        lines += ["", "what a bump does: the first rule that applies"]
    for name, rules in said.bumps.items():
        count = f" ({said.counts[name]} on the map)" if name in said.counts else ""
        lines += hang(f"  {name}{count}", "")
        for rule in rules:
            lines += hang("    ", rule, 6)
    titles = {
        "what happens automatically": said.by_itself,
        "events at set times": said.events,
        "teams": said.collectives,
    }
    for title, some in titles.items():
        if some:
            lines += ["", title]
        for line in some:
            lines += hang("  ", line, 6)
    return lines


def _gatherings(said: Explanation) -> list[str]:
    lines = ["chains by rules and assemblers: acts that the first unit requires"]
    none = [one.name for one in said.gatherings if one.alone is None]
    free = [one.name for one in said.gatherings if one.alone == 1 and not one.acts]
    single = [one for one in said.gatherings if one.alone == 1 and sum(one.acts.values()) == 1]
    titles = {
        "not available": none,
        "no act": free,
        "one act": [f"{one.name} ({next(iter(one.acts))})" for one in single],
    }
    for title, found in titles.items():
        if found:
            lines += hang(f"  {title}: ", ", ".join(found), 6)
    for one in said.gatherings:
        if one.alone is not None and one.name not in free and one not in single:
            lines += hang(f"  {one.name}: ", _gathering_text(one), 6)
    note = (
        "alone: one agent does all acts; together: all agents share them. These are bounds: walking, waiting and what "
        "is used up are not counted. How much of it an agent can get in an episode is not known"
    )
    return [*lines, *hang("  (", note + ")", 3)]


def _gathering_text(one: Gathering) -> str:
    acts = ", ".join(f"{n} x {act}" if n > 1 else act for act, n in one.acts.items()) or "no act"
    return f"{acts}; alone not before tick {one.alone}, together {one.together}"


def machine_text(machine: Machine) -> str:
    inputs = " + ".join(f"{n} {r}" for r, n in machine.inputs.items())
    outputs = " + ".join(f"{n} {r}" for r, n in machine.outputs.items())
    made = f"{inputs} -> {outputs}" if inputs else outputs
    if machine.max_conversions == 0:
        made = "makes nothing" if not machine.waiting else f"{machine.waiting} available at the start, no more are made"
        return f"{machine.name} ({machine.count} on the map): {made}"
    limit = f", {machine.max_conversions} times" if machine.max_conversions >= 0 else ""
    there = f", {machine.waiting} available at the start" if machine.waiting else ""
    return f"{machine.name} ({machine.count} on the map): {made} in {machine.cooldown} ticks{limit}{there}"


def _first_ticks(said: Explanation) -> list[str]:
    rows: list[Sequence[str]] = [("first tick of each", "ready", "paid", "sequence", "all ready", "all paid")]
    for p in said.products:
        ticks = (p.one_ready, p.one_paid, p.sequence, p.all_ready, p.all_paid)
        rows.append((p.name, *("never" if tick is None else str(tick) for tick in ticks)))
    note = (
        "ready, paid: one of each building and an agent that hands over at once; sequence: one conversion after the "
        "other, no hand-overs; all: every building and enough agents; walking not counted"
    )
    return [*_table(rows), *hang("  (", note + ")")]


def _ceilings(said: Explanation) -> list[str]:
    lines = [f"upper bound per agent in {said.max_steps} ticks, walking not counted"]
    for product in said.products:
        limit, *others = product.ceiling.stages or (None,)
        if limit is None:
            continue
        found = f"{product.ceiling.per_agent:.1f}, bottleneck {limit.machine}: {_stage_text(limit)}"
        for stage in others[:1]:
            found += f"; {stage.resource} alone would allow {stage.allows / said.num_agents:.1f}"
        lines += hang(f"  {product.name}: ", found)
    return lines


def _stage_text(stage: Stage) -> str:
    if stage.runs == 0:
        return f"{stage.units} {stage.resource} available from the start"
    return (
        f"{stage.machines} x {stage.runs} {stage.resource}, useful between ticks {stage.first} and {stage.last}, "
        f"one per {stage.cooldown} ticks"
    )


def _reward_lines(said: Explanation) -> list[str]:
    rows: list[Sequence[str]] = [("first tick of each reward", "paid", "sequence", "all paid", "most per agent")]
    for r in said.rewards:
        ticks = [_tick(r, tick) for tick in (r.one_paid, r.sequence, r.all_paid)]
        rows.append((r.text, *ticks, "not known" if r.ceiling is None else f"{r.ceiling:.1f}"))
    if len(said.rewards) > 1:
        most = "not known" if said.reward_ceiling is None else f"{said.reward_ceiling:.1f}"
        rows.append(("all rewards, each at its own best", "", "", "", most))
    note = "(>= is a bound: it cannot be earned earlier, walking not counted)"
    return _table(rows) + ([f"  {note}"] if any(r.certainty == "at least" for r in said.rewards) else [])


def _tick(reward: Reward, tick: int | None) -> str:
    if tick is None:
        return "never"
    return {"exact": f"{tick}", "at least": f">= {tick}", "not known": "not known"}[reward.certainty]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, the first to the left; what is too long for it stands above its line."""
    rows = [(ascii_only(row[0]), *row[1:]) for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    widths[0] = min(widths[0], WIDTH - 2 - sum(width + 2 for width in widths[1:]))
    lines = []
    for index, (first, *others) in enumerate(rows):
        indent = "" if index == 0 else "  "
        if len(first) > widths[0]:
            lines += hang(indent, first, 4)
            first = ""
        cells = "".join(cell.rjust(width + 2) for cell, width in zip(others, widths[1:], strict=True))
        lines.append((indent + first).ljust(widths[0] + 2) + cells)
    return [line.rstrip() for line in lines]
