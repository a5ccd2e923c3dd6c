"""A loss is a file: one that imitates a teacher lands as a file of the package or of the user's own, is trained with
its columns and its head, and a resumed run equals one that was never interrupted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import hash_of
from tiny import difference, epochs_of, tiny

from gridmill import losses
from gridmill.config import ConfigError
from gridmill.config.user_code import named_in
from gridmill.losses import Column, Minibatch
from gridmill.policy import checkpoint
from gridmill.run import PPO, Run, Value
from gridmill.runs import overrides, resume, train
from gridmill.train.trainer import Trainer

MIMIC = '''"""Imitation: the cross entropy of a teacher's actions, for the policy and for a head of its own."""

from collections.abc import Mapping

from torch import nn
from torch.nn import functional as F

from gridmill.losses import Column, Loss
from gridmill.config.schedule import Number


class Mimic(Loss):
    teacher: str = ""  # a run or checkpoint; empty = an array of the env
    array: str = "actions"
    head_weight: Number = 0.5

    def needs(self) -> Mapping[str, Column]:
        return {"teacher": Column(actor=self.teacher) if self.teacher else Column(env=self.array, after=True)}

    def heads(self, spec, config):
        return nn.Linear(config.hidden, len(spec.actions))

    def __call__(self, batch, out, now, heads):
        wanted = batch.teacher.flatten().long()
        loss = F.cross_entropy(out.logits.flatten(0, 1), wanted)
        of_head = F.cross_entropy(heads(out.hidden).flatten(0, 1), wanted)
        agree = (out.logits.argmax(-1).flatten() == wanted).float().mean()
        total = loss + now.at(self.head_weight) * of_head
        return total, {"loss/mimic": loss, "loss/mimic_head": of_head, "mimic_agrees": agree}
'''


def written(folder: Path, name: str = "mimic.py") -> Path:
    file = folder / name
    file.write_text(MIMIC)
    return file


def last(folder: Path) -> dict[str, Any]:
    return epochs_of(folder)[-1]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tiny(2, core="gru", seed=9, run="teacher", policy__actor_gain=100.0)  # one who is sure of itself
    return train(run, tmp_path_factory.mktemp("teacher"), panel=False).folder


@pytest.mark.parametrize("from_actor", [True, False])
def test_a_file_of_the_users_own_is_trained_saved_and_resumed(
    from_actor: bool, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    file = written(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    changes = ["losses.mimic.weight=0.5", "losses.mimic.kind=mimic.py:Mimic", "checkpoint.epochs=1"]
    changes += ['losses.mimic.head_weight={"start": 1, "end": 0}']
    changes += [f"losses.mimic.teacher={teacher}"] if from_actor else []
    run = overrides.apply(tiny(4), changes)
    assert list(run.losses) == ["ppo", "value", "mimic"]
    assert run.losses["mimic"].kind == f"{file}:Mimic"
    assert named_in(run.tree()) == [f"{file}:Mimic"]
    whole = train(run.replace("run", "whole"), tmp_path, panel=False).folder
    for name in ("loss/mimic", "loss/mimic_head", "loss/policy", "loss/value"):
        assert last(whole)[name] == pytest.approx(last(whole)[name]), name  # there, and a number
    # Interrupted after two epochs, and resumed from another folder.
    half = run.replace_all([("run", "half"), ("trainer.total_timesteps", 256)])
    folder = train(half, tmp_path, panel=False).folder
    saved = checkpoint.newest(folder)[0]
    assert saved.record["run"]["losses"]["mimic"]["kind"] == f"{file}:Mimic"
    assert saved.trainer["heads.mimic.weight"].shape == (len(saved.record["spec"]["actions"]), 16)
    assert not any(name.startswith("heads") for name in saved.policy)
    assert ("actor.teacher" in saved.trainer) == from_actor
    assert not from_actor or bool(saved.trainer["actor.teacher"].any())
    monkeypatch.chdir(tmp_path)
    schedule_as_if_whole = ["trainer.total_timesteps=512"]
    half_head = saved.trainer["heads.mimic.weight"]
    assert resume(folder, schedule_as_if_whole, panel=False).exit_code == 0
    assert not torch.equal(checkpoint.newest(folder)[0].trainer["heads.mimic.weight"], half_head)


def test_a_resumed_run_is_equal_to_the_bit(teacher: Path, tmp_path: Path) -> None:
    mimic = {"kind": f"{written(tmp_path)}:Mimic", "teacher": str(teacher)}
    run = tiny(4, checkpoint__epochs=1, checkpoint__keep=9).replace("losses.mimic", mimic)
    whole, again = (train(run.replace("run", name), tmp_path, panel=False).folder for name in ("whole", "again"))
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    assert resume(again, panel=False).exit_code == 0
    assert difference(whole, again) == 0


def test_it_learns_from_the_teacher(teacher: Path, tmp_path: Path) -> None:
    mimic = {"kind": f"{written(tmp_path)}:Mimic", "teacher": str(teacher)}
    trainer = Trainer(tiny(50, optimizer__learning_rate=0.01, losses={"mimic": mimic}))
    found = [trainer.epoch() for _ in range(50)]
    trainer.close()
    assert "kl" not in found[-1]

    def mean(name: str, epochs: slice) -> float:
        return sum(metrics[name] for metrics in found[epochs]) / len(found[epochs])

    begin, end = slice(0, 3), slice(40, 50)
    assert mean("mimic_agrees", end) > mean("mimic_agrees", begin) + 0.1
    assert mean("loss/mimic_head", end) < 0.8 * mean("loss/mimic_head", begin)


def test_a_file_of_the_package_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file in losses/, and the settings, the record and the metrics know it."""
    written(tmp_path)
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    assert {"mimic", "ppo", "value"} <= set(losses.names())
    run = overrides.apply(tiny(2), ['losses.mimic={"weight": 0.1}', "losses.mimic.weight=0.2"])
    assert run.tree()["losses"]["mimic"]["kind"] == "mimic"
    assert named_in(run.tree()) == []
    assert Run.load(run.tree()) == run
    assert last(train(run, tmp_path, panel=False).folder)["loss/mimic"] > 0


def test_two_files_of_one_name_are_two_losses(tmp_path: Path) -> None:
    kinds = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        kinds.append(f"{written(tmp_path / folder)}:Mimic")
    found = tiny(2).replace_all([(f"losses.{n}", {"kind": kind}) for n, kind in zip("ab", kinds, strict=True)])
    assert [found.losses[name].kind for name in "ab"] == kinds


def test_a_run_is_evaluated_without_its_losses(tmp_path: Path) -> None:
    file = written(tmp_path)
    folder = train(tiny(2).replace("losses.mimic", {"kind": f"{file}:Mimic"}), tmp_path, panel=False).folder
    file.write_text("raise RuntimeError('this is not for evaluation')")
    code = f"from pathlib import Path; from gridmill.evaluate import run_of; print(run_of(Path({str(folder)!r})).score)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("berry.get\n", "")


def test_a_recipe_gives_a_loss_as_an_object(tmp_path: Path) -> None:
    from gridmill import recipes

    file = tmp_path / "mine.py"
    file.write_text(
        MIMIC
        + "\n\ndef mine():\n    from tiny import tiny\n    from gridmill.run import PPO\n"
        + "    return tiny(2).replace('losses', {'ppo': PPO(), 'mine': Mimic(weight=0.25)})\n"
    )
    run = recipes.build(str(file))
    assert run.losses["mine"].kind == f"{file}:Mimic"
    assert Run.load(json.loads(json.dumps(run.tree()))) == run


def test_a_seed_gives_the_same_head(tmp_path: Path) -> None:
    mimic = {"kind": f"{written(tmp_path)}:Mimic"}
    heads = []
    for seed, draws in ((1, 0), (1, 3), (2, 0)):
        torch.rand(draws)  # somebody else's random numbers
        trainer = Trainer(tiny(2, seed=seed).replace("losses.mimic", mimic))
        heads.append(hash_of(trainer.learner._heads()))
        trainer.close()
    assert heads[0] == heads[1] != heads[2]


def test_a_head_that_is_off_stays_as_it_is(tmp_path: Path) -> None:
    mimic = {"kind": f"{written(tmp_path)}:Mimic", "begin": 128}
    trainer = Trainer(tiny(3).replace("losses.mimic", mimic))
    plain = Trainer(tiny(3))
    seen = []
    for _ in range(2):
        metrics = trainer.epoch(), plain.epoch()
        seen.append(hash_of(trainer.learner._heads()))
        assert ("loss/mimic" in metrics[0]) == (len(seen) == 2)
        assert (hash_of(trainer.weights()) == hash_of(plain.weights())) == (len(seen) == 1)
    trainer.close()
    plain.close()
    assert seen[0] != seen[1]


# ---- what is wrong is said in one line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"array": "nothing"}, "expected an array of the env with a row per agent, got `nothing`"),
        ({"array": "bytes_per_world"}, "expected an array of the env with a row per agent, got `bytes_per_world`"),
    ],
)
def test_columns_that_are_not_there(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    run = tiny(2).replace("losses.mimic", {"kind": f"{written(tmp_path)}:Mimic"} | changes)
    with pytest.raises(ConfigError) as caught:
        Trainer(run)
    assert str(caught.value) == f"{said} - at `$.losses.mimic`"


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("x = 1", "Mimic", "no loss `Mimic` (a Loss) in `{file}`"),
        (MIMIC, "Mimc", "no loss `Mimc` (a Loss) in `{file}`; did you mean `Mimic`?"),
        ("import nowhere_at_all", "Mimic", "`{file}:Mimic` failed in line 1: ModuleNotFoundError: "),
    ],
)
def test_files_without_the_loss(source: str, name: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(ConfigError) as caught:
        tiny(2).replace("losses.mine", {"kind": f"{file}:{name}"})
    assert str(caught.value).startswith(said.format(file=file))
    assert caught.value.path == "$.losses.mine.kind"


def test_two_losses_may_not_mean_different_things_by_one_column(tmp_path: Path) -> None:
    kind = f"{written(tmp_path)}:Mimic"
    one, other = {"kind": kind}, {"kind": kind, "array": "rewards"}
    Trainer(tiny(2).replace_all([("losses.one", one), ("losses.other", one)])).close()
    with pytest.raises(ConfigError, match=r"column `teacher`, got one that is already used - at `\$.losses.other`"):
        Trainer(tiny(2).replace_all([("losses.one", one), ("losses.other", other)]))


def test_other_heads_than_the_saved_ones_are_refused(tmp_path: Path) -> None:
    mimic = {"kind": f"{written(tmp_path)}:Mimic"}
    folder = train(tiny(2), tmp_path, panel=False).folder
    with pytest.raises(ValueError, match=r"of no loss, this run has those of mine; resume with the same losses"):
        resume(folder, [f"losses.mine={json.dumps(mimic)}", "trainer.total_timesteps=512"], panel=False)


def test_a_name_is_a_word(tmp_path: Path) -> None:
    run, kind = tiny(2), f"{written(tmp_path)}:Mimic"
    with pytest.raises(ConfigError, match=r"expected letters, .* got 'a\.b' - at `\$.losses`"):
        Run.load(run.tree() | {"losses": {"a.b": {"kind": kind}}})
    Trainer(run.replace("losses.values", {"kind": kind})).close()


def test_what_code_a_record_names_is_known_without_running_it() -> None:
    tree = {"losses": {"a": {"kind": "x.py:A"}, "ppo": {}}, "policy": {"encoder": "p.q:E", "core": "scan"}}
    assert named_in(tree) == ["x.py:A", "p.q:E"]
    for odd in (None, [], {}, {"losses": 3, "policy": []}, {"losses": {"a": 1}, "policy": {"core": 5}}):
        assert named_in(odd) == []


def test_a_column_has_one_source_and_a_minibatch_only_what_was_asked_for() -> None:
    for wrong in ({}, {"env": "obs", "actor": "x"}):
        with pytest.raises(ValueError, match="expected an array of the env, an output of the policy or an actor"):
            Column(**wrong)
    with pytest.raises(AttributeError, match="no column `returns` in this minibatch"):
        _ = Minibatch(values=torch.zeros(1)).returns


def test_outputs_of_the_policy_can_be_stored(tmp_path: Path) -> None:
    """The logits that actions were drawn from: their log-probs are those that are stored."""
    file = tmp_path / "kept.py"
    file.write_text(
        "from gridmill.losses import Column, Loss\n"
        "class Kept(Loss):\n"
        "    reads = ('actions', 'log_probs')\n"
        "    def needs(self):\n"
        "        return {'kept_logits': Column(output='logits'), 'kept_hidden': Column(output='hidden')}\n"
        "    def __call__(self, batch, out, now, heads):\n"
        "        chosen = batch.kept_logits.log_softmax(-1).gather(-1, batch.actions.long()[..., None])[..., 0]\n"
        "        apart = (chosen - batch.log_probs).abs().max()\n"
        "        return out.logits.sum() * 0, {'apart': apart, 'size': batch.kept_hidden.abs().mean()}\n"
    )
    trainer = Trainer(tiny(2, losses={"kept": {"kind": str(file) + ":Kept"}}))
    metrics = trainer.epoch()
    trainer.close()
    assert metrics["apart"] < 1e-5
    assert metrics["size"] > 1e-3


def test_losses_are_summed_in_their_order() -> None:
    """Of the two that ship, whichever comes first; the native pass takes the critic's along."""
    runs = {"usual": {"ppo": PPO(), "value": Value()}, "turned": {"value": Value(), "ppo": PPO()}}
    found = {}
    for name, given in runs.items():
        trainer = Trainer(tiny(2, losses=given))
        trainer.epoch()
        trainer.close()
        found[name] = trainer.weights()
    for name, tensor in found["usual"].items():
        torch.testing.assert_close(found["turned"][name], tensor, rtol=1e-4, atol=1e-5)


def test_the_example_trains_its_head() -> None:
    """examples/own_loss.py, one file outside of the package, as the command names it."""
    kind = f"{Path(__file__).parents[2] / 'examples' / 'own_loss.py'}:Forecast"
    run = overrides.apply(tiny(6), [f"losses.forecast.kind={kind}", "losses.forecast.weight=0.5"])
    trainer = Trainer(run.replace("optimizer.learning_rate", 0.01))
    before = {name: weight.clone() for name, weight in trainer.learner._heads().items()}
    found = [trainer.epoch() for _ in range(6)]
    after = trainer.learner._heads()
    trainer.close()
    assert all(not torch.equal(after[name], weight) for name, weight in before.items())
    assert found[-1]["loss/forecast"] < found[0]["loss/forecast"]
    assert found[-1]["forecast/moved"] > 0
