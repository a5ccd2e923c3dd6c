"""Trainer: one environment, one policy, and the epoch: rollout -> advantages -> losses -> optimizer -> metrics.

It owns everything that changes during a run and can hand it out as tensors and take it back, equal to the bit on a CPU.
It writes no files: `runs/loop.py` runs it with logs, checkpoints and signals; the workshop measures it as it is.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill import _native
from gridmill.config import ConfigError, user_code
from gridmill.config.schedule import Progress
from gridmill.curriculum import Curriculum
from gridmill.env import Env, Episodes
from gridmill.env.windows import MetricsWindow
from gridmill.games.make import make
from gridmill.losses import TEACHER
from gridmill.policy import onednn, which
from gridmill.policy.build import build
from gridmill.policy.network import Policy
from gridmill.policy.spec import Spec
from gridmill.run import Run
from gridmill.sizing import Sizes, memory, pieces_of, players_of_agents, scripted_players, share_of
from gridmill.sizing import sizes as sizes_of
from gridmill.train.actors import Actor, OwnActor
from gridmill.train.experience import Experience, core_columns, loss_columns
from gridmill.train.gathered import gather
from gridmill.train.learner import Learned, Learner
from gridmill.train.ranks import ALONE, Ranks
from gridmill.train.restored import refuse_other
from gridmill.train.rollout import Rollout
from gridmill.train.watch import Watch
from gridmill.train.windows import RunWindows
from gridmill.train.workers import WorkerPool

RECENT = 240  # agent-episodes that the running score is a mean of


class BrokenNumbers(RuntimeError):
    """A reward, an observation or a part of the state is no number: nothing learned from here on could be trusted."""


class Trainer:
    """A run in memory. `epoch` is one turn of the loop and returns its metrics."""

    def __init__(self, run: Run, folder: Path | None = None, ranks: Ranks = ALONE) -> None:
        _native.keep_freed_memory()  # every minibatch needs the same blocks
        refuse_deadly(run)
        refuse_unknown_players(run)
        self.run, self.folder, self.ranks = run, folder, ranks
        t, share = run.trainer, share_of(run, ranks.count)
        self.device = _device(t.device)
        self.sizes = sizes_of(run)
        self.own = sizes_of(share, processes=ranks.local)  # this rank's share of them; without others, all
        self.env = _environment(run, self.own, ranks)
        try:
            self.curriculum = _curriculum(run, self.env, ranks)
            memory(share, self.env)  # refuses what does not fit before the rest is made
            names = [*self.env.stat_names, "reward", "length"]
            run.game.score_of(dict.fromkeys(names, np.zeros(0)), run.score)  # a wrong name, before any episode ends
        except ValueError:
            self.env.close()
            raise
        self.spec = Spec.of(self.env, run.policy.name_agents)
        if self.device.type == "cuda":
            use_tf32(t.tf32)
        self._torch_threads = torch.get_num_threads()
        if self.device.type == "cpu":
            torch.set_num_threads(1)  # the workers are the threads
        self.workers = WorkerPool(self.own.threads if self.device.type == "cpu" else 1)
        self.policy = build(run.policy, self.spec, run.seed).place(self.device)
        try:
            refuse_missing_hidden(run, self.policy)
        except ConfigError:
            self.close()
            raise
        forward: Callable[..., Any] = self.policy
        if t.compile != "off":
            forward = torch.compile(self.policy, mode=t.compile)
        autocast = self._autocast()
        kept = experience_device(t.experience_device, self.device)
        table = core_columns(self.spec, self.env.masks is not None, self.env.signal is not None, bool(run.teacher))
        table |= loss_columns(run.losses, self.env, self.spec, run.policy.hidden)
        self.experience = Experience(self.own, table, self.policy.state_size, kept)
        if self.device.type != "cpu" and t.compile == "off" and self.policy.any_length:
            self.experience.longest = 1  # it grows; a compiled graph has one shape
        scripts = scripted_players(run)
        frozen = {name: self._rows_of(agents) for name, agents in self._players().items() if name not in scripts}
        learned = self._rows_of(self.sizes.learners) if run.players else None
        self.rollout = Rollout(
            self.env, forward, self.own, self.experience, self.workers, self.device, autocast, run.seed,
            self.policy.state_size, self.policy.frozen, learned, frozen, ranks.rank,
        )  # fmt: skip
        self.learner = Learner(run, self.policy, forward, self.own, self.workers, self.device, autocast, ranks)
        self.agent_steps = self.epochs = self.skipped = self.trained_steps = 0
        self.recent = np.zeros(0)  # scores of the newest agent-episodes that were learned from
        self.learned: Learned | None = None  # of the newest epoch
        self.last: dict[str, float] = {}  # each metric as it was last seen, for schedules that follow one
        self.windows = RunWindows(t.window_env_steps, self.env, self.sizes.learners) if t.window_env_steps else None
        self.full_windows: list[MetricsWindow] = []  # of the newest epoch
        self.clock: dict[str, int] = {}  # of the core's threads, after the newest rollout
        self.teaching = bool(run.teacher)  # an env begins with its teacher on
        self._teach(False)
        self.env.reset()
        if self.curriculum is not None:
            self.curriculum.assign_next()
            self.rollout.begun = self.curriculum.hand_out

    def _autocast(self) -> Callable[[], AbstractContextManager[object]]:
        dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16}
        if (precision := self.run.trainer.precision) in dtypes:
            return lambda: torch.autocast(self.device.type, dtypes[precision])
        return contextlib.nullcontext

    def _rows_of(self, agents: Sequence[int]) -> NDArray[np.int64]:
        """The rows of some agents in all worlds of the env."""
        worlds = np.arange(self.env.num_worlds, dtype=np.int64)[:, None]
        return np.ravel(worlds * self.env.num_agents + np.array(agents, np.int64))

    def _players(self) -> dict[str, list[int]]:
        """The agents of a world that others act for, by who does."""
        found: dict[str, list[int]] = {}
        for agent, name in enumerate(players_of_agents(self.run, self.env.num_agents)):
            if name:
                found.setdefault(name, []).append(agent)
        return found

    def watch(self, who: Watch | None) -> None:
        """Set the observer that is told when the parts of an epoch run; None removes it."""
        self.rollout.watch = self.learner.watch = who

    def _teach(self, on: bool) -> None:
        """Whether the env's teacher is asked."""
        if self.run.teacher and on != self.teaching:
            self.teaching = on
            self.env.teach(on)

    @property
    def native(self) -> bool:
        """Whether native kernels run for the parts of the network that have one."""
        t = self.run.trainer
        return self.device.type == "cpu" and t.precision == "fp32" and t.compile == "off"

    @property
    def done(self) -> bool:
        return self.agent_steps >= self.run.trainer.total_timesteps

    @property
    def total_steps(self) -> int:
        """Agent-steps at the end of the run, in whole epochs; before a resume they may have had another size."""
        return self.agent_steps + self.epochs_left * self.sizes.batch_size

    @property
    def epochs_left(self) -> int:
        return -(-max(0, self.run.trainer.total_timesteps - self.agent_steps) // self.sizes.batch_size)

    def progress(self) -> Progress:
        total = self.epochs + self.epochs_left
        return Progress(self.agent_steps, self.total_steps, self.epochs, total, self.last)

    def epoch(self) -> dict[str, Any]:
        """One rollout and the learning from it; returns the metrics of both."""
        began = time.perf_counter()
        self.ranks.at(f"collecting epoch {self.epochs + 1}")
        self._collect()
        collected = time.perf_counter()
        episodes = self._episodes()
        scores = self._scores(episodes)
        self.ranks.at(f"learning from epoch {self.epochs + 1}")
        learned = self.learner.learn(self.experience, self.progress())
        self.learned = learned
        ended = time.perf_counter()
        self.agent_steps += self.sizes.batch_size
        self.epochs += 1
        self.trained_steps += learned.trained_steps
        self.skipped += learned.skipped
        metrics: dict[str, Any] = {
            "epoch": self.epochs,
            "agent_steps": self.agent_steps,
            "total_timesteps": self.total_steps,
            "sps": self.sizes.batch_size / (ended - began),
            "reward": self._mean(self.experience.rewards),
            "skipped_updates": self.skipped,
            "time/rollout": collected - began,
            "time/learn": ended - collected,
        }
        if self.run.trainer.signal:
            metrics["signal"] = self._mean(self.experience.signal)
        metrics |= {f"time/{part}": seconds for part, seconds in self._times().items()}
        metrics |= learned.metrics | self._statistics(episodes, scores)
        metrics |= {} if self.curriculum is None else self.curriculum.metrics
        metrics = self.ranks.metrics_of_first(metrics)
        every = self.run.ranks.compare_epochs
        if every and self.epochs % every == 0:
            self.ranks.compare(self.weights, self.epochs)
        self.last |= {
            name: value for name, value in metrics.items() if isinstance(value, int | float) and math.isfinite(value)
        }
        return metrics

    def _episodes(self) -> Episodes:
        """Those that ended in a rollout, in all worlds; what else its steps brought goes to whoever counts it."""
        env, x, first = self.env, self.experience, self.ranks.rank * self.own.num_worlds
        episodes = env.take_episodes()
        if self.ranks.count > 1 and episodes:
            episodes["world"] = episodes["world"] + first
        shape = (-1, env.num_worlds, len(self.own.learners))
        ended = (x.terminals | x.truncations).cpu().numpy().reshape(shape)[:, :, 0]
        steps = {} if self.windows is None else self.windows.steps(x)
        handed_out = [] if self.curriculum is None else self.curriculum.handed_out
        found = gather(self.ranks, episodes, ended, steps, handed_out, self._broken_numbers())
        if found.broken:
            raise BrokenNumbers(found.broken)
        if self.windows is not None:
            self.full_windows = self.windows.add(found.steps, found.ended, found.episodes)
        if self.curriculum is not None:
            others = [of for rank, of in enumerate(found.handed_out) if rank != self.ranks.rank]
            self.curriculum.take(each for of in others for each in of)
        return found.episodes

    def _mean(self, column: Tensor) -> float:
        """Of a column, over the rows of all ranks."""
        if self.sizes.pieces == 1:
            return float(column.mean())
        ((_, mean, _),) = self.ranks.moments([[part] for part in self.experience.by_piece(column)])
        return float(mean)

    def _collect(self) -> None:
        """A rollout; teachers are asked only while a loss that counts needs their answers."""
        now = self.progress()
        active = self.run.active_losses(now).values()
        needed = {name: column for loss in active for name, column in loss.needs().items()}
        self._teach(any(column.env == TEACHER for column in needed.values()))
        if self.run.trainer.signal:
            self.env.weigh_signal([now.at(term.weight) for term in self.run.trainer.signal])
        self.rollout.collect(max((loss.leads(now) for loss in active), default=0.0), needed)

    def _times(self) -> dict[str, float]:
        """Seconds of the rollout's parts, and of the core's threads where they are timed."""
        times = dict(self.rollout.times)
        times["teacher"] = times["teacher_forward"] + times["teacher_store"]
        if not self.run.teacher and not self.rollout.actors:
            times = {name: seconds for name, seconds in times.items() if not name.startswith("teacher")}
        if not self.rollout.players:
            del times["players"]
        names = {"total": "core", "teacher": "teacher_calls", "players": "player_calls"}
        clock = self.env.step_timing_total or {}
        for name, label in names.items():
            if name in clock:
                times[label] = 1e-9 * (clock[name] - self.clock.get(name, 0))
        self.clock = clock
        return times

    def _broken_numbers(self) -> str:
        """What is no number, and where; empty if all are."""
        x = self.experience
        checked = {"reward": x.rewards} | ({"signal": x.signal} if "signal" in x.columns else {})
        checked |= {"observation": x.obs} if x.obs.is_floating_point() else {}
        for name, numbers in checked.items():
            if math.isfinite(float(numbers.sum())):  # what is not finite makes no finite sum: one pass instead of three
                continue
            for first in torch.nonzero(~torch.isfinite(numbers))[:1].tolist():
                step, row = first[:2]
                row = row if self.rollout.learned is None else int(self.rollout.learned[row])
                row += self.ranks.rank * self.env.num_rows
                return (
                    f"{name} of row {row} (world {row // self.env.num_agents}) is {float(numbers[tuple(first)])} "
                    f"at step {self.rollout.step - self.sizes.horizon + step} of the run; expected finite numbers"
                )
        return ""

    def _scores(self, episodes: Episodes) -> NDArray[np.float64]:
        """The score of every agent-episode, by the game that it was played in; a curriculum learns from them."""
        if self.curriculum is not None:
            return self.curriculum.learn(episodes)
        return self.run.game.score_of(episodes, self.run.score)

    def _statistics(self, episodes: Episodes, scores: NDArray[np.float64]) -> dict[str, float]:
        """Means of the finished agent-episodes; those cut short at the start of a run tell nothing and are left out."""
        whole = ~episodes["desynced"]
        others = self._of_players(episodes.where(whole))
        whole &= np.isin(episodes["agent"], self.sizes.learners)
        kept = episodes.where(whole)
        if kept.count == 0:
            known = {"score_recent": float(np.mean(self.recent))} if len(self.recent) else {}
            return others | {"episodes": 0} | known
        score = scores[whole]
        self.recent = np.concatenate((self.recent, score))[-RECENT:]
        means = kept.means()
        means["episode_return"] = means.pop("reward")  # `reward` is the mean of a step
        return others | {
            "episodes": kept.count,
            "score": float(np.mean(score)),
            "score_recent": float(np.mean(self.recent)),
            **means,
        }

    def _of_players(self, episodes: Episodes) -> dict[str, float]:
        """Of those who play beside the policy, by name: how many episodes ended, their mean score and return."""
        found: dict[str, float] = {}
        for name, agents in self._players().items():
            kept, label = episodes.where(np.isin(episodes["agent"], agents)), f"player/{Path(name).name}"
            found[f"{label}/episodes"] = kept.count
            if kept.count:
                found[f"{label}/score"] = float(np.mean(self.run.game.score_of(kept, self.run.score)))
                found[f"{label}/episode_return"] = float(np.mean(kept["reward"]))
        return found

    # ---- state

    def tensors(self) -> dict[str, Tensor]:
        """Everything that changes during a run except the policy's weights; on rank 0 of all ranks, if all call it."""
        self.ranks.at(f"saving epoch {self.epochs}")
        parts = self.ranks.to_first(self.env.save())
        saved = parts[0] if len(parts) == 1 else self.env.join_saved(parts) if parts else b""
        worlds = torch.frombuffer(bytearray(saved or b"-"), dtype=torch.uint8)
        counters = [self.agent_steps, self.epochs, self.skipped, self.trained_steps, self.rollout.step]
        windows = {} if self.windows is None else self.windows.tensors()
        tasks = {} if self.curriculum is None else {"curriculum": _as_tensor(self.curriculum.state())}
        return (
            self.learner.tensors()
            | {name: self.ranks.rows(tensor.cpu().clone()) for name, tensor in self._by_row().items()}
            | windows
            | tasks
            | {
                "worlds": worlds,
                "recent": torch.from_numpy(self.recent.copy()),
                "counters": torch.tensor([*counters, self.learner.in_a_row, self.teaching], dtype=torch.int64),
            }
        )

    def weights(self) -> dict[str, Tensor]:
        """The policy's weights by name."""
        return {name: value.detach().cpu().clone() for name, value in self.policy.state_dict().items()}

    def restore(self, weights: dict[str, Tensor], tensors: dict[str, Tensor], last: dict[str, float]) -> None:
        """Continue from this state; ValueError if it does not fit this trainer."""
        refuse_other(tensors, self._shaped(), self._needed())
        mine = self._by_row()
        tensors = {name: self.ranks.own_rows(x) if name in mine else x for name, x in tensors.items()}
        self.policy.load_state_dict(weights)
        self.learner.restore(tensors)
        if self.windows is not None:
            self.windows.restore(tensors)
        if self.curriculum is not None:
            self._restore_curriculum(tensors["curriculum"])
        counters = [int(number) for number in tensors["counters"]]
        self._teach(bool(counters[6:7] == [1]))  # as it was, before its memory comes back
        some = None if self.ranks.count == 1 else self.ranks.rank * self.own.num_worlds
        self.env.restore(tensors["worlds"].numpy().tobytes(), first=some)
        self.rollout.state.copy_(tensors["state"])
        self.rollout.episode_starts.copy_(tensors["starts"])
        for name, actor in self._actors().items():
            if f"actor.{name}" in tensors:  # one that is new begins with nothing remembered
                actor.restore(tensors[f"actor.{name}"])
        self.recent = tensors["recent"].numpy().copy()
        self.last = dict(last)
        self.agent_steps, self.epochs, self.skipped, self.trained_steps, self.rollout.step = counters[:5]
        self.learner.in_a_row = counters[5]

    def _shaped(self) -> dict[str, Tensor]:
        """What has one shape for the whole run, of the rows of all ranks."""
        windows = {} if self.windows is None else self.windows.tensors()
        rows = {n: x.new_empty(self.ranks.count * len(x), *x.shape[1:]) for n, x in self._by_row().items()}
        return self.learner.scale.tensors() | windows | rows

    def _by_row(self) -> dict[str, Tensor]:
        """What has an entry for each row of this rank, by what it is saved as."""
        actors = {f"actor.{name}": actor.tensor() for name, actor in self._actors().items()}
        own = {"state": self.rollout.state, "starts": self.rollout.episode_starts}
        return self.learner.scale.by_row() | actors | own

    def _needed(self) -> list[str]:
        """What no state can do without."""
        return ["worlds", "state", "starts", "recent", "counters", *(["curriculum"] if self.curriculum else [])]

    def _restore_curriculum(self, saved: Tensor) -> None:
        assert self.curriculum is not None
        try:
            self.curriculum.restore(json.loads(saved.numpy().tobytes()))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"curriculum: expected the state of one, got {type(error).__name__}: {error!s:.200}"
            ) from None

    def _actors(self) -> dict[str, Actor | OwnActor]:
        """The other policies, by what their state is saved as."""
        return {**self.rollout.actors, **{f"player.{name}": who for name, who in self.rollout.players.items()}}

    def close(self) -> None:
        self.workers.close()
        if hasattr(self, "rollout"):  # not where a run was refused
            self.rollout.close()
        self.env.close()
        torch.set_num_threads(self._torch_threads)


def _device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("trainer.device: expected a CUDA device, got none; use auto or cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def refuse_deadly(run: Run) -> None:
    """Refuse settings whose bf16 products would end the process on this CPU without a word, and fp16 on any CPU."""
    found = onednn.settle()
    if run.trainer.precision == "fp16" and _device(run.trainer.device).type == "cpu":
        raise ValueError("trainer.precision: expected fp32 or bf16 on a CPU, got fp16, which is for GPUs; use bf16")
    if found.state != "broken" or _device(run.trainer.device).type != "cpu":
        return
    if run.trainer.precision == "bf16":
        raise ValueError(f"trainer.precision: expected fp32 on this CPU, got bf16; {found.text}")
    if run.optimizer.kind == "muon":
        raise ValueError(f"optimizer.kind: expected adam, adamw or schedule_free on this CPU, got muon; {found.text}")


def refuse_unknown_players(run: Run) -> None:
    """Refuse a player that is neither a script of the game nor in a folder nor in a file."""
    scripts = scripted_players(run)
    for name in run.players:
        if name in scripts or user_code.is_own(name) or which.exists(name):
            continue
        known = ", ".join(run.game.scripts()) or "it has none"
        raise ConfigError(
            f"expected a script of {run.game.name} ({known}), the folder of a run or FILE.py:function, got `{name}`",
            "$.players",
        )


def refuse_missing_hidden(run: Run, policy: Policy) -> None:
    """Refuse a loss that reads what a network of the user's own does not give."""
    if policy.gives_hidden:
        return
    for name, loss in run.losses.items():
        stored = any(column.output == "hidden" for column in loss.needs().values())
        if loss.reads_hidden or stored:
            raise ConfigError(
                f"expected a network that also returns hidden [rows, {run.policy.hidden}], which this loss reads, got "
                f"`{run.policy.network}`, which does not",
                f"$.losses.{name}",
            )


def use_tf32(allowed: bool) -> None:
    """On a GPU: whether matrix products may round their inputs to 10 bits of mantissa."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def experience_device(wanted: str, learner: torch.device) -> torch.device:
    """Where the rollout is stored: beside the learner, or in the memory of the host, which is larger."""
    return torch.device("cpu") if wanted == "cpu" else learner


def _environment(run: Run, own: Sizes, ranks: Ranks) -> Env:
    """The worlds of one rank."""
    t = run.trainer
    env: Env = make(
        run.trained_games,
        num_worlds=own.num_worlds,
        first_world=ranks.rank * own.num_worlds,
        all_worlds=t.num_worlds if ranks.count > 1 else 0,
        seed=run.seed,
        threads=own.threads,
        lanes=t.async_factor,
        masks=t.masks,
        signal=t.signal,
        desync_episodes=t.desync_episodes,
        implementation="native" if t.env_impl == "auto" else t.env_impl,
        profiling=True if run.profiler.rollout_timing or (run.profiler.enabled and run.profiler.core) else None,
        teacher=run.teacher,
        players=scripted_players(run),
    )
    return env


def _curriculum(run: Run, env: Env, ranks: Ranks) -> Curriculum | None:
    """The run's curriculum, with a task for every world's first episode."""
    if not run.curriculum.sets:
        return None
    t, first = run.trainer, ranks.rank * env.num_worlds
    found = Curriculum(run.curriculum, run.game, env, run.seed, run.score, first, t.num_worlds, pieces_of(t))
    found.assign_first()
    return found


def _as_tensor(plain: Any) -> Tensor:
    """Plain data as bytes of JSON."""
    return torch.frombuffer(bytearray(json.dumps(plain, allow_nan=False).encode()), dtype=torch.uint8)
