"""Game: everything a grid world is, as one frozen value. The core compiles it once and then only moves numbers.

The native side is `native/grid/config.hpp`; a test holds names, types and defaults equal. The methods load what they
need when they are called: a game is plain data until somebody plays or explains it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gridmill._native import GridScript
from gridmill.config import Frozen, FrozenDict
from gridmill.config.text import count
from gridmill.env.env import batch_options
from gridmill.env.kind import GameConfig, MakePlayer
from gridmill.env.scripts import ScriptPlayer
from gridmill.grid.conditions import Amounts
from gridmill.grid.maps import Map
from gridmill.grid.parts import AgentType, Attack, Collective, ObjectType, Observation, RewardTerm
from gridmill.grid.rules import Event, Rule

if TYPE_CHECKING:
    from gridmill.grid.analysis.converters import Converters
    from gridmill.grid.env import GridEnv


class Game(GameConfig):
    """A grid game. The functions in `gridmill.games` create the ones that ship."""

    kind: Literal["grid"] = "grid"
    name: str
    num_agents: Annotated[int, Field(ge=1, le=4096)] = 1
    max_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1000
    time_limit: Literal["truncation", "termination"] = "truncation"
    moves: Literal[0, 4, 8] = 8
    resources: tuple[str, ...] = ()
    vibes: tuple[str, ...] = ()
    attack: Attack | None = None
    swap: bool = False
    move_cost: Amounts = FrozenDict()
    agent: AgentType = AgentType()
    collectives: Frozen[str, Collective] = FrozenDict()
    objects: Frozen[str, ObjectType] = FrozenDict({"wall": ObjectType()})
    on_tick: tuple[Rule, ...] = ()
    on_tag_added: Frozen[str, tuple[Rule, ...]] = FrozenDict()
    on_tag_removed: Frozen[str, tuple[Rule, ...]] = FrozenDict()
    events: Frozen[str, Event] = FrozenDict()
    territory: Literal["nearest", "strongest"] = "nearest"
    spawn_room: Annotated[int, Field(ge=0, le=65535)] = 64
    map: Map
    observation: Observation = Observation()
    rewards: tuple[RewardTerm, ...] = ()
    reward_sharing: Annotated[float, Field(ge=0, le=1)] = 0.0

    obs_kind = "tokens"
    has_map = True
    has_picture = True
    has_validation = True

    @classmethod
    def env_class(cls, implementation: str = "native") -> type[GridEnv]:
        from gridmill.grid.env import GridEnv

        return GridEnv

    def scripts(self) -> Mapping[str, MakePlayer]:
        return {name: partial(ScriptPlayer, GridScript, name) for name in GridScript.names(self.core_tree())}

    def teams(self) -> list[str]:
        """The collective of each agent at the start of an episode, or `group:1` where it has none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an env would warn of is said where one is made to be played
            env = self.env_class()([self], **batch_options(num_worlds=1))
        with env:
            env.reset()
            agents = sorted((t for t in env.inspect(0)["objects"] if t["agent"] is not None), key=lambda t: t["agent"])
        return [agent.get("collective") or f"group:{agent['group']}" for agent in agents]

    def baselines(self) -> tuple[str, ...]:
        """A script that can play a game was not necessarily written for it: only the one whose name it bears counts."""
        own = [name for name in self.scripts() if f"{self.name}_".startswith(f"{name}_")]
        return ("random", *(f"script:{name}" for name in own))

    def min_first_episode(self) -> int:
        from gridmill.grid.analysis.earliest import Earliest
        from gridmill.grid.analysis.earliest_reward import min_first_episode

        return min_first_episode(Earliest(self))

    def explain(self, first_episode: int | None = None) -> tuple[Any, str]:
        from gridmill.grid.analysis.explain import explain, text

        said = explain(self, first_episode)
        return said, text(said)

    def ceilings(self) -> Mapping[str, float]:
        from gridmill.grid.analysis.explain import explain

        said = explain(self)
        found = {f"{product.name}.get": product.ceiling.per_agent for product in said.products}
        return found | ({} if said.reward_ceiling is None else {"reward": said.reward_ceiling})

    def unforeseen(self) -> str:
        """Events come before the next actions; what an action sets off may hang on chance."""
        chances = sum(_chances(part.tree()) for part in (self.agent, *self.objects.values()))
        found = [count(len(self.events), "event")] if self.events else []
        return " and ".join(found + ([count(chances, "condition") + " of chance"] if chances else []))

    def brief(self, env: Any, warnings: bool = True) -> list[str]:
        from gridmill.grid.analysis.explain_brief import brief

        return brief(self, env, warnings)

    def supply(self, stat: str) -> float:
        return self.converters.supply(stat.removesuffix(".get")) / self.num_agents

    @cached_property
    def converters(self) -> Converters:
        """What its machines can make; worked out once, since a curriculum asks after every episode."""
        from gridmill.grid.analysis.converters import Converters

        return Converters.of(self)


def _chances(tree: Any) -> int:
    """How many conditions in plain data hang on chance, but for those that always or never hold."""
    if isinstance(tree, dict):
        drawn = tree.get("kind") == "chance" and 0 < tree["probability"] < 1
        return drawn + sum(map(_chances, tree.values()))
    return sum(map(_chances, tree)) if isinstance(tree, list) else 0
