"""Rollout: the env's lanes and the policy in turn, [T, B] steps into an Experience.

What is stored is the experience's table of columns. While the core steps one lane, the policy acts in another. On a
CPU a lane's rows are split among the workers; on a GPU the whole lane is taken at once, with pinned host memory and one
synchronisation per step and lane (the actions must arrive before the core can go on).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gridmill.env.env import Env
from gridmill.policy.kernels import native
from gridmill.policy.network import Output
from gridmill.sizing import Sizes
from gridmill.train.actors import Actor
from gridmill.train.experience import Experience
from gridmill.train.workers import WorkerPool

MOST_ROWS, LEAST_ROWS = 1024, 128  # that one worker acts for at a time, if there are so many
PARTS = ("env", "copy", "act", "store")  # where the time of a rollout goes


class Rollout:
    """Collects experience; remembers the recurrent state and which rows begin an episode."""

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
    ) -> None:
        self.env, self.policy, self.sizes, self.experience = env, policy, sizes, experience
        self.workers, self.device, self.autocast, self.seed = workers, device, autocast, seed
        self.frozen = frozen  # the policy's acting form, while weights do not change
        self.step = 0  # steps of every row so far: with the seed and the row, all that drawing an action depends on
        self.state = torch.zeros(sizes.rows, state_size, device=device)
        self.episode_starts = torch.ones(sizes.rows, dtype=torch.uint8)
        # Parts of arrays are found and filled many times a step, which NumPy does ten times faster than torch.
        self.on_cpu = device.type == "cpu"
        self._pinned: dict[str, Tensor] = {}
        self.kept = {name: self._plain(tensor) for name, tensor in experience.columns.items()}
        self.kept_states = self._plain(experience.states)
        self.own_state, self.own_starts = self._plain(self.state), self._plain(self.episode_starts)
        sources = {name: stored.source for name, stored in experience.table.items() if stored.source is not None}
        self.before = {name: self._seen(s.env) for name, s in sources.items() if s.env and not s.after}
        self.after = {name: self._seen(s.env) for name, s in sources.items() if s.env and s.after}
        self.outputs = {name: Output._fields.index(s.output) for name, s in sources.items() if s.output}
        self.actors = {name: Actor(s.actor, env, seed) for name, s in sources.items() if s.actor}
        self.final_obs, self.drawn = self._seen("final_obs"), self._seen("actions")
        self.lanes = [env.rows(lane) for lane in range(env.lanes)]
        self.chunks = [_chunks(rows) if self.on_cpu else [rows] for rows in self.lanes]
        self.times = dict.fromkeys(PARTS, 0.0)
        self.begun: Callable[[list[int]], None] | None = None  # told which worlds have begun an episode

    def _seen(self, name: str) -> Any:
        """An array of the env; for another device than the CPU a tensor of the same memory, pinned."""
        if self.on_cpu:
            return getattr(self.env, name)
        if name not in self._pinned:  # two columns may be of one array
            self._pinned[name] = torch.from_numpy(getattr(self.env, name))
            if self.device.type == "cuda":
                _pin(self._pinned[name])
        return self._pinned[name]

    def _plain(self, tensor: Tensor) -> Any:
        """The same memory as a NumPy array on a CPU; on another device the tensor."""
        return tensor.numpy() if self.on_cpu else tensor

    def _put(self, name: str, t: int, rows: slice, what: Any) -> None:
        """Store what a step brought for some rows."""
        if self.on_cpu:
            self.kept[name][t, rows] = what
        else:
            self.kept[name][t, rows].copy_(what, non_blocking=True)

    def collect(self) -> None:
        """One rollout. Afterwards no lane is in flight."""
        self.times = dict.fromkeys(PARTS, 0.0)
        with self.frozen():
            for t in range(self.sizes.horizon):
                for lane, rows in enumerate(self.lanes):
                    if t > 0:
                        self._receive(lane, rows, t - 1)
                    self._think(lane, rows, t)
                    self.env.send(lane)
                self.step += 1
            for lane, rows in enumerate(self.lanes):
                self._receive(lane, rows, self.sizes.horizon - 1)
            self.workers.map(self._look_ahead, [chunk for chunks in self.chunks for chunk in chunks])

    # ---- one lane, one step

    def _receive(self, lane: int, rows: slice, t: int) -> None:
        """Wait for a lane and store what its step brought."""
        began = time.perf_counter()
        self.env.recv(lane)
        came = time.perf_counter()
        for name, seen in self.after.items():
            self._put(name, t, rows, seen[rows])
        terminals, truncations = self.after["terminals"][rows], self.after["truncations"][rows]
        self.own_starts[rows] = terminals | truncations
        if self.begun is not None and self.own_starts[rows].any():
            agents = self.env.num_agents  # whose episodes end together
            worlds = np.flatnonzero(self.episode_starts.numpy()[rows.start : rows.stop : agents])
            self.begun((worlds + rows.start // agents).tolist())
        self.kept["bootstrap"][t, rows] = 0.0
        cut = truncations & ~terminals
        if cut.any():
            self._value_of_the_cut(t, torch.as_tensor(cut).nonzero().squeeze(1) + rows.start)
        self.times["env"] += came - began
        self.times["store"] += time.perf_counter() - came

    @torch.inference_mode()
    def _value_of_the_cut(self, t: int, which: Tensor) -> None:
        """V of the last observation of episodes that the time limit cut, from the state they ended with."""
        obs = torch.as_tensor(self.final_obs)[which].to(self.device)
        never = torch.zeros(1, len(which), dtype=torch.uint8, device=self.device)
        with self.autocast():
            _, values, *_ = self.policy(obs[None], self.state[which.to(self.device)], never, None)
        self.experience.bootstrap[t, which.to(self.experience.device)] = values[0].to(self.experience.device)

    def _think(self, lane: int, rows: slice, t: int) -> None:
        began = time.perf_counter()
        for name, actor in self.actors.items():
            actions = actor.act(rows, self.step, self.episode_starts.numpy())
            self._put(name, t, rows, actions if self.on_cpu else torch.from_numpy(actions))
        spent = self.workers.map(lambda chunk: self._act(chunk, t), self.chunks[lane])
        # Chunks run side by side: their parts share the time that passed.
        share = (time.perf_counter() - began) / max(1e-9, sum(map(sum, spent)))
        for part, seconds in zip(("copy", "act", "store"), zip(*spent, strict=True), strict=True):
            self.times[part] += sum(seconds) * share

    @torch.inference_mode()
    def _act(self, rows: slice, t: int) -> tuple[float, float, float]:
        """Observations in, actions out, for some rows; the seconds of copying, thinking and storing."""
        began = time.perf_counter()
        kept, device = self.experience, self.device
        for name, seen in self.before.items():
            self._put(name, t, rows, seen[rows])
        self._put("episode_starts", t, rows, self.own_starts[rows])
        if t % self.sizes.bptt_horizon == 0:
            self.kept_states[t // self.sizes.bptt_horizon, rows] = self.own_state[rows]
        obs, starts = kept.obs[t : t + 1, rows].to(device), kept.episode_starts[t : t + 1, rows].to(device)
        masks = None if kept.masks is None else kept.masks[t : t + 1, rows].to(device)
        copied = time.perf_counter()
        with self.autocast():
            out = self.policy(obs, self.state[rows], starts, masks)
        thought = time.perf_counter()
        self.own_state[rows] = self._plain(out[2])
        for name, part in self.outputs.items():
            self._put(name, t, rows, self._plain(out[part])[0])
        self._choose(rows, t, out[0][0], masks)
        return copied - began, thought - copied, time.perf_counter() - thought

    def _choose(self, rows: slice, t: int, logits: Tensor, masks: Tensor | None) -> None:
        """Draw actions and store them with their log-probs."""
        if self.on_cpu:
            actions, log_probs = self.drawn[rows], self.kept["log_probs"][t, rows]
            allowed = None if masks is None else self.kept["masks"][t, rows]
            native.sample_actions(logits.numpy(), allowed, self.seed, self.step, rows.start, actions, log_probs)
            self._put("actions", t, rows, actions)
            return
        generator = torch.Generator(self.device).manual_seed(hash_of(self.seed, self.step, rows.start))
        uniform = torch.rand(logits.shape, device=self.device, generator=generator).clamp_min(1e-10)
        chosen = (logits - (-uniform.log()).log()).argmax(-1)  # the Gumbel trick
        self._put("actions", t, rows, chosen.int())
        self._put("log_probs", t, rows, logits.log_softmax(-1).gather(-1, chosen[:, None]).squeeze(-1))
        self.drawn[rows].copy_(chosen.int())  # waits for the device: the one synchronisation

    @torch.inference_mode()
    def _look_ahead(self, rows: slice) -> None:
        """V of the observation after the last step; the state does not move."""
        kept, device = self.experience, self.device
        obs, starts = torch.as_tensor(self.before["obs"][rows]).to(device), self.episode_starts[rows].to(device)
        with self.autocast():
            _, values, *_ = self.policy(obs[None], self.state[rows], starts[None], None)
        kept.last_value[rows] = values[0]


def hash_of(*numbers: int) -> int:
    """One 63-bit number from several, for generators that take a single seed."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 0x9E3779B97F4A7C15 + number + 1) % 2**64
        mixed ^= mixed >> 29
    return mixed >> 1


def _chunks(rows: slice) -> list[slice]:
    """A lane's rows in equal parts, two at least if it has rows enough; the same for any number of workers."""
    count = rows.stop - rows.start
    parts = max(min(2, count // LEAST_ROWS), -(-count // MOST_ROWS))
    edges = [rows.start + count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _pin(array: Tensor) -> None:
    """Make the core's own memory known to the device, so that copies do not block."""
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    failed = int(runtime.cudaHostRegister(array.data_ptr(), array.numel() * array.element_size(), 0))
    if failed:
        raise RuntimeError(f"cannot pin the environment's arrays: CUDA error {failed}")
