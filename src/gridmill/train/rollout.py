"""Rollout: the env's lanes and the policy in turn, [T, B] steps into an Experience.

What is stored is the experience's table of columns, of the rows that are learned from. While the core steps one lane,
the policy acts in another. On a CPU a lane's rows are split among the workers; on a device the whole lane is taken at
once, and the host waits once per step and lane: the actions must arrive before the core can go on. What the host knows
and the policy does not read is sent after the last step (host_side.py).
"""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridmill.config import user_code
from gridmill.env.env import Env
from gridmill.losses import TEACHER
from gridmill.policy.kernels import native
from gridmill.policy.network import Output
from gridmill.sizing import Sizes
from gridmill.train.actors import Actor, OwnActor, Rows
from gridmill.train.draws import draw, uniforms
from gridmill.train.experience import FORWARD, Experience
from gridmill.train.host_side import HostSide
from gridmill.train.watch import Watch
from gridmill.train.workers import WorkerPool

MOST_ROWS, LEAST_ROWS = 1024, 128  # that one worker acts for at a time, if there are so many
# Where the time of a rollout goes; the two of the teacher are the networks that are shown what ours sees, and storing
# what they or the env's teacher said.
CHUNK_PARTS = ("copy", "act", "teacher_forward", "teacher_store", "store")
PARTS = ("env", *CHUNK_PARTS, "players")


class Rollout:
    """Collects experience; remembers the recurrent state and which rows begin an episode.

    `learned` are the rows of the env that the policy acts in and is learned from (None: all); `players` act in others
    of them, each by the folder of its policy or by the file of the user's own. The worlds may be those of one `rank` of
    several: rows are drawn for by their numbers among all.
    """

    def __init__(
        self,
        env: Env,
        policy: Callable[..., tuple[Tensor, ...]],
        sizes: Sizes,
        experience: Experience,
        workers: WorkerPool,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
        seed: int,
        state_size: int,
        frozen: Callable[[], AbstractContextManager[object]],
        learned: NDArray[np.int64] | None = None,
        players: Mapping[str, NDArray[np.int64]] = MappingProxyType({}),
        rank: int = 0,
    ) -> None:
        self.env, self.policy, self.sizes, self.experience = env, policy, sizes, experience
        self.workers, self.device, self.autocast, self.seed = workers, device, autocast, seed
        self.frozen = frozen  # the policy's acting form, while weights do not change
        self.step = 0  # steps of every row so far: with the seed and the row, all that drawing an action depends on
        self.first_row = rank * sizes.rows  # of those that are learned from, among all ranks'
        self.state = torch.zeros(sizes.rows, state_size, device=device)
        self.lanes = [env.rows(lane) for lane in range(env.lanes)]
        self.episode_starts = torch.ones(self.lanes[-1].stop, dtype=torch.uint8)  # of all rows of the env
        # Parts of arrays are found and filled many times a step, which NumPy does ten times faster than torch.
        self.on_cpu = device.type == "cpu"
        self.kept = {name: self._plain(tensor) for name, tensor in experience.columns.items()}
        self.kept_states = self._plain(experience.states)
        self.own_state, self.starts = self._plain(self.state), self.episode_starts.numpy()
        sources = {name: stored.source for name, stored in experience.table.items() if stored.source is not None}
        before = {name: self._seen(s.env) for name, s in sources.items() if s.env and not s.after}
        self.taught = {name: before.pop(name) for name, s in sources.items() if s.env == TEACHER and not s.after}
        self.before = before
        self.after = {name: self._seen(s.env) for name, s in sources.items() if s.env and s.after}
        self.outputs = {name: Output._fields.index(s.output) for name, s in sources.items() if s.output and not s.actor}
        self.asked = {name: s for name, s in sources.items() if s.actor}  # columns of other policies
        self.actors: dict[str, Actor] = {}  # by the first column of each
        for name, path in _first(self.asked).items():
            self.actors[name] = Actor(path, env, seed, sizes.rows, self.first_row)
        self.teacher = self._seen(TEACHER) if "led" in experience.columns else None
        self.led = np.zeros(sizes.rows, np.uint8)  # 1 where the teacher acts in this segment
        self.final_obs, self.drawn = self._seen("final_obs"), self._seen("actions")
        self.host: HostSide | None = None
        self.uniform: Tensor | None = None  # what the actions of a rollout are drawn from on a device, [T, rows]
        if not self.on_cpu:
            known = [
                *self.before,
                *self.after,
                *self.taught,
                *self.asked,
                *(["led"] if self.teacher is not None else []),
            ]
            self.host = HostSide(experience, [name for name in known if name not in FORWARD], device)
            self.host.register(self._seen(name) for name in ("obs", "masks", "final_obs") if self._has(name))
            self.kept |= self.host.columns
        self.needed: Collection[str] = self.asked
        self.learned = learned
        self.chunks = [_chunks(rows, learned, whole=not self.on_cpu, pieces=sizes.pieces) for rows in self.lanes]
        self.lane_rows = [_join(chunks) for chunks in self.chunks]
        self.players: dict[str, Actor | OwnActor] = {}
        self.player_chunks: list[list[tuple[Actor | OwnActor, Rows]]] = [[] for _ in self.lanes]
        for number, (name, rows) in enumerate(players.items()):
            own = user_code.is_own(name) and not Path(name).is_dir()
            mixed, first = hash_of(seed, number), rank * len(rows)
            actor = self.players[name] = (OwnActor if own else Actor)(name, env, mixed, len(rows), first)
            for lane, chunks in zip(self.lanes, self.player_chunks, strict=True):
                chunks += [(actor, chunk) for chunk in _chunks(lane, rows, whole=own, pieces=sizes.pieces)]
        self.times = dict.fromkeys(PARTS, 0.0)
        self.watch: Watch | None = None
        self.begun: Callable[[list[int]], None] | None = None  # told which worlds have begun an episode

    def _seen(self, name: str) -> Any:
        """An array of the env."""
        return getattr(self.env, name)

    def _has(self, name: str) -> bool:
        return getattr(self.env, name, None) is not None

    def close(self) -> None:
        """Before the env is closed."""
        if self.host is not None:
            self.host.close()

    def _plain(self, tensor: Tensor) -> Any:
        """The same memory as a NumPy array on a CPU; on another device the tensor."""
        return tensor.numpy() if self.on_cpu else tensor

    def _put(self, name: str, t: int, rows: slice, what: Any) -> None:
        """Store what a step brought for some rows."""
        column = self.kept[name]
        if isinstance(column, np.ndarray):
            column[t, rows] = what
        else:
            column[t, rows].copy_(torch.as_tensor(what), non_blocking=True)

    def collect(self, lead: float = 0.0, needed: Collection[str] | None = None) -> None:
        """One rollout. Afterwards no lane is in flight.

        The teacher leads this share of the rows, drawn for each segment. `needed` are the columns that somebody will
        read: another policy that fills none of them is not run.
        """
        self.times = dict.fromkeys(PARTS, 0.0)
        self.needed = self.asked if needed is None else needed
        if self.host is not None:
            self.experience.bootstrap.zero_()
            self.uniform = uniforms(
                self.seed, self.step, self.sizes.horizon, self.sizes.rows, self.device, self.first_row
            )
        with self.frozen():
            for t in range(self.sizes.horizon):
                if self.watch is not None:
                    self.watch.step("rollout")
                if self.teacher is not None and t % self.sizes.bptt_horizon == 0:
                    self.led[:] = shares(self.seed, self.step, self.sizes.rows, self.first_row) < lead
                for lane in range(len(self.lanes)):
                    if t > 0:
                        self._receive(lane, t - 1)
                    self._think(lane, t)
                    self.env.send(lane)
                self.step += 1
            for lane in range(len(self.lanes)):
                self._receive(lane, self.sizes.horizon - 1)
            if self.watch is not None:
                self.watch.finish("rollout")
            self.workers.map(self._look_ahead, [chunk for chunks in self.chunks for chunk in chunks])
        if self.host is not None:
            self.host.send()

    # ---- one lane, one step

    def _receive(self, lane: int, t: int) -> None:
        """Wait for a lane and store what its step brought."""
        began = time.perf_counter()
        self.env.recv(lane)
        came = time.perf_counter()
        rows, all_rows = self.lane_rows[lane], self.lanes[lane]
        for name, seen in self.after.items():
            self._put(name, t, rows.own, seen[rows.env])
        self.starts[all_rows] = self.after["terminals"][all_rows] | self.after["truncations"][all_rows]
        if self.begun is not None and self.starts[all_rows].any():
            agents = self.env.num_agents  # whose episodes end together
            worlds = np.flatnonzero(self.starts[all_rows.start : all_rows.stop : agents])
            self.begun((worlds + all_rows.start // agents).tolist())
        terminals, truncations = self.after["terminals"][rows.env], self.after["truncations"][rows.env]
        cut = truncations & ~terminals
        if self.on_cpu:
            self.kept["bootstrap"][t, rows.own] = 0.0
        if cut.any() and self.on_cpu:
            first = rows.own.start
            for part in torch.from_numpy(cut).chunk(self.sizes.pieces):  # alike wherever a piece is
                if part.any():
                    self._value_of_the_cut(t, part.nonzero().squeeze(1) + first)
                first += len(part)
        elif cut.any():
            self._values_of_the_cut(t, rows, torch.from_numpy(cut))
        stored = time.perf_counter()
        self.times["env"] += came - began
        self.times["store"] += stored - came
        if self.watch is not None:
            self.watch.span("env wait", began, came)
            self.watch.span("store", came, stored)

    @torch.inference_mode()
    def _value_of_the_cut(self, t: int, which: Tensor) -> None:
        """V of the last observation of episodes that the time limit cut, from the state they ended with."""
        seen = which if self.learned is None else torch.from_numpy(self.learned)[which]
        obs = torch.as_tensor(self.final_obs)[seen].to(self.device)
        never = torch.zeros(1, len(which), dtype=torch.uint8, device=self.device)
        with self.autocast():
            _, values, *_ = self.policy(obs[None], self.state[which.to(self.device)], never, None)
        self.experience.bootstrap[t, which.to(self.experience.device)] = values[0].to(self.experience.device)

    @torch.inference_mode()
    def _values_of_the_cut(self, t: int, rows: Rows, cut: Tensor) -> None:
        """The same on a device, for the whole lane: the shape of every step, so nothing is compiled or found anew."""
        values = self._values(self.final_obs[rows.env], rows, None)
        there = torch.where(cut.to(self.device, non_blocking=True), values, 0.0)
        self.experience.bootstrap[t, rows.own].copy_(there, non_blocking=True)

    def _values(self, seen: NDArray[np.generic], rows: Rows, starts: NDArray[np.uint8] | None) -> Tensor:
        """V of some observations of the host with the states that rows have now; None: nobody starts."""
        self.experience.lengthen(seen)
        obs = self.experience.shown(torch.from_numpy(seen).to(self.device, non_blocking=True)[None])
        begins = torch.zeros(len(seen), dtype=torch.uint8, device=self.device)
        if starts is not None:
            begins = torch.from_numpy(starts).to(self.device, non_blocking=True)
        with self.autocast():
            values: Tensor = self.policy(obs, self.state[rows.own], begins[None], None)[1][0]
        return values

    def _think(self, lane: int, t: int) -> None:
        began = time.perf_counter()
        spent = self.workers.map(lambda chunk: self._act(chunk, t), self.chunks[lane])
        # Chunks run side by side: their parts share the time that passed.
        acted = time.perf_counter()
        share = (acted - began) / max(1e-9, sum(map(sum, spent)))
        for part, seconds in zip(CHUNK_PARTS, zip(*spent, strict=True), strict=True):
            self.times[part] += sum(seconds) * share
        if self.players:
            self.workers.map(lambda item: self._play(*item), self.player_chunks[lane])
            self.times["players"] += time.perf_counter() - acted

    @torch.inference_mode()
    def _act(self, rows: Rows, t: int) -> tuple[float, ...]:
        """Observations in, actions out, for some rows; the seconds of each of CHUNK_PARTS."""
        began = time.perf_counter()
        kept, device, own = self.experience, self.device, rows.own
        for name, seen in self.before.items():
            self._put(name, t, own, seen[rows.env])
        self._put("episode_starts", t, own, self.starts[rows.env])
        if self.host is not None:
            self.host.starts[t, own] = self.starts[rows.env]
            kept.lengthen(self.before["obs"][rows.env])
        if t % self.sizes.bptt_horizon == 0:
            self.kept_states[t // self.sizes.bptt_horizon, own] = self.own_state[own]
        obs = kept.shown(kept.obs[t : t + 1, own].to(device, non_blocking=True))
        starts = kept.episode_starts[t : t + 1, own].to(device, non_blocking=True)
        masks = None if kept.masks is None else kept.masks[t : t + 1, own].to(device, non_blocking=True)
        copied = time.perf_counter()
        with self.autocast():
            out = self.policy(obs, self.state[own], starts, masks)
        acted = time.perf_counter()
        said = self._ask(rows)
        asked = time.perf_counter()
        for name, what in said.items():
            self._put(name, t, own, what)
        for name, seen in self.taught.items():
            self._put(name, t, own, seen[rows.env])
        taught = time.perf_counter()
        self.own_state[own] = self._plain(out[2])
        for name, part in self.outputs.items():
            self._put(name, t, own, self._plain(out[part])[0])
        self._choose(rows, t, out[0][0], masks)
        marks = (began, copied, acted, asked, taught, time.perf_counter())
        if self.watch is not None:
            for name, begin, end in zip(CHUNK_PARTS, marks, marks[1:], strict=False):
                self.watch.span(name, begin, end)
        return tuple(map(operator.sub, marks[1:], marks))

    def _ask(self, rows: Rows) -> dict[str, Any]:
        """What other policies make of the same rows, by column; each thinks once."""
        found: dict[str, Any] = {}
        for first, actor in self.actors.items():
            path = self.asked[first].actor
            columns = {n: c.output for n, c in self.asked.items() if c.actor == path and n in self.needed}
            if columns:
                said = actor.outputs(actor.think(rows, self.starts), set(columns.values()), rows, self.step)
                found |= {name: said[output] for name, output in columns.items()}
        return found

    def _play(self, actor: Actor | OwnActor, rows: Rows) -> None:
        """A player acts in its rows."""
        self.env.actions[rows.env] = actor.act(rows, self.starts, self.step)

    def _choose(self, rows: Rows, t: int, logits: Tensor, masks: Tensor | None) -> None:
        """Draw actions and store them with their log-probs; the teacher's where it leads."""
        own, first = rows.own, self.first_row + rows.own.start
        if self.on_cpu:
            actions = np.empty(own.stop - own.start, np.int32)
            allowed = None if masks is None else self.kept["masks"][t, own]
            native.sample_actions(
                logits.numpy(), allowed, self.seed, self.step, first, actions, self.kept["log_probs"][t, own]
            )
            if self.teacher is None:
                self.kept["actions"][t, own] = actions
                self.drawn[rows.env] = actions
                return
            chosen = torch.from_numpy(actions)
        else:
            assert self.uniform is not None
            chosen, log_probs = draw(logits, self.uniform[t, own])
            self._put("log_probs", t, own, log_probs)
        if self.teacher is not None:
            self._put("led", t, own, self.led[own])
            if self.led[own].any():
                led = torch.from_numpy(self.led[own]).to(chosen.device, non_blocking=True) != 0
                taught = torch.from_numpy(self.teacher[rows.env]).to(chosen.device, non_blocking=True)
                chosen = torch.where(led, taught, chosen)
                known = self.experience.log_probs[t, own].to(chosen.device)
                self._put("log_probs", t, own, self._plain(torch.where(led, _log_probs(logits, chosen), known)))
        self._put("actions", t, own, self._plain(chosen))
        self.drawn[rows.env] = chosen.cpu().numpy()  # waits for the device: the one synchronisation

    @torch.inference_mode()
    def _look_ahead(self, rows: Rows) -> None:
        """V of the observation after the last step; the state does not move."""
        values = self._values(self.before["obs"][rows.env], rows, self.starts[rows.env])
        self.experience.last_value[rows.own].copy_(values, non_blocking=self.experience.device.type != "cpu")


def _log_probs(logits: Tensor, chosen: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, chosen.long()[:, None]).squeeze(-1)


def _first(asked: Mapping[str, Any]) -> dict[str, str]:
    """The first column of every actor, and the actor's folder."""
    found: dict[str, str] = {}
    for name, column in asked.items():
        if column.actor not in found.values():
            found[name] = column.actor
    return found


def shares(seed: int, step: int, rows: int, first: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for every row, drawn from counters (splitmix64 of the seed, the step and the row)."""
    numbers = np.arange(first + 1, first + rows + 1, dtype=np.uint64)
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(hash_of(seed, step))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits: NDArray[np.float64] = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)
    return np.multiply(bits, 2.0**-53)


def hash_of(*numbers: int) -> int:
    """One 63-bit number from several, for generators that take a single seed."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 0x9E3779B97F4A7C15 + number + 1) % 2**64
        mixed ^= mixed >> 29
    return mixed >> 1


def _chunks(lane: slice, chosen: NDArray[np.int64] | None = None, whole: bool = False, pieces: int = 1) -> list[Rows]:
    """A lane's rows in equal parts, two at least if it has rows enough; the same for any number of workers.

    Of `chosen`, which are numbered by themselves, or of all rows. A run in several pieces has that many times the lanes
    of one piece: each is parted by itself, as in a process that has the one piece alone.
    """
    if pieces > 1:
        edges = [lane.start + (lane.stop - lane.start) * i // pieces for i in range(pieces + 1)]
        return [chunk for a, b in itertools.pairwise(edges) for chunk in _chunks(slice(a, b), chosen, whole)]
    ends = [lane.start, lane.stop]
    first, last = ends if chosen is None else np.searchsorted(chosen, ends).tolist()
    count = last - first
    parts = 1 if whole else max(min(2, count // LEAST_ROWS), -(-count // MOST_ROWS))
    edges = [first + count * i // parts for i in range(parts + 1)] if count else []
    owns = [slice(a, b) for a, b in itertools.pairwise(edges)]
    return [Rows(own if chosen is None else chosen[own], own) for own in owns]


def _join(chunks: list[Rows]) -> Rows:
    """Neighbouring chunks as one."""
    own = slice(chunks[0].own.start, chunks[-1].own.stop)
    places = [chunk.env for chunk in chunks if not isinstance(chunk.env, slice)]
    return Rows(np.concatenate(places) if places else own, own)
