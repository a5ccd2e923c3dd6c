"""Using a trained policy: which checkpoint of a run is meant, and how its actions are chosen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny import berries, tiny

import gridmill
from gridmill import policy
from gridmill.evaluate import evaluate
from gridmill.losses.kickstart import Kickstart
from gridmill.policy import checkpoint, portable
from gridmill.policy.record import SavedTrainer
from gridmill.runs import resume, train
from gridmill.train.trainer import Trainer

SCORES = {1: 0.5, 2: 2.0, 3: 2.0, 4: None, 5: 1.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five checkpoints of one network, with scores; the critic's bias says which is which."""
    folder = train(tiny(1, run="x"), tmp_path_factory.mktemp("runs"), panel=False).folder
    found = checkpoint.load(checkpoint.find(folder))
    for epoch, score in SCORES.items():
        weights = {**found.policy, "critic.bias": torch.full((1,), float(epoch))}
        checkpoint.save(folder / "checkpoints", epoch, weights, found.trainer, found.record, 9, score)
    return folder


def which(path: Any) -> int:
    return int(policy.load(path).policy.critic.bias)


def test_last_best_and_an_epoch(run: Path) -> None:
    assert which(run) == which(f"{run}@last") == 5
    assert which(f"{run}@best") == 3  # of two with one score, the newer
    assert [which(f"{run}@{epoch}") for epoch in SCORES] == list(SCORES)
    assert which(run / "checkpoints@best") == 3
    assert checkpoint.find(Path(f"{run}@best")).name == "epoch-00000003"
    assert policy.load(f"{run}@best").path == run / "checkpoints" / "epoch-00000003"


def test_wherever_a_run_is_taken_as_a_policy(run: Path, tmp_path: Path) -> None:
    assert evaluate(berries(), f"{run}@best", episodes=2).policy == f"{run}@best"
    begun = train(tiny(1, run="begun", policy__init_from=f"{run}@2"), tmp_path, panel=False).folder
    assert f"starts with {run}/checkpoints/epoch-00000002" in (begun / "log.txt").read_text()
    changes = [("losses.kickstart", Kickstart(teacher=f"{run}@best")), ("players", {f"{run}@1": 0.5})]
    changes += [("trainer.batch_size", 64), ("trainer.minibatch_size", 32)]
    trainer = Trainer(tiny(1).replace_all(changes))
    assert [int(actor.player.policy.critic.bias) for actor in trainer._actors().values()] == [3, 1]  # type: ignore[union-attr]
    trainer.close()


def test_a_run_is_resumed_from_the_one_that_is_named(run: Path) -> None:
    """It is finished, so that it only says which it is."""
    assert [resume(f"{run}{which}", panel=False).epochs for which in ("", "@best", "@2")] == [5, 3, 2]


def test_a_damaged_best_gives_way_to_the_next(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "x"
    shutil.copytree(run, copy)
    file = copy / "checkpoints" / "epoch-00000003" / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    with pytest.warns(UserWarning, match="skipped: .*epoch-00000003"):
        assert which(f"{copy}@best") == 2
    done = resume(f"{copy}@best", ["trainer.total_timesteps=384"], panel=False)
    assert done.exit_code == 0
    assert done.epochs == 3  # the first epoch of the record, and two more


def test_what_is_not_there_is_one_line(run: Path, tmp_path: Path) -> None:
    unscored = tmp_path / "z" / "checkpoints"
    unscored.mkdir(parents=True)
    (unscored / "epoch-00000004").symlink_to(run / "checkpoints" / "epoch-00000004")
    for text, said in {
        f"{run}@bset": f"expected @last, @best or @EPOCH after a run's folder, got `{run}@bset`",
        f"{run}@9": f"expected a checkpoint of epoch 9, got none - in `{run}`",
        f"{tmp_path}/y@best": f"expected a checkpoint or a run's folder, got nothing - in `{tmp_path}/y@best`",
        f"{tmp_path}/z@best": "expected a checkpoint with a score, got none (no episode had ended); use @last - in "
        f"`{tmp_path}/z`",
    }.items():
        with pytest.raises(ValueError) as caught:
            policy.load(text)
        assert str(caught.value) == said


def test_a_folder_whose_name_has_an_at(run: Path, tmp_path: Path) -> None:
    (tmp_path / "x@best").symlink_to(run)
    assert which(tmp_path / "x@best") == 5


# ---- actions


def thought(player: Any) -> tuple[Any, Any]:
    with gridmill.make(berries(), num_worlds=64, seed=2, masks=True) as env:
        player.bind(env, seed=5)
        env.reset()
        return player.think(env.obs, masks=env.masks), env.masks.copy()


def sure(path: Path, **how: Any) -> Any:
    """A player with an opinion: the weights of the actor times 200."""
    player = policy.load(path, **how)
    player.policy.freeze(False)
    with torch.no_grad():
        player.policy.actor.weight.mul_(200)
    player.policy.freeze(True)
    return player


def test_greedy_takes_the_likeliest_allowed_action(run: Path) -> None:
    player = sure(run, greedy=True)
    found, masks = thought(player)
    allowed = found.log_probs(masks).argmax(-1).numpy()
    assert np.array_equal(player.choose(found, 0), allowed)
    assert np.array_equal(player.choose(found, 7), allowed)
    assert not np.array_equal(found.logits.argmax(-1).numpy(), allowed)  # a mask forbade some


def test_temperature_divides_logits(run: Path) -> None:
    drawn = {t: sure(run, temperature=t) for t in (1.0, 1e-4, 1e4)}
    found, masks = thought(drawn[1.0])
    probs = found.log_probs(masks).exp().numpy()
    greedy = probs.argmax(-1)
    share = {}
    for t, player in drawn.items():
        player.bind(gridmill.make(berries(), num_worlds=1, masks=True), seed=5)
        actions = np.stack([player.choose(found, step) for step in range(200)])
        assert (masks[np.arange(len(masks)), actions] != 0).all()
        share[t] = float((actions == greedy).mean())
    assert share[1e-4] == 1.0
    assert share[1.0] == pytest.approx(float(probs.max(-1).mean()), abs=0.02)
    assert share[1e4] == pytest.approx(float((1 / (masks != 0).sum(-1)).mean()), abs=0.02)


@pytest.mark.parametrize("temperature", [0.0, -1.0, 1e-38, 1e31, float("inf"), float("nan")])
def test_a_temperature_that_is_none(temperature: float, run: Path) -> None:
    with pytest.raises(ValueError) as caught:
        policy.load(run, temperature=temperature)
    said = "expected a number from 1e-30 to 1e+30, or greedy for the likeliest action"
    assert str(caught.value) == f"temperature: {said}, got {temperature!r}"


def test_the_coldest_temperature_is_greedy(run: Path) -> None:
    cold, greedy = (evaluate(berries(), str(run), 4, 1, **how) for how in ({"temperature": 1e-30}, {"greedy": True}))
    assert cold.stats == greedy.stats


def test_evaluation_takes_them_too(run: Path) -> None:
    one, same = (evaluate(berries(), sure(run, greedy=True), episodes=4, seed=1) for _ in range(2))
    drawn = evaluate(berries(), sure(run), episodes=4, seed=1)
    assert one == same
    assert one.stats != drawn.stats
    plain, cold = (evaluate(berries(), str(run), 4, 1, temperature=t) for t in (1.0, 1e-9))
    likeliest = evaluate(berries(), str(run), 4, 1, greedy=True)
    assert plain.stats != cold.stats == likeliest.stats


@pytest.mark.parametrize("shape", [(), (4, 1), (3,), (0,)])
def test_a_scale_that_is_none_is_not_known(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Nobody has checked the file of the trainer when a policy is loaded."""
    save_file({"reward.sums": torch.ones(shape)}, tmp_path / "trainer.safetensors")
    trainer = SavedTrainer(masks=True, gamma=0.9, reward="scaled")
    assert portable.meaning(tmp_path, trainer) == (0.9, None)


def test_what_is_printed(run: Path) -> None:
    for how, said in (({}, "sampled"), ({"greedy": True}, "greedy"), ({"temperature": 0.5}, "temperature 0.5")):
        text = repr(policy.load(f"{run}@best", **how))
        assert text.startswith(f"<Player {run}/checkpoints/epoch-00000003: {said}, <Policy bag -> scan, hidden 16,")
    assert repr(tiny(1, run="mine")).startswith("<Run mine: tiny, berries, seed 0, ")
    assert repr(berries()) == f"<Game berries: 2 agents, {berries().fingerprint()}>"
    with gridmill.make(berries(), num_worlds=3) as env:
        assert repr(env) == "<GridEnv berries: 3 worlds x 2 agents, 5 actions, obs uint8 [6, 64, 3]>"
    with gridmill.make([berries(), berries().replace("max_steps", 5)], num_worlds=2) as env:
        assert repr(env).startswith("<GridEnv berries and 1 more: 2 worlds x 2 agents")
