"""A file that would run code when unpickled is refused wherever a checkpoint may be; nothing of it runs.

And no file of the package can read such a thing: a list of what may not be imported or named is looked for in its
source.
"""

from __future__ import annotations

import ast
import io
import json
import marshal
import os
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints import FILES, reseal, save_epoch

from gridmill.policy import checkpoint
from gridmill.policy.checkpoint import CheckpointError

pytestmark = pytest.mark.X1

PACKAGE = Path(__file__).parents[2] / "src" / "gridmill"


class Hostile:
    """Unpickling it makes a directory: the canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.canary),)


def torch_zip(bad: Hostile) -> bytes:
    stream = io.BytesIO()
    torch.save({"weights": torch.zeros(2), "bad": bad}, stream)
    return stream.getvalue()


def torch_legacy(bad: Hostile) -> bytes:
    stream = io.BytesIO()
    torch.save({"bad": bad}, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def torch_by_hand(bad: Hostile) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(bad, protocol=2))
        archive.writestr("archive/version", "3")
    return stream.getvalue()


def numpy_objects(bad: Hostile) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([bad], dtype=object), allow_pickle=True)
    return stream.getvalue()


def numpy_archive(bad: Hostile) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, weights=np.array([bad], dtype=object))
    return stream.getvalue()


def behind_a_header(bad: Hostile) -> bytes:
    """A good safetensors header whose metadata and data are a pickle."""
    data = pickle.dumps(bad, protocol=0)
    header = json.dumps(
        {"__metadata__": {"pickle": data.decode()}, "x": {"dtype": "U8", "shape": [len(data)]}}
    ).encode()
    return len(header).to_bytes(8, "little") + header + data


PAYLOADS: dict[str, Callable[[Hostile], bytes]] = {
    "pickle 0": lambda bad: pickle.dumps(bad, protocol=0),
    "pickle 5": lambda bad: pickletools.optimize(pickle.dumps({"policy": bad}, protocol=5)),
    "torch zip": torch_zip,
    "torch legacy": torch_legacy,
    "torch by hand": torch_by_hand,
    "numpy objects": numpy_objects,
    "numpy archive": numpy_archive,
    "yaml": lambda bad: f'!!python/object/apply:os.mkdir ["{bad.canary}"]\n'.encode(),
    "marshal": lambda bad: marshal.dumps(compile(f"__import__('os').mkdir({str(bad.canary)!r})", "x", "exec")),
    "python": lambda bad: f"__import__('os').mkdir({str(bad.canary)!r})".encode(),
    "behind a header": behind_a_header,
}


def test_the_canary_sings(tmp_path: Path) -> None:
    """The payloads do what they threaten where somebody unpickles them."""
    bad = Hostile(tmp_path / "canary")
    pickle.loads(PAYLOADS["pickle 0"](bad))
    assert bad.canary.exists()


@pytest.mark.parametrize("name", PAYLOADS)
def test_hostile_files_are_refused(tmp_path: Path, name: str) -> None:
    """Eleven hostile files, as a path, in place of each file of a checkpoint, and with a manifest that fits them."""
    bad = Hostile(tmp_path / "canary")
    data = PAYLOADS[name](bad)
    for suffix in ("pt", "pkl", "safetensors", "json"):
        file = tmp_path / f"policy.{suffix}"
        file.write_bytes(data)
        for ask in (checkpoint.load, checkpoint.load_policy, checkpoint.find, checkpoint.newest):
            with pytest.raises(CheckpointError, match=f"policy.{suffix}"):
                ask(file)
    folder = tmp_path / "checkpoints"
    for part in FILES:
        path = save_epoch(folder, 1)
        (path / part).write_bytes(data)
        for fitting in (False, True):
            if fitting and part != "manifest.json":
                reseal(path)
            with pytest.raises(CheckpointError, match=part):
                checkpoint.load(path)
            with pytest.raises(CheckpointError, match=part):
                checkpoint.newest(folder)
    assert not bad.canary.exists()


# ---- the package cannot read them

MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "jsonpickle"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
FUNCTIONS = {"torch.load", "torch.jit.load", "torch.hub.load", "torch.package.PackageImporter", "np.load", "numpy.load"}


def banned(source: str) -> Iterator[str]:
    """What a file imports or mentions that runs code from data."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in full if name.split(".")[0] in MODULES or name in FUNCTIONS)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in BUILTINS:
            yield node.id
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in FUNCTIONS:
            yield ast.unparse(node)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_in_the_package_runs_code_from_data(path: Path) -> None:
    """No pickle, torch.load, np.load, eval or yaml anywhere in the package."""
    assert list(banned(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import yaml.loader",
        "from pickle import loads",
        "from torch import load",
        "def f():\n    import torch\n    return torch.load('x', weights_only=True)",
        "import numpy as np\nnp.load('x')",
        "eval('1')",
        "run = exec",
        "__import__('os')",
        "torch.jit.load('x')",
    ],
)
def test_the_ban_bites(source: str) -> None:
    assert list(banned(source))


def test_the_ban_lets_honest_code_pass() -> None:
    lines = ["import re, json, torch", "re.compile('x')", "json.load(f)", "model.eval()", "compile: str = 'off'"]
    assert not list(banned("\n".join(lines)))
