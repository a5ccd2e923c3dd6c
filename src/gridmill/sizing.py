"""Batch arithmetic: how worlds, agents, batch, segments and minibatches fit together, and what memory they take.

    rows = num_worlds x learners         batch_size = rows x horizon       horizon = segments of bptt_horizon

Nothing is ever rounded: every step collected is a step trained on, or the sizes are refused with the numbers that do
not fit and the overrides that would. Memory is estimated and refused before anything is allocated. No torch here: the
trainer takes its sizes from `sizes`, `train --dry-run` prints them; without torch the policy's memory is not known.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass, replace

import numpy as np
import psutil

from gridmill.config import ConfigError
from gridmill.config import memory as memory_of_process
from gridmill.config.memory import mebibytes
from gridmill.env import Env
from gridmill.env.scripts import dealt
from gridmill.games.make import make
from gridmill.grid.env import TokenBudgetWarning
from gridmill.losses import head_parameters
from gridmill.policy import device
from gridmill.policy.config import Size
from gridmill.policy.spec import Spec
from gridmill.run import Run, TrainerConfig

MOST_THREADS = 16  # chosen by ourselves; more can be asked for
USUAL_SEGMENT = 64
MICROBATCH = 4_096  # steps a thread learns from at a time, unless max_microbatch says otherwise
# The trainer's own columns beside observations and masks: action, log-prob, value, reward, bootstrap, advantage, return
# and ratio; start and two ends of an episode. tests/test_sizing.py compares all of this with the tensors.
PER_STEP = 8 * 4 + 3
PER_ROW = 2 * 4 + 2  # of the env's arrays beside observations and masks: action, reward, two ends
COPIES = 3  # of each weight: itself, two moments of Adam
# On a GPU a step keeps more for the way back: rows of the table by number, 32 bytes of them for a token, and what the
# loss is made of, six numbers for an action. The driver and the libraries take some for themselves.
GPU_TOKEN, GPU_ACTION, GPU_OWN = 8, 6, 512 * 2**20


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run that fit. Steps are agent-steps."""

    num_worlds: int
    num_agents: int
    learners: tuple[int, ...]  # agents of a world that are learned from: all but those that other players act for
    lanes: int
    rows: int  # worlds x learners
    lane_rows: int
    horizon: int  # ticks per rollout (T of the [T, rows] storage)
    bptt_horizon: int
    segments_per_row: int
    segments: int  # in a batch
    batch_size: int
    minibatch_size: int
    minibatch_segments: int
    minibatches: int  # in a batch
    microbatch_size: int  # steps learned from at a time, at most
    microbatches: int  # of a minibatch; the last may be smaller
    pieces: int  # equal parts of worlds and minibatches, see trainer.pieces
    updates: int  # optimizer steps of an epoch
    epochs: int  # until total_timesteps is reached
    agent_steps: int  # of all epochs
    threads: int  # of the core


@dataclass(frozen=True)
class Memory:
    """Bytes. Experience: the stored batch, exactly. Worlds: with the env's arrays and the policy's state of each row.
    Policy, about: weights with the optimizer's numbers, a gradient and activations for each microbatch."""

    experience: int
    policy: int | None  # None: not known, since torch is not installed
    worlds: int
    on_gpu: int = 0  # of all this, in the memory of a GPU

    @property
    def total(self) -> int:
        return self.experience + (self.policy or 0) + self.worlds


def plan(run: Run) -> tuple[Sizes, Memory]:
    """Sizes and memory of a run, refused if they do not fit together or into this machine. Compiles the game."""
    need = memory(run)  # first: nothing is worth fitting that is too large
    return sizes(run), need


def refuse_unfit(run: Run) -> None:
    """Refuses sizes that do not fit together, without compiling the game where they do.

    Where they do not, a game that cannot be, or one that is too large for this machine, is said first: nothing of that
    kind is worth fitting.
    """
    try:
        sizes(run)
    except ConfigError:
        memory(run)
        raise


def sizes(run: Run, num_agents: int | None = None, processes: int = 1) -> Sizes:
    """The sizes of a run; refused as a ConfigError if they do not fit together. `processes` share this machine."""
    t, agents = run.trainer, run.game.num_agents if num_agents is None else num_agents
    learners = tuple(agent for agent, player in enumerate(players_of_agents(run, agents)) if not player)
    problem = _problem(run, len(learners))
    if problem is not None:
        what, name = problem
        fit = fitting(run, len(learners))
        line = " ".join(f"{path}={value}" for path, value in fit.items())
        raise ConfigError(f"{what}; add: {line}", f"$.trainer.{name}")
    rows, minibatches = t.num_worlds * len(learners), t.batch_size // t.minibatch_size
    microbatch = _microbatch(t)
    epochs = -(-t.total_timesteps // t.batch_size)
    return Sizes(
        num_worlds=t.num_worlds,
        num_agents=agents,
        learners=learners,
        lanes=t.async_factor,
        rows=rows,
        lane_rows=rows // t.async_factor,
        horizon=t.batch_size // rows,
        bptt_horizon=t.bptt_horizon,
        segments_per_row=t.batch_size // rows // t.bptt_horizon,
        segments=t.batch_size // t.bptt_horizon,
        batch_size=t.batch_size,
        minibatch_size=t.minibatch_size,
        minibatch_segments=t.minibatch_size // t.bptt_horizon,
        minibatches=minibatches,
        microbatch_size=microbatch,
        microbatches=pieces_of(t) * -(-t.minibatch_size // pieces_of(t) // microbatch),
        pieces=pieces_of(t),
        updates=minibatches * t.update_epochs,
        epochs=epochs,
        agent_steps=epochs * t.batch_size,
        threads=_threads(t, processes),
    )


def players_of_agents(run: Run, num_agents: int) -> list[str]:
    """Who acts for each agent of a world, the same in all worlds; empty = the policy, which learns from it.

    Scripts are dealt their shares first, then all others.
    """
    try:
        found = dealt(run.players, num_agents, run.game.teams, run.game.scripts() if run.players else ())
    except ValueError as error:
        raise ConfigError(str(error).removeprefix("players: "), "$.players") from None
    if "" not in found:
        raise ConfigError(f"expected at least one of {num_agents} agents to learn from, got none", "$.players")
    return found


def scripted_players(run: Run) -> dict[str, tuple[int, ...]]:
    """Those of `Run.players` that are scripts of the game, with their agents; the others are folders or files."""
    known = run.game.scripts() if run.players else {}
    if not any(name in known for name in run.players):
        return {}
    dealt_to = players_of_agents(run, run.game.num_agents)
    found = {name: tuple(a for a, who in enumerate(dealt_to) if who == name) for name in run.players if name in known}
    return found


def _microbatch(t: TrainerConfig) -> int:
    """Two of a piece of a minibatch at least, so that two threads have work; the same for any number of threads.

    On a GPU all of it: it has work for many more steps than a core, and every part costs launches.
    """
    whole = t.minibatch_size // pieces_of(t)
    if on_gpu(t):
        return min(t.max_microbatch or whole, whole)
    half = -(-whole // (2 * t.bptt_horizon)) * t.bptt_horizon
    usual = min(half, max(1, MICROBATCH // t.bptt_horizon) * t.bptt_horizon)
    return min(t.max_microbatch or usual, whole)


def pieces_of(t: TrainerConfig) -> int:
    """How many pieces a run is computed in; one, unless it says so."""
    return t.pieces or 1


def for_ranks(run: Run, ranks: int) -> Run:
    """The run as so many processes train it: in a piece for each, unless it says in how many; refused if they do not
    come out even."""
    if not run.trainer.pieces and ranks > 1:
        run = run.replace("trainer.pieces", ranks)
    pieces = pieces_of(run.trainer)
    if pieces % ranks:
        raise ConfigError(
            f"expected a multiple of the number of processes, {ranks}, got {pieces}; add: "
            f"trainer.pieces={-(-pieces // ranks) * ranks}",
            "$.trainer.pieces",
        )
    if ranks > 1 and run.trainer.env_impl == "reference":
        raise ConfigError(f"expected auto or native with {ranks} processes, got reference", "$.trainer.env_impl")
    return run


def share_of(run: Run, ranks: int) -> Run:
    """What one of so many processes trains of a run: its share of the worlds, batches and pieces."""
    if ranks == 1:
        return run
    t = run.trainer
    names = ("num_worlds", "batch_size", "minibatch_size", "pieces")
    return run.replace_all([(f"trainer.{name}", getattr(t, name) // ranks) for name in names])


def on_gpu(t: TrainerConfig) -> bool:
    """Whether the network will be on a GPU."""
    return t.device == "cuda" or (t.device == "auto" and device.count() > 0)


def _threads(t: TrainerConfig, processes: int = 1) -> int:
    return t.threads or max(1, min(cores() // processes, MOST_THREADS, t.num_worlds // t.async_factor))


def _problem(run: Run, learners: int) -> tuple[str, str] | None:
    """What does not fit, and the setting it is about; None if all is well."""
    t = run.trainer
    rows, who = t.num_worlds * learners, "learning agents" if run.players else "agents"
    pieces = pieces_of(t)
    if pieces > 1 and t.num_worlds % (t.async_factor * pieces):
        made = f"async_factor = {t.async_factor} x pieces = {pieces}"
        return f"num_worlds = {t.num_worlds} is not a multiple of {t.async_factor * pieces} ({made})", "num_worlds"
    if t.num_worlds % t.async_factor:
        return f"num_worlds = {t.num_worlds} is not a multiple of async_factor = {t.async_factor}", "num_worlds"
    if t.batch_size % (rows * t.bptt_horizon):
        made = f"num_worlds = {t.num_worlds} x {learners} {who} x bptt_horizon = {t.bptt_horizon}"
        return f"batch_size = {t.batch_size} is not a multiple of {rows * t.bptt_horizon} ({made})", "batch_size"
    for name, value in (("minibatch_size", t.minibatch_size), ("max_microbatch", t.max_microbatch)):
        if value % t.bptt_horizon:
            return f"{name} = {value} is not a multiple of bptt_horizon = {t.bptt_horizon}", name
    if t.minibatch_size % (t.bptt_horizon * pieces):
        made = f"bptt_horizon = {t.bptt_horizon} x pieces = {pieces}"
        whole = t.bptt_horizon * pieces
        return f"minibatch_size = {t.minibatch_size} is not a multiple of {whole} ({made})", "minibatch_size"
    if t.batch_size % t.minibatch_size:
        return f"batch_size = {t.batch_size} is not a multiple of minibatch_size = {t.minibatch_size}", "minibatch_size"
    return None


def fitting(run: Run, learners: int) -> dict[str, int]:
    """Overrides that make the sizes fit, as near as can be to what was asked for; agents stay, and worlds where they
    can be dealt to the pieces."""
    t, pieces = run.trainer, pieces_of(run.trainer)
    worlds = max(1, round(t.num_worlds / pieces)) * pieces
    rows = worlds * learners
    # A segment that would make the batch many times larger is not what was meant: shorten it instead.
    segment = t.bptt_horizon if rows * t.bptt_horizon <= 8 * t.batch_size else t.batch_size // rows or USUAL_SEGMENT
    segment = min(segment, t.bptt_horizon)
    batch = max(1, round(t.batch_size / (rows * segment))) * rows * segment
    fit = {
        "num_worlds": worlds,
        "async_factor": _nearest_divisor(worlds // pieces, t.async_factor),
        "batch_size": batch,
        "minibatch_size": _minibatch(batch, segment * pieces, t.minibatch_size),
        "bptt_horizon": segment,
    }
    if t.max_microbatch:
        fit["max_microbatch"] = max(1, t.max_microbatch // segment) * segment
    return {f"trainer.{name}": value for name, value in fit.items() if value != getattr(t, name)}


def _minibatch(batch: int, unit: int, wanted: int) -> int:
    """The part of a batch nearest to what is wanted that is whole units."""
    return _nearest_divisor(batch // unit, max(1, round(wanted / unit))) * unit


def _nearest_divisor(number: int, wanted: int) -> int:
    """The divisor nearest to what is wanted, as a ratio; the smaller of two."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return min(small + [number // d for d in small], key=lambda d: (max(d, wanted) / min(d, wanted), d))


def usable_cores() -> int:
    """Logical cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> int:
    """Physical cores this process may use."""
    usable = usable_cores()
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))


def memory(run: Run, env: Env | None = None) -> Memory:
    """What a run will take, refused as a ConfigError if this machine has less.

    An env of the run's game, of any number of worlds, saves compiling one world to see its size.
    """
    if env is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TokenBudgetWarning)  # said when the worlds are really made
            t = run.trainer
            env = make(run.trained_games, num_worlds=1, masks=t.masks, signal=t.signal, teacher=run.teacher)
        with env:
            return memory(run, env)
    t = run.trainer
    world, obs, actions = env.bytes_per_world, int(env.obs[0].nbytes), env.num_actions
    agents, spec, columns = env.num_agents, Spec.of(env, run.policy.name_agents), _columns(run, env)
    masks = actions if t.masks else 0
    signal = 4 if t.signal else 0
    step = obs + masks + signal + PER_STEP + columns + bool(run.teacher)
    size, rows = _policy_size(run, spec), t.num_worlds * agents
    learning = t.num_worlds * players_of_agents(run, agents).count("")
    scripted = 4 if run.teacher or scripted_players(run) else 0  # what scripts would do
    state = 4 * size.state if size else 0
    minibatch = min(t.minibatch_size, t.batch_size)
    microbatch = min(_microbatch(t), minibatch)
    parts = -(-minibatch // microbatch)
    gpu = on_gpu(t)
    learned_from = microbatch if gpu else min(parts, _threads(t)) * microbatch  # at a time
    activations = (size.activations if size else 0) + gpu * (GPU_TOKEN * spec.num_tokens + GPU_ACTION * actions)
    need = Memory(
        experience=t.batch_size * step + t.batch_size // t.bptt_horizon * state + 4 * learning,
        policy=4 * ((COPIES + parts) * size.parameters + learned_from * activations) if size else None,
        worlds=t.num_worlds * world + rows * (2 * obs + masks + signal + PER_ROW + scripted + 1) + learning * state,
    )
    if gpu:
        need = replace(need, on_gpu=(need.policy or 0) + (need.experience if t.experience_device == "auto" else 0))
        _refuse_more_than_the_gpu_has(run, need, step, learned_from, 4 * activations)
    _refuse_more_than_there_is(run, need, step, learned_from, 4 * activations)
    return need


def _columns(run: Run, env: Env) -> int:
    """Bytes per step of what the losses need beside the trainer's own columns."""
    outputs = {"logits": env.num_actions, "log_probs": env.num_actions, "hidden": run.policy.hidden}
    needs = {name: column for loss in run.losses.values() for name, column in loss.needs().items()}
    arrays = [getattr(env, column.env, None) for column in needs.values() if column.env]
    of_env = sum(a.nbytes // env.num_rows for a in arrays if isinstance(a, np.ndarray))  # a wrong name is told later
    of_replays = sum(loss.recorded() is not None for loss in run.losses.values())
    replayed = 2 * of_replays * (int(env.obs[0].nbytes) + env.num_actions + 9)  # twice: while they are put together
    return (
        int(of_env) + replayed + sum(4 * outputs.get(column.output, 1) for column in needs.values() if not column.env)
    )


def _policy_size(run: Run, spec: Spec) -> Size | None:
    """As the policy reports it, and the heads of the losses; None where torch is not installed."""
    try:
        from gridmill.policy.build import size as size_of
    except ModuleNotFoundError:
        return None
    size = size_of(run.policy, spec)
    return size._replace(parameters=size.parameters + head_parameters(run.losses, spec, run.policy))


def _refuse_more_than_the_gpu_has(run: Run, need: Memory, step: int, learned_from: int, activations: int) -> None:
    have = device.memory()
    if have is None or need.on_gpu + GPU_OWN <= have:
        return
    t = run.trainer
    parts = [f"{mebibytes(need.policy or 0)} (weights, and {learned_from} steps x {activations} bytes)"]
    cures = [f"trainer.max_microbatch below {learned_from}"]
    if t.experience_device == "auto":
        parts.append(f"{mebibytes(need.experience)} (batch_size = {t.batch_size} steps x {step} bytes)")
        cures.append("trainer.experience_device=cpu")
    listed = " + ".join([*parts, f"{mebibytes(GPU_OWN)} (its own)"])
    said = f"not enough memory on the GPU: {listed}, and it has {mebibytes(have)}"
    raise ConfigError(f"{said}; try {' or '.join(cures)}", "$.trainer.device")


def _refuse_more_than_there_is(run: Run, need: Memory, step: int, learned_from: int, activations: int) -> None:
    have = memory_of_process.limit()
    if need.total - need.on_gpu <= have:
        return
    t = run.trainer
    parts = {
        "batch_size": (need.experience, f"batch_size = {t.batch_size} steps x {step} bytes"),
        "max_microbatch": (
            need.policy or 0,
            f"weights, and microbatches of {learned_from} steps x {activations} bytes",
        ),
        "num_worlds": (need.worlds, f"num_worlds = {t.num_worlds} x {need.worlds // t.num_worlds} bytes"),
    }
    listed = " + ".join(f"{mebibytes(size)} ({what})" for size, what in parts.values())
    largest = max(parts, key=lambda name: parts[name][0])
    said = f"not enough memory: {listed} = {mebibytes(need.total)}, {memory_of_process.limit_in_words()}"
    names = dict.fromkeys([largest, "num_worlds", "max_microbatch"])
    raise ConfigError(f"{said}; lower one of {', '.join(names)}", f"$.trainer.{largest}")
