"""Random rules, areas, events, collectives and assemblers for the games of `random_games`.

A `RuleMaker` throws dice of its own instead of drawing every word from hypothesis: a rule has dozens of words, and
thousands of games are wanted. It speaks only of the words a game has, so what it makes is valid. A quiet one makes only
what can be followed from outside: it changes how things look (tags, vibes, collectives) and never what an agent
holds, except by a bump that hands something over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gridmill.grid import (
    Add,
    AddStat,
    Align,
    Aligned,
    AnyOf,
    Area,
    Assembler,
    AtLeast,
    Chance,
    ChangeVibe,
    Clear,
    ClearTag,
    Collective,
    Condition,
    Constant,
    Count,
    Effect,
    Empty,
    Event,
    Freeze,
    GameValue,
    Give,
    HasTag,
    HasVibe,
    Holds,
    Inventory,
    Limit,
    Move,
    Near,
    Not,
    OtherCollective,
    Periodic,
    Push,
    Recipe,
    Relocate,
    Remove,
    Rule,
    SameCollective,
    SetTag,
    Spawn,
    Strike,
    Sum,
    SwapPlaces,
    Take,
    Transfer,
    Unalign,
    Within,
)

HOLDERS = ("actor", "target", "actor_collective", "target_collective")
FEW = (0, 1, 1, 2, 3, 255, 300, 65_535)
STEPS = (-65_535, -300, -2, -1, 0, 1, 2, 300)
RADII = (0, 1, 2, 3, 5, 4096)
DIRECTIONS = ("north", "south", "west", "east")
MARK = "lit"  # a tag that only rules set


@dataclass(frozen=True)
class Words:
    """What a game's rules may speak of."""

    resources: list[str]
    vibes: list[str]
    tags: list[str]  # among them those of the types
    types: list[str]
    teams: list[str]
    attack: bool


class RuleMaker:
    """Makes parts of a game; the same seed and words give the same parts."""

    def __init__(self, seed: int, words: Words, quiet: bool, by_chance: bool) -> None:
        self.dice, self.words, self.quiet, self.by_chance = random.Random(seed), words, quiet, by_chance

    # ---- small parts

    def one(self, choices: Sequence[Any]) -> Any:
        return self.dice.choice(choices)

    def up_to(self, most: int, make: Callable[[], Any]) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self.dice.randint(0, most)))

    def someone(self) -> Any:
        return self.one(("actor", "target"))

    def some_of(self, names: Sequence[str], most: int = 2) -> list[str]:
        return self.dice.sample(names, self.dice.randint(0, min(most, len(names))))

    def amounts(self, numbers: Sequence[int] = FEW) -> dict[str, int]:
        return {name: self.one(numbers) for name in self.some_of(self.words.resources)}

    def value(self) -> GameValue:
        words = self.words
        kinds: list[Callable[[], GameValue]] = [
            lambda: Constant(value=self.one((-2.5, 0.0, 0.5, 1.0, 3.0))),
            lambda: Count(
                tag=self.one(words.tags), collective=self.one(("", *words.teams)),
                resource=self.one(("", *words.resources)),
            ),
            lambda: Sum(values=(Constant(value=1.0), Count(tag=self.one(words.tags)))),
        ]  # fmt: skip
        if words.resources:
            whose = ("actor", "target", "collective")
            kinds.append(lambda: Inventory(resource=self.one(words.resources), of=self.one(whose)))
        return self.one(kinds)()  # type: ignore[no-any-return]

    # ---- conditions and effects

    def condition(self, depth: int = 0) -> Condition:
        words, one = self.words, self.one
        metric = one(("chebyshev", "euclid"))

        def inner() -> tuple[Condition, ...]:
            return (self.condition(depth + 1),) if depth < 2 else ()

        kinds: list[Callable[[], Condition]] = [
            lambda: Holds(who=one(HOLDERS), amounts=self.amounts()),
            lambda: HasTag(who=self.someone(), tag=one(words.tags)),
            SameCollective,
            OtherCollective,
            lambda: Aligned(who=self.someone(), to=one(("", *words.teams))),
            lambda: Within(distance=one(RADII), metric=metric),
            lambda: Near(who=self.someone(), tag=one(words.tags), radius=one(RADII), metric=metric, when=inner()),
            lambda: Periodic(every=one((1, 2, 3)), start=one((0, 1, 3))),
            lambda: Chance(probability=one((0.0, 0.3, 1.0) if self.by_chance else (0.0, 1.0))),
            lambda: AtLeast(value=self.value(), number=one((-1.0, 0.0, 1.0, 5.0))),
            lambda: Empty(who=one(HOLDERS), resources=tuple(self.some_of(words.resources))),
            lambda: Not(conditions=(*inner(), SameCollective())),
            lambda: AnyOf(conditions=(*inner(), OtherCollective())),
        ]
        if words.vibes:
            kinds.append(lambda: HasVibe(who=self.someone(), vibe=one(words.vibes)))
        return one(kinds)()  # type: ignore[no-any-return]

    def effect(self) -> Effect:
        words, one = self.words, self.one
        owners = ("actor", "target", "game", *(("collective",) if words.teams else ()))
        kinds: list[Callable[[], Effect]] = [
            lambda: Give(who=one(HOLDERS), amounts=self.amounts()),
            lambda: Take(who=one(HOLDERS), amounts=self.amounts()),
            lambda: Clear(who=one(HOLDERS), resources=tuple(self.some_of(words.resources))),
            self.transfer,
            lambda: Freeze(who=self.someone(), ticks=one((1, 2, 300))),
            lambda: Move(who=self.someone(), direction=one(DIRECTIONS)),
            lambda: Push(distance=one((1, 3, 4096))),
            SwapPlaces,
            lambda: Relocate(who=self.someone(), to=one(("random", "start"))),
            lambda: Spawn(object=one(words.types), near=self.someone()),
            lambda: Remove(who=self.someone()),
            lambda: AddStat(of=one(owners), name=one(("bells", "whistles")), amount=one((-1.0, 0.5, 2.0))),
            self.mark,
            self.mark,
        ]
        if words.resources:
            kinds.append(lambda: Add(who=one(HOLDERS), resource=one(words.resources), value=self.value()))
        if words.attack:
            kinds.append(Strike)
        return one(kinds)()  # type: ignore[no-any-return]

    def transfer(self) -> Transfer:
        source, to = self.dice.sample(HOLDERS, 2)
        return Transfer(source=source, to=to, amounts=self.amounts(), remove_empty=self.one((False, True)))

    def mark(self) -> Effect:
        """Changes how somebody looks; the target, if it is to be quiet."""
        words, one = self.words, self.one
        who: Any = "target" if self.quiet else self.someone()
        kinds: list[Callable[[], Effect]] = [lambda: SetTag(who=who, tag=MARK), lambda: ClearTag(who=who, tag=MARK)]
        if words.vibes:
            kinds.append(lambda: ChangeVibe(who=who, vibe=one(words.vibes)))
        if words.teams:
            kinds += [lambda: Align(who=who, to=one(("", *words.teams))), lambda: Unalign(who=who)]
        return one(kinds)()  # type: ignore[no-any-return]

    # ---- where they stand

    def rule(self) -> Rule:
        return Rule(when=self.up_to(2, self.condition), then=(self.effect(), *self.up_to(2, self.effect)))

    def rules(self, most: int = 2) -> tuple[Rule, ...]:
        return self.up_to(most, self.rule)

    def use_rules(self) -> tuple[Rule, ...]:
        if not self.quiet:
            return self.rules()
        amounts = {name: self.one((1, 2, 300)) for name in self.some_of(self.words.resources)}
        return (Rule(then=(Transfer(amounts=amounts), self.mark())),) if amounts else ()

    def area(self) -> Area:
        return Area(
            radius=self.one(RADII), metric=self.one(("chebyshev", "euclid")),
            affects=self.one(("friend", "enemy", "all", "self")), when=self.up_to(1, self.condition),
            changes=self.amounts(STEPS), enter=self.amounts(STEPS), exit=self.amounts(STEPS), rules=self.rules(1),
            on_enter=self.rules(1), on_exit=self.rules(1), territory=self.one((False, True)),
        )  # fmt: skip

    def areas(self) -> tuple[Area, ...]:
        return self.up_to(2, self.area)

    def events(self) -> dict[str, Event]:
        """At most three, each of which may fall back to a later one."""
        names = ["dawn", "noon", "dusk"][: self.dice.randint(0, 3)]
        return {name: self.event(names[place + 1 :]) for place, name in enumerate(names)}

    def event(self, later: list[str]) -> Event:
        at = self.up_to(2, lambda: self.dice.randint(0, 5))
        if self.quiet:
            marks = (self.mark(), *self.up_to(1, self.mark))
            return Event(at=at, every=self.dice.randint(0, 3), targets=self.one(self.words.tags), then=marks,
                         max_targets=self.one((0, 1)))  # fmt: skip
        return Event(
            at=at, every=self.dice.randint(0, 3), start=self.dice.randint(0, 3), until=self.one((0, 4, 10**9)),
            targets=self.one(("", *self.words.tags)), when=self.up_to(2, self.condition),
            then=self.up_to(2, self.effect), max_targets=self.one((0, 1, 2)), fallback=self.one(("", *later)),
            priority=self.one((-1, 0, 1)),
        )  # fmt: skip

    def collectives(self) -> dict[str, Collective]:
        shared = [Limit(resources=tuple(self.words.resources[:2]), base=self.one(FEW))] if self.words.resources else []
        return {
            name: Collective(inventory=self.amounts(), limits=tuple(shared[: self.dice.randint(0, 1)]))
            for name in self.words.teams
        }

    def recipe(self) -> Recipe:
        some = (1, 2, 7, 300)
        vibes = self.up_to(2, lambda: self.one(self.words.vibes)) if self.words.vibes else ()
        inputs = {} if self.quiet else self.amounts(some)
        outputs = {self.one(self.words.resources): self.one(some)} | self.amounts(some)
        return Recipe(vibes=vibes, min_agents=self.one((1, 1, 2)), inputs=inputs, outputs=outputs)

    def assembler(self) -> Assembler | None:
        """One that takes nothing, if it is to be quiet."""
        if not self.words.resources:
            return None
        return Assembler(
            recipes=(self.recipe(), *self.up_to(1, self.recipe)),
            cooldown=self.one((0, 1, 3, 300)),
            partial=self.one((False, True)),
            max_uses=self.one((-1, 0, 1, 2, 300)),
        )
