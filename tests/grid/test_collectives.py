"""Collectives: what a team owns together, who belongs to it, what is counted for it, and who gets the credit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import agent, do, finish, held, play, thing, tokens_at

from gridmill import Env
from gridmill.grid import (
    AgentType,
    Align,
    Collective,
    Event,
    Give,
    HasVibe,
    Inventory,
    Limit,
    ObjectType,
    Observation,
    ObservedValue,
    RewardTerm,
    Rule,
    Stat,
    Take,
    Transfer,
    Unalign,
)
from gridmill.grid.stations import chest, hub, team_deposit

STUFF = ("ore", "wood")
TEAMS = {
    "cogs": Collective(inventory={"ore": 24, "wood": 1}, limits=(Limit(resources=("ore", "wood"), base=30),)),
    "clips": Collective(),
}


def scene(text: str, kinds: dict[str, ObjectType], **fields: Any) -> Env:
    me = {"collectives": ("cogs",)} | fields.pop("me", {})
    fields = {"resources": STUFF, "collectives": TEAMS, "max_steps": 20, "masks": True} | fields
    fields.setdefault("vibes", ("calm", "angry"))
    return play(text, kinds, agent=AgentType(**me), **fields)


def store(env: Env, name: str = "cogs") -> dict[str, int]:
    return dict(env.inspect(0)["collectives"][name]["inventory"])


JUNCTION = ObjectType(on_use=(
    Rule(when=(HasVibe(vibe="calm"),), then=(Align(),)), Rule(when=(HasVibe(vibe="angry"),), then=(Unalign(),)),
))  # fmt: skip


# ---- the common store


def test_it_starts_with_what_the_game_says_in_every_episode() -> None:
    env = scene("@D", {"D": ObjectType(on_use=(Rule(then=(Take(who="actor_collective", amounts={"ore": 4}),)),))})
    assert (store(env), store(env, "clips")) == ({"ore": 24, "wood": 1}, {})
    do(env, "move_east")
    assert store(env) == {"ore": 20, "wood": 1}
    finish(env)
    assert store(env) == {"ore": 24, "wood": 1}


def test_two_agents_fill_and_empty_one_store() -> None:
    place = hub("cogs", {"ore": 3}, {"wood": 1})
    env = scene("@H@", {"H": place}, me={"inventory": {"ore": 4}})
    assert do(env, "move_east", "move_west") == [True, True]
    assert sorted([held(env, 0)["ore"], held(env, 1)["ore"]]) == [1, 2]  # 25 of 30 were there: five of six fit
    assert store(env) == {"ore": 29, "wood": 1}


def test_the_room_of_the_team_limits_what_is_handed_over() -> None:
    env = scene("@H", {"H": hub("cogs", {"ore": 100})}, me={"inventory": {"ore": 9}})
    assert do(env, "move_east") == [True]
    assert (held(env), store(env)) == ({"ore": 4}, {"ore": 29, "wood": 1})
    assert do(env, "move_east") == [False]


def test_a_hub_serves_its_own_team_only() -> None:
    for team, works in (("cogs", True), ("clips", False)):
        env = scene("@H", {"H": hub(team, {"ore": 1})}, me={"inventory": {"ore": 1}})
        assert do(env, "move_east") == [works]
        assert store(env)["ore"] == 24 + works


def test_a_hub_gives_when_there_is_nothing_to_hand_over() -> None:
    env = scene("@H", {"H": hub("cogs", {"ore": 5}, {"wood": 1})}, me={"inventory": {"ore": 1}})
    assert do(env, "move_east") == [True]
    assert (held(env), store(env)) == ({}, {"ore": 25, "wood": 1})
    assert do(env, "move_east") == [True]
    assert (held(env), store(env)) == ({"wood": 1}, {"ore": 25})
    assert do(env, "move_east") == [False]


def test_a_chest_obeys_the_vibe() -> None:
    box = chest({"calm": {"ore": 2}}, {"angry": {"ore": 1}}, limits=(Limit(resources=("ore",), base=3),))
    env = scene("@C", {"C": box}, me={"inventory": {"ore": 6}}, vibes=("calm", "angry", "sad"))
    assert [do(env, "move_east")[0] for _ in range(3)] == [True, True, False]  # two, one, full
    assert (held(env), thing(env, "C")["inventory"]) == ({"ore": 3}, {"ore": 3})
    do(env, "change_vibe_angry")
    assert [do(env, "move_east")[0] for _ in range(4)] == [True, True, True, False]
    assert held(env) == {"ore": 6}
    do(env, "change_vibe_sad")
    assert do(env, "move_east") == [False]
    counted = finish(env)
    assert (counted["ore.put"], counted["ore.get"]) == ([3], [3])


def test_the_store_is_seen_and_pays() -> None:
    value = Inventory(resource="ore", of="collective")
    env = scene("@H", {"H": hub("cogs", {"ore": 2})}, me={"inventory": {"ore": 5}},
                observation=Observation(values=(ObservedValue(name="team ore", value=value, digits=2),)),
                rewards=(RewardTerm(weight=0.5, value=value),))  # fmt: skip
    assert [t.value for t in env.decode(0) if t.feature == "team ore"] == [24]
    do(env, "move_east")
    assert [t.value for t in env.decode(0) if t.feature == "team ore"] == [26]
    assert env.rewards.tolist() == [1.0]


def test_named_collectives_and_nobodys() -> None:
    other = Inventory(resource="ore", of="collective", collective="cogs")
    own = Inventory(resource="ore", of="collective")
    shown = tuple(ObservedValue(name=n, value=v) for n, v in (("other", other), ("own", own)))
    env = scene("@", {}, me={"collectives": ()}, observation=Observation(values=shown))
    assert {t.feature: t.value for t in env.decode(0) if t.feature in ("own", "other")} == {"other": 24}
    assert agent(env)["collective"] is None


# ---- members


def test_ids_are_in_alphabetical_order_whatever_the_declaration() -> None:
    for teams in (TEAMS, dict(reversed(TEAMS.items()))):
        env = scene("@AB", {"A": ObjectType(collective="clips"), "B": ObjectType(collective="cogs")}, collectives=teams)
        assert tokens_at(env, 0, 0)["collective"] == 1
        assert (tokens_at(env, 0, 1), tokens_at(env, 0, 2)) == ({"collective": 0}, {"collective": 1})


def test_groups_are_dealt_round_the_collectives() -> None:
    env = scene("0123", {}, me={"collectives": ("clips", "cogs")})
    assert [agent(env, i)["collective"] for i in range(4)] == ["clips", "cogs", "clips", "cogs"]


# ---- what is counted


def test_held_sums_up_what_is_aligned_in_each_tick() -> None:
    """A junction taken in a tick counts in that tick; one that is lost in a tick does not."""
    env = scene("@J", {"J": JUNCTION}, vibes=("calm", "angry"), max_steps=10)
    for action in ("noop", "move_east", "noop", "change_vibe_angry", "move_east", "noop"):
        do(env, action)
    counted = finish(env)
    assert counted["cogs/aligned.kind J.held"] == [3]
    assert counted["cogs/aligned.kind J.gained"] == [1]
    assert counted["cogs/aligned.kind J.lost"] == [1]
    assert "cogs/aligned.kind J" not in counted  # none at the end


def test_what_is_aligned_from_the_start_counts_as_gained() -> None:
    env = scene("@J", {"J": ObjectType(collective="clips")}, max_steps=4)
    counted = finish(env)
    assert counted["clips/aligned.kind J.gained"] == [1]
    assert counted["clips/aligned.kind J"] == [1]
    assert counted["clips/aligned.kind J.held"] == [4]
    assert counted["cogs/aligned.agent.held"] == [4]


def test_a_variant_counts_as_the_type_it_names() -> None:
    kinds = {"J": JUNCTION, "K": JUNCTION.replace("collective", "cogs").replace("counts_as", "kind J")}
    env = scene("J@K", kinds, max_steps=4)
    assert thing_types(env) == ["kind J", "kind J"]
    do(env, "move_west")
    counted = finish(env)
    assert counted["cogs/aligned.kind J.held"] == [8]
    assert not any("kind K" in name for name in counted)


def thing_types(env: Env) -> list[str]:
    return [o["type"] for o in env.inspect(0)["objects"] if o["agent"] is None]


def test_aligning_again_changes_nothing() -> None:
    env = scene("@J", {"J": JUNCTION.replace("collective", "cogs")}, vibes=("calm", "angry"), max_steps=4)
    do(env, "move_east")
    counted = finish(env)
    assert counted["cogs/aligned.kind J.gained"] == [1]
    assert "kind J.aligned_by_agent" not in counted


def test_deposits_and_withdrawals_of_the_team() -> None:
    pay = Rule(then=(Take(who="actor_collective", amounts={"wood": 1, "ore": 2}),))
    kinds = {"P": ObjectType(on_use=(pay,)), "H": hub("cogs", {"ore": 3})}
    env = scene("P@H", kinds, me={"inventory": {"ore": 9}})
    do(env, "move_west")
    do(env, "move_east")
    counted = finish(env)
    assert counted["cogs/ore.withdrawn"] == [2]
    assert counted["cogs/wood.withdrawn"] == [1]
    assert counted["cogs/ore.deposited"] == [24 + 3]  # what it starts with is its first deposit
    assert counted["cogs/ore.amount"] == [25]
    assert "cogs/wood.amount" not in counted


def test_every_agent_of_the_episode_has_the_teams_columns() -> None:
    env = scene("@J@", {"J": JUNCTION}, max_steps=3)
    do(env, "move_east", "noop")
    counted = finish(env)
    assert counted["cogs/aligned.kind J.held"] == [3, 3]
    assert "clips/aligned.kind J.held" not in counted


# ---- credit


def test_credit_for_aligning_and_scrambling_goes_to_who_did_it() -> None:
    env = scene("@J@", {"J": JUNCTION}, vibes=("calm", "angry"), max_steps=9,
                me={"collectives": ("cogs",)})  # fmt: skip
    do(env, "move_east", "change_vibe_angry")
    do(env, "noop", "move_west")
    do(env, "move_east", "noop")
    counted = finish(env)
    assert counted["kind J.aligned_by_agent"] == [2, 0]
    assert counted["kind J.scrambled_by_agent"] == [0, 1]


def test_events_give_no_credit() -> None:
    env = scene("@J", {"J": JUNCTION}, max_steps=4,
                events={"e": Event(at=(2,), targets="type:kind J", then=(Align(to="clips"),))})  # fmt: skip
    counted = finish(env)
    assert counted["clips/aligned.kind J.held"] == [3]
    assert "kind J.aligned_by_agent" not in counted


def test_held_pays_its_change() -> None:
    held_stat = Stat(name="aligned.kind J.held", of="collective")
    env = scene("@J.J", {"J": JUNCTION}, max_steps=20, rewards=(RewardTerm(weight=0.1, value=held_stat),))
    paid = []
    for action in ("noop", "move_east", "noop", "noop"):
        do(env, action)
        paid.append(round(float(env.rewards[0]), 6))
    assert paid == [0.0, 0.1, 0.1, 0.1]


def test_a_deposit_rule_alone() -> None:
    env = scene("@J", {"J": ObjectType(collective="cogs", on_use=(team_deposit({"ore": 2, "wood": 2}),))},
                me={"inventory": {"ore": 1, "wood": 9}})  # fmt: skip
    assert do(env, "move_east") == [True]
    assert (held(env), store(env)) == ({"wood": 7}, {"ore": 25, "wood": 3})


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_made_or_lost_between_agents_and_store(seed: int) -> None:
    """Random play around a hub and a chest: the sum over agents, chest and store stays."""
    kinds = {
        "H": hub("cogs", {"ore": 2, "wood": 1}, {"ore": 3, "wood": 1}),
        "C": chest({"calm": {"ore": 3}}, {"angry": {"ore": 2}}),
        "G": ObjectType(on_use=(Rule(then=(Transfer(source="target_collective", to="actor", amounts={"ore": 1}),)),),
                        collective="cogs"),
    }  # fmt: skip
    env = scene("@H@\nC@G", kinds, me={"inventory": {"ore": 5, "wood": 3}}, vibes=("calm", "angry"), max_steps=400)
    rng = np.random.default_rng(seed)

    def total() -> tuple[int, ...]:
        view = env.inspect(0)
        owned = [o["inventory"] for o in view["objects"]] + [c["inventory"] for c in view["collectives"].values()]
        return tuple(sum(o.get(name, 0) for o in owned) for name in STUFF)

    before = total()
    for _ in range(300):
        env.step(rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32))
        assert total() == before


def test_a_gift_to_a_team_by_an_event_needs_someone_in_it() -> None:
    gift = Event(at=(1,), targets="type:agent", then=(Give(who="target_collective", amounts={"wood": 2}),))
    env = scene("@", {}, events={"gift": gift})
    do(env, "noop")
    assert store(env)["wood"] == 3
