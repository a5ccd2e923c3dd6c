"""Effects: what a rule does. Each says about itself what analysis needs: its text, what it brings, what it moves.

The native side is `native/grid/rules/effects.hpp`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gridmill.config import Config
from gridmill.grid.conditions import Amounts, Holder, Someone
from gridmill.grid.facts import AGENT, MOST, Draft, Fact, Gain, held, loot
from gridmill.grid.text import Names, amounts_text, plain_text
from gridmill.grid.values import Constant, GameValue

__all__ = [
    "Add",
    "AddStat",
    "Align",
    "ChangeVibe",
    "Clear",
    "ClearTag",
    "Effect",
    "Freeze",
    "Give",
    "Move",
    "Push",
    "Relocate",
    "Remove",
    "SetTag",
    "Spawn",
    "Strike",
    "SwapPlaces",
    "Take",
    "Transfer",
    "Unalign",
]


class EffectBase(Config):
    """What analysis asks an effect. Without an answer it is taken to do anything to the map, and to bring nothing."""

    kind: str

    moves_agents: ClassVar[bool] = True  # an agent may stand on another cell afterwards

    @property
    def keeps_map(self) -> bool:
        """Whether everything stays where it is: nothing moves, appears or leaves."""
        return False

    def text(self, who: Names) -> str:
        """In words, for people who read a game."""
        return plain_text(self.tree())

    def promises(self) -> tuple[Fact, ...]:
        """What a game with this effect has, whoever it happens to: statistics, types, tags that are set, fights."""
        return ()

    def happen(self, draft: Draft) -> bool:
        """Adds what it needs and brings; False if it is about somebody who is never there."""
        place = draft.context[getattr(self, "who", "target")]
        if place is not None:
            self.bring(place, draft)
        return place is not None

    def bring(self, place: str, draft: Draft) -> None:
        """Adds what it brings to `who`, or the target."""


class InnerEffect(EffectBase):
    """An effect on what somebody holds or is: the map stays as it is."""

    moves_agents: ClassVar[bool] = False

    @property
    def keeps_map(self) -> bool:
        return True


class Give(InnerEffect):
    """Gives these amounts, as far as they fit; at least one unit of each must fit."""

    kind: Literal["give"] = "give"
    who: Holder = "actor"
    amounts: Amounts

    def text(self, who: Names) -> str:
        return f"{who[self.who]} gets {amounts_text(self.amounts)}"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gains += [Gain(held(place, r), n) for r, n in self.amounts.items() if n > 0]


class Take(InnerEffect):
    """Takes these amounts, or as much as there is; for a fixed price, add a `holds` condition."""

    kind: Literal["take"] = "take"
    who: Holder = "actor"
    amounts: Amounts

    def text(self, who: Names) -> str:
        return f"{who[self.who]} loses {amounts_text(self.amounts)}"

    def bring(self, place: str, draft: Draft) -> None:
        draft.losses |= {held(place, r) for r, n in self.amounts.items() if n > 0}


class Transfer(InnerEffect):
    """Transfers up to these amounts, as far as they are available and fit; at least one unit must."""

    kind: Literal["transfer"] = "transfer"
    source: Holder = "target"
    to: Holder = "actor"
    amounts: Amounts
    remove_empty: bool = False

    @property
    def keeps_map(self) -> bool:
        return not self.remove_empty

    def text(self, who: Names) -> str:
        gone = ", which is removed when it is empty" if self.remove_empty else ""
        return f"up to {amounts_text(self.amounts)} from {who[self.source]} to {who[self.to]}{gone}"

    def happen(self, draft: Draft) -> bool:
        """Each resource comes if the source holds it; where only one can move, the whole rule waits for it."""
        source, to = draft.context[self.source], draft.context[self.to]
        if source is None or to is None:
            return False
        given = {gain.fact for gain in draft.gains}
        moves = {r: n for r, n in self.amounts.items() if n > 0}
        for r, n in moves.items():
            before = held(source, r)
            draft.gain(held(to, r), n, None if before in given else before)
            draft.losses.add(before)
            if len(moves) == 1 and before not in given:
                draft.need(before)
        if self.remove_empty:
            draft.gain(("gone", source, ""))
        return bool(moves)


class Clear(InnerEffect):
    """Removes all of these resources, or everything if none is named."""

    kind: Literal["clear"] = "clear"
    who: Holder = "actor"
    resources: tuple[str, ...] = ()

    def text(self, who: Names) -> str:
        return f"{who[self.who]} loses all {', '.join(self.resources)}".rstrip()

    def bring(self, place: str, draft: Draft) -> None:
        draft.losses |= {held(place, r) for r in self.resources or draft.resources}


class Add(InnerEffect):
    """Gives (or, if negative, takes) as much of a resource as a game value says, rounded."""

    kind: Literal["add"] = "add"
    who: Holder = "actor"
    resource: str
    value: GameValue

    def text(self, who: Names) -> str:
        return f"{who[self.who]} gets as much {self.resource} as {self.value.text()}"

    def bring(self, place: str, draft: Draft) -> None:
        fixed = self.value.value if isinstance(self.value, Constant) else None
        if fixed is None or fixed > 0:
            draft.gain(held(place, self.resource), MOST if fixed is None else max(1, round(fixed)))
        if fixed is None or fixed < 0:
            draft.losses.add(held(place, self.resource))


class SetTag(EffectBase):
    """Adds a tag."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["set_tag"] = "set_tag"
    who: Someone = "target"
    tag: str

    def text(self, who: Names) -> str:
        return f"{who[self.who]} gets the tag {self.tag}"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gain(("tag", self.tag, ""))

    def promises(self) -> tuple[Fact, ...]:
        return (("bears", self.tag, ""),)


class ClearTag(EffectBase):
    """Removes a tag."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["clear_tag"] = "clear_tag"
    who: Someone = "target"
    tag: str

    def text(self, who: Names) -> str:
        return f"{who[self.who]} loses the tag {self.tag}"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gain(("tag", self.tag, ""))


class Align(InnerEffect):
    """Joins a collective: the named one, or the actor's."""

    kind: Literal["align"] = "align"
    who: Someone = "target"
    to: str = ""

    def text(self, who: Names) -> str:
        return f"{who[self.who]} joins {self.to or 'the team'}"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gain(("aligned", place, ""))
        if draft.context["actor"] == AGENT:
            draft.gain(("aligned_by_agent", place, ""))


class Unalign(InnerEffect):
    """Leaves its collective; done to another collective's object, this is called scrambling."""

    kind: Literal["unalign"] = "unalign"
    who: Someone = "target"

    def text(self, who: Names) -> str:
        return f"{who[self.who]} leaves its team"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gain(("unaligned", place, ""))
        if draft.context["actor"] == AGENT:
            draft.gain(("scrambled_by_agent", place, ""))


class ChangeVibe(InnerEffect):
    """Sets the vibe."""

    kind: Literal["change_vibe"] = "change_vibe"
    who: Someone = "target"
    vibe: str

    def text(self, who: Names) -> str:
        return f"{who[self.who]} shows {self.vibe}"

    def bring(self, place: str, draft: Draft) -> None:
        if place == AGENT:
            draft.gain(("vibe", "", self.vibe))


class Freeze(EffectBase):
    """Freezes an agent: it cannot act for some ticks, counting this one."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["freeze"] = "freeze"
    who: Someone = "target"
    ticks: Annotated[int, Field(ge=1, le=65535)] = 10

    def text(self, who: Names) -> str:
        return f"{who[self.who]} is frozen for {self.ticks} ticks"

    def bring(self, place: str, draft: Draft) -> None:
        if place == AGENT:
            draft.gain(("frozen", AGENT, ""))

    def promises(self) -> tuple[Fact, ...]:
        return (("fight", "", ""),)


class Move(EffectBase):
    """Moves one cell in a direction, if that cell is empty."""

    kind: Literal["move"] = "move"
    who: Someone = "target"
    direction: Literal["north", "south", "west", "east"]

    def text(self, who: Names) -> str:
        return f"{who[self.who]} moves {self.direction}"


class Push(EffectBase):
    """Moves the target away from the actor, up to some cells, as far as they are empty."""

    kind: Literal["push"] = "push"
    distance: Annotated[int, Field(ge=1, le=4096)] = 1

    def text(self, who: Names) -> str:
        return f"{who['target']} is pushed up to {self.distance} cells"


class SwapPlaces(EffectBase):
    """Actor and target swap places."""

    kind: Literal["swap_places"] = "swap_places"

    def text(self, who: Names) -> str:
        return f"{who['actor']} and {who['target']} swap places"


class Relocate(EffectBase):
    """Moves to a random empty cell, or an agent to the cell where it started."""

    kind: Literal["relocate"] = "relocate"
    who: Someone = "target"
    to: Literal["random", "start"] = "random"

    def text(self, who: Names) -> str:
        return f"{who[self.who]} is moved to {'its start' if self.to == 'start' else 'a random cell'}"


class Spawn(EffectBase):
    """Creates an object on the cell of one that was just removed, or else on an empty cell beside it."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["spawn"] = "spawn"
    object: str
    near: Someone = "target"

    def text(self, who: Names) -> str:
        return f"{self.object} appears"

    def promises(self) -> tuple[Fact, ...]:
        return (("there", self.object, ""),)

    def happen(self, draft: Draft) -> bool:
        draft.gain(("there", self.object, ""))
        return draft.context[self.near] is not None


class Remove(EffectBase):
    """Removes an object from the map; agents cannot be removed."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["remove"] = "remove"
    who: Someone = "target"

    def text(self, who: Names) -> str:
        return f"{who[self.who]} leaves the map"

    def bring(self, place: str, draft: Draft) -> None:
        draft.gain(("gone", place, ""))


class Strike(EffectBase):
    """Hits the target like the game's laser, without its cost: armor, freeze, loot."""

    moves_agents: ClassVar[bool] = False

    kind: Literal["strike"] = "strike"

    def text(self, who: Names) -> str:
        return f"{who['target']} is hit"

    def promises(self) -> tuple[Fact, ...]:
        return (("fight", "", ""),)

    def happen(self, draft: Draft) -> bool:
        draft.gains += loot(draft.resources)
        return draft.context["actor"] == AGENT == draft.context["target"]


class AddStat(InnerEffect):
    """Adds to a named statistic: an agent's, the actor's collective's, or the game's."""

    kind: Literal["add_stat"] = "add_stat"
    of: Literal["actor", "target", "collective", "game"] = "actor"
    name: str
    amount: Annotated[float, Field(ge=-1e12, le=1e12)] = 1.0

    def text(self, who: Names) -> str:
        return f"{self.name} {self.amount:+g}"

    def promises(self) -> tuple[Fact, ...]:
        return (("stat", self.of, self.name),)

    def happen(self, draft: Draft) -> bool:
        draft.gain(("stat", "agent" if self.of in ("actor", "target") else self.of, self.name))
        who = {"collective": "actor_collective"}.get(self.of, self.of)
        return self.of == "game" or draft.context[who] is not None


Effect = Annotated[
    Give
    | Take
    | Transfer
    | Clear
    | Add
    | SetTag
    | ClearTag
    | Align
    | Unalign
    | ChangeVibe
    | Freeze
    | Move
    | Push
    | SwapPlaces
    | Relocate
    | Spawn
    | Remove
    | Strike
    | AddStat,
    Field(discriminator="kind"),
]
