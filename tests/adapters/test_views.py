"""What adapters share: dense observations, masks, figures of ended episodes, ids that come with `import gridmill`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import gridmill
from gridmill.adapters import GridmillEnv, GridmillVectorEnv, parallel_env
from gridmill.grid import AgentType, Game, Observation, Scatter
from gridmill.prospector import ProspectorEnv

SMALL: dict[str, Any] = {"num_agents": 3, "map_size": 9, "max_steps": 10}


def batch(worlds: int = 1, **more: Any) -> Any:
    return gridmill.make("toy", num_worlds=worlds, **SMALL, **more)


# ---- dense


def slow_dense(env: Any, rows: Any) -> Any:
    """Token by token, as the documents say it."""
    channels, height, width = env.dense_shape
    found = np.zeros((len(rows), channels, height, width), np.uint8)
    names = [feature.name for feature in env.features]
    for box, row in zip(found, rows, strict=True):
        for location, feature, value in row:
            if location == 255:
                break
            spot = (slice(None), slice(None)) if location == 254 else (location >> 4, location & 15)
            box[feature][spot] = value
            if names[feature] == "tag":
                box[len(names) + value][spot] = 1
    return found


@pytest.mark.parametrize("name", ["toy", "arena_basic_easy_shaped", "cogsguard_arena"])
def test_dense_is_the_tokens(name: str) -> None:
    with gridmill.make(name, num_worlds=2, seed=1) as env:
        rng, out = np.random.default_rng(0), np.full((env.num_rows, *env.dense_shape), 7, np.uint8)
        env.reset()
        for _ in range(20):
            env.step(rng.integers(env.num_actions, size=env.num_rows))
        assert np.array_equal(env.dense(), slow_dense(env, env.obs))
        assert env.dense(env.obs, out) is out
        assert np.array_equal(out, env.dense())
        assert np.array_equal(env.dense(env.obs[3:5]), out[3:5])


def test_dense_passes_over_what_is_no_token_and_refuses_other_shapes() -> None:
    with batch() as env:
        env.reset()
        rows = env.obs.copy()
        rows[0, 0] = (0xEE, 0, 5)  # outside of the window
        rows[0, 1] = (0x11, 250, 5)  # no such feature
        assert env.dense(rows)[0].sum() == slow_dense(env, [rows[0, 2:]])[0].sum()
        with pytest.raises(ValueError, match=r"^rows: expected \[rows, 200, 3\]$"):
            env.dense(rows[:, :5])
        with pytest.raises(ValueError, match=r"^out: expected \[rows, channels, height, width\]$"):
            env.dense(out=np.zeros((3, 1, 11, 11), np.uint8))


def some_rows(env: Any, rng: np.random.Generator) -> Any:
    """Rows as nobody would write them: several tags in a cell, what lies nowhere between what lies somewhere."""
    height, width = env.window
    tag = [feature.name for feature in env.features].index("tag")
    rows = np.full((40, env.num_tokens, 3), 255, np.uint8)
    for row in rows:
        count = rng.integers(env.num_tokens + 1)
        row[:count, 0] = rng.integers(height, size=count) * 16 + rng.integers(width, size=count)
        row[:count, 1] = np.where(rng.random(count) < 0.7, tag, rng.integers(len(env.features), size=count))
        row[:count, 2] = rng.integers(len(env.tags), size=count)
        row[:count, 2][row[:count, 1] != tag] += 100
        row[:count, 0][rng.random(count) < rng.choice([0, 0.02])] = 254
        row[: min(count, 3), 0] = 254
        row[(row[:, 0] == 254) & (row[:, 1] == tag), 1] = 0  # a tag is always somewhere
    return rows


@pytest.mark.parametrize("window", [(11, 11), (15, 15), (3, 5), (1, 1)])
def test_dense_of_any_rows(window: tuple[int, int]) -> None:
    seen = Observation(height=window[0], width=window[1], num_tokens=130)
    game = Game(
        name="any",
        num_agents=2,
        agent=AgentType(tags=("red", "blue")),
        map=Scatter(height=9, width=9, objects={"wall": 20}),
        observation=seen,
    )
    with gridmill.make(game, num_worlds=1) as env:
        env.reset()
        rows = some_rows(env, np.random.default_rng(window[0]))
        assert np.array_equal(env.dense(rows), slow_dense(env, rows))  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:threads=")  # more than this machine has cores
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", ["toy", "arena_basic_easy_shaped", "cogsguard_arena", "navigation"])
def test_dense_while_a_step_runs_is_dense_after_it(name: str, threads: int) -> None:
    with gridmill.make(name, num_worlds=8, lanes=2, threads=threads, max_steps=6, desync_episodes=True) as env:
        rng, out = np.random.default_rng(0), np.full((env.num_rows, *env.dense_shape), 7, np.uint8)
        env.dense_into(out)
        env.reset(seed=3)
        assert np.array_equal(out, slow_dense(env, env.obs))
        for step in range(16):  # several episodes
            env.step(rng.integers(env.num_actions, size=env.num_rows))
            assert np.array_equal(out, env.dense())
            if step == 4:
                saved = env.save([0, 5])
        env.restore(saved, [5, 2])
        assert np.array_equal(out, env.dense())
        env.actions[:] = rng.integers(env.num_actions, size=env.num_rows)
        before = out.copy()
        env.send(1)
        with pytest.raises(RuntimeError, match=r"^dense_into\(\) while lane 1 is in flight; call recv\(1\) first$"):
            env.dense_into(None)
        env.recv(1)
        half = env.num_rows // 2
        assert np.array_equal(out, env.dense())
        assert np.array_equal(out[:half], before[:half])
        assert not np.array_equal(out, before)
        env.dense_into(None)
        last = out.copy()
        env.step()
        assert np.array_equal(out, last)


@pytest.mark.parametrize("switch", ["reference", "validate", "hold"])
def test_dense_with_other_ways_to_observe(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if switch == "reference":
        monkeypatch.setenv("GRIDMILL_OBS_USE_OPTIMIZED", "0")
    with batch(2, **({"validation": True} if switch == "validate" else {})) as env:
        if switch == "hold":
            env.hold_ended()
        out = np.full((env.num_rows, *env.dense_shape), 7, np.uint8)
        env.dense_into(out)
        env.reset()
        for _ in range(10):
            env.step(np.ones(env.num_rows, np.int32))
            assert np.array_equal(out, slow_dense(env, env.obs))


def test_what_dense_into_refuses() -> None:
    with batch() as env:
        with pytest.raises(ValueError, match=r"^out: expected \[rows, channels, height, width\]$"):
            env.dense_into(np.zeros((2, *env.dense_shape), np.uint8))
        gaps = r"^out: expected a writable array without gaps \(C-contiguous\)$"
        with pytest.raises(ValueError, match=gaps):  # a copy would be written to in its place
            env.dense_into(np.zeros((3, *env.dense_shape[:2], 22), np.uint8)[..., ::2])


def test_dense_copies_stay_when_the_batch_moves_on() -> None:
    env = GridmillVectorEnv("toy", 3, obs="dense", **SMALL)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    env.batch.step(np.ones(3, np.int32))
    assert np.array_equal(first, kept)


def test_single_vector_and_parallel_envs_show_dense_observations() -> None:
    single, vector = (
        GridmillEnv("toy", agent=1, obs="dense", **SMALL),
        GridmillVectorEnv("toy", 6, obs="dense", **SMALL),
    )
    zoo, one, two = parallel_env("toy", obs="dense", **SMALL), batch(), batch(2)
    seen = [single.reset(seed=4)[0], vector.reset(seed=4)[0], zoo.reset(seed=4)[0]["agent_2"]]
    one.reset(seed=4)
    two.reset(seed=4)
    for step in range(11):
        assert np.array_equal(seen[0], one.dense(one.final_obs if step == 10 else one.obs)[1])
        assert np.array_equal(seen[1], two.dense())
        assert np.array_equal(seen[2], one.dense(one.final_obs if step == 10 else one.obs)[2])
        for env, obs in zip((single, zoo), (seen[0], seen[2]), strict=True):
            space: Any = env.observation_space if env is single else zoo.observation_space("agent_2")
            assert space.contains(obs)
        assert vector.observation_space.contains(seen[1])
        if step == 10:
            break
        outcome = vector.step(np.zeros(6, np.int32))
        seen = [single.step(0)[0], outcome[0], zoo.step(dict.fromkeys(zoo.agents, 0))[0]["agent_2"]]
        one.step(np.zeros(3, np.int32))
        two.step(np.zeros(6, np.int32))
    assert np.array_equal(np.stack(outcome[4]["final_obs"]), two.dense(two.final_obs))


def test_a_lent_dense_array_is_one_array() -> None:
    env = GridmillVectorEnv("toy", 3, obs="dense", copy=False, **SMALL)
    first, _ = env.reset(seed=0)
    assert env.step(np.ones(3, np.int32))[0] is first
    assert np.array_equal(first, env.batch.dense())  # type: ignore[attr-defined]
    copies = GridmillVectorEnv("toy", 3, obs="dense", **SMALL)
    assert not np.shares_memory(copies.reset(seed=0)[0], copies.step(np.ones(3, np.int32))[0])


def test_a_vector_is_a_vector() -> None:
    env = GridmillVectorEnv("prospector", 2, obs="dense")
    assert env.single_observation_space.shape == (260,)
    assert env.reset(seed=0)[0].dtype == np.float32


@pytest.mark.parametrize("make", [GridmillEnv, parallel_env, lambda game, **o: GridmillVectorEnv(game, 3, **o)])
def test_another_form_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"^obs must be 'tokens' or 'dense', got 'box'$"):
        make("toy", obs="box", **SMALL)


# ---- masks and figures


def test_masks_as_sb3_contrib_asks_for_them() -> None:
    env, reference = GridmillEnv("toy", agent=2, masks=True, **SMALL), batch(masks=True)
    env.reset(seed=1)
    reference.reset(seed=1)
    assert env.action_masks().dtype == np.bool_
    assert np.array_equal(env.action_masks(), reference.masks[2] != 0)
    for _ in range(10):
        env.step(0)
    assert env.action_masks().all()  # it is over: nothing to choose
    with pytest.raises(ValueError, match=r"^this env has no masks: create it with masks=True$"):
        GridmillEnv("toy", **SMALL).action_masks()


def test_final_infos_hold_every_statistic() -> None:
    env, reference = GridmillVectorEnv("toy", 6, desync_episodes=True, **SMALL), batch(2, desync_episodes=True)
    env.reset(seed=3)
    reference.reset(seed=3)
    seen = 0
    for actions in np.random.default_rng(0).integers(9, size=(20, 6)):
        *_, infos = env.step(actions)
        reference.step(actions)
        ended = reference.terminals | reference.truncations
        if not ended.any():
            assert "final_info" not in infos
            continue
        found, records = infos["final_info"], reference.take_episodes()
        rows = records["world"] * 3 + records["agent"]
        assert np.array_equal(np.flatnonzero(ended), rows)
        assert found["_episode"].tolist() == found["_stats"].tolist() == ended.tolist()
        assert np.array_equal(found["episode"]["l"][rows], records["length"])
        assert np.array_equal(found["episode"]["r"][rows], records["reward"])
        assert set(found["stats"]) == set(records.figures())
        assert np.array_equal(found["stats"]["cell.visited"][rows], records["cell.visited"])
        assert not found["stats"]["length"][~ended].any()
        seen += len(rows)
    assert seen == 12


# ---- the batch itself


def test_reset_and_step_return_the_arrays() -> None:
    with batch(2) as env:
        assert env.reset(seed=1) is env.obs
        for _ in range(2):
            step = env.step(np.ones(6, np.int32))
            assert step.obs is env.obs
            assert step.rewards is env.rewards
            assert (step.terminals is env.terminals, step.truncations is env.truncations) == (True, True)
        obs, rewards, terminals, truncations = env.step()
        assert (obs.shape, rewards.shape, terminals.dtype, truncations.dtype) == ((6, 200, 3), (6,), bool, bool)


def test_sizes_of_a_named_game_are_keywords() -> None:
    with gridmill.make("arena", num_agents=3, max_steps=7, num_worlds=2) as env:
        assert (env.num_agents, env.games[0].max_steps, env.num_worlds) == (3, 7, 2)
    with gridmill.make(["arena", "arena_basic"], num_agents=6) as env:
        assert [game.num_agents for game in env.games] == [6, 6]
    for wrong, said in {
        "num_agent": "unknown argument `num_agent`; did you mean `num_agents`? - sizes of arena: num_agents, max_steps",
        "num_world": "unknown argument `num_world`; did you mean `num_worlds`? - sizes of arena: num_agents, max_steps",
        "colour": "unknown argument `colour` - sizes of arena: num_agents, max_steps",
    }.items():
        with pytest.raises(TypeError) as caught:
            gridmill.make("arena", **{wrong: 3})
        assert str(caught.value) == said
    with pytest.raises(TypeError, match=r"^sizes \['num_agents'\] need a game name, got a Game: build it with these"):
        gridmill.make(gridmill.games.toy(), num_agents=3)


# ---- Gymnasium's ids


@pytest.mark.parametrize(
    "imports",
    [
        "import gridmill, gymnasium",
        "import gymnasium, gridmill",
        "import gridmill.prospector.single, gymnasium",
        "import gridmill, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium",
    ],
)
def test_ids_come_with_import_gridmill(imports: str) -> None:
    code = f"{imports}; print(gymnasium.make('gridmill/toy-v0').reset(seed=0)[0].shape, len(gymnasium.registry) > 60)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("(200, 3) True\n", "")


def test_gymnasium_is_not_imported_for_their_sake() -> None:
    code = "import gridmill, sys; gridmill.make('toy', num_worlds=1); print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n"


# ---- pictures of Prospector


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_prospector_is_drawn_as_the_batch_draws_it(mode: str) -> None:
    env: Any = gymnasium.make("gridmill/prospector-v0", render_mode=mode)
    with gridmill.make("prospector", num_worlds=1, seed=5) as reference:
        env.reset(seed=5)
        reference.reset(seed=5)
        for action in (0, 1, 2, 0, 3):
            assert np.array_equal(env.render(), reference.render(0, mode))
            env.step(action)
            reference.step(np.array([action]))
        assert np.array_equal(env.render(), reference.render(0, mode))
    first = env.render()
    env.reset()
    assert not np.array_equal(env.render(), first)
    if mode == "ansi":
        assert env.render().startswith("world 0, tick 0, episode 1, seed 5\n")


def test_prospector_refuses_other_pictures() -> None:
    with pytest.raises(ValueError, match=r"^render_mode must be None or one of \['ansi', 'rgb_array'\], got 'human'$"):
        ProspectorEnv(render_mode="human")
    with pytest.raises(ValueError, match=r"^render_mode must be None with impl='reference', which has no picture, got"):
        ProspectorEnv(render_mode="ansi", impl="reference")
    env = ProspectorEnv()
    env.reset()
    assert env.render() is None
