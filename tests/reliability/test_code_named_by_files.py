"""A run's folder, a preset or a replay from a stranger is data: code that it names is not run, and is said in one line.

A run with parts of the user's own is opened when the person names the file too; its hash is shown.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strangers import ask, changed_record, commands, honest, one_line, tape_with
from tiny import SUPPORT, tiny
from warm import fresh

from gridmill import losses
from gridmill.config import ConfigError, user_code
from gridmill.evaluate import __main__ as judge
from gridmill.policy import checkpoint, load
from gridmill.run import Run
from gridmill.runs import presets, resume, train
from gridmill.runs.evaluator import Evaluator

pytestmark = pytest.mark.X8

EVIL = """
open({canary!r}, "w").close()
from torch.optim import SGD
from gridmill.games import toy
from gridmill.losses import Loss
from gridmill.policy.cores.none import NoCore
from gridmill.policy.encoders.bag import Bag
class Evil(Loss): pass
def evil(): return toy()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("runs"))


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parts, last = path.split(".")
    for name in parts:
        tree = tree[name]
    tree[last] = value


def in_record(path: str, value: Any) -> Callable[[Path, Path], None]:
    """A canary in the record of a run; FILE and MODULE are the code."""

    def plant(folder: Path, evil: Path) -> None:
        text = json.dumps(value).replace("FILE", str(evil)).replace("MODULE", evil.stem)
        changed_record(folder, lambda record: put(record["run"], path, json.loads(text)))

    return plant


def in_replay(part: str) -> Callable[[Path, Path], None]:
    def plant(folder: Path, evil: Path) -> None:
        tape_with(folder, lambda head: put(head, f"policy.config.{part}", f"{evil}:Evil"))

    return plant


def by_policy_of_replay(folder: Path, evil: Path) -> None:
    """The replay has no weights and names a run, which names code."""
    in_record("policy.encoder", "FILE:Bag")(folder, evil)

    def change(head: dict[str, Any]) -> None:
        head["policy"] = {"name": str(folder), "masks": True}

    tape_with(folder, change)


def by_a_second_run(folder: Path, evil: Path) -> None:
    """The run names no code but a teacher, which does."""
    other = folder / "other"
    shutil.copytree(folder, other)
    in_record("policy.core", "FILE:NoCore")(other, evil)
    in_record("losses.kickstart", {"kind": "kickstart", "teacher": str(other)})(folder, evil)


def as_module_beside(folder: Path, evil: Path) -> None:
    """Where the command is started: names that are imported late."""
    for name in ("av", "PIL", "optuna", "wandb", "tensorboard", "schedulefree", "evil_late"):
        (folder / f"{name}.py").write_text(evil.read_text())


CANARIES: dict[str, Callable[[Path, Path], None]] = {
    "recipe, a file": in_record("recipe", "FILE:evil"),
    "recipe, a module": in_record("recipe", "MODULE:evil"),
    "recipe, of the library": in_record("recipe", "os:abort"),
    "loss, a file": in_record("losses.evil", {"kind": "FILE:Evil"}),
    "loss, a module": in_record("losses.evil", {"kind": "MODULE:Evil"}),
    "encoder, a file": in_record("policy.encoder", "FILE:Bag"),
    "encoder, a module": in_record("policy.encoder", "MODULE:Bag"),
    "core, a file": in_record("policy.core", "FILE:NoCore"),
    "optimizer, a file": in_record("optimizer.kind", "FILE:SGD"),
    "optimizer, a module": in_record("optimizer.kind", "MODULE:SGD"),
    "network, a file": in_record("policy.network", "FILE:Evil"),
    "player, a file": in_record("players", {"FILE:evil": 0.5}),
    "by a second run": by_a_second_run,
    "encoder in a replay": in_replay("encoder"),
    "core in a replay": in_replay("core"),
    "policy of a replay": by_policy_of_replay,
    "modules in the folder": as_module_beside,
}
SHARE = ("resume", "whatif")  # of the commands, on every change


def opened(run: Path, tmp_path: Path, name: str, which: list[str]) -> int:
    """Plant a canary and ask commands; how many refused because of code."""
    folder, out, canary = tmp_path / "runs" / "mine", tmp_path / "out", tmp_path / "canary"
    shutil.copytree(run, folder)
    out.mkdir()
    evil = folder / "evil.py"
    evil.write_text(EVIL.format(canary=str(canary)))
    CANARIES[name](folder, evil)
    refused = 0
    for command in which:
        words = commands(folder, out)[command]
        answer = ask(words, folder, out)
        one_line(answer)
        assert not canary.exists(), words
        refused += "names custom code, which runs only if you name it too" in answer.err
    return refused


REFUSED = {"by a second run": 1, "policy of a replay": 2} | dict.fromkeys(
    ("loss", "encoder", "core", "optimizer", "network", "player"), 1
)


@pytest.mark.parametrize("name", CANARIES)
def test_no_code_runs(run: Path, tmp_path: Path, name: str) -> None:
    assert opened(run, tmp_path, name, list(SHARE)) == REFUSED.get(name.split(",")[0], 0)


@pytest.mark.long
@pytest.mark.parametrize("name", CANARIES)
def test_no_code_runs_in_any_command(run: Path, tmp_path: Path, name: str) -> None:
    opened(run, tmp_path, name, list(commands(run, tmp_path)))


@pytest.mark.parametrize("words", [["gridmill"], ["python", "-P", "-m", "gridmill"]], ids=["script", "module"])
def test_a_process_of_its_own_takes_nothing_from_the_current_folder(words: list[str], tmp_path: Path) -> None:
    """What is imported when it starts: the commands above are forked from a process that has done so."""
    for name in ("numpy", "typer", "pydantic", "click", "rich"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\n")
    done = fresh([*words, "explain", "toy"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "canary").exists()


def test_the_canary_sings(tmp_path: Path) -> None:
    """Named by the person, the same code runs."""
    evil, canary = tmp_path / "evil.py", tmp_path / "canary"
    evil.write_text(EVIL.format(canary=str(canary)))
    tiny(2).replace("losses.evil", {"kind": f"{evil}:Evil"})
    assert canary.exists()


PRESETS = {
    "game": 'game = "FILE:evil"',
    "encoder": '[policy]\nencoder = "FILE:Bag"',
    "core": '"policy.core" = "FILE:NoCore"',
    "optimizer": '[optimizer]\nkind = "FILE:SGD"',
    "loss": '[losses.evil]\nkind = "FILE:Evil"',
    "loss, whole": 'losses.evil = {kind = "FILE:Evil", weight = 1.0}',
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_no_code(tmp_path: Path, name: str) -> None:
    evil, canary, preset = (tmp_path / name for name in ("evil.py", "canary", "mine.toml"))
    evil.write_text(EVIL.format(canary=str(canary)))
    preset.write_text(PRESETS[name].replace("FILE", str(evil)) + "\n")
    said = f"preset {preset}: names custom code, which runs only if you name it too: {evil}; add --code {evil}"
    with pytest.raises(ValueError) as caught:
        presets.merged(tiny(2), str(preset))
    assert str(caught.value).partition(" - at `")[0] == said
    assert not canary.exists()


def test_a_recipe_in_a_preset_is_only_a_name(tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text('recipe = "os:abort"\n')
    assert presets.merged(tiny(2), str(preset)).recipe == "os:abort"


LATE = """from torch import nn


class Late(nn.Module):
    def __init__(self, spec, config):
        super().__init__()
        self.body = nn.Linear(3 * spec.num_tokens, len(spec.actions) + 1)
        self.calls = 0

    def forward(self, obs):
        both = self.body(obs.flatten(1) / 255)
        self.calls += 1
        if self.calls < 20:
            return both[:, :-1], both[:, -1]
        FAULT
"""

# ---- code that the person names

OWN = """
import torch
from gridmill.losses import Loss
from gridmill.policy.cores.none import NoCore
from gridmill.policy.encoders.bag import Bag

class Mine(Bag): pass
class Last(NoCore): pass
class Slow(torch.optim.SGD): pass
class Nothing(Loss):
    def __call__(self, batch, out, now, heads=None):
        return 0 * out.values.mean(), {}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with code of its own, from a folder that is gone; the code lies elsewhere now."""
    place = tmp_path_factory.mktemp("own")
    (place / "there").mkdir()
    file = place / "there" / "parts.py"
    file.write_text(OWN)
    changes = {"policy__encoder": f"{file}:Mine", "policy__core": f"{file}:Last", "optimizer__kind": f"{file}:Slow"}
    run = tiny(2, run="own", **changes).replace("losses.nothing", {"kind": f"{file}:Nothing"})
    folder = train(run, place, panel=False).folder
    shutil.move(place / "there", place / "here")
    return folder


@pytest.fixture
def nothing_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_taken", [])


def test_a_run_says_what_it_needs(own: Path, tmp_path: Path) -> None:
    """All of it in one line; with the file named it goes on, and the file's hash is shown."""
    there, here = own.parent / "there" / "parts.py", own.parent / "here" / "parts.py"
    answer = ask(["resume", str(own)], tmp_path, tmp_path)
    listed = ", ".join(f"{there}:{name}" for name in ("Nothing", "Mine", "Last", "Slow"))
    said = f"gridmill: `{own}` names custom code, which runs only if you name it too: {listed}; add --code parts.py"
    assert (answer.code, answer.out, answer.err) == (2, "", f"{said}\n")
    words = ["eval", f"{SUPPORT / 'tiny.py'}:berries", "--policy", str(own), "--episodes", "1"]
    assert ask(words, tmp_path, tmp_path).code == 2
    taken = f"code: {here}, sha256 {user_code.sha256(str(here))[:12]}\n"
    answer = ask([*words, "--code", str(here)], tmp_path, tmp_path)
    assert (answer.code, answer.err) == (0, taken)
    answer = ask(["resume", str(own), "--code", str(here), "trainer.total_timesteps=384"], tmp_path, tmp_path)
    assert (answer.code, answer.err) == (0, taken)
    record = json.loads((own / "run.json").read_bytes())
    names = ("Nothing", "Mine", "Last", "Slow")
    assert record["code"] == {f"{here}:{name}": user_code.sha256(str(here)) for name in names}


@pytest.mark.usefixtures("nothing_taken")
def test_the_option_it_asks_for_works_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside the person by its name, another one by its path from here; of one that is gone, the name."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "parts", there):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    for file in (here / "near.py", here / "parts" / "below.py", there / "far.py", there / "two words.py"):
        file.write_text("")
    expected = {
        here / "near.py": "near.py",
        there / "near.py": "near.py",
        here / "parts" / "below.py": "parts/below.py",
        there / "far.py": f"{there}/far.py",
        there / "two words.py": f"'{there}/two words.py'",
        there / "gone.py": "gone.py",
    }
    for file, option in expected.items():
        with (
            pytest.raises(user_code.CodeNeeded) as caught,
            user_code.from_a_file({"policy": {"core": f"{file}:A"}}, here),
        ):
            pass
        assert str(caught.value).rpartition("; add --code ")[2] == option


@pytest.mark.usefixtures("nothing_taken")
def test_code_is_named_in_python_too(own: Path) -> None:
    here = str(own.parent / "here" / "parts.py")
    with pytest.raises(user_code.CodeNeeded):
        load(own)
    with pytest.raises(user_code.CodeNeeded):
        resume(own, panel=False)
    assert load(own, code=[here]).policy.encoder.__class__.__name__ == "Mine"
    was = user_code.sha256(here)
    Path(here).write_text(OWN + "# changed\n")
    assert resume(own, ["trainer.total_timesteps=512"], panel=False, code=[here]).exit_code == 0
    told = f"parts.py:Mine has changed since the run was saved: sha256 {user_code.sha256(here)[:12]}, was {was[:12]}"
    assert told in (own / "log.txt").read_text()


@pytest.mark.usefixtures("nothing_taken")
def test_changed_code_is_told_of_in_an_evaluation(own: Path) -> None:
    """It gave another score, without a word."""
    here = own.parent / "here" / "parts.py"
    before = here.read_text()
    here.write_text(before + "# changed again\n")
    with pytest.warns(UserWarning, match="has changed since the run was saved") as told:
        load(own, code=[str(here)])
    here.write_text(before)
    said = [str(each.message).partition(": sha256 ")[0] for each in told]
    assert said == [f"{here}:{part} has changed since the run was saved" for part in ("Mine", "Last")]


@pytest.mark.usefixtures("nothing_taken")
def test_changed_code_is_told_of_without_a_name_in_it_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from gridmill.policy.encoders.bag import Bag\n\n\nclass Mine(Bag): ...\n")
    folder = train(tiny(2, run="own", policy__encoder=str(file)), tmp_path, panel=False).folder
    file.write_text(file.read_text() + "# changed\n")
    resume(folder, ["trainer.total_timesteps=384"], panel=False, code=[str(file)])
    assert "mine.py has changed since the run was saved" in (folder / "log.txt").read_text()


@pytest.mark.usefixtures("nothing_taken")
def test_a_module_as_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for where it would be imported from; one that is not there is refused."""
    (tmp_path / "mine_of_code").mkdir()
    (tmp_path / "mine_of_code" / "__init__.py").touch()
    file = tmp_path / "mine_of_code" / "parts.py"
    file.write_text(OWN)
    monkeypatch.chdir(tmp_path)
    (told,) = user_code.take(["mine_of_code.parts"])
    assert told == f"code: mine_of_code.parts, sha256 {user_code.sha256(str(file))[:12]}"
    for name in ("nosuch", "nosuch.module", "mine_of_code.others", ".parts", ""):
        with pytest.raises(ValueError, match=rf"^cannot find code `{re.escape(name)}`: expected FILE"):
            user_code.take([name])


@pytest.mark.usefixtures("nothing_taken")
def test_other_code_is_not_taken_for_it(own: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^no code file `nowhere\.py`$"):
        load(own, code=["nowhere.py"])
    other = tmp_path / "others.py"
    other.write_text(OWN)
    with pytest.raises(user_code.CodeNeeded):
        load(own, code=[str(other)])
    for folder in ("a", "b"):  # two files of its name: which is meant?
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "parts.py").write_text(OWN)
    with pytest.raises(user_code.CodeNeeded):
        load(own, code=[str(tmp_path / folder / "parts.py") for folder in ("a", "b")])


@pytest.mark.usefixtures("nothing_taken")
def test_what_is_typed_is_the_persons_word(run: Path, tmp_path: Path) -> None:
    """An override at a resume names code like one at the start."""
    folder, file = tmp_path / "mine", tmp_path / "parts.py"
    shutil.copytree(run, folder)
    file.write_text(OWN)
    changes = [f"losses.nothing.kind={file}:Nothing", "trainer.total_timesteps=384"]
    assert resume(folder, changes, panel=False).exit_code == 0
    found = checkpoint.newest(folder)[0].record
    assert user_code.named_in(found["run"]) == [f"{file}:Nothing"]
    user_code._taken.clear()
    with pytest.raises(user_code.CodeNeeded), user_code.from_a_file(found["run"], folder):
        pass


@pytest.mark.usefixtures("nothing_taken")
def test_no_door_is_needed_where_data_becomes_settings(tmp_path: Path) -> None:
    """Also a place that `named_in` does not know is refused where a name would become code."""
    file = tmp_path / "parts.py"
    file.write_text(OWN.replace("class Mine", "raise SystemExit\nclass Mine"))
    tree = tiny(2).tree()
    tree["losses"]["nothing"] = {"kind": f"{file}:Nothing"}
    with user_code.from_a_file(None, tmp_path), pytest.raises(ConfigError) as caught:
        Run.load(tree)
    assert caught.value.path == "$.losses.nothing.kind"
    with user_code.from_a_file(None, tmp_path), pytest.raises(user_code.CodeNeeded):
        user_code.call(f"{file}:anything", "game")
    with user_code.from_a_file(None, tmp_path), pytest.raises(user_code.CodeNeeded):
        user_code.find("os:abort", losses.__name__, losses.Loss, "loss")


def test_evaluations_are_told_what_code_the_run_may_name(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def popen(words: list[str], **_: Any) -> Any:
        asked.append(words)
        raise OSError("not here")

    here = own.parent / "here" / "parts.py"
    monkeypatch.setattr(subprocess, "Popen", popen)
    run = tiny(2, policy__encoder=f"{here}:Mine", evaluation__enabled=True)
    Evaluator(run, own).start_when_due(1, 1.0, own)
    assert asked[0][-2:] == ["--code", f"{here}:Mine"]
    monkeypatch.setattr(user_code, "_taken", [])
    judge.main([str(own), "--policy", str(own), "--episodes", "1", "--code", f"{here}:Mine"])
    assert json.loads(capsys.readouterr().out)["results"][0]["episodes"] == 1


@pytest.mark.long
def test_evaluations_of_a_run_with_its_own_network(tmp_path: Path) -> None:
    file = tmp_path / "parts.py"
    file.write_text(OWN)
    run = tiny(2, run="own", policy__encoder=f"{file}:Mine", evaluation__enabled=True, evaluation__episodes=1)
    folder = train(run, tmp_path, panel=False).folder
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records if "evaluation" in record] == [2]


@pytest.mark.parametrize("code", ["", "nosuch", "nosuch.mod", ":x", "a..b:C", ".x:C", "os.path.x:C", "/etc/passwd:C"])
def test_code_that_is_not_there_is_not_taken(code: str) -> None:
    """It was, with an empty hash; or refused without saying what was meant."""
    with pytest.raises(ValueError) as refused:
        user_code.take([code])
    assert str(refused.value) == f"cannot find code `{code}`: expected FILE.py or package.module"


@pytest.mark.parametrize("network", [":x", "a..b:C", ".x:C", "/etc/passwd:C"])
def test_a_network_that_is_no_place_is_refused_with_what_would_be(network: str) -> None:
    with pytest.raises(ValueError) as refused:
        user_code.module_of(network, "network")
    said = "expected FILE.py, FILE.py:name or package.module:name for a network, got"
    assert str(refused.value) == f"{said} `{network}`"


@pytest.mark.parametrize("fault", ["raise IndexError('mine')", "raise ValueError('mine')"])
def test_what_breaks_in_the_middle_of_training_names_the_file(tmp_path: Path, fault: str) -> None:
    """It was a traceback, or a line that did not say whose it is."""
    file = tmp_path / "late.py"
    file.write_text(LATE.replace("FAULT", fault))
    with pytest.raises(ValueError) as caught:
        train(tiny(2, run="late", policy__network=f"{file}:Late"), tmp_path, panel=False)
    kind = fault.removeprefix("raise ").partition("(")[0]
    assert str(caught.value) == f"`{file}` failed in line 15: {kind}: mine"


def test_what_breaks_is_named_also_where_the_current_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, file = tmp_path / "gone", tmp_path / "broken.py"
    gone.mkdir()
    file.write_text("def broken():\n    raise RuntimeError('mine')\n")
    with pytest.raises(RuntimeError) as caught:
        user_code.function(f"{file}:broken", "game")()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert user_code.own_fault(caught.value) == f"`{file}` failed in line 2: RuntimeError: mine"
