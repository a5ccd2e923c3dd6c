"""Rollout: the env's lanes and the policy in turn, [T, B] steps into an Experience.

While the core steps one lane, the policy thinks about another. On a CPU a lane's rows are thought about in pieces by
the hands; on a GPU the whole lane at once, with pinned host memory and one synchronisation per step and lane (the
actions must arrive before the core can go on).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from gridmill.arithmetic import Sizes
from gridmill.env.env import Env
from gridmill.policy.kernels import native
from gridmill.train.experience import Experience
from gridmill.train.hands import Hands

MOST_ROWS, LEAST_ROWS = 1024, 128  # that one hand thinks about at a time, if there are so many
SEEN = ("obs", "final_obs", "rewards", "actions", "terminals", "truncations")
STEPS = ("obs", "starts", "masks", "actions", "log_probs", "values", "rewards", "terminals", "truncations", "bootstrap")
PARTS = ("env", "copy", "act", "store")  # where the time of a rollout goes


class Rollout:
    """Collects experience; remembers the recurrent state and which rows begin an episode."""

    def __init__(
        self,
        env: Env,
        policy: Callable[..., tuple[Tensor, ...]],
        sizes: Sizes,
        experience: Experience,
        hands: Hands,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]],
        seed: int,
        state_size: int,
        hold: Callable[[bool], None],
    ) -> None:
        self.env, self.policy, self.sizes, self.experience = env, policy, sizes, experience
        self.hands, self.device, self.autocast, self.seed = hands, device, autocast, seed
        self.hold = hold  # tells the policy that weights hold still
        self.step = 0  # steps of every row so far: with the seed and the row, all that drawing an action depends on
        self.state = torch.zeros(sizes.rows, state_size, device=device)
        self.starts = torch.ones(sizes.rows, dtype=torch.uint8)
        seen = {name: torch.from_numpy(getattr(env, name)) for name in SEEN}
        if env.masks is not None and experience.masks is not None:
            seen["masks"] = torch.from_numpy(env.masks)
        if device.type == "cuda":
            _pin(list(seen.values()))
        kept = {name: tensor for name in (*STEPS, "states") if (tensor := getattr(experience, name)) is not None}
        own = {"state": self.state, "starts": self.starts}
        # Parts of arrays are found and filled many times a step, which NumPy does ten times faster than torch.
        self.on_cpu = device.type == "cpu"
        self.seen, self.kept, self.own = ({n: self._plain(x) for n, x in d.items()} for d in (seen, kept, own))
        self.lanes = [env.rows(lane) for lane in range(env.lanes)]
        self.pieces = [_pieces(rows) if self.on_cpu else [rows] for rows in self.lanes]
        self.times = dict.fromkeys(PARTS, 0.0)

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
        self.hold(True)
        for t in range(self.sizes.horizon):
            for lane, rows in enumerate(self.lanes):
                if t > 0:
                    self._receive(lane, rows, t - 1)
                self._think(lane, t)
                self.env.send(lane)
            self.step += 1
        for lane, rows in enumerate(self.lanes):
            self._receive(lane, rows, self.sizes.horizon - 1)
        self.hands.map(self._look_ahead, [piece for pieces in self.pieces for piece in pieces])
        self.hold(False)

    # ---- one lane, one step

    def _receive(self, lane: int, rows: slice, t: int) -> None:
        """Wait for a lane and store what its step brought."""
        began = time.perf_counter()
        self.env.recv(lane)
        came = time.perf_counter()
        seen = self.seen
        terminals, truncations = seen["terminals"][rows], seen["truncations"][rows]
        self._put("rewards", t, rows, seen["rewards"][rows])
        self._put("terminals", t, rows, terminals)
        self._put("truncations", t, rows, truncations)
        self.own["starts"][rows] = terminals | truncations
        self.kept["bootstrap"][t, rows] = 0.0
        cut = truncations & ~terminals
        if cut.any():
            self._value_of_the_cut(t, torch.as_tensor(cut).nonzero().squeeze(1) + rows.start)
        self.times["env"] += came - began
        self.times["store"] += time.perf_counter() - came

    @torch.inference_mode()
    def _value_of_the_cut(self, t: int, which: Tensor) -> None:
        """V of the last observation of episodes that the time limit cut, from the state they ended with."""
        obs = torch.as_tensor(self.seen["final_obs"])[which].to(self.device)
        never = torch.zeros(1, len(which), dtype=torch.uint8, device=self.device)
        with self.autocast():
            _, values, *_ = self.policy(obs[None], self.state[which.to(self.device)], never, None)
        self.experience.bootstrap[t, which.to(self.experience.device)] = values[0].to(self.experience.device)

    def _think(self, lane: int, t: int) -> None:
        began = time.perf_counter()
        spent = self.hands.map(lambda rows: self._act(rows, t), self.pieces[lane])
        # Pieces run side by side: their parts share the time that passed.
        share = (time.perf_counter() - began) / max(1e-9, sum(map(sum, spent)))
        for part, seconds in zip(("copy", "act", "store"), zip(*spent, strict=True), strict=True):
            self.times[part] += sum(seconds) * share

    @torch.inference_mode()
    def _act(self, rows: slice, t: int) -> tuple[float, float, float]:
        """Observations in, actions out, for some rows; the seconds of copying, thinking and storing."""
        began = time.perf_counter()
        kept, device = self.experience, self.device
        self._put("obs", t, rows, self.seen["obs"][rows])
        self._put("starts", t, rows, self.own["starts"][rows])
        if kept.masks is not None:
            self._put("masks", t, rows, self.seen["masks"][rows])
        if t % self.sizes.bptt_horizon == 0:
            self.kept["states"][t // self.sizes.bptt_horizon, rows] = self.own["state"][rows]
        obs, starts = kept.obs[t : t + 1, rows].to(device), kept.starts[t : t + 1, rows].to(device)
        masks = None if kept.masks is None else kept.masks[t : t + 1, rows].to(device)
        copied = time.perf_counter()
        with self.autocast():
            logits, values, state, _ = self.policy(obs, self.state[rows], starts, masks)
        thought = time.perf_counter()
        self.own["state"][rows] = self._plain(state)
        self._put("values", t, rows, self._plain(values)[0])
        self._choose(rows, t, logits[0], masks)
        return copied - began, thought - copied, time.perf_counter() - thought

    def _choose(self, rows: slice, t: int, logits: Tensor, masks: Tensor | None) -> None:
        """Draw actions and store them with their log-probs."""
        if self.on_cpu:
            actions, log_probs = self.env.actions[rows], self.kept["log_probs"][t, rows]
            allowed = None if masks is None else self.kept["masks"][t, rows]
            native.sample_actions(logits.numpy(), allowed, self.seed, self.step, rows.start, actions, log_probs)
            self._put("actions", t, rows, actions)
            return
        generator = torch.Generator(self.device).manual_seed(hash_of(self.seed, self.step, rows.start))
        uniform = torch.rand(logits.shape, device=self.device, generator=generator).clamp_min(1e-10)
        chosen = (logits - (-uniform.log()).log()).argmax(-1)  # the Gumbel trick
        self._put("actions", t, rows, chosen.int())
        self._put("log_probs", t, rows, logits.log_softmax(-1).gather(-1, chosen[:, None]).squeeze(-1))
        self.seen["actions"][rows].copy_(chosen.int())  # waits for the device: the one synchronisation

    @torch.inference_mode()
    def _look_ahead(self, rows: slice) -> None:
        """V of the observation after the last step; the state does not move."""
        kept, device = self.experience, self.device
        obs, starts = torch.as_tensor(self.seen["obs"][rows]).to(device), self.starts[rows].to(device)
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


def _pieces(rows: slice) -> list[slice]:
    """A lane's rows in equal pieces, two at least if it has rows enough; the same for any number of hands."""
    count = rows.stop - rows.start
    parts = max(min(2, count // LEAST_ROWS), -(-count // MOST_ROWS))
    edges = [rows.start + count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _pin(arrays: list[Tensor]) -> None:
    """Make the core's own memory known to the device, so that copies do not block."""
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    for array in arrays:
        failed = int(runtime.cudaHostRegister(array.data_ptr(), array.numel() * array.element_size(), 0))
        if failed:
            raise RuntimeError(f"cannot pin the environment's arrays: CUDA error {failed}")
