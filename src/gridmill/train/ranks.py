"""Ranks: several processes that train one run together, started by torchrun. All that they say to each other is here.

A run is computed in pieces: equal parts of its worlds and of every minibatch, each rank with its own ones, in order.
What is added up over pieces is added in the order of the pieces, whoever computed them, so that any number of ranks,
and one process that computes all pieces, get the same bits. What is decided (a checkpoint, the end) rank 0 decides.

A process alone is all ranks there are: nothing is sent, and torch.distributed is not touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor

from gridmill.config.text import harmless

Answer = TypeVar("Answer")
BEAT = 0.5  # seconds between two signs of life
FOLLOWERS_WAIT = 600.0  # seconds, for rank 0 to say what is trained
QUIET = 5.0  # seconds that a rank waits for the others without saying so
PATIENCE = 5  # seconds in which a process that has lost the store may still end in its own way
MOST_BEATS = 4  # that a rank may miss: whoever sends none for so long has stopped


class RankLost(RuntimeError):
    """Another rank has ended, hangs, or has other weights: this one cannot go on."""


class Ranks:
    """This process among those that train a run; alone unless `join` finds others."""

    rank, count = 0, 1
    local = 1  # how many are on this machine

    def add_up(self, pieces: Sequence[Sequence[Tensor]]) -> list[Tensor]:
        """The sums over all pieces of all ranks, of tensors that every piece has one of each."""
        first = list(pieces[0])
        if len(pieces) * self.count == 1:
            return first
        flat = torch.stack([torch.cat([tensor.reshape(-1) for tensor in piece]) for piece in pieces])
        parts = torch.split(self._sum(flat), [tensor.numel() for tensor in first])
        return [part.view_as(tensor) for part, tensor in zip(parts, first, strict=True)]

    def _sum(self, flat: Tensor) -> Tensor:
        return in_order(flat)

    def table(self, mine: Tensor) -> Tensor:
        """What each piece has to say, [own pieces, ...], as all of them say it: [pieces, ...]."""
        return mine

    def all_bytes(self, mine: bytes) -> list[bytes]:
        """What each rank has to say, for all."""
        return [mine]

    def to_first(self, mine: bytes) -> list[bytes]:
        """What each rank has to say, for rank 0; the others get nothing."""
        return [mine]

    def of_first(self, said: bytes = b"") -> bytes:
        """What rank 0 says."""
        return said

    def at(self, phase: str) -> None:
        """What this rank does now, for whoever has to wait for it."""

    def close(self) -> None:
        """This rank needs the others no more."""

    # ---- made of these

    def rows(self, tensor: Tensor) -> Tensor:
        """The rows of all ranks, for rank 0, of a tensor that has some of them here."""
        if self.count == 1:
            return tensor
        parts = self.to_first(save({"rows": tensor.contiguous()}))
        return torch.cat([load(part)["rows"] for part in parts]) if parts else tensor

    def own_rows(self, tensor: Tensor) -> Tensor:
        """Of all rows, those of this rank."""
        return tensor.chunk(self.count)[self.rank] if self.count > 1 else tensor

    def agree(self, number: int, wish: bool) -> tuple[int, bool]:
        """The largest number of a signal that any rank was sent, and what rank 0 wishes."""
        if self.count == 1:
            return number, wish
        said = [json.loads(text) for text in self.all_bytes(json.dumps([number, wish]).encode())]
        return max(number for number, _ in said), bool(said[0][1])

    def metrics_of_first(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """The metrics of rank 0: times differ, and schedules may follow any of them."""
        if self.count == 1:
            return metrics
        found: dict[str, Any] = json.loads(self.of_first(json.dumps(metrics).encode()))
        return found

    def compare(self, weights: Callable[[], Mapping[str, Tensor]], epoch: int) -> None:
        """RankLost if ranks have different weights."""
        if self.count == 1:
            return
        self.at(f"comparing weights after epoch {epoch}")
        found = hashlib.sha256()
        for name, tensor in weights().items():
            found.update(name.encode() + tensor.contiguous().view(torch.uint8).numpy().tobytes())
        hashes = self.all_bytes(found.digest())
        groups = {known: [r for r, other in enumerate(hashes) if other == known] for known in dict.fromkeys(hashes)}
        if len(groups) > 1:
            named = "; ".join(f"{names(same)} {known.hex()[:12]}" for known, same in groups.items())
            raise RankLost(f"weights differ after epoch {epoch}: {named}; expected the same on all ranks")

    def _moments(self, parts: Sequence[Tensor]) -> Tensor:
        """Count, mean and standard deviation of some numbers, [parts, 3]."""
        found = [
            torch.stack((part.new_full((), part.numel()), part.mean(), part.std(correction=0)))
            if part.numel()
            else part.new_zeros(3)
            for part in parts
        ]
        return torch.stack(found).double()

    def moments(self, parts: Sequence[Sequence[Tensor]]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Count, mean and standard deviation over all pieces; `parts` are numbers of own pieces, several kinds each.

        One entry a kind. Of one piece that is alone they are its own to the bit.
        """
        n, mean, std = self.table(torch.stack([self._moments(kinds) for kinds in parts])).unbind(-1)
        count = n.sum(0)
        whole = (n * mean).sum(0) / count.clamp(min=1)
        spread = ((n * (std.square() + (mean - whole).square())).sum(0) / count.clamp(min=1)).sqrt()
        return list(zip(count, whole.float(), spread.float(), strict=True))


ALONE = Ranks()


def in_order(table: Tensor) -> Tensor:
    """The sum over the first dimension, from the first entry to the last."""
    total = table[0].clone()
    for entry in table[1:]:
        total += entry
    return total


def names(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


# ---- several processes


def launched() -> tuple[int, int]:
    """This process's rank and how many there are, as the launcher says; (0, 1) without one. ValueError if it says only
    a part of it: each of its processes would train a run of its own.
    """
    size = os.environ.get("WORLD_SIZE", "")
    if size in ("", "1"):
        return 0, 1
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise ValueError(
                f"{name}: expected a value, for WORLD_SIZE is {size!r:.20}, got none; start the processes with "
                f"torchrun, or unset WORLD_SIZE to train in one"
            )
    rank, count = os.environ["RANK"], _number("WORLD_SIZE", 1)
    if not rank.isdecimal() or len(rank) > 9 or int(rank) >= count:
        raise ValueError(f"RANK, WORLD_SIZE: expected 0 <= RANK < WORLD_SIZE, got {rank!r:.20}, {size!r:.20}")
    _number("MASTER_PORT", 1, 65_535)
    _number("LOCAL_WORLD_SIZE", 1)
    _number("LOCAL_RANK", 0)
    return int(rank), count


def _number(name: str, least: int, most: int = 1_000_000) -> int:
    """A number that the launcher says; the least where it says nothing."""
    text = os.environ.get(name) or str(least)
    if not (text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {text!r:.20}")
    return int(text)


class Joined(Ranks):
    """One of several processes. Whatever a call waits for longer than `timeout` ends in RankLost, which names who."""

    def __init__(self, store: Any, rank: int, count: int, timeout: float) -> None:
        import torch.distributed

        dist: Any = torch.distributed
        self.dist, self.rank, self.count = dist, rank, count
        self.local = _number("LOCAL_WORLD_SIZE", 1)
        self.timeout, self._phase, self._calls = timeout, "joining the others", 0
        self._store = dist.PrefixStore("gridmill", store)
        self._end, self._deaf = threading.Event(), False  # deaf: the store answers no more
        self._tell()
        self._pulse = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._pulse.start()
        # The time to find out who it is, and to close the log and say so, belongs to the timeout.
        limit = timedelta(seconds=timeout - (MOST_BEATS + 2) * BEAT - min(5.0, timeout / 5))
        backend = "gloo"
        if dist.is_nccl_available() and torch.cuda.is_available():
            torch.cuda.set_device(_number("LOCAL_RANK", 0))
            backend = "cpu:gloo,cuda:nccl"
        with self._waiting():
            dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=limit)

    # ---- what is said

    def _sum(self, flat: Tensor) -> Tensor:
        """Every rank adds up one slice of all pieces, in their order, and hands it to the others."""
        pieces, size = flat.shape
        slice_ = -(-size // self.count)
        mine = torch.nn.functional.pad(flat, (0, slice_ * self.count - size))
        mine = mine.view(pieces, self.count, slice_).transpose(0, 1).contiguous()  # [rank, piece, slice]
        theirs, whole = torch.empty_like(mine), mine.new_empty(slice_ * self.count)
        with self._waiting():
            self.dist.all_to_all_single(theirs.view(-1), mine.view(-1))
            self.dist.all_gather(list(whole.chunk(self.count)), in_order(theirs.view(-1, slice_)))
        return whole[:size]

    def table(self, mine: Tensor) -> Tensor:
        mine = mine.contiguous()
        found = mine.new_empty(self.count * len(mine), *mine.shape[1:])
        with self._waiting():
            self.dist.all_gather(list(found.chunk(self.count)), mine)
        return found

    def all_bytes(self, mine: bytes) -> list[bytes]:
        sizes, padded = self._padded(mine)
        found = padded.new_empty(self.count * len(padded))
        with self._waiting():
            self.dist.all_gather(list(found.chunk(self.count)), padded)
        return [part[:size].numpy().tobytes() for part, size in zip(found.chunk(self.count), sizes, strict=True)]

    def to_first(self, mine: bytes) -> list[bytes]:
        sizes, padded = self._padded(mine)
        found = [torch.empty_like(padded) for _ in sizes] if self.rank == 0 else None
        with self._waiting():
            self.dist.gather(padded, found, dst=0)
        return [part[:size].numpy().tobytes() for part, size in zip(found or [], sizes, strict=bool(found))]

    def _padded(self, mine: bytes) -> tuple[list[int], Tensor]:
        """How many bytes each rank has, and ours, as long as the longest."""
        sizes = [int(size) for size in self.table(torch.tensor([len(mine)]))]
        padded = torch.zeros(max(1, *sizes), dtype=torch.uint8)
        if mine:
            padded[: len(mine)] = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        return sizes, padded

    def of_first(self, said: bytes = b"") -> bytes:
        size = torch.tensor([len(said)])
        with self._waiting():
            self.dist.broadcast(size, src=0)
        data = torch.zeros(int(size), dtype=torch.uint8)
        if self.rank == 0 and said:
            data[:] = torch.frombuffer(bytearray(said), dtype=torch.uint8)
        with self._waiting():
            self.dist.broadcast(data, src=0)
        return data.numpy().tobytes()

    # ---- signs of life

    def at(self, phase: str) -> None:
        self._phase = phase

    def _tell(self) -> None:
        """Where this rank is; the time is only there to differ from the last one."""
        word = json.dumps([self._calls, self._phase, time.monotonic()])
        self._store.set(f"at/{self.rank}", word)

    def _beat(self) -> None:
        while not self._end.wait(BEAT):
            try:
                self._tell()
            except RuntimeError:  # whoever kept the store has gone; a call that fails says so
                return

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Around what waits for others."""
        self._calls += 1
        try:
            yield
        except RuntimeError as error:  # torch has no class of its own for a time-out or for a lost connection
            raise RankLost(self._who(str(error).splitlines()[0])) from error

    def _who(self, what: str) -> str:
        """Who is not there any more, who hangs, and where."""
        found: list[str] = []
        asking = threading.Thread(target=lambda: found.append(self._ask(what)), name="who", daemon=True)
        asking.start()
        asking.join((MOST_BEATS + 2) * BEAT)
        self._deaf = not found
        told = found[0] if found else "rank 0 does not answer, nor does the store, which it may host"
        waited = f"rank {self.rank} waited while {self._phase}, ranks.timeout = {self.timeout:g} s"
        return f"{told} ({waited})"

    def _ask(self, what: str) -> str:
        """By what all ranks said last: to the store, which may be lost as well."""
        try:
            said = [self._left(rank) for rank in range(self.count)]
            before = [self._word(rank) for rank in range(self.count)]
            if not any(said):
                time.sleep(MOST_BEATS * BEAT)
            now = [self._word(rank) for rank in range(self.count)]
            said = [self._left(rank) for rank in range(self.count)]
        except RuntimeError:
            return what
        others = [rank for rank in range(self.count) if rank != self.rank]
        told = [f"rank {rank} ended: {said[rank]}" for rank in others if said[rank]]
        silent = [rank for rank in others if now[rank] == before[rank] and not said[rank]]
        told += [f"rank {rank} has stopped (no sign of life) {_where(now[rank])}" for rank in silent]
        if not told:  # all live: whoever is furthest behind keeps the others waiting
            calls = [word[0] if word else -1 for word in now]
            told = [f"rank {rank} hangs {_where(now[rank])}" for rank in others if calls[rank] == min(calls)]
        return "; ".join(told) or what

    def _word(self, rank: int) -> list[Any]:
        key = f"at/{rank}"
        return list(json.loads(self._store.get(key))) if self._store.check([key]) else []

    def _left(self, rank: int) -> str:
        key = f"left/{rank}"
        return self._store.get(key).decode() if self._store.check([key]) else ""

    def leave(self, why: str) -> None:
        """This rank ends because of something that the others shall be told."""
        if self._deaf:  # nothing can be said, and taking the connection down at the end would wait as well
            signal.alarm(PATIENCE)
            return
        with contextlib.suppress(RuntimeError):
            self._store.set(f"left/{self.rank}", why[:2000])

    def close(self) -> None:
        self._end.set()
        self._pulse.join()
        if self.dist.is_initialized():
            self.dist.destroy_process_group()


def _where(word: Sequence[Any]) -> str:
    return f"while {word[1]}" if word else "before it joined"


def join(say: Callable[[], tuple[dict[str, Any], float]] | None = None) -> tuple[Ranks, dict[str, Any]]:
    """Meet the other processes of this run, if there are any. Rank 0 says to all what they train, and the timeout.

    `say` is rank 0's; the others pass None and get what it said.
    """
    rank, count = launched()
    hello, limit = say() if say is not None else ({}, FOLLOWERS_WAIT)
    if count == 1:
        return ALONE, hello
    import torch.distributed

    dist: Any = torch.distributed  # its types do not name all that its documents do
    with _told_that_it_waits(rank, count, limit):
        base, *_ = next(dist.rendezvous("env://", rank, count, timeout=timedelta(seconds=limit)))
        meeting = _met(base, rank, count, limit)
    store = dist.PrefixStore(meeting, base)
    if rank == 0:
        store.set("hello", json.dumps([hello, limit]))
    else:
        hello, limit = json.loads(store.get("hello"))
    return Joined(store, rank, count, limit), hello


@contextlib.contextmanager
def _told_that_it_waits(rank: int, count: int, limit: float) -> Iterator[None]:
    """One line, if the others are long in coming; torch says nothing until the time is over."""
    whom = names(range(1, count)) if rank == 0 else "rank 0"
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    line = harmless(f"rank {rank} waits for {whom} at {where}, for {limit:g} s at most")
    late = threading.Timer(QUIET, print, [line], {"flush": True})
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def _met(store: Any, rank: int, count: int, limit: float) -> str:
    """A name that the processes which are here now share, and no others.

    A launcher that starts processes again may give them the store of those before, with all that they said. Each asks
    with a word of its own, and rank 0 answers every such word until all have heard it.
    """
    if rank:
        word = uuid.uuid4().hex
        store.set(f"asks/{rank}", word)
        try:
            meeting: str = store.get(f"answer/{word}").decode()
        except RuntimeError:
            raise RankLost(f"rank 0 did not join within {limit:g} s (rank {rank} waited)") from None
        store.set(f"heard/{meeting}/{rank}", "")
        return meeting
    meeting, until = uuid.uuid4().hex, time.monotonic() + limit
    missing = list(range(1, count))
    while missing:
        for other in missing:
            if store.check([f"asks/{other}"]):
                store.set(f"answer/{store.get(f'asks/{other}').decode()}", meeting)
        missing = [other for other in missing if not store.check([f"heard/{meeting}/{other}"])]
        if missing and time.monotonic() > until:
            raise RankLost(f"{names(missing)} did not join within {limit:g} s (rank 0 waited)")
        time.sleep(0.02)
    return meeting
