"""`gridmill eval`: who plays what, honest errors, the form of the JSON, and no two pairs that share a thing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gridmill
from gridmill import cli, games, recipes
from gridmill import evaluate as tool
from gridmill.evaluate import as_record, baselines, evaluate, rows_of
from gridmill.evaluate.means import standard_error
from gridmill.run import Run

SMALL = games.arena_basic_easy_shaped(num_agents=6, max_steps=60)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["eval", *arguments])


class FakePlayer:
    """A loaded policy that walks north and writes down what it is given."""

    masks = True

    def __init__(self) -> None:
        self.states: list[Any] = []
        self.ended: list[int] = []
        self.masks_seen: set[tuple[int, ...]] = set()

    def bind(self, env: Any, seed: int) -> None:
        self.met = env.num_actions

    def act(self, obs: Any, state: Any, masks: Any = None) -> tuple[Any, Any]:
        self.states.append(state)
        self.masks_seen.add(masks.shape)
        return np.ones(len(obs), np.int64), 1 if state is None else state + 1

    def reset(self, state: Any, ended: Any) -> Any:
        self.ended.append(int(ended.sum()))
        return state + 1000


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePlayer:
    player, module = FakePlayer(), ModuleType("gridmill.policy")
    module.load = lambda *_: player  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gridmill.policy", module)
    return player


def test_a_loaded_policy_draws_as_it_was_told_to(fake: FakePlayer) -> None:
    """Nothing that is asked for is passed over."""
    said = "^policy: this policy is already loaded; pass greedy and temperature to policy.load$"
    for how in ({"greedy": True}, {"temperature": 0.5}):
        with pytest.raises(ValueError, match=said):
            evaluate("toy", fake, 1, 0, **how)


def test_a_file_alone_is_the_function_of_its_name(tmp_path: Path) -> None:
    file = tmp_path / "north.py"
    file.write_text("import numpy as np\n\n\ndef north(env, seed):\n    return lambda obs: np.ones(len(obs), int)\n")
    scores = [evaluate("toy", name, 1, 0).score for name in (str(file), f"{file}:north")]
    assert scores[0] == scores[1]


def test_a_loaded_policy_gets_rows_state_and_masks(fake: FakePlayer, tmp_path: Path) -> None:
    found = evaluate(SMALL, str(tmp_path), episodes=2, seed=0)
    assert fake.states == [None, *range(1, 60)]
    assert fake.ended == [12]  # all rows at once: both worlds end with tick 60
    assert fake.masks_seen == {(12, 10)}
    assert found.stats["length"].mean == 60
    north = ("action.move_north.success", "action.move_north.failed")
    assert sum(found.stats[name].mean for name in north) == 60


def test_games_of_unequal_length_reset_rows_as_they_end(fake: FakePlayer, tmp_path: Path) -> None:
    found = evaluate(games.prospector(time_max=40), str(tmp_path), episodes=3, seed=0)
    assert sum(fake.ended) >= 3
    assert found.episodes == 3


def test_the_standard_error_is_over_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of one world are no witnesses of their own: 4 worlds of 6 agents are 4 values."""
    found = evaluate(SMALL, "random", episodes=4, seed=3)
    with gridmill.make(SMALL, num_worlds=4, seed=3) as env:
        env.reset()
        rng = np.random.default_rng(3)
        for _ in range(60):
            env.step(rng.integers(0, env.num_actions, env.num_rows, dtype=np.int32))
        taken = env.take_episodes()
    by_world = np.array([taken["ore.get"][taken["world"] == world].mean() for world in range(4)])
    assert by_world.std() > 0
    assert found.stats["ore.get"].mean == pytest.approx(by_world.mean())
    assert found.stats["ore.get"].se == pytest.approx(by_world.std(ddof=1) / 2)
    monkeypatch.setattr(tool, "WORLDS", 2)  # in portions of two: as many worlds, each once
    halves = evaluate(SMALL, "random", episodes=4, seed=3)
    assert halves.stats["ore.get"].worlds == 4


def test_the_error_of_a_single_world_is_not_shown_as_none() -> None:
    found = evaluate(SMALL, "random", episodes=1, seed=0)
    assert found.score.se == 0.0
    assert {row[3] for row in rows_of([found])} == {"-"}


def test_the_same_call_gives_the_same_figures() -> None:
    for policy in ("random", "script:arena"):
        first, again, other = (evaluate(SMALL, policy, episodes=2, seed=seed) for seed in (1, 1, 2))
        assert first == again
        assert first.stats != other.stats


def test_pairs_share_no_game_and_change_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy on every game has an env of its own, made from a frozen game of its own."""
    made: list[Any] = []
    real = tool.make

    def spy(game: Any, **options: Any) -> Any:
        env = real(game, **options)
        made.append(SimpleNamespace(game=game, before=game.fingerprint(), env=env))
        return env

    monkeypatch.setattr(tool, "make", spy)
    names = ["arena_basic_easy_shaped", "navigation"]
    call(*names, "--policy", "random", "--policy", "random", "--episodes", "1", "--json")
    assert [one.game.name for one in made] == [names[0], names[0], names[1], names[1]]
    assert len({id(one.game) for one in made}) == len({id(one.env) for one in made}) == 4
    assert all(one.game.fingerprint() == one.before == games.build(one.game.name).fingerprint() for one in made)
    assert made[0].before != made[2].before
    assert all(one.env.closed for one in made)


def test_the_script_makes_hearts_from_its_rows_alone() -> None:
    found = evaluate("arena_basic_easy_shaped", "script:arena", episodes=2, seed=0)
    assert 22 < found.score.mean < 27
    three = evaluate("arena", "script:arena", episodes=1, seed=0)
    assert 6 < three.score.mean < 10.3  # an altar wants three batteries


def test_scripts_and_bots_are_offered_where_they_can_play() -> None:
    found = {name: baselines(games.build(name)) for name in games.names()}
    assert found["arena"] == found["arena_basic_easy_shaped"] == ["random", "script:arena"]
    assert found["prospector"] == ["random", "script:shuttle"]
    for name in ("navigation", "cogsguard", "extractor_hub"):
        assert found[name] == ["random", f"script:{name}"], name
    assert found["toy"] == ["random"]
    assert found["cogsguard_arena"] == ["random", "script:cogsguard"]
    assert "arena" not in games.prospector().scripts()


def test_a_game_of_the_users_own_is_not_held_against_another_games_script() -> None:
    own = games.navigation().replace("name", "harvest")
    assert list(own.scripts()) == ["navigation"]  # it can play it, if it is asked for
    assert baselines(own) == ["random"]
    assert baselines(own.replace("name", "navigation_of_mine")) == ["random", "script:navigation"]


def test_wrong_policies_get_one_clear_line(tmp_path: Path) -> None:
    for policy, said in {
        "best": r"^policy: expected random, script:NAME, FILE.py:function or the folder of .* run, got `best`$",
        "script:arena": r"^policy: no script `arena` for toy - its scripts: none$",
        "bot:shuttle": r"^policy: no script `shuttle` for toy - its scripts: none$",
    }.items():
        with pytest.raises(ValueError, match=said):
            evaluate("toy", policy, episodes=1, seed=0)
    with pytest.raises(
        ValueError, match=r"^policy: no script `aren` for arena; did you mean `arena`\? - its scripts: arena$"
    ):
        evaluate("arena", "script:aren", episodes=1, seed=0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"episodes": 2.5}, "episodes: expected an int, got 2.5"),
        ({"episodes": True}, "episodes: expected an int, got True"),
        ({"players": ["random"]}, "players: expected shares by name, such as {'random': 0.5}, got ['random']"),
    ],
)
def test_what_is_of_another_kind_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        evaluate("toy", "random", **given)
    assert str(caught.value) == said


def test_players_act_beside_a_policy_and_are_not_counted() -> None:
    """Random agents among scripts: the figures are those of the random ones, whatever the scripts gather."""
    game = games.arena_basic_easy_shaped(num_agents=12, max_steps=200)
    alone = evaluate(game, "random", episodes=2, seed=0)
    among = evaluate(game, "random", episodes=2, seed=0, players={"arena": 0.5})
    scripts = evaluate(game, "script:arena", episodes=2, seed=0)
    team = evaluate(game, "script:arena", episodes=2, seed=0, players={"arena": 0.5})
    assert among.score.mean < 1 < scripts.score.mean
    assert among.stats["ore.get"].mean != alone.stats["ore.get"].mean
    # A script beside its like plays the same game; only the mean is over half of the agents.
    assert team.stats["length"].mean == pytest.approx(200)
    assert 0.6 < team.score.mean / scripts.score.mean < 1.6
    with pytest.raises(ValueError, match=r"^players: expected shares that leave an agent for the policy, got all$"):
        evaluate(game, "random", episodes=1, seed=0, players={"arena": 1})


def test_players_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text("from gridmill import games\ndef small(): return games.arena(num_agents=6, max_steps=40)\n")
    result = call(str(file), "--episodes", "1", "--players", "script:arena=0.5")
    assert result.exit_code == 0, result.output
    assert "arena plays 0.5 of the agents; the figures are those of the others" in result.stdout
    record = json.loads(call(str(file), "--episodes", "1", "--players", "arena=0.5", "--json").stdout)
    assert list(record) == ["version", "seed", "players", "results"]
    assert record["players"] == {"arena": 0.5}
    for given, said in {
        "arena": "--players takes NAME=SHARE such as arena=0.25, NAME=0,2 or NAME=TEAM, got `arena`",
        "arena=much": "players: expected a team for `arena` (group:0), got 'much'",
        "arenas=0.5": "players: no script `arenas` for arena; did you mean `arena`? - its scripts: arena",
    }.items():
        result = call(str(file), "--episodes", "1", "--players", given)
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())
    twice = call(str(file), "--episodes", "1", "--players", "arena=0.5", "--players", "arena=0.25")
    assert (twice.exit_code, twice.stderr) == (
        2,
        "gridmill: --players: expected every player once, got `arena` again\n",
    )


def test_seeds_of_all_episodes_are_there_before_the_first() -> None:
    with pytest.raises(
        ValueError, match=r"^seed: expected at most 2\*\*64 - 300 for 300 episodes, got 1844674407370955"
    ):
        evaluate("toy", "random", episodes=300, seed=2**64 - 1)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def load(*_: Any) -> Any:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    module = ModuleType("gridmill.policy")
    module.load = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gridmill.policy", module)
    with pytest.raises(
        ValueError, match=r"needs torch, which is not installed: \S+ -m pip install 'gridmill\[train\]'$"
    ):
        evaluate("toy", str(tmp_path), episodes=1, seed=0)


def test_eval_with_scripts_imports_no_torch() -> None:
    code = (
        "import sys\nfrom gridmill.evaluate import evaluate\nfrom gridmill import games\n"
        "evaluate(games.arena(num_agents=6, max_steps=5), 'script:arena', 1, 0)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_json_has_the_documented_form_and_nothing_else() -> None:
    result = call("navigation", "toy", "--episodes", "2", "--seed", "9", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert list(record) == ["version", "seed", "results"]
    assert (record["version"], record["seed"]) == (1, 9)
    assert [(r["game"], r["policy"], r["episodes"]) for r in record["results"]] == [
        ("navigation", "random", 2),
        ("toy", "random", 2),
    ]
    for one in record["results"]:
        assert list(one) == ["game", "policy", "episodes", "score", "reward", "stats"]
        for figure in (one["score"], one["reward"], *one["stats"].values()):
            assert list(figure) == ["mean", "se"]
    hearts = record["results"][0]
    assert hearts["score"]["mean"] == pytest.approx(hearts["stats"]["heart.get"]["mean"] / 10)


def test_tables_put_baselines_beside_a_trained_policy(
    fake: FakePlayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the game's title is its file as given, and tmp_path is as long as it likes
    file = Path("small.py")
    file.write_text("from gridmill import games\ndef small(): return games.arena(num_agents=6, max_steps=40)\n")
    folder = tmp_path / ("a_long_name_" * 6)
    folder.mkdir()
    result = call(str(file), "--policy", str(folder), "--episodes", "2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "2 episodes each from seed 0; standard errors over worlds"
    assert lines[2].endswith("small.py")
    assert lines[3].split() == ["statistic", "policy", "mean", "std.", "error", "median"]
    scores = [line for line in lines if line.startswith("heart.get (score)")]
    assert [line.split()[2] for line in scores][1:] == ["random", "script:arena"]
    assert ".." in scores[0].split()[2]
    assert max(map(len, lines)) <= 80
    alone = call(str(file), "--episodes", "2")  # nothing trained, nothing to hold against
    assert "script" not in alone.stdout


def test_a_folder_of_a_run_stands_for_its_game_and_score(tmp_path: Path) -> None:
    run = Run(recipe="mine", game=SMALL, score="ore.get")
    (tmp_path / "run.json").write_text(json.dumps({"run": run.tree(), "spec": {}}))
    done = call(str(tmp_path), "--episodes", "2", "--json")
    assert done.stderr == f"`{tmp_path}` has no checkpoint: random actions are played\n"
    record = json.loads(done.stdout)["results"][0]
    assert record["score"] == record["stats"]["ore.get"]
    assert record["stats"]["length"]["mean"] == 60
    (tmp_path / "run.json").write_text("{}")
    broken = call(str(tmp_path))
    assert broken.exit_code == 2
    assert "expected the record of a run, got none in" in broken.stderr
    (tmp_path / "run.json").write_text("{")
    assert "expected a run or checkpoint folder, got" in call(str(tmp_path)).stderr


def test_a_run_that_imitates_first_can_be_evaluated(tmp_path: Path) -> None:
    """Losses are not read, so what needs them is not asked for either."""
    run = recipes.build("extractor_hub_supervised_to_ppo")
    (tmp_path / "run.json").write_text(json.dumps({"run": run.tree()}))
    assert run.supervised_steps > 0
    assert tool.run_of(tmp_path).played_game == run.game


def test_a_wrong_score_is_refused_before_anything_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(recipe="mine", game=SMALL, score="ore.got")
    monkeypatch.setattr(gridmill.Env, "step", lambda *_: pytest.fail("it was played"))
    with pytest.raises(ValueError, match=r"^score: unknown statistic `ore.got`; did you mean `ore.get`\?$"):
        evaluate(run, "random", episodes=1, seed=0)


def test_the_standard_error_of_a_mean() -> None:
    assert standard_error([1.0, 2.0, 3.0, 4.0]) == pytest.approx(math.sqrt(5 / 3) / 2)
    assert standard_error([7.0]) == standard_error([3.0, 3.0]) == 0.0


def test_records_are_plain_data() -> None:
    found = evaluate(SMALL, "random", episodes=2, seed=0, label="mine")
    text = json.dumps(as_record([found], 0), allow_nan=False)
    assert json.loads(text)["results"][0]["game"] == "mine"
