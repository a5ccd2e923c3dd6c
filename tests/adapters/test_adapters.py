"""The faces say what the batch says: same numbers, the field's names, and the ends in the right place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import gridmill
from gridmill import adapters as faces
from gridmill.adapters import GridmillEnv, GridmillVectorEnv, parallel_env, puffer_env
from gridmill.grid import AgentType, Ascii, Game, ObjectType, Observation

SMALL: dict[str, Any] = {"num_agents": 3, "map_size": 9, "max_steps": 10}


def batch(num_worlds: int = 1, masks: bool = False) -> gridmill.Env:
    return gridmill.make(gridmill.games.toy(**SMALL), num_worlds=num_worlds, masks=masks)


def random_actions(rows: int, steps: int, num_actions: int = 9) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(num_actions, size=(steps, rows), dtype=np.int32)


# Importing ------------------------------------------------------------


def loaded_after(module: str, *watched: str) -> list[str]:
    """Which of the watched modules a fresh process has after importing this one."""
    code = f"import sys, {module}; print(*[name for name in {watched} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_import_gridmill_does_not_reach_the_faces() -> None:
    assert loaded_after("gridmill", "gymnasium", "pettingzoo", "gridmill.adapters") == []


def test_import_faces_does_not_reach_pettingzoo() -> None:
    assert loaded_after("gridmill.adapters", "gymnasium", "pettingzoo", "pufferlib", "torch") == ["gymnasium"]


@pytest.mark.parametrize(
    ("face", "library", "command"),
    [
        (parallel_env, "pettingzoo", r"\S+ -m pip install 'gridmill\[zoo\]'"),
        (puffer_env, "pufferlib", r"\S+ -m pip install pufferlib-core"),
    ],
)
def test_missing_library_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, face: Any, library: str, command: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"gridmill.adapters.{library}", raising=False)
    with pytest.raises(ImportError, match=f"needs {library}, which is not installed; install it with: {command}"):
        face("toy")


def test_every_game_is_registered_once() -> None:
    assert gymnasium.spec("gridmill/prospector-v0").kwargs == {}
    for name in gridmill.games.names("grid"):
        assert gymnasium.spec(f"gridmill/{name}-v0").kwargs == {"game": name}
    faces.register()  # a second time: no warning about overriding, which would be an error here
    gymnasium.register_envs(faces)


# Gymnasium, one agent ------------------------------------------------------------


def test_single_env_gives_the_rows_of_the_batch() -> None:
    env, reference = GridmillEnv("toy", agent=1, **SMALL), batch()
    obs, info = env.reset(seed=5)
    reference.reset(seed=5)
    assert np.array_equal(obs, reference.obs[1])
    assert info == {}
    for tick, (action, *_) in enumerate(random_actions(1, 10), start=1):
        obs, reward, terminated, truncated, info = env.step(action)
        reference.step(np.array([0, action, 0], np.int32))
        assert np.array_equal(obs, reference.obs[1] if tick < 10 else reference.final_obs[1])
        assert (reward, terminated, truncated) == (float(reference.rewards[1]), False, tick == 10)
        assert set(info) == ({"stats"} if tick == 10 else set())
    assert info["stats"]["length"] == 10
    with pytest.raises(RuntimeError, match=r"the episode is over: call reset\(\) before step\(\)"):
        env.step(0)
    env.reset()
    assert env.step(0)[3] is False


def test_single_env_seeds_episodes_like_gymnasium() -> None:
    env = GridmillEnv("toy", **SMALL)
    first, _ = env.reset(seed=5)
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    assert np.array_equal(env.reset(seed=5)[0], first)
    assert np.array_equal(env.reset()[0], second)


def test_single_env_others_act_as_told() -> None:
    def spin(obs: Any, generator: np.random.Generator) -> Any:
        assert obs.shape == (3, 200, 3)
        return np.full(3, 1 + generator.integers(8))

    def positions(others: Any) -> list[list[tuple[int, int]]]:
        env = GridmillEnv("toy", agent=0, others=others, **SMALL)
        env.reset(seed=2)
        seen = []
        for _ in range(9):
            env.step(0)
            agents = [o for o in env._world.env.inspect(0)["objects"] if o["agent"] is not None]
            seen.append([(o["row"], o["column"]) for o in sorted(agents, key=lambda o: o["agent"])])
        return seen

    still = positions("noop")
    assert all(step == still[0] for step in still)
    for others in ("random", spin):
        moving = positions(others)
        assert moving == positions(others)
        assert len({str(step) for step in moving}) > 1
        assert {step[0] for step in moving} == {still[0][0]}  # the learning agent only did what it was told


def test_numbers_beyond_32_bits_are_no_valid_actions() -> None:
    """2**32 + 2 must not become action 2, whoever it came from; what has no 64 bits is refused by its name."""

    def after(own: int, others: int) -> Any:
        env = GridmillEnv("toy", others=lambda obs, generator: np.full(3, others), **SMALL)
        env.reset(seed=2)
        env.step(own)
        return env._world.env.obs.tolist(), env._world.env.rewards.tolist()

    def after_in_zoo(action: int) -> Any:
        env = parallel_env("toy", seed=2, **SMALL)
        env.reset()
        env.step(dict.fromkeys(env.agents, action))
        return env._world.env.obs.tolist(), env._world.env.rewards.tolist()

    invalid = after(-1, -1)
    assert after(2**32 + 2, 2**32 + 2) == after(2**40, 2**63 - 1) == invalid != after(2, 2)
    assert after_in_zoo(2**32 + 2) == after_in_zoo(2**40) == after_in_zoo(-1)
    with pytest.raises(ValueError, match=r"^action: expected an int of at most 64 bits, got 71 bits$"):
        after(2**70, 0)
    with pytest.raises(ValueError, match=r"^actions\['agent_0'\]: expected an int of at most 64 bits, got 71 bits$"):
        after_in_zoo(2**70)


def test_single_env_refuses_bad_arguments() -> None:
    for agent in (0.5, True, "0"):
        with pytest.raises(TypeError, match=rf"^agent: expected an int, got {agent!r}$"):
            GridmillEnv("toy", agent=agent, **SMALL)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="agent must be 0 to 2 in this game, got 3"):
        GridmillEnv("toy", agent=3, **SMALL)
    with pytest.raises(ValueError, match="others must be 'noop', 'random' or a function, got 'sleep'"):
        GridmillEnv("toy", others="sleep", **SMALL)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"render_mode must be None or one of \['ansi', 'rgb_array'\], got 'human'"):
        GridmillEnv("toy", render_mode="human", **SMALL)
    with pytest.raises(TypeError, match=r"sizes \['map_size'\] need a game name, got a Game"):
        GridmillEnv(gridmill.games.toy(**SMALL), map_size=9)
    env = GridmillEnv("toy", others=lambda obs, generator: np.zeros(2, int), **SMALL)
    with pytest.raises(RuntimeError, match=r"the episode has not begun: call reset\(\) before step\(\)"):
        GridmillEnv("toy", **SMALL).step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"others must return integer \[3\], got int64 \[2\]"):
        env.step(0)
    with pytest.raises(TypeError):
        GridmillEnv("toy", **SMALL).step(1.5)  # type: ignore[arg-type]


def test_single_env_masks_are_the_batch_masks() -> None:
    env, reference = GridmillEnv("toy", agent=2, masks=True, **SMALL), batch(masks=True)
    _, info = env.reset(seed=1)
    reference.reset(seed=1)
    assert reference.masks is not None
    for tick in range(1, 10):
        assert info["action_mask"].dtype == np.int8
        assert np.array_equal(info["action_mask"], reference.masks[2])
        env.action_space.sample(info["action_mask"])
        *_, info = env.step(tick % 9)
        reference.step(np.array([0, 0, tick % 9], np.int32))
    assert "action_mask" not in env.step(0)[4]  # the episode is over: no next action to mask


def test_single_env_renders_the_ended_episode_until_reset() -> None:
    env = GridmillEnv("toy", render_mode="ansi", **SMALL)
    env.reset(seed=1)
    for _ in range(9):
        env.step(0)
    before_last = env.render()
    assert "tick 9, episode" in before_last
    env.step(0)
    assert env.render() == before_last
    obs, _ = env.reset(seed=4)  # looking back must not have disturbed the next episode
    assert np.array_equal(obs, GridmillEnv("toy", **SMALL).reset(seed=4)[0])
    assert "tick 0, episode" in env.render()
    picture = gymnasium.make("gridmill/toy-v0", render_mode="rgb_array", **SMALL)
    picture.reset()
    frame: Any = picture.render()
    assert frame.shape == (72, 72, 3)
    assert GridmillEnv("toy", **SMALL).render() is None


# Gymnasium, vector ------------------------------------------------------------


def test_vector_env_gives_the_batch_and_keeps_last_observations() -> None:
    envs, reference = GridmillVectorEnv("toy", num_envs=6, masks=True, **SMALL), batch(2, masks=True)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, infos = envs.reset(seed=3)
    reference.reset(seed=3)
    assert reference.masks is not None
    for tick, actions in enumerate(random_actions(6, 25), start=1):
        assert np.array_equal(obs, reference.obs)
        assert np.array_equal(infos["action_mask"], reference.masks)
        assert infos["_action_mask"].all()
        obs, rewards, terminated, truncated, infos = envs.step(actions)
        reference.step(actions)
        assert np.array_equal(rewards, reference.rewards)
        assert not terminated.any()
        assert truncated.tolist() == [tick % 10 == 0] * 6
        assert ("final_obs" in infos) == (tick % 10 == 0)
        if "final_obs" in infos:
            assert np.array_equal(np.stack(infos["final_obs"]), reference.final_obs)
            assert not np.array_equal(np.stack(infos["final_obs"]), obs)
            assert infos["_final_obs"].tolist() == [True] * 6


def test_vector_env_final_obs_only_where_a_row_ended() -> None:
    envs = GridmillVectorEnv("toy", num_envs=6, desync_episodes=True, **SMALL)
    envs.reset(seed=3)
    seen = set()
    for actions in random_actions(6, 10):
        *_, truncated, infos = envs.step(actions)
        if truncated.any():
            assert [row is not None for row in infos["final_obs"]] == truncated.tolist() == infos["_final_obs"].tolist()
            seen.add(tuple(truncated.tolist()))
    assert (True, True, True, False, False, False) in seen


def test_vector_env_copies_or_lends() -> None:
    copies = GridmillVectorEnv("toy", num_envs=3, **SMALL)
    first, _ = copies.reset(seed=0)
    kept = first.copy()
    for actions in random_actions(3, 5):
        returned = copies.step(actions)
        assert not any(np.shares_memory(array, own) for array in returned[:4] for own in (copies.batch.obs, first))
    assert np.array_equal(first, kept)
    lends = GridmillVectorEnv("toy", num_envs=3, copy=False, **SMALL)
    assert lends.reset(seed=0)[0] is lends.batch.obs
    returned = lends.step(np.zeros(3, np.int32))
    own = (lends.batch.rewards, lends.batch.terminals, lends.batch.truncations)
    assert all(array is theirs for array, theirs in zip(returned[1:4], own, strict=True))


def test_vector_env_through_make_vec_and_wrappers() -> None:
    envs: Any = gymnasium.make_vec("gridmill/toy-v0", num_envs=6, **SMALL)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    for actions in random_actions(6, 10):
        *_, infos = envs.step(actions)
    assert infos["episode"]["l"].tolist() == [10] * 6
    envs.close()


def test_vector_env_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"num_envs must be a multiple of the 3 agents of a world .*, got 4"):
        GridmillVectorEnv("toy", num_envs=4, **SMALL)
    with pytest.raises(ValueError, match="got 0"):
        GridmillVectorEnv("toy", num_envs=0, **SMALL)
    envs = GridmillVectorEnv("toy", num_envs=3, **SMALL)
    with pytest.raises(ValueError, match="needs autoreset mode DISABLED"):
        envs.reset(options={"reset_mask": np.ones(3, np.bool_)})
    envs.reset(seed=0)
    before = envs.batch.state_hash()
    with pytest.raises(TypeError):
        envs.step(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        envs.step(np.zeros(4, np.int32))
    assert np.array_equal(envs.batch.state_hash(), before)


def test_vector_env_renders_one_frame_per_row() -> None:
    envs = GridmillVectorEnv("toy", num_envs=6, render_mode="ansi", **SMALL)
    envs.reset(seed=0)
    frames = envs.render()
    assert frames is not None
    assert [frame.split(",")[0] for frame in frames] == ["world 0"] * 3 + ["world 1"] * 3
    envs.close()
    envs.close()


# PettingZoo ------------------------------------------------------------


def test_parallel_env_gives_the_batch_and_ends_by_truncation() -> None:
    env, reference = parallel_env("toy", masks=True, **SMALL), batch(masks=True)
    assert env.possible_agents == ["agent_0", "agent_1", "agent_2"]
    assert env.agents == []
    obs, infos = env.reset(seed=8)
    reference.reset(seed=8)
    assert reference.masks is not None
    for tick, actions in enumerate(random_actions(3, 10), start=1):
        assert env.agents == env.possible_agents
        assert np.array_equal([infos[agent]["action_mask"] for agent in env.agents], reference.masks)
        assert np.array_equal([obs[agent] for agent in env.agents], reference.obs)
        obs, rewards, terminated, truncated, infos = env.step(dict(zip(env.agents, actions, strict=True)))
        reference.step(actions)
        assert list(rewards.values()) == reference.rewards.tolist()
        assert not any(terminated.values())
        assert set(truncated.values()) == {tick == 10}
    assert env.agents == []
    assert np.array_equal([obs[agent] for agent in env.possible_agents], reference.final_obs)
    assert [set(info) for info in infos.values()] == [{"stats"}] * 3
    assert [info["stats"]["length"] for info in infos.values()] == [10.0] * 3
    with pytest.raises(RuntimeError, match=r"the episode is over: call reset\(\) before step\(\)"):
        env.step({})
    env.reset()
    assert env.agents == env.possible_agents


def test_parallel_env_seeds() -> None:
    def first_and_second(**options: Any) -> tuple[Any, Any]:
        env = parallel_env("toy", **options, **SMALL)
        return env.reset()[0]["agent_0"], env.reset()[0]["agent_0"]

    one, two = first_and_second(seed=4)
    again = first_and_second(seed=4)
    assert np.array_equal(one, again[0])
    assert np.array_equal(two, again[1])
    assert not np.array_equal(one, two)
    assert not np.array_equal(one, first_and_second(seed=5)[0])
    assert np.array_equal(one, parallel_env("toy", **SMALL).reset(seed=4)[0]["agent_0"])


def test_parallel_env_names_a_wrong_seed() -> None:
    with pytest.raises(ValueError, match=r"^seed: expected an int in \[0, 2\*\*64\), got -3$"):
        parallel_env("toy", seed=-3, **SMALL)
    with pytest.raises(ValueError, match=r"^seed: expected an int in \[0, 2\*\*64\), got -3$"):
        parallel_env("toy", **SMALL).reset(seed=-3)


def test_parallel_env_refuses_incomplete_actions() -> None:
    env = parallel_env("toy", **SMALL)
    with pytest.raises(RuntimeError, match="the episode has not begun"):
        env.step({})
    env.reset()
    with pytest.raises(ValueError, match=r"one entry per agent; missing \['agent_2'\], unknown \['agent_7'\]"):
        env.step({"agent_0": 0, "agent_1": 0, "agent_7": 0})
    with pytest.raises(TypeError):
        env.step({"agent_0": 0, "agent_1": 0, "agent_2": 0.5})


def test_parallel_env_state_is_the_world() -> None:
    env = parallel_env("toy", render_mode="ansi", **SMALL)
    env.reset(seed=0)
    state = env.state()
    assert env.state_space.contains(state)
    assert env.state_names[:4] == ["type", "agent", "facing", "vibe"]
    picture = np.array([list(row) for row in env.render().splitlines()[1:-1]])
    assert np.array_equal(state[..., 0] == 0, picture == ".")
    assert np.array_equal(state[..., 1] > 0, picture == "@")
    assert sorted(state[..., 1][state[..., 1] > 0].tolist()) == [1, 2, 3]
    assert set(state[..., 2][state[..., 1] > 0].tolist()) == {2}  # all face south after a reset
    env = parallel_env("toy", **SMALL)
    env.reset(seed=0)
    for _ in range(10):
        before = env.state()
        env.step(dict.fromkeys(env.agents, 1))
    assert np.array_equal(env.state(), before)  # over: the state before the last action, not the next episode's


def test_parallel_env_state_holds_vibes_and_amounts() -> None:
    game = Game(
        name="store",
        num_agents=2,
        resources=("ore", "coal"),
        vibes=("calm", "angry"),
        agent=AgentType(inventory={"coal": 300}, vibe="angry"),
        objects={"wall": ObjectType(), "box": ObjectType(inventory={"ore": 2})},
        map=Ascii(text="#####\n#1.b#\n#2..#\n#####", legend={"b": "box"}),
        observation=Observation(num_tokens=1000),
    )
    env = parallel_env(game, render_mode="ansi")
    env.reset()
    assert env.render().splitlines()[1:-1] == ["#####", "#1.b#", "#2..#", "#####"]
    assert env.state_names == ["type", "agent", "facing", "vibe", "inv:ore", "inv:coal"]
    state = env.state()  # types in the order of their names: agent, box, wall
    assert state[1].tolist() == [
        [3, 0, 0, 0, 0, 0],
        [1, 1, 2, 1, 0, 300],
        [0, 0, 0, 0, 0, 0],
        [2, 0, 0, 0, 2, 0],
        [3, 0, 0, 0, 0, 0],
    ]


def test_a_game_whose_time_limit_terminates() -> None:
    game = gridmill.games.toy(**SMALL).replace("time_limit", "termination").replace("max_steps", 1)
    single = GridmillEnv(game)
    single.reset(seed=0)
    assert single.step(0)[2:4] == (True, False)
    parallel = parallel_env(game)
    parallel.reset()
    _, _, terminated, truncated, _ = parallel.step(dict.fromkeys(parallel.agents, 0))
    assert (set(terminated.values()), set(truncated.values()), parallel.agents) == ({True}, {False}, [])


def test_a_closed_face_is_an_exception_and_not_a_crash() -> None:
    for env in (GridmillEnv("toy", **SMALL), parallel_env("toy", **SMALL)):
        env.reset()
        env.close()
        env.close()
        with pytest.raises(RuntimeError, match="close"):
            env.reset(seed=0)
        with pytest.raises(RuntimeError, match="close"):
            env.step(dict.fromkeys(env.agents, 0) if hasattr(env, "agents") else 0)


# PufferLib ------------------------------------------------------------


@pytest.fixture
def stand_in_for_pufferlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part of PufferLib's contract the adapter relies on: PufferLib itself needs an older torch."""

    class PufferEnv:
        def __init__(self, buf: Any = None) -> None:
            given = buf or {
                "observations": np.zeros((self.num_agents, *self.single_observation_space.shape), np.uint8),  # type: ignore[attr-defined]
                "rewards": np.zeros(self.num_agents, np.float32),  # type: ignore[attr-defined]
                "terminals": np.zeros(self.num_agents, bool),  # type: ignore[attr-defined]
                "truncations": np.zeros(self.num_agents, bool),  # type: ignore[attr-defined]
            }
            for name, array in given.items():
                setattr(self, name, array)

    module = ModuleType("pufferlib")
    module.PufferEnv = PufferEnv  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pufferlib", module)
    sys.modules.pop("gridmill.adapters.pufferlib", None)
    importlib.import_module("gridmill.adapters.pufferlib")
    monkeypatch.delitem(sys.modules, "gridmill.adapters.pufferlib")


@pytest.mark.usefixtures("stand_in_for_pufferlib")
@pytest.mark.parametrize("lent", [True, False])
def test_puffer_env_lends_its_arrays_or_fills_given_ones(lent: bool) -> None:
    reference = batch(2)
    buf = None if lent else {
        name: np.zeros_like(getattr(reference, own))
        for name, own in {"observations": "obs", "rewards": "rewards", "terminals": "terminals",
                          "truncations": "truncations"}.items()
    }  # fmt: skip
    env = puffer_env("toy", num_worlds=2, seed=6, buf=buf, **SMALL)
    assert env.num_agents == 6
    obs, infos = env.reset()
    reference.reset(seed=6)
    assert np.array_equal(obs, reference.obs)
    assert infos == []
    assert (obs is env.batch.obs) == lent
    for tick, actions in enumerate(random_actions(6, 10), start=1):
        obs, rewards, terminals, truncations, infos = env.step(actions)
        reference.step(actions)
        assert np.array_equal(obs, reference.obs)
        assert np.array_equal(rewards, reference.rewards)
        assert not terminals.any()
        assert truncations.tolist() == [tick == 10] * 6
        assert len(infos) == (tick == 10)
    assert infos[0]["length"] == 10.0
    env.close()
