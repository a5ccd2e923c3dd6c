"""GPUs that this machine has or seems to have, and what a run is told about them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import short_game, small_run
from torch import Tensor

from gridmill import sizing
from gridmill.config import ConfigError
from gridmill.config.memory import mebibytes
from gridmill.policy import device
from gridmill.run import Run
from gridmill.runs import presets
from gridmill.runs.dry_run import page
from gridmill.train import host_side
from gridmill.train.trainer import Trainer


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("dev/nvidia0", True),
        ("dev/nvidia7", True),  # the one that a container was given
        ("proc/driver/nvidia/gpus/0000:01:00.0", True),
        ("dev/dxg", True),
        ("dev/kfd", True),
        ("dev/nvidiactl", False),  # there without any GPU
        ("dev/null", False),
    ],
)
def test_what_drivers_show(file: str, shown: bool, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert device.has_sign(tmp_path) == shown


@pytest.mark.parametrize(("sign", "found", "count"), [(False, 4, 0), (True, 4, 4), (True, 0, 0), (True, None, 1)])
def test_torch_counts_where_a_driver_shows_something(
    sign: bool, found: int | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "has_sign", lambda: sign)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found)
    if found is None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert device.count() == count
    assert presets.detected() == ("gpu" if count else "laptop")


def gpu_run(**trainer: Any) -> Run:
    return small_run(short_game(), **({"device": "auto"} | trainer))


def test_on_a_gpu_a_minibatch_is_learned_from_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizing.sizes(gpu_run()).microbatches == 2
    monkeypatch.setattr(device, "count", lambda: 1)
    assert sizing.sizes(gpu_run()).microbatches == 1
    assert sizing.sizes(gpu_run(device="cpu")).microbatches == 2
    assert sizing.sizes(gpu_run(max_microbatch=32)).microbatches == 3


def test_the_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on it counts there and not on the host, and is refused where it does not fit."""
    on_cpu = sizing.memory(gpu_run())
    assert on_cpu.on_gpu == 0
    assert "on the GPU" not in page(gpu_run(), gpu_run(), "laptop")
    monkeypatch.setattr(device, "count", lambda: 1)
    need = sizing.memory(gpu_run())
    assert need.policy is not None
    assert need.policy > (on_cpu.policy or 0)
    assert need.on_gpu == need.policy + need.experience
    assert "on the GPU" in page(gpu_run(), gpu_run(), "gpu")
    kept = gpu_run(experience_device="cpu")
    assert sizing.memory(kept).on_gpu == need.policy
    room = need.on_gpu + sizing.GPU_OWN
    monkeypatch.setattr(device, "memory", lambda: room)
    sizing.memory(gpu_run())
    monkeypatch.setattr(device, "memory", lambda: room - 1)
    sizing.memory(kept)
    with pytest.raises(ConfigError, match=r"^not enough memory on the GPU: ") as caught:
        sizing.memory(gpu_run())
    end = f"and it has {mebibytes(room - 1)}; try trainer.max_microbatch below 96 or trainer.experience_device=cpu"
    assert caught.value.what.endswith(end)
    monkeypatch.setattr(sizing.memory_of_process, "limit", lambda: need.total - 1)
    monkeypatch.setattr(device, "memory", lambda: room)
    sizing.memory(gpu_run())  # the host need not hold what the GPU holds


def test_a_gpu_reads_the_envs_arrays_in_place_and_gives_them_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered once, as whole pages, and given back at close."""

    class Runtime:
        def cudaHostRegister(self, start: int, size: int, flags: int) -> int:
            assert start % 4096 == size % 4096 == flags == 0
            known.append(start)
            return int(len(known) == fails)

        def cudaHostUnregister(self, start: int) -> int:
            known.remove(start)
            return 0

    known, fails = list[int](), 0
    monkeypatch.setattr(host_side, "_runtime", Runtime)
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: self)
    trainer = Trainer(small_run())
    there: Any = torch.device("cuda")
    host = host_side.HostSide(trainer.experience, ["rewards"], there)
    host.register([trainer.env.obs, trainer.env.final_obs])
    assert len(known) in (1, 2)
    host.close()
    host.close()
    assert known == []
    fails = 1
    with pytest.raises(RuntimeError, match="cannot pin the environment's arrays: CUDA error 1"):
        host.register([trainer.env.obs])
    trainer.close()
