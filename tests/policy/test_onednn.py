"""The trial of bf16 products: what a child that dies, hangs or talks nonsense leads to, and that it is asked only once.

No CPU of ours dies for real, so the children here kill themselves; everything around them is the product's own.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import tiny
from small_runs import needs_bf16
from warm import warm

from gridmill.policy import onednn
from gridmill.policy.onednn import CAP, VARIABLE, Finding

pytestmark = pytest.mark.U4

FACTS = {"model name": "A CPU", "flags": "fpu avx512_fp16 amx_bf16 amx_tile"}
ILL = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
CURED = f"import os\nif '{VARIABLE}' in os.environ: print(64.0)\nelse:\n    {ILL}"
CAPPED = f"ONEDNN_MAX_CPU_ISA={CAP}, because a bf16 product with AMX ends a process with SIGILL here"
BROKEN = f"bf16 is refused: a product ends a process with SIGILL here, with ONEDNN_MAX_CPU_ISA={CAP} too"
SOURCE = Path(onednn.__file__).parents[1]


class Asked:
    """`find` with a child of our own."""

    def __init__(self, folder: Path | None, code: str) -> None:
        self.folder, self.code = folder, code
        self.environment = {key: value for key, value in os.environ.items() if not key.endswith("MAX_CPU_ISA")}

    def find(self, torch: str | None = "2.13.0", seconds: float = 60.0, flags: str = FACTS["flags"]) -> Finding:
        return onednn.find(
            {**FACTS, "flags": flags}, torch, self.environment, self.folder, [sys.executable, "-c", self.code], seconds
        )


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands of all children that are started."""
    started: list[Sequence[str]] = []
    plain = onednn.trial

    def counted(environment: dict[str, str], command: Sequence[str], seconds: float) -> onednn.Trial:
        started.append(command)
        return plain(environment, command, seconds)

    monkeypatch.setattr(onednn, "trial", counted)
    return started


def test_a_child_that_dies_caps_onednn_if_that_helps(tmp_path: Path) -> None:
    asked = Asked(tmp_path, CURED)
    assert asked.find() == Finding("capped", CAPPED)
    assert asked.environment[VARIABLE] == CAP


def test_a_child_that_dies_all_the_same_sets_nothing(tmp_path: Path) -> None:
    asked = Asked(tmp_path, ILL)
    assert asked.find() == Finding("broken", BROKEN)
    assert VARIABLE not in asked.environment


def test_a_child_that_lives_sets_nothing(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "print(64.0)")
    assert asked.find() == Finding("works", "bf16 products with AMX work")
    assert VARIABLE not in asked.environment


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
        ("print('hello')", "printed something other than its result"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "printed something other than its result"),
        ("raise SystemExit(3)", "ended with code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
    ],
)
def test_what_says_nothing_about_the_cpu_caps_nothing_and_is_not_remembered(
    code: str, why: str, tmp_path: Path
) -> None:
    asked = Asked(tmp_path, code)
    seconds = 0.5 if "sleep" in code else 60.0
    assert asked.find(seconds=seconds) == Finding("unknown", f"nothing is capped: the trial of a bf16 product {why}")
    assert VARIABLE not in asked.environment
    assert list(tmp_path.iterdir()) == []


def test_a_second_trial_that_hangs_caps_nothing(tmp_path: Path) -> None:
    asked = Asked(tmp_path, CURED.replace("print(64.0)", "import time; time.sleep(60)"))
    assert asked.find(seconds=2.0).state == "unknown"
    assert VARIABLE not in asked.environment


def test_a_python_that_cannot_be_started(tmp_path: Path) -> None:
    found = onednn.find(FACTS, "2.13.0", {}, tmp_path, [str(tmp_path / "none")])
    expected = "nothing is capped: the trial of a bf16 product could not be started (No such file or directory)"
    assert found == Finding("unknown", expected)


# ---- asked once


@pytest.mark.parametrize(("code", "children"), [(CURED, 2), (ILL, 2), ("print(64.0)", 1)])
def test_the_answer_is_remembered(code: str, children: int, tmp_path: Path, count: list[Sequence[str]]) -> None:
    first = Asked(tmp_path / "deep" / "cache", code)
    found = first.find()
    assert len(count) == children
    again = Asked(tmp_path / "deep" / "cache", "raise SystemExit('not to be started')")
    assert again.find() == found
    assert len(count) == children
    assert again.environment.get(VARIABLE) == first.environment.get(VARIABLE)


def test_another_torch_another_cpu_and_another_kernel_are_asked_anew(
    tmp_path: Path, count: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    Asked(tmp_path, CURED).find()
    assert Asked(tmp_path, "print(64.0)").find(torch="2.14.0").state == "works"
    assert Asked(tmp_path, "print(64.0)").find(flags="fpu amx_tile").state == "works"
    monkeypatch.setattr(onednn.platform, "release", lambda: "another")
    assert Asked(tmp_path, "print(64.0)").find().state == "works"
    assert len(count) == 5


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "3", '{"state": "capped"}', '{"state": "fine", "text": ""}', '{"state": [], "text": 3}', "\udcff"],
)
def test_a_damaged_answer_is_asked_again(damage: str, tmp_path: Path, count: list[Sequence[str]]) -> None:
    Asked(tmp_path, CURED).find()
    [file] = tmp_path.iterdir()
    whole = json.loads(file.read_text())
    file.write_bytes(damage.encode(errors="surrogateescape"))
    assert Asked(tmp_path, CURED).find() == Finding("capped", CAPPED)
    assert len(count) == 4
    assert json.loads(file.read_text()) == whole


def test_a_cache_that_cannot_be_written_is_asked_again(tmp_path: Path, count: list[Sequence[str]]) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", None):
        assert Asked(folder, CURED).find().state == "capped"
    assert len(count) == 4


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onednn.os, "replace", full)
    assert Asked(tmp_path, CURED).find().state == "capped"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "expected"), [("/x", "/x/gridmill"), ("", "/h/.cache/gridmill"), ("x", "/h/.cache/gridmill")]
)
def test_where_answers_are_kept(given: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", "/h")
    assert onednn.cache_folder() == Path(expected)


# ---- no child at all


@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"])
def test_a_setting_of_the_users_own_wins(name: str, tmp_path: Path, count: list[Sequence[str]]) -> None:
    asked = Asked(tmp_path, CURED)
    asked.environment[name] = "ALL"
    assert asked.find() == Finding("set", f"{name}=ALL was set by the user and is not changed")
    assert asked.environment[name] == "ALL"
    assert count == []


def test_an_empty_setting_is_none(tmp_path: Path) -> None:
    asked = Asked(tmp_path, CURED.replace(f"'{VARIABLE}' in os.environ", f"os.environ['{VARIABLE}']"))
    asked.environment[VARIABLE] = ""
    assert asked.find().state == "capped"


@pytest.mark.parametrize("flags", ["", "fpu avx2 avx512f avx512_bf16"])
def test_a_cpu_without_amx_starts_no_child(flags: str, tmp_path: Path, count: list[Sequence[str]]) -> None:
    assert Asked(tmp_path, ILL).find(flags=flags) == Finding("unconcerned", "this CPU shows no AMX")
    assert Asked(tmp_path, ILL).find(torch=None) == Finding("unconcerned", "torch is not installed")
    assert count == []


def test_amx_that_the_kernel_does_not_name_is_tried(tmp_path: Path) -> None:
    assert Asked(tmp_path, ILL).find(flags="fpu avx512_fp16").state == "broken"


def test_a_machine_without_cpuinfo_has_no_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    real = onednn.cpu()
    assert "processor" not in real
    monkeypatch.setattr(onednn, "Path", lambda _: Path("/nowhere/at/all"))
    assert onednn.cpu() == {}


# ---- the real thing


@needs_bf16
def test_the_trial_itself_lives_with_the_cap() -> None:
    found = onednn.trial({**os.environ, VARIABLE: CAP}, [sys.executable, "-c", onednn.TRIAL], onednn.SECONDS)
    assert found.ending == "lived"


def test_onednn_reads_the_variable_at_its_first_use_and_never_again(tmp_path: Path) -> None:
    """Why `import torch` may come before ours, and a product may not."""
    if platform.machine() != "x86_64":
        pytest.skip("oneDNN knows these names on x86-64 only")
    code = """if True:
        import os, sys, torch
        use = lambda: torch.nn.functional.conv2d(torch.ones(4, 8, 16, 16), torch.ones(8, 8, 3, 3))
        if sys.argv[1] == "late":
            use()
        os.environ["ONEDNN_MAX_CPU_ISA"] = "SSE41"
        use()
    """
    environment = {key: value for key, value in os.environ.items() if not key.endswith("MAX_CPU_ISA")}
    for when, capped in (("early", True), ("late", False)):
        command = [sys.executable, "-c", code, when]
        said = warm(command, tmp_path, {**environment, "ONEDNN_VERBOSE": "1"}).stdout
        assert ("isa:Intel SSE4.1" in said) is capped, said


def test_every_module_that_imports_torch_settles_it_first() -> None:
    """Itself, or by a package it lies in, or by another module of ours that it imports."""
    torch = {file for file in SOURCE.rglob("*.py") if any(name.split(".")[0] == "torch" for name in imported(file))}
    assert SOURCE / "policy" / "checkpoint.py" in torch
    assert SOURCE / "policy" / "cores" / "none.py" in torch
    for file in torch:
        assert settles(file, set()), file
    assert not settles(SOURCE / "config" / "base.py", set())


def settles(file: Path, asked: set[Path]) -> bool:
    """Whether importing a file settles what oneDNN may use."""
    if file in asked or not file.is_file():
        return False
    asked.add(file)
    if "onednn.settle()" in file.read_text() and file.name != "onednn.py":
        return True
    ours = [SOURCE.parent.joinpath(*name.split(".")) for name in imported(file) if name.startswith("gridmill.")]
    found = [file.parent / "__init__.py", *(path.with_suffix(".py") for path in ours)]
    found += [path / "__init__.py" for path in ours]
    return any(settles(path, asked) for path in found if path != SOURCE / "__init__.py")


@functools.cache
def imported(file: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


# ---- what a person sees: a process whose CPU says AMX and whose trial dies

DRIVER = """if True:
    import sys
    from gridmill.policy import onednn
    onednn.cpu = lambda: {facts!r}
    onednn.TRIAL = {trial!r}
    onednn.settle.cache_clear()  # where it was forked from, this CPU was asked
    from gridmill.cli import main
    main(sys.argv[1:])
"""
SMALL = ["train", f"{Path(tiny.__file__)}:tiny", "run=r", "trainer.total_timesteps=1"]


def driven(
    code: str, folder: Path, *arguments: str, forked: bool = True, **more: str
) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("MAX_CPU_ISA")}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), **more}
    command = [sys.executable, "-c", DRIVER.format(facts=FACTS, trial=code), *arguments]
    if forked:
        return warm(command, folder, environment)
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@needs_bf16
@pytest.mark.parametrize("forked", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_run_trains_with_the_cap_and_says_so(forked: bool, tmp_path: Path) -> None:
    done = driven(CURED, tmp_path, *SMALL, "mixed_precision=true", "optimizer.kind=muon", forked=forked)
    assert done.returncode == 0, done.stderr
    assert f"onednn: {CAPPED}" in unwrapped((tmp_path / "runs" / "r" / "log.txt").read_text())
    assert json.loads((tmp_path / "runs" / "r" / "run.json").read_text())["onednn"] == "capped"


@pytest.mark.parametrize(
    ("setting", "refusal", "forked"),
    [
        ("mixed_precision=true", "trainer.precision: expected fp32 on this CPU, got bf16; ", False),
        ("optimizer.kind=muon", "optimizer.kind: expected adam, adamw or schedule_free on this CPU, got muon; ", True),
    ],
)
def test_a_run_is_refused_where_the_cap_does_not_help(setting: str, refusal: str, forked: bool, tmp_path: Path) -> None:
    done = driven(ILL, tmp_path, *SMALL, setting, forked=forked)
    assert (done.returncode, done.stderr) == (2, f"gridmill: {refusal}{BROKEN}\n")
    assert not (tmp_path / "runs").exists()


def test_a_run_in_fp32_is_not_refused(tmp_path: Path) -> None:
    done = driven(ILL, tmp_path, *SMALL)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (CURED, f"ok onednn: {CAPPED}"),
        (ILL, f"careful onednn: {BROKEN}"),
        ("print(64.0)", "ok onednn: bf16 products with AMX work"),
        ("", "careful onednn: nothing is capped: the trial of a bf16 product printed something other than its result"),
    ],
)
def test_doctor_says_it(code: str, line: str, tmp_path: Path) -> None:
    done = driven(code, tmp_path, "doctor")
    assert done.returncode == 0, done.stderr
    assert f"{line} train:" in re.sub(r" (ok|missing) +train:", " train:", unwrapped(done.stdout))


def test_doctor_says_that_the_user_has_set_it(tmp_path: Path) -> None:
    done = driven(ILL, tmp_path, "doctor", ONEDNN_MAX_CPU_ISA="AVX2")
    assert "onednn: ONEDNN_MAX_CPU_ISA=AVX2 was set by the user and is not changed" in unwrapped(done.stdout)
