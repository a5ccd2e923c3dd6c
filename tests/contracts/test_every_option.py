"""Every setting of a Run does something: changed, it changes what can be seen.

TABLE names for each path the other values, what else must be set for it to matter, and where to look: the weights after
two epochs unless it says otherwise. A setting that is not in it fails, and so does one that nothing reads.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from small_runs import needs_bf16
from tapes import moves
from tiny import berries, epochs_of, tiny

from gridmill import games, losses, replay
from gridmill.config import Config, user_code
from gridmill.config.schedule import Progress
from gridmill.env import GameConfig
from gridmill.losses import Loss
from gridmill.losses.clone import Clone
from gridmill.losses.contrastive import Contrastive
from gridmill.losses.kickstart import Kickstart
from gridmill.policy import checkpoint
from gridmill.run import Run, Schedule
from gridmill.runs import dry_run, loop, train
from gridmill.runs import evaluator as evaluator_room
from gridmill.runs import group as group_room
from gridmill.runs.monitor import Monitor
from gridmill.train import trainer as trainer_room
from gridmill.train.ranks import ALONE, Ranks
from gridmill.train.trainer import Trainer

pytestmark = pytest.mark.xdist_group("options")  # one process, for they begin with the same few runs

# ---- where to look


@functools.cache
def weights(run: Run) -> str:
    """A hash of the policy after two epochs."""
    trainer = Trainer(run)
    for _ in range(2):
        trainer.epoch()
    found = hashlib.sha256()
    for name, tensor in trainer.weights().items():
        found.update(name.encode() + tensor.numpy().tobytes())
    trainer.close()
    return found.hexdigest()


def session(run: Run) -> Path:
    """A whole run; its folder."""
    return train(run, tempfile.mkdtemp(), panel=False).folder


OTHERS = Path(tempfile.mkdtemp())
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LION = f"{EXAMPLES}/own_optimizer.py:Lion"


def make_others() -> None:
    """OTHERS/first and OTHERS/second are runs to begin with or to learn from."""
    for seed, name in enumerate(("first", "second")):
        if not (OTHERS / name).exists():
            train(tiny(2, seed=5 + seed, run=name), OTHERS, panel=False)


def kickstarted(run: Run) -> str:
    make_others()
    return weights(run)


def replayed(run: Run) -> str:
    """Weights of a run that learns from replays in OTHERS, in which a person plays one of two agents."""
    for seed, name in enumerate(("first", "second")):
        if not (OTHERS / f"{name}.replay").exists():
            replay.write(OTHERS / f"{name}.replay", replay.record(berries(), seed, moves(20, 2), {"0": "human"}))
    return weights(run)


def begun(run: Run) -> Any:
    """The weights in the end."""
    make_others()
    return sorted((n, w.tolist()) for n, w in checkpoint.load_policy(checkpoint.find(session(run))).policy.items())


def files(pattern: str) -> Callable[[Run], Any]:
    """Names of files of the run's folder."""
    return lambda run: (lambda folder: sorted(str(p.relative_to(folder)) for p in folder.glob(pattern)))(session(run))


def metric(name: str) -> Callable[[Run], Any]:
    """In which epochs a metric was written, by the beginning of its name."""
    return lambda run: [any(key.startswith(name) for key in record) for record in epochs_of(session(run))]


def looks(run: Run) -> float:
    """How long the monitor waits between two looks."""
    seen: list[float] = []

    def watched(seconds: float) -> Monitor:
        seen.append(seconds)
        return Monitor(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "Monitor", watched)
        session(run)
    return seen[0]


def takes(run: Run) -> int:
    """How often a run asks its monitor what was seen."""
    with mock.patch.object(Monitor, "take", return_value={}) as take:
        session(run)
    return take.call_count


def patience(run: Run) -> float:
    """How long processes of this run would wait for each other."""
    seen: list[float] = []

    def alone(say: Any) -> Any:
        seen.append(say()[1])
        return ALONE, {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_room, "join", alone)
        session(run)
    return seen[-1]


def compared(run: Run) -> list[int]:
    """After which epochs their weights would be compared."""
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ranks, "compare", lambda self, weights, epoch: seen.append(epoch))
        session(run)
    return seen


def windows(run: Run) -> list[str]:
    """The lines of metrics.jsonl about windows."""
    lines = (session(run) / "metrics.jsonl").read_text().splitlines()
    return [line for line in lines if '"window": ' in line]


def log(words: str) -> Callable[[Run], Any]:
    """The lines of log.txt with these words."""
    return lambda run: [line for line in (session(run) / "log.txt").read_text().splitlines() if words in line]


def made(look: Callable[[Trainer], Any]) -> Callable[[Run], Any]:
    """Something of a trainer that was just made."""

    def observe(run: Run) -> Any:
        trainer = Trainer(run)
        try:
            return look(trainer)
        finally:
            trainer.close()

    return observe


def compiled(run: Run) -> Any:
    """How the policy was given to torch's compiler, if it was."""
    with mock.patch.object(torch, "compile", side_effect=lambda module, mode: module) as compiler:
        Trainer(run).close()
    return [call.kwargs for call in compiler.call_args_list]


def learned_rows(run: Run) -> Any:
    """How many segments the policy learns from at a time."""
    trainer, seen = Trainer(run), set[int]()
    plain = trainer.learner.forward

    def forward(obs: Any, *rest: Any) -> Any:
        seen.add(obs.shape[1])
        return plain(obs, *rest)

    trainer.learner.forward = forward
    trainer.epoch()
    trainer.close()
    return seen


def on_cuda(run: Run) -> Any:
    """Where the parts of a run on a GPU would be: such a trainer cannot be made here."""
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        trainer_room.use_tf32(run.trainer.tf32)
        kept = trainer_room.experience_device(run.trainer.experience_device, torch.device("cuda"))
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, kept.type
    finally:
        trainer_room.use_tf32(before)


def device(run: Run) -> str:
    try:
        return made(lambda trainer: trainer.device.type)(run)  # type: ignore[no-any-return]
    except ValueError as error:
        return str(error)


def evaluations(run: Run) -> list[list[str]]:
    """The commands with which evaluations would have been started."""
    started: list[list[str]] = []

    def popen(words: list[str], **_: Any) -> Any:
        started.append([word for word in words if not word.startswith("/")])
        raise OSError("not now")

    with mock.patch.object(evaluator_room, "subprocess", types.SimpleNamespace(Popen=popen, PIPE=-1)):
        session(run)
    return started


def words(run: Run) -> list[str]:
    """Every word of these, once: how many evaluations there are hangs on how long the run takes."""
    return sorted({word for command in evaluations(run) for word in command})


def wandb(run: Run) -> Any:
    """What W&B's and TensorBoard's packages were told; fakes stand in for them."""
    told: list[Any] = []
    fake: Any = types.ModuleType("wandb")
    fake.Settings = lambda **_: None
    quiet = types.SimpleNamespace(log=lambda *_, **__: None, finish=lambda: None)
    fake.init = lambda project, mode, **_: (told.append((project, mode)), quiet)[1]
    board: Any = types.ModuleType("tensorboard.summary")
    writer = types.SimpleNamespace(add_scalar=lambda *_: None, flush=lambda: None, close=lambda: None)
    board.Writer = lambda path: (told.append(Path(path).name), writer)[1]
    modules = {"wandb": fake, "tensorboard": types.ModuleType("tensorboard"), "tensorboard.summary": board}
    with pytest.MonkeyPatch.context() as patch:  # not mock.patch.dict: it would also forget what is imported meanwhile
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        session(run)
    return told


def exit_code(run: Run) -> int:
    return train(run, tempfile.mkdtemp(), panel=False).exit_code


def trace(run: Run) -> list[dict[str, Any]]:
    """The events of the run's last trace."""
    file = max((session(run) / "traces").glob("*.json"))
    return json.loads(file.read_text())["traceEvents"]  # type: ignore[no-any-return]


def facts(run: Run) -> dict[str, bool]:
    """Which of these a trace tells of anything."""
    told = [event.get("args", {}) for event in trace(run)]
    return {fact: any(fact in args for args in told) for fact in ("Input Dims", "world", "Call stack", "Bytes")}


def traced_steps(run: Run) -> Any:
    """Which steps of the rollout and which minibatches are in a trace."""
    file = max((session(run) / "traces").glob("*.json"))
    return json.loads(file.read_text())["gridmill"]["steps"]


# ---- the table


@dataclass
class Case:
    """Other values than the first run's, what else is set in all of them, where to look."""

    values: tuple[Any, ...]
    see: Callable[[Run], Any] = weights
    with_: dict[str, Any] = field(default_factory=dict)
    epochs: int = 2

    def base(self) -> Run:
        """The first run: in one lane and whole minibatches, which is quickest, unless the case says otherwise."""
        return tiny(self.epochs, **({"trainer__async_factor": 1, "trainer__max_microbatch": 0} | self.with_))


def to(*values: Any, see: Callable[[Run], Any] = weights, epochs: int = 2, **with_: Any) -> Case:
    return Case(values, see, with_, epochs)


ROUNDS: dict[str, Any] = {"trainer__update_epochs": 3, "optimizer__learning_rate": 0.02}  # so that ratios leave 1
VTRACE = ROUNDS | {"trainer__advantage": "vtrace"}
JUDGE: dict[str, Any] = {"evaluation__enabled": True, "checkpoint__epochs": 1}
PROFILE: dict[str, Any] = {"profiler__enabled": True, "profiler__interval_epochs": 1, "profiler__wait_steps": 0}
PROFILE |= {"profiler__active_steps": 1}
TRACES = {"see": files("traces/*.json"), "epochs": 6} | PROFILE

SIGNAL: tuple[Any, ...] = ({"value": "berry.get", "weight": 1.0},)
MANY = {"vary": [{"kind": "range", "path": "max_steps", "low": 2, "high": 9_000}], "target": 2.0}
BUSHES = {"vary": [{"kind": "values", "path": "map.objects.bush", "values": [1, 3, 9]}], "target": 2.0}
FEW: dict[str, Any] = {"sets": {"few": BUSHES | {"game": berries().replace("max_steps", 5).tree()}}, "tries": 1}
FEW |= {"patience": 8, "tasks": 2}


def choices(run: Run) -> Any:
    """What a curriculum has chosen and made of it after eight epochs."""
    trainer = Trainer(run)
    for _ in range(8):
        trainer.epoch()
    assert trainer.curriculum is not None
    state = trainer.curriculum.state()
    trainer.close()
    return state["counters"], state["programs"], state["next"]


TASKS = {"see": choices, "epochs": 8, "curriculum": FEW, "score": "cell.visited"}

VECTORS: dict[str, Any] = {"game": games.prospector(), "policy__encoder": "mlp", "score": ""}

TAUGHT: dict[str, Any] = {
    "game": games.arena_basic_easy_shaped(num_agents=6, max_steps=40), "teacher": "arena", "score": "",
    "trainer__batch_size": 384, "trainer__minibatch_size": 96, "trainer__max_microbatch": 48,
}  # fmt: skip
CLONE: dict[str, Any] = TAUGHT | {"losses__clone": Clone()}
REPLAYS: dict[str, Any] = {"losses__clone": Clone(replays=str(OTHERS / "first.replay"))}
KICKSTART: dict[str, Any] = {"losses__kickstart": Kickstart(teacher=str(OTHERS / "first"))}
CONTRAST: dict[str, Any] = {"losses__contrastive": Contrastive(weight=1.0)}

TABLE: dict[str, Case] = {
    "recipe": to("other", see=log("recipe: "), run="mine"),
    "run": to("mine", see=lambda run: session(run).name == "mine"),
    "seed": to(1),
    "game": to(berries().replace("max_steps", 10), berries().replace("rewards.0.weight", 1.0), trainer__reward="raw"),
    "evaluation_game": to(berries().replace("max_steps", 10), see=lambda run: run.played_game.max_steps),
    "curriculum.sets": to({"many": MANY}, FEW["sets"], {"many": MANY, **FEW["sets"]}),
    "curriculum.choose": to("uniform", **TASKS),
    "curriculum.tasks": to(3, **TASKS),
    "curriculum.fast": to(0.5, **TASKS),
    "curriculum.slow": to(0.2, **TASKS),
    "curriculum.explore": to(0.0, 1.0, **TASKS),
    "curriculum.tries": to(10, **TASKS),
    "curriculum.patience": to(6, **TASKS),
    "curriculum.least_progress": to(1.0, **TASKS),
    "score": to("reward", see=lambda run: [record.get("score") for record in epochs_of(session(run))], epochs=4),
    "teacher": to("", see=made(lambda trainer: trainer.env.teacher), **TAUGHT),
    "supervised_steps": to(1, 10_000, **CLONE),
    "players": to({"arena": 0.5}, {"arena": 1 / 3}, **TAUGHT),
    "policy.network": to(f"{EXAMPLES}/own_network.py:Remembers"),
    "policy.encoder": to("cnn", "attend"),  # auto is bag here
    "policy.core": to("none", "lstm", "gru"),
    "policy.hidden": to(32),
    "policy.layers": to(0, 2),
    "policy.latents": to(4, policy__encoder="attend"),
    "policy.heads": to(2, policy__encoder="attend"),
    "policy.name_agents": to(True),
    "policy.actor_gain": to(0.1),
    "policy.init_from": to(str(OTHERS / "first"), see=begun),
    "losses.ppo.weight": to(0.5, Schedule(start=1.0, end=0.0)),
    "losses.ppo.begin": to(1.0, 1_000.0),
    "losses.ppo.until": to(128.0),
    "losses.ppo.clip": to(0.01, **ROUNDS),
    "losses.ppo.entropy_weight": to(0.1),
    "losses.value.weight": to(0.1),
    "losses.value.begin": to(1.0, 1_000.0),
    "losses.value.until": to(128.0),
    "losses.value.clip": to(0.01, **ROUNDS),
    "losses.clone.weight": to(0.5, 0.0, **CLONE),
    "losses.clone.begin": to(1.0, 1_000.0, **CLONE),
    "losses.clone.until": to(384.0, **CLONE),
    "losses.clone.lead": to(0.5, 1.0, **CLONE),
    "losses.clone.replays": to(str(OTHERS / "*.replay"), see=replayed, **REPLAYS),
    "losses.clone.who": to(("human",), see=replayed, **REPLAYS),
    "losses.kickstart.weight": to(0.5, 0.0, see=kickstarted, **KICKSTART),
    "losses.kickstart.begin": to(1.0, 1_000.0, see=kickstarted, **KICKSTART),
    "losses.kickstart.until": to(128.0, see=kickstarted, **KICKSTART),
    "losses.kickstart.teacher": to(str(OTHERS / "second"), see=kickstarted, **KICKSTART),
    "losses.kickstart.value_weight": to(0.1, see=kickstarted, **KICKSTART),
    "losses.contrastive.weight": to(0.5, **CONTRAST),
    "losses.contrastive.begin": to(1.0, 1_000.0, **CONTRAST),
    "losses.contrastive.until": to(128.0, **CONTRAST),
    "losses.contrastive.offset": to(2, **CONTRAST),
    "losses.contrastive.size": to(8, **CONTRAST),
    "losses.contrastive.temperature": to(0.5, **CONTRAST),
    "optimizer.kind": to("adamw", "muon", "schedule_free", LION, optimizer__weight_decay=0.1),
    "optimizer.learning_rate": to(0.002, Schedule(start=1e-3, end=0.0)),
    "optimizer.beta1": to(0.5),
    "optimizer.beta2": to(0.9),
    "optimizer.eps": to(1e-2),
    "optimizer.weight_decay": to(0.1),
    "optimizer.max_grad_norm": to(0.0, 0.001, optimizer__eps=1e-2),
    "optimizer.clip_range": to(0.1, Schedule(start=0.2, end=0.1)),
    "trainer.total_timesteps": to(384, see=lambda run: len(epochs_of(session(run)))),
    "trainer.num_worlds": to(8),
    "trainer.threads": to(2, see=made(lambda trainer: (trainer.workers.count, trainer.env.threads))),
    "trainer.async_factor": to(4, 2, see=made(lambda trainer: len(trainer.rollout.lanes))),
    "trainer.batch_size": to(256),
    "trainer.minibatch_size": to(64, 128),
    "trainer.max_microbatch": to(8, 32, see=learned_rows, trainer__max_microbatch=16),
    "trainer.bptt_horizon": to(16),
    "trainer.update_epochs": to(2),
    "trainer.device": to("cuda", see=device),
    "trainer.compile": to("default", "reduce-overhead", "max-autotune", see=compiled),
    "trainer.precision": to("bf16"),
    "trainer.env_impl": to("reference", see=made(lambda trainer: type(trainer.env)), **VECTORS),
    "trainer.tf32": to(False, see=on_cuda),
    "trainer.experience_device": to("cpu", see=on_cuda),
    "trainer.masks": to(False),
    "trainer.advantage": to("vtrace", **ROUNDS),
    "trainer.gamma": to(0.9),
    "trainer.gae_lambda": to(0.5),
    "trainer.rho_clip": to(0.5, **VTRACE),
    "trainer.c_clip": to(0.5, **VTRACE),
    "trainer.target_kl": to(1e-9, **ROUNDS),
    "trainer.normalize_advantages": to(False),
    "trainer.signal": to(SIGNAL, ({"value": "cell.visited", "weight": 1.0}, *SIGNAL), trainer__reward="raw"),
    "trainer.reward": to("raw", "centered", trainer__normalize_advantages=False),
    "trainer.reward_time_scale": to(100.0, 200.0),
    "trainer.reward_clip": to(0.0, 0.05, 0.1, trainer__reward_clip=0.2),
    "trainer.shared_advantage": to(0.5),
    "trainer.prio_alpha": to(0.8),
    "trainer.prio_beta0": to(0.9, trainer__prio_alpha=0.8),
    "trainer.window_env_steps": to(10, 50, see=windows),
    "trainer.desync_episodes": to(False),
    "trainer.pieces": to(2),
    "ranks.timeout": to(30.0, see=patience),
    "ranks.compare_epochs": to(1, 2, see=compared, epochs=3),
    "checkpoint.epochs": to(1, see=files("checkpoints/*"), epochs=3),
    "checkpoint.windows": to(True, see=files("checkpoints/*"), epochs=3, trainer__window_env_steps=64),
    "checkpoint.seconds": to(1e-6, see=files("checkpoints/*"), epochs=3),
    "checkpoint.keep": to(2, see=files("checkpoints/*"), epochs=6, checkpoint__epochs=1, score="length"),
    "evaluation.enabled": to(True, see=evaluations, checkpoint__epochs=1),
    "evaluation.epochs": to(2, see=evaluations, epochs=4, **JUDGE),
    "evaluation.seconds": to(1e6, see=evaluations, epochs=4, **JUDGE),
    "evaluation.episodes": to(3, see=evaluations, **JUDGE),
    "evaluation.final_seconds": to(0.0, see=evaluations, **(JUDGE | {"checkpoint__epochs": 0})),
    "evaluation.replays_every_epochs": to(1, 2, see=evaluations, epochs=4, **JUDGE),
    "evaluation.replay_weights": to(True, see=words, evaluation__replays_every_epochs=1, **JUDGE),
    "analysis.gradient_epochs": to(1, 2, see=metric("gradient/")),
    "analysis.weight_epochs": to(1, 2, see=metric("weight/")),
    "monitor.seconds": to(0.5, see=looks),
    "monitor.epochs": to(2, see=takes),
    "profiler.enabled": to(True, see=files("traces/*.json"), epochs=6, profiler__interval_epochs=2),
    "profiler.interval_epochs": to(4, **TRACES),
    "profiler.wait_steps": to(1, see=traced_steps, **PROFILE),
    "profiler.warmup_steps": to(2, see=traced_steps, **PROFILE),
    "profiler.active_steps": to(2, see=traced_steps, **PROFILE),
    "profiler.record_shapes": to(True, see=facts, **PROFILE),
    "profiler.memory": to(True, see=facts, **PROFILE),
    "profiler.core": to(False, see=facts, **PROFILE),
    "profiler.stacks": to(True, see=facts, **PROFILE),
    "profiler.rollout_timing": to(1, 2, see=lambda run: len(log("env wait")(run))),
    "track.tensorboard": to(True, see=wandb),
    "track.wandb": to("offline", "online", see=wandb),
    "track.project": to("mine", see=wandb, track__wandb="offline"),
    "guard.max_kl": to(1e-12, see=log("warning: KL")),
    "guard.min_entropy": to(100.0, see=log("warning: entropy")),
    "guard.min_explained_variance": to(2.0, see=log("warning: explained variance")),
    "guard.stop": to(True, see=exit_code, guard__max_kl=1e-12),
}


def paths(kind: type[Config], start: str = "") -> list[str]:
    """Every setting of a record; a game is one setting here, its own are tested with the engine."""
    found: list[str] = []
    for name, about in kind.model_fields.items():
        inner = about.annotation
        if isinstance(inner, type) and issubclass(inner, Config) and not issubclass(inner, GameConfig):
            found += paths(inner, f"{start}{name}.")
        elif name == "losses":
            shipped = {name: user_code.find(name, losses.__name__, Loss, "loss") for name in losses.names()}
            found += [path for name, loss in shipped.items() for path in paths(loss, f"losses.{name}.")]
        else:
            found.append(f"{start}{name}")
    return found


def test_every_setting_is_in_the_table() -> None:
    assert set(TABLE) == set(paths(Run))


WITH_BF16 = ("optimizer.kind", "trainer.precision")


@functools.cache
def steady(see: Callable[[Run], Any], run: Run) -> str:
    """What is looked at, which does not change by itself; looked at twice for all settings that begin with this run."""
    first = repr(see(run))
    assert repr(see(run)) == first
    return first


def marks_of(path: str) -> list[pytest.MarkDecorator]:
    """On every change all settings that show in the weights, and each third of those that take whole runs to show."""
    quick = (weights, kickstarted, replayed)
    costly = path != "game" and TABLE[path].see not in quick and list(TABLE).index(path) % 3 > 0
    return [needs_bf16] * (path in WITH_BF16) + [pytest.mark.long] * costly


@pytest.mark.parametrize("values", [1, pytest.param(None, marks=pytest.mark.long)], ids=["first", "all"])
@pytest.mark.parametrize("path", [pytest.param(path, marks=marks_of(path)) for path in TABLE])
def test_it_changes_what_can_be_seen(path: str, values: int | None) -> None:
    """The first of the other values; long: all of them."""
    case = TABLE[path]
    base = case.base()
    runs = [base, *(base.replace(path, value) for value in case.values[:values])]
    assert len(set(runs)) == len(runs)
    seen = [steady(case.see, base), *(repr(case.see(run)) for run in runs[1:])]
    assert len(set(seen)) == len(seen), seen


# ---- schedules

HALF = Progress(500, 1_000, 3, 10, {"score": 2.0})
SCHEDULES: dict[str, tuple[Schedule, Any]] = {
    "start": (Schedule(start=1.0, end=0.0), 2.0),
    "end": (Schedule(start=1.0, end=0.0), 0.5),
    "shape": (Schedule(start=1.0, end=0.0, until=2_000), "cosine"),
    "over": (Schedule(start=1.0, end=0.0), "epochs"),
    "begin": (Schedule(start=1.0, end=0.0), 250.0),
    "until": (Schedule(start=1.0, end=0.0), 750.0),
    "stairs": (Schedule(start=1.0, end=0.0, until=900, shape="stairs"), 3),
}


@pytest.mark.parametrize("name", Schedule.model_fields)
def test_every_part_of_a_schedule_changes_the_number(name: str) -> None:
    schedule, value = SCHEDULES[name]
    assert HALF.at(schedule) != HALF.at(schedule.replace(name, value))


def test_the_plan_shows_every_setting() -> None:
    shown = dry_run.page(tiny(), tiny(), "none")
    others = tuple(f"losses.{name}." for name in losses.names() if name not in tiny().losses)
    for path in set(TABLE) - {"game", "recipe"}:
        if path.startswith(others):
            continue
        assert f" {path} = " in shown
