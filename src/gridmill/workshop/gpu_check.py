"""The first hour on a GPU in one command: `make gpu-check`, which writes gpu-check.md beside the Makefile.

Nothing of this project was ever run on a GPU, so everything that the tests can only predict is tried here: that the
network gives the CPU's numbers there, how often the host waits, bfloat16, float16, compiled graphs, and the speed. Each
step is written down as soon as it is done, with what went wrong if something did. `--device cpu` runs the same steps
on a CPU, which is how they are tested.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gridmill import recipes, sizing
from gridmill.config.memory import mebibytes
from gridmill.run import Run
from gridmill.runs import overrides
from gridmill.train.trainer import Trainer
from gridmill.workshop import machine

EPOCHS = 3
PARTS = (("bag", "scan"), ("bag", "lstm"), ("cnn", "gru"), ("attend", "none"))
BESIDE = 24  # looks of an epoch beside those of its steps: metrics, statistics, what became of the updates


class Failed(Exception):
    """A step found something wrong."""


@dataclass(frozen=True)
class Check:
    """What is checked: the device, a run of its own size, and a larger one for speed."""

    device: str
    small: Run
    large: Run

    def run(self, *changes: str, run: Run | None = None) -> Run:
        base = self.small if run is None else run
        return overrides.apply(base, [f"trainer.device={self.device}", *changes])

    @property
    def gpu(self) -> bool:
        return self.device != "cpu"


def _trained(run: Run, epochs: int = EPOCHS) -> tuple[Trainer, list[dict[str, Any]]]:
    trainer = Trainer(run)
    try:
        return trainer, [trainer.epoch() for _ in range(epochs)]
    finally:
        trainer.close()


# ---- the steps: each gives the lines of its part of the report, or fails


def machine_step(check: Check) -> Iterator[str]:
    found = machine.describe()
    yield f"- {found.get('cpu', 'CPU')}; torch {torch.__version__}"
    for number in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(number)
        yield f"- GPU {number}: {card.name}, {mebibytes(card.total_memory)}, compute {card.major}.{card.minor}"
    if check.gpu:
        cudnn: Any = torch.backends.cudnn
        yield f"- CUDA {torch.version.cuda}, cuDNN {cudnn.version()}"


def numbers_step(check: Check) -> Iterator[str]:
    """Three epochs on the device against the same on the CPU, in float32 without TF32; the first is judged."""
    yield "| encoder | core | first actions that differ | weights by, 1 epoch | 3 epochs | entropy, CPU | device |"
    yield "|---|---|---|---|---|---|---|"
    wrong = []
    for encoder, core in PARTS:
        changes = (f"policy.encoder={encoder}", f"policy.core={core}", "trainer.tf32=false", "trainer.compile=off")
        ours = Trainer(overrides.apply(check.small, ["trainer.device=cpu", *changes]))
        theirs = Trainer(check.run(*changes))
        try:
            ours.rollout.collect()
            theirs.rollout.collect()
            differ = float((ours.experience.actions != theirs.experience.actions.cpu()).float().mean())
            apart = []
            for _ in range(EPOCHS):
                entropy = [trainer.epoch()["loss/entropy"] for trainer in (ours, theirs)]
                weights = ours.weights(), theirs.weights()
                apart.append(max(float((weights[0][name] - weights[1][name]).abs().max()) for name in weights[0]))
        finally:
            ours.close()
            theirs.close()
        numbers = f"{differ:.2%} | {apart[0]:.2g} | {apart[-1]:.2g} | {entropy[0]:.4f} | {entropy[1]:.4f}"
        yield f"| {encoder} | {core} | {numbers} |"
        if differ > 0.001 or not apart[0] < 0.01:
            wrong.append(f"{encoder} with {core}")
    if wrong:
        raise Failed(f"results differ from the CPU's: {', '.join(wrong)}")


def looks_step(check: Check) -> Iterator[str]:
    """How often the host waits for the device, as CUDA's own debug mode has it."""
    wrong = []
    for encoder, core in PARTS:
        run = check.run(f"policy.encoder={encoder}", f"policy.core={core}", "trainer.compile=off")
        trainer = Trainer(run)
        try:
            trainer.epoch()  # what is made once
            with _synchronisations(check) as found:
                trainer.epoch()
            allowed = trainer.sizes.horizon * trainer.sizes.lanes + BESIDE
        finally:
            trainer.close()
        yield f"- {encoder}, {core}: {found.total()} in an epoch, at most {allowed} expected"
        yield from (f"    - {count} x {place}" for place, count in found.most_common(8))
        if found.total() > allowed:
            wrong.append(f"{encoder} with {core}")
    if wrong:
        raise Failed(f"the host waits too often: {', '.join(wrong)}")


@contextmanager
def _synchronisations(check: Check) -> Iterator[Counter[str]]:
    """Counted by file and line."""
    found: Counter[str] = Counter()
    if not check.gpu:  # a CPU has nothing to wait for
        yield found
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for warning in said:
        if "synchroniz" in str(warning.message):
            found[f"{Path(warning.filename).name}:{warning.lineno}"] += 1


def precision_step(check: Check) -> Iterator[str]:
    """bfloat16 and float16 against float32: finite, nothing skipped, about the same losses."""

    def line(precision: str, last: dict[str, Any]) -> str:
        numbers = f"{last['skipped_updates']} | {last['loss/entropy']:.4f} | {last['gradient_norm']:.4f}"
        return f"| {precision} | {numbers} |"

    _, (*_, plain) = _trained(check.run("trainer.precision=fp32", "trainer.compile=off"))
    yield "| precision | skipped updates | entropy after three epochs | gradient norm |"
    yield "|---|---|---|---|"
    yield line("fp32", plain)
    for precision in ("bf16", "fp16"):
        try:
            trainer, (*_, last) = _trained(check.run(f"trainer.precision={precision}", "trainer.compile=off"))
        except ValueError as error:  # refused on this CPU
            if check.gpu:
                raise
            yield f"| {precision} | {error} | | |"
            continue
        yield line(precision, last)
        if precision == "fp16":
            yield f"\nScale of the loss at the end: {float(trainer.learner.loss_scale.factor):g}"
        if last["skipped_updates"] or abs(last["loss/entropy"] - plain["loss/entropy"]) > 0.1:
            raise Failed(f"{precision} learns differently from fp32")


def compile_step(check: Check) -> Iterator[str]:
    """Compiled graphs: three epochs of each mode, with what compiling took."""
    modes = ("default", "reduce-overhead") if check.gpu else ("default",)
    _, plain = _trained(check.run("trainer.compile=off"), 2)
    for mode in modes:
        began = time.perf_counter()
        _, found = _trained(check.run(f"trainer.compile={mode}", "trainer.max_microbatch=1152"))
        took = time.perf_counter() - began
        apart = abs(found[0]["gradient_norm"] - plain[0]["gradient_norm"])
        yield f"- {mode}: three epochs in {took:.0f} s, gradient norms {apart:.2g} apart from those without"
        if not apart < 0.05 * max(1.0, plain[0]["gradient_norm"]):
            raise Failed(f"compile={mode} learns differently from no compilation")


def speed_step(check: Check) -> Iterator[str]:
    """Agent-steps per second, and the memory of the GPU against the estimate."""
    yield "| settings | steps/s | rollout s | learn s | peak GPU memory | estimate |"
    yield "|---|---|---|---|---|---|"
    settings: dict[str, list[str]] = {"CPU": ["trainer.device=cpu"]}
    if check.gpu:
        settings |= {
            "fp32": ["trainer.compile=off"],
            "bf16": ["trainer.precision=bf16", "trainer.compile=off"],
            "bf16, compiled": ["trainer.precision=bf16", "trainer.compile=default"],
            "bf16, graphs": ["trainer.precision=bf16", "trainer.compile=reduce-overhead"],
        }
    for name, changes in settings.items():
        run = check.run(*changes, run=check.large)
        if check.gpu:
            torch.cuda.reset_peak_memory_stats()
        _, found = _trained(run, EPOCHS + 1)
        last = min(found[1:], key=lambda metrics: -metrics["sps"])  # the fastest: the first ones compile
        peak = mebibytes(torch.cuda.max_memory_allocated()) if check.gpu else "-"
        times = f"{last['time/rollout']:.2f} | {last['time/learn']:.2f}"
        yield f"| {name} | {last['sps']:,.0f} | {times} | {peak} | {mebibytes(sizing.memory(run).on_gpu)} |"


STEPS: dict[str, Callable[[Check], Iterator[str]]] = {
    "machine": machine_step,
    "numbers": numbers_step,
    "looks": looks_step,
    "precision": precision_step,
    "compile": compile_step,
    "speed": speed_step,
}


def report(check: Check, names: list[str], path: Path) -> list[str]:
    """Run the steps, each written down as it ends; the names of those that failed."""
    failed = []
    path.write_text(f"# gpu-check on {check.device}, {time.strftime('%Y-%m-%d %H:%M')}\n", encoding="utf-8")
    for name in names:
        lines, began = [f"\n## {name}\n"], time.perf_counter()
        print(f"gpu-check: {name} ...", file=sys.stderr, flush=True)
        try:
            lines += STEPS[name](check)
            lines.append(f"\nok, {time.perf_counter() - began:.0f} s")
        except Failed as error:
            failed.append(name)
            lines.append(f"\nFAILED: {error}")
        except Exception:  # whatever it is, the report shall have it, and the other steps shall run
            failed.append(name)
            lines.append(f"\nFAILED:\n\n```\n{machine.without_paths(traceback.format_exc())}```")
        with path.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpu-check", description="Try everything on a GPU and write a report.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: the same steps without a GPU")
    parser.add_argument("--only", default=",".join(STEPS), help=f"steps: {', '.join(STEPS)}")
    parser.add_argument("--out", type=Path, default=Path("gpu-check.md"), help="the report")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all runs, such as trainer.num_worlds=4")
    given = parser.parse_args(arguments)
    names = re.split(r"[,\s]+", given.only)
    if unknown := [name for name in names if name not in STEPS]:
        parser.error(f"expected steps of {', '.join(STEPS)}, got {unknown[0]}")
    if given.device == "cuda" and not torch.cuda.is_available():
        print(
            f"gpu-check: expected a GPU that torch can use, found none with torch {torch.__version__}; "
            "see docs/howto/gpu.md, or try the steps on this CPU with --device cpu",
            file=sys.stderr,
        )
        return 64
    small, large = (overrides.apply(recipes.build(name), given.set) for name in ("ci", "arena_easy_moves"))
    failed = report(Check(given.device, small, large), names, given.out)
    print(f"gpu-check: {'failed: ' + ', '.join(failed) if failed else 'all steps ok'}; report: {given.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
