"""A trained policy for other programs: ONNX, or a program of `torch.export`; one step of any number of rows.

    obs, state, episode_starts, masks -> logits, value, next_state

`state`, `episode_starts` and `next_state` are there if the policy remembers, `masks` if it was trained with masks. The
plain form of every part is exported, never a native kernel; what comes out is compared with the policy's own outputs
before a file is written. What the policy is (policy/about.py) is inside the file.
"""

from __future__ import annotations

import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridmill.config.files import refuse_unwritable, write_named
from gridmill.config.install import pip_install
from gridmill.policy import about, checkpoint, record
from gridmill.policy.network import Policy
from gridmill.policy.own_network import observations

KEY, INSIDE = "gridmill", "policy.json"  # where what the policy is lies as JSON: in metadata of ONNX, in a program
CLOSE = 1e-4  # how far outputs may lie from the policy's own, of numbers of about one
SUFFIXES = (".onnx", ".pt2")


class _OneStep(nn.Module):
    """A policy without an axis of time."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(
        self,
        obs: Tensor,
        state: Tensor | None = None,
        episode_starts: Tensor | None = None,
        masks: Tensor | None = None,
    ) -> dict[str, Tensor]:
        rows = obs.shape[0]
        before = torch.zeros(rows, 0) if state is None else state
        starts = torch.zeros(rows, dtype=torch.uint8) if episode_starts is None else episode_starts
        out = self.policy(obs[None], before, starts[None], None if masks is None else masks[None])
        found = {"logits": out.logits[0], "value": out.values[0]}
        return found if state is None else found | {"next_state": out.state}


def export(path: Path | str, out: Path) -> dict[str, Any]:
    """Write the newest policy under a path as `out`, FILE.onnx or FILE.pt2; what the file says of itself."""
    if out.suffix not in SUFFIXES:
        raise ValueError(f"expected a file that ends in {' or '.join(SUFFIXES)}, got `{out}`")
    if out.suffix == ".onnx":
        refuse_missing("onnx", "onnxscript")
    refuse_unwritable(out)
    found = checkpoint.latest(Path(path), checkpoint.load_policy)
    policy, saved = record.network(found)
    policy.freeze(True)  # tables that are joined once stay joined
    inputs = _inputs(policy, saved.run.trainer.masks)
    with torch.no_grad(), _quiet():
        wanted = _OneStep(policy)(**inputs)
        program = _program(policy, inputs)
        data, outputs = _as_onnx(program, inputs, list(wanted)) if out.suffix == ".onnx" else (b"", None)
        given = program.module()(**inputs) if outputs is None else outputs
    far = _refuse_other(given, wanted)
    known = _known(found, inputs, wanted) | {"largest_difference": far}
    if out.suffix == ".onnx":
        data = _with_metadata(data, json.dumps(known))
    else:
        stream = io.BytesIO()
        torch.export.save(program, stream, extra_files={INSIDE: json.dumps(known)})
        data = stream.getvalue()
    write_named(out, data)
    return known


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says about its own inside, as warnings and in its log."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _inputs(policy: Policy, masks: bool) -> dict[str, Tensor]:
    """Some rows as the policy could be shown them, with its own numbers of tokens, actions and floats."""
    rng = np.random.default_rng(0)
    obs = observations(policy.spec, rng).flatten(0, 1)
    rows, size = len(obs), policy.state_size
    found = {"obs": obs}
    if size:
        found["state"] = torch.from_numpy(rng.standard_normal((rows, size)).astype(np.float32))
        found["episode_starts"] = torch.from_numpy((np.arange(rows) % 2).astype(np.uint8))
    if masks:
        allowed = (rng.random((rows, len(policy.spec.actions))) < 0.7).astype(np.uint8)
        allowed[:, 0] = 1
        found["masks"] = torch.from_numpy(allowed)
    return found


def _program(policy: Policy, inputs: Mapping[str, Tensor]) -> torch.export.ExportedProgram:
    rows = torch.export.Dim("rows")
    shapes = {name: {0: rows} for name in inputs}
    try:
        return torch.export.export(_OneStep(policy).eval(), (), kwargs=dict(inputs), dynamic_shapes=shapes)
    except Exception as error:  # whatever torch makes of code of somebody's own
        said = " ".join(str(error).split())
        raise ValueError(
            f"policy: torch.export cannot export this network: {type(error).__name__}: {said:.300}"
        ) from error


def _as_onnx(
    program: torch.export.ExportedProgram, inputs: Mapping[str, Tensor], names: list[str]
) -> tuple[bytes, dict[str, Tensor] | None]:
    """The bytes of an ONNX file, and what onnxruntime makes of them; None where it is not installed."""
    made: Any = torch.onnx.export(
        program, (), kwargs=dict(inputs), input_names=list(inputs), output_names=names, dynamo=True, verbose=False
    )
    data: bytes = made.model_proto.SerializeToString()
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ModuleNotFoundError:
        return data, None
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = session.run(names, {name: tensor.numpy() for name, tensor in inputs.items()})
    return data, {name: torch.from_numpy(array) for name, array in zip(names, found, strict=True)}


def _with_metadata(data: bytes, text: str) -> bytes:
    onnx: Any = importlib.import_module("onnx")
    model = onnx.load_model_from_string(data)
    onnx.helper.set_model_props(model, {KEY: text})
    return bytes(model.SerializeToString())


def _refuse_other(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> float:
    """How far what was exported lies from the policy; ValueError if that is too far."""
    far = 0.0
    for name, tensor in wanted.items():
        apart = (given[name] - tensor).abs() / tensor.abs().clamp(min=1.0)
        far = max(far, float(apart.max()))
    if not far <= CLOSE:
        raise ValueError(f"policy: the exported outputs differ from the policy's by {far:.1e}, more than {CLOSE:g}")
    return far


def _known(found: checkpoint.Checkpoint, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> dict[str, Any]:
    known = about.describe(found)
    del known["path"], known["code"]  # of no use elsewhere
    known["network"] = {name: about.short(value) for name, value in known["network"].items()}
    return known | {"inputs": _shapes(inputs), "outputs": _shapes(outputs)}


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    """Type and shape by name; the number of rows is free."""
    return {
        name: [str(tensor.dtype).removeprefix("torch."), ["rows", *tensor.shape[1:]]]
        for name, tensor in tensors.items()
    }


def refuse_missing(*needed: str) -> None:
    """ValueError with the command that installs it."""
    for name in needed:
        if importlib.util.find_spec(name) is None:
            raise ValueError(f"ONNX needs {name}, which is not installed: {pip_install('gridmill[export]')}")
