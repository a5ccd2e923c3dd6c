"""What CogsGuard can pay: the objective, and presets that pay for single steps on the way to it.

Presets add up: `rewards=("objective", "credit")`. A cap is on what a term pays in all, so the value it is paid for is
capped at cap / weight.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridmill.grid import Index, Ratio, RewardTerm, Stat, Sum

# Words of the game that its rewards are made of.
ELEMENTS = ("oxygen", "carbon", "germanium", "silicon")
VIBES = ("default", "heart", "gear", "scrambler", "aligner", "miner", "scout")
NO_CAP = 1e9


def rewards_of(presets: Sequence[str], max_steps: int) -> tuple[RewardTerm, ...]:
    """The terms of some presets, in the order given."""
    known = {
        "objective": [RewardTerm(weight=1.0 / max_steps, value=Stat(name="aligned.junction.held", of="collective"))],
        "milestones": _milestones(),
        "credit": _credit(),
        "miner": _miner(),
        "aligner": _aligner(),
        "scrambler": _scrambler(),
        "scout": _scout(),
        "role_conditional": _by_role(),
        "penalize_vibe_change": [_vibe_changes(-0.01)],
    }
    if isinstance(presets, str) or not all(preset in known for preset in presets):
        raise ValueError(f"rewards: expected a list of {', '.join(known)}, got {presets!r}")
    return tuple(term for preset in presets for term in known[preset])


def _own(stat: str, weight: float, cap: float = NO_CAP) -> RewardTerm:
    return RewardTerm(weight=weight, value=Stat(name=stat), cap=cap if cap == NO_CAP else cap / weight)


def _team_deposit(element: str, weight: float, cap: float) -> RewardTerm:
    """What the team starts with counts as its first deposit and must not use up the cap: paid is what is gained."""
    value = Stat(name=f"{element}.deposited", of="collective")
    return RewardTerm(weight=weight, value=value, cap=cap / weight, mode="gained")


def _kept(item: str, weight: float) -> list[RewardTerm]:
    """Paid when it comes, taken back when it goes."""
    return [_own(f"{item}.gained", weight), _own(f"{item}.lost", -weight)]


def _milestones() -> list[RewardTerm]:
    return [_own("junction.aligned_by_agent", 1.0, 100.0), _own("junction.scrambled_by_agent", 0.5, 50.0)]


def _credit() -> list[RewardTerm]:
    terms = [_own("heart.gained", 0.05, 0.5)]
    for gear in ("aligner", "scrambler"):
        terms += [_own(f"{gear}.gained", 0.2, 0.4), _own(f"{gear}.lost", -0.2)]
    terms += [_own(f"{element}.gained", 0.001, 0.1) for element in ELEMENTS]
    return terms + [_team_deposit(element, 0.002, 0.2) for element in ELEMENTS]


def _miner() -> list[RewardTerm]:
    terms = _kept("miner", 2.0) + [_own(f"{element}.gained", 0.05, 1.0) for element in ELEMENTS]
    return terms + [_team_deposit(element, 1.0, 2.0) for element in ELEMENTS]


def _aligner() -> list[RewardTerm]:
    return [*_kept("aligner", 2.0), *_kept("heart", 0.5), _own("junction.aligned_by_agent", 1.0)]


def _scrambler() -> list[RewardTerm]:
    return [*_kept("scrambler", 10.0), _own("junction.scrambled_by_agent", 20.0)]


def _scout() -> list[RewardTerm]:
    return [*_kept("scout", 2.0), _own("cell.visited", 0.0001)]


def _by_role() -> list[RewardTerm]:
    """One of the four roles per agent, in turn; a value divided by 1 is itself, divided by 0 it is 0."""
    roles = (_miner(), _aligner(), _scrambler(), _scout())
    return [
        RewardTerm(
            weight=term.weight,
            value=Ratio(values=(term.value, Index(every=len(roles), place=place))),
            cap=term.cap,
            mode=term.mode,
        )
        for place, role in enumerate(roles)
        for term in role
    ]


def _vibe_changes(weight: float) -> RewardTerm:
    return RewardTerm(
        weight=weight, value=Sum(values=tuple(Stat(name=f"action.change_vibe_{vibe}.success") for vibe in VIBES))
    )
