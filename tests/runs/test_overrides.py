"""Overrides and presets: what people type is read as they mean it, or refused in one line with the nearest name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gridmill import games, recipes, sizing
from gridmill.config import ConfigError, flatten
from gridmill.run import Run, Schedule, TrainerConfig
from gridmill.runs import overrides, presets

RUN = recipes.build("arena_basic_easy_shaped")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("trainer.total_timesteps=1e6", "trainer.total_timesteps", 1_000_000),
        ("trainer.total_timesteps=5_000", "trainer.total_timesteps", 5_000),
        ("trainer.num_worlds = 32", "trainer.num_worlds", 32),
        ("trainer.gamma=1", "trainer.gamma", 1.0),
        ("trainer.gamma=.5", "trainer.gamma", 0.5),
        ("trainer.masks=False", "trainer.masks", False),
        ("evaluation.enabled=true", "evaluation.enabled", True),
        ("run=1e6", "run", "1e6"),
        ("run=true", "run", "true"),
        ("trainer.compile=true", "trainer.compile", "default"),
        ("trainer.compile=max-autotune", "trainer.compile", "max-autotune"),
        ("mixed_precision=True", "trainer.precision", "bf16"),
        ("game.max_steps=500", "game.max_steps", 500),
        ("game.rewards.0.weight=2", "game.rewards.0.weight", 2.0),
        ("game.rewards[0].weight=2", "game.rewards.0.weight", 2.0),
        ("game.map.maps.0.objects.mine=3", "game.map.maps.0.objects.mine", 3),
        ("optimizer.learning_rate.end=1e-5", "optimizer.learning_rate.end", 1e-5),
    ],
)
def test_one_setting_changes_and_nothing_else(text: str, path: str, value: object) -> None:
    changed = overrides.apply(RUN, [text])
    before = flatten(RUN.tree()).get(path)
    assert RUN.diff(changed) == {path: (before, value)}


def test_a_switch_that_says_what_is_already_so_changes_nothing() -> None:
    assert overrides.apply(RUN, ["mixed_precision=false", "trainer.compile=false"]) == RUN


def test_a_schedule_may_become_a_number_and_back() -> None:
    fixed = overrides.apply(RUN, ["optimizer.learning_rate=1e-3"])
    assert fixed.optimizer.learning_rate == 1e-3
    again = overrides.apply(fixed, ['optimizer.learning_rate={"start": 1, "end": 0.5, "shape": "cosine"}'])
    assert again.optimizer.learning_rate == Schedule(start=1.0, end=0.5, shape="cosine")


def test_a_part_may_be_taken_away() -> None:
    changed = overrides.apply(RUN, ["game.attack=none"])
    assert isinstance(changed.game, type(RUN.game))
    assert changed.tree()["game"]["attack"] is None


def test_the_game_goes_first_whatever_the_order() -> None:
    changed = overrides.apply(RUN, ["game.max_steps=7", "game=toy"])
    assert changed.game == games.toy(max_steps=7)


def test_a_game_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text("from gridmill import games\ndef small(): return games.toy(3)\n")
    assert overrides.apply(RUN, [f"game={file}"]).game == games.toy(3)


def test_settings_that_need_each_other_may_come_together() -> None:
    changed = overrides.apply(RUN, ["policy.encoder=mlp", "game=prospector"])
    assert changed.game == games.prospector()


def test_later_ones_win() -> None:
    assert overrides.apply(RUN, ["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("total_timesteps=5", "unknown setting `total_timesteps`; did you mean `trainer.total_timesteps`? - at `$`"),
        ("num_agents=5", "unknown setting `num_agents`; did you mean `game.num_agents`? - at `$`"),
        ("total_timestep=5", "unknown setting `total_timestep`; did you mean `trainer.total_timesteps`? - at `$`"),
        (
            "trainer.total_timestep=5",
            "unknown setting `total_timestep`; did you mean `total_timesteps`? - at `$.trainer`",
        ),
        ("trainer.clip=0.1", "unknown setting `clip`; did you mean `c_clip`? - at `$.trainer`"),
        ("policy.gamma=0.1", "unknown setting `gamma`; did you mean `trainer.gamma`? - at `$.policy`"),
        ("traner.gamma=0.1", "unknown setting `traner`; did you mean `trainer`? - at `$`"),
        ("game.mapp.kind=3", "unknown setting `mapp`; did you mean `map`? - at `$.game`"),
        ("mixed_precision=3", "unknown setting `mixed_precision`; did you mean `trainer.precision`? - at `$`"),
        ("qqqq=3", "unknown setting `qqqq` - at `$`"),
        ("trainer.gamma", "expected key=value, got `trainer.gamma` - at `$`"),
        ("=3", "expected key=value, got `=3` - at `$`"),
        ("trainer.gamma=nan", "expected a valid number, got 'nan' - at `$.trainer.gamma`"),
        ("trainer.gamma=1e999", "expected a valid number, got '1e999' - at `$.trainer.gamma`"),
        ("trainer.gamma=2", "expected less than or equal to 1, got 2 - at `$.trainer.gamma`"),
        ("trainer.num_worlds=2.5", "expected a valid integer, got 2.5 - at `$.trainer.num_worlds`"),
        ("trainer.masks=1", "expected a valid boolean, got 1 - at `$.trainer.masks`"),
        ("optimizer.learning_rate=fast", "expected a valid number, got 'fast' - at `$.optimizer.learning_rate`"),
        (
            "optimizer.learning_rate.end=x",
            "expected a valid number, got 'x' - at `$.optimizer.learning_rate.end`",
        ),
        (
            "trainer.precision=fp8",
            "expected 'fp32', 'bf16' or 'fp16', got 'fp8' - at `$.trainer.precision`",
        ),
        ("policy.encoder=bga", "expected auto, attend, bag, cnn, mlp, FILE.py:Class or package.module:Class, "
         "got 'bga'; did you mean `bag`? - at `$.policy.encoder`"),
        ('trainer.gamma={"start": 0.5, "end": 1.5}',
         "expected less than or equal to 1, got 1.5 - at `$.trainer.gamma.end`"),
        ('trainer.rho_clip={"start": 0.0, "end": 1.5}',
         "expected greater than 0, got 0 - at `$.trainer.rho_clip.start`"),
        ("losses.ppo.kind=value", "expected `value` as the name of a loss of this kind, got `ppo` - at `$.losses.ppo`"),
        ("policy.start=x", "`start` is now `init_from` - at `$.policy`"),
        ("trainer.sight_share=1", "`sight_share` is now `shared_advantage` - at `$.trainer`"),
        ("losses.mine.weight=1", "unknown setting `mine`; did you mean `losses.ppo.weight`? - at `$.losses`"),
        ("losses.mine.kind=nowhere.py:X", "no loss file `nowhere.py` - at `$.losses.mine.kind`"),
        ("game.max_steps=0", "expected greater than or equal to 1, got 0 - at `$.game.max_steps`"),
        ("policy={", "expected JSON, got `{` (Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)) - at `$.policy`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        overrides.apply(RUN, [text])


def test_an_unknown_game_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"^unknown game `areno`; did you mean `arena`\?"):
        overrides.apply(RUN, ["game=areno"])


# ---- row F1 in miniature: whatever is typed, a run or one line

PATHS = sorted(flatten(RUN.tree()))
keys = st.one_of(
    st.sampled_from(PATHS),
    st.sampled_from(PATHS).flatmap(lambda p: st.integers(0, len(p)).map(lambda n: p[:n])),
    st.sampled_from(PATHS).flatmap(lambda p: st.integers(0, len(p)).map(lambda n: p[:n] + p[n + 1 :])),
    st.text(max_size=12),
)
values = st.one_of(
    st.sampled_from(["", "true", "none", "1e6", "5_000", "-1", "0", "1e400", "nan", "{}", "[]", "[1", '{"kind":"x"}']),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=6,
    ).map(json.dumps),
)


def outcome(texts: list[str]) -> Run | str:
    try:
        run = overrides.apply(RUN, texts)
        sizing.plan(run)  # compiles a world: the core refuses as politely
        return run
    except (ValueError, TypeError) as refusal:
        return str(refusal)


TYPED = given(st.lists(st.tuples(keys, values).map("=".join), min_size=1, max_size=3))


def is_a_run_or_one_line(texts: list[str]) -> None:
    found = outcome(texts)
    assert isinstance(found, Run) or (found and "\n" not in found), found


@settings(max_examples=50)
@TYPED
@example(["game={}"])
@example(["game=[1]"])
@example(["game=:"])
@example(["game=a:b"])
@example(["trainer=3"])
@example(["policy={}"])
@example(["seed=" + "9" * 5000])
@example(["game.rewards." + "9" * 5000 + "=1"])
@example(["game.rewards.²=1"])
@example(["policy=" + "[" * 5000])
@example([". =1"])
@example(["game=\0.py"])
def test_whatever_is_typed_is_a_run_or_one_line(texts: list[str]) -> None:
    is_a_run_or_one_line(texts)


@pytest.mark.long
@settings(max_examples=5_000)
@TYPED
def test_whatever_is_typed_5000_times_is_a_run_or_one_line(texts: list[str]) -> None:
    is_a_run_or_one_line(texts)


# ---- presets


def test_the_presets_that_ship() -> None:
    assert presets.names() == ["baseline", "gpu", "laptop", "ultra_fast"]


def test_baseline_has_the_documented_sizes() -> None:
    t = presets.apply(recipes.build("navigation"), "baseline").trainer
    assert (t.batch_size, t.minibatch_size, t.num_worlds, t.threads) == (16_384, 512, 64, 4)
    assert (t.async_factor, t.bptt_horizon) == (2, 64)


@pytest.mark.parametrize(("gpu", "precision"), [(True, "bf16"), (False, "fp32")])
def test_ultra_fast_uses_bf16_where_there_is_a_gpu(gpu: bool, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "has_gpu", lambda: gpu)
    run = presets.apply(recipes.build("cogsguard"), "ultra_fast")
    t = run.trainer
    assert (t.batch_size, t.minibatch_size, t.num_worlds, t.async_factor) == (262_144, 32_768, 512, 8)
    assert (t.bptt_horizon, t.update_epochs, t.compile, t.precision) == (
        32,
        1,
        "reduce-overhead" if gpu else "off",
        precision,
    )
    assert (run.checkpoint.epochs, run.evaluation.epochs, run.analysis.gradient_epochs) == (100, 500, 300)
    assert run.game == recipes.build("cogsguard").game


@pytest.mark.parametrize(("gpu", "device", "compiled"), [(True, "cuda", "default"), (False, "cpu", "off")])
def test_without_a_preset_the_machine_decides_what_the_recipe_leaves_open(
    gpu: bool, device: str, compiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presets, "has_gpu", lambda: gpu)
    run = presets.fill(RUN)
    assert (run.trainer.device, run.trainer.compile) == (device, compiled)
    assert run.trainer.batch_size == RUN.trainer.batch_size
    chosen = RUN.replace("trainer.compile", "max-autotune")
    assert presets.fill(chosen).trainer.compile == "max-autotune"


def test_a_preset_of_ones_own_merges_and_overrides_win(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('seed = 7\ngame = "toy"\n[trainer]\ngamma = 0.5\n[optimizer]\nlearning_rate = {end = 0.0}\n')
    run = presets.merged(RUN, str(file))
    assert (run.seed, run.game, run.trainer.gamma) == (7, games.toy(), 0.5)
    assert run.optimizer.learning_rate == Schedule(start=2e-3, end=0.0)
    assert run.trainer.replace("gamma", TrainerConfig().gamma) == RUN.trainer.replace("gamma", TrainerConfig().gamma)
    assert overrides.apply(run, ["trainer.gamma=0.9"]).trainer.gamma == 0.9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[trainer]\ngama = 1", "unknown setting `gama`; did you mean `gamma`? - at `$.trainer`"),
        ("[trainer]\ngamma = 3.0", "expected less than or equal to 1, got 3.0 - at `$.trainer.gamma`"),
        ("[trainer]\ngamma = 1979-05-27", "expected plain data"),
        ("with_gpu = 3", "expected a table of settings, got 3 - at `$.with_gpu`"),
        ("seed = ", "expected TOML, got "),
        ("\x00", "expected TOML, got "),
    ],
)
def test_a_wrong_preset_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        presets.apply(RUN, str(file))
    assert "\n" not in str(caught.value)


def test_unknown_presets_name_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"^unknown preset `latop`; did you mean `laptop`\? - presets: baseline, gpu"):
        presets.apply(RUN, "latop")
    with pytest.raises(ValueError, match=r"^no preset file `nowhere\.toml`$"):
        presets.apply(RUN, "nowhere.toml")
