"""An optimizer of the user's own: trained with, resumed to the bit, with the run's schedules; what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import difference, epochs_of, tiny

from gridmill.config import ConfigError, user_code
from gridmill.config.schedule import Progress, Schedule
from gridmill.evaluate import run_of
from gridmill.policy import checkpoint
from gridmill.run import OptimizerConfig, Run
from gridmill.runs import overrides, resume, train
from gridmill.train import own_optimizer
from gridmill.train.optimizer import Optimizer
from gridmill.train.trainer import Trainer

LION = f"{Path(__file__).resolve().parents[2]}/examples/own_optimizer.py:Lion"
# Of libraries: a state without a moment, of numbers and factors, with settings of their own, and schedule-free.
OTHERS = ["torch.optim:SGD", "torch.optim:Adafactor", "torch.optim:RMSprop", "torch.optim:NAdam",
          "schedulefree:SGDScheduleFree"]  # fmt: skip
OWN = """
import torch

class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr, "turns": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["turns"] += 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["steps"] = state.get("steps", 0) + 1
                state["sum"] = state.get("sum", torch.zeros_like(p, dtype=torch.float64)) + p.grad
                p -= group["lr"] * 0.9 ** state["steps"] * (state["sum"] / group["turns"]).float()
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(OWN)
    return f"{tmp_path}/mine.py:Own"


@pytest.fixture(params=["lion", "own", *OTHERS])
def kind(request: pytest.FixtureRequest, own: str) -> str:
    return {"lion": LION, "own": own}.get(request.param, request.param)


def whole(folder: Path, kind: str) -> Path:
    """Four epochs with a checkpoint of each, in minibatches that make some eight steps each."""
    rate = Schedule(start=1e-3, end=1e-4)
    run = tiny(4, run="whole", optimizer__kind=kind, optimizer__learning_rate=rate, checkpoint__epochs=1)
    return train(run.replace("checkpoint.keep", 9), folder, panel=False).folder


def test_a_resumed_run_is_equal_to_the_bit(kind: str, tmp_path: Path) -> None:
    first = whole(tmp_path, kind)
    assert epochs_of(first)[-1]["gradient_norm"] > 0
    again = tmp_path / "again"
    shutil.copytree(first, again)
    for path in sorted((again / "checkpoints").iterdir())[2:]:
        shutil.rmtree(path)
    assert resume(again, panel=False).exit_code == 0
    assert difference(first, again) == 0


def test_the_file_is_named_like_every_part_of_ones_own(own: str, tmp_path: Path) -> None:
    run = overrides.apply(tiny(1), [f"optimizer.kind={own}"])
    assert user_code.named_in(run.tree()) == [own]
    assert Run.load(run.tree()) == run
    folder = train(run.replace("run", "x"), tmp_path, panel=False).folder
    assert checkpoint.load(checkpoint.find(folder)).record["code"] == {own: user_code.sha256(own)}
    assert f"resume with: gridmill resume {folder} --code" not in (folder / "log.txt").read_text()  # it is finished
    with pytest.raises(ConfigError) as caught:
        tiny(1, optimizer__kind="adamv")
    assert str(caught.value) == (
        "expected adam, adamw, muon, schedule_free, FILE.py:Class or package.module:Class, got 'adamv'; did you mean "
        "`adam`? - at `$.optimizer.kind`"
    )


def test_a_policy_is_played_without_the_optimizer(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = train(tiny(1, run="x", optimizer__kind=own), tmp_path, panel=False).folder
    monkeypatch.setattr(user_code, "_taken", [])
    Path(user_code.place_of(own)).unlink()
    assert run_of(folder).optimizer.kind == "adam"
    with pytest.raises(user_code.CodeNeeded, match=r"names custom code, .*mine\.py:Own; add --code mine\.py$"):
        resume(folder, ["trainer.total_timesteps=512"], panel=False)


def test_the_run_says_its_numbers() -> None:
    numbers: dict[str, Any] = {"beta1": 0.5, "beta2": 0.75, "eps": 0.5}
    decay, rate = Schedule(start=0.5, end=0.0), Schedule(start=0.1, end=0.0)
    config = OptimizerConfig(kind=LION, learning_rate=rate, weight_decay=decay, **numbers)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = Optimizer(config, {"weight": weight})
    assert optimizer.set(Progress(50, 100, 0, 1)) == pytest.approx(0.05)
    (group,) = optimizer.parts[0].param_groups
    assert (group["lr"], group["weight_decay"]) == pytest.approx((0.05, 0.25))
    assert group["betas"] == (0.5, 0.75)
    assert "eps" not in group  # Lion has none
    sgd = Optimizer(config.replace("kind", "torch.optim:SGD"), {"weight": weight}).parts[0].param_groups[0]
    assert (sgd["lr"], sgd["weight_decay"], sgd["momentum"]) == (0.1, 0.5, 0)


def test_weights_are_kept_within_a_range() -> None:
    trainer = Trainer(tiny(1, optimizer__kind=LION, optimizer__clip_range=0.05))
    trainer.epoch()
    assert max(float(p.detach().abs().max()) for p in trainer.policy.parameters()) <= 0.05 + 1e-6
    trainer.close()


# ---- what is refused when a run is made

BAD = {
    "arguments": ("(self, params, lr=0.1)", "(self, params, lr, rho)",
                  "expected a class that is called with parameters and some of lr, betas, eps, weight_decay, got "
                  "Own(params, lr, rho): missing a required argument: 'rho'"),
    "constructor": ("super().__init__(", "len(3); super().__init__(", "failed in line 6: TypeError: object of type"),
    "closure": ("def step(self):", "def step(self, closure):", "failed"),
    "error": ("0.9 ** state", "1 / 0 ** state", "failed in line 18: ZeroDivisionError: "),
    "still": ("p -= group", "p + group",
              "expected step() without arguments to change the weights, but they did not change"),
    "list": ('state.get("steps", 0) + 1', '[1]', "failed in line 18: TypeError: "),
    "saved": ('state["sum"] / group', 'state.setdefault("all", [0]) and state["sum"] / group',
              "expected a state of tensors and numbers, which can be saved, got list in `all`"),
    "apart": ("self.state[p]", "vars(self).setdefault('kept', {}).setdefault(len(p), {})",
              "steps differ after a resume: it draws random numbers, or remembers something "
              "that is not in its state"),
    "random": (".float()", ".float() * torch.rand(())", "steps differ after a resume: it draws"),
    "by name": ("state = self.state[p]", 'self.state["all"]["n"] = 1; state = self.state[p]',
                "expected a state for each parameter, got one of `all`"),
    "late": ('state["steps"] = ', 'state["late"] = 1; state["steps"] = ', ""),
    "later": ('state["sum"] = ', 'state.update({"two": 2} if state["steps"] > 1 else {}); state["sum"] = ',
              "expected a state that is complete after the first step: optimizer.0.0.two: this optimizer has no such"),
    "more": ("    @torch", "    def state_dict(self):\n        return super().state_dict() | {'mine': 1}\n\n    @torch",
             "expected state_dict() to have only state and param_groups, got `mine`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_resumed_is_refused(name: str, tmp_path: Path) -> None:
    old, new, said = BAD[name]
    assert old in OWN
    file = tmp_path / "bad.py"
    file.write_text(OWN.replace(old, new))
    if not said:
        own_optimizer.refuse_unfit(f"{file}:Own")
        return
    with pytest.raises(ValueError) as caught:
        Trainer(tiny(1, optimizer__kind=f"{file}:Own"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "optimizer.kind" in str(caught.value) or f"`{file}:Own`" in str(caught.value)


def test_a_file_is_saved_as_it_was_loaded(own: str, tmp_path: Path) -> None:
    """The code of a session is what it loaded, whatever somebody writes into the file meanwhile."""
    file = Path(own.partition(":")[0])
    loaded = user_code.sha256(own)

    def edit(epoch: Any) -> None:
        file.write_text(f"{OWN}# epoch {epoch.metrics['epoch']}\n")

    changes = [("optimizer.kind", own), ("run", "x"), ("checkpoint.epochs", 1)]
    folder = train(tiny(2).replace_all(changes), tmp_path, panel=False, callbacks=[edit]).folder
    for place in (folder, folder / "checkpoints" / "epoch-00000002"):
        assert json.loads((place / "run.json").read_text())["code"] == {own: loaded}


def test_what_is_no_optimizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^no optimizer `Linear` \(a Optimizer\) in `torch\.nn`"):
        Trainer(tiny(1, optimizer__kind="torch.nn:Linear"))
    with pytest.raises(ValueError, match=r"failed in line \d+: TypeError: .*step\(\).*closure"):
        Trainer(tiny(1, optimizer__kind="torch.optim:LBFGS"))


def test_a_state_of_another_is_refused(own: str) -> None:
    parameters = {"a": torch.nn.Parameter(torch.ones(2, 3)), "b": torch.nn.Parameter(torch.ones(2))}
    optimizer = Optimizer(OptimizerConfig(kind=own), parameters)
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    kept = optimizer.tensors()
    for change, said in (
        ({"optimizer.0.0.sum": torch.zeros(2, 2, dtype=torch.float64)},
         "optimizer.0.0.sum: expected torch.float64 of the shape (2, 3), got torch.float64 of (2, 2)"),
        ({"optimizer.0.1.steps": torch.tensor(1.0)},
         "optimizer.0.1.steps: expected torch.int64 of the shape (), got torch.float32 of ()"),
        ({"optimizer.0.7.steps": torch.tensor(1)},
         "optimizer.0.7.steps: this optimizer has no such value"),
        ({"optimizer.0.group.0.other": torch.tensor(1)},
         "optimizer.0.group.0.other: this optimizer has no such value"),
        ({"optimizer.0.1.sum": None}, "optimizer.0.1.sum: expected a tensor of this name, got none"),
    ):  # fmt: skip
        saved = {name: tensor for name, tensor in {**kept, **change}.items() if tensor is not None}
        with pytest.raises(ValueError) as caught:
            optimizer.restore(saved)
        assert str(caught.value) == said
    optimizer.restore({name: tensor for name, tensor in kept.items() if ".1." not in name})  # b was never learned
    assert optimizer.tensors().keys() == kept.keys()
