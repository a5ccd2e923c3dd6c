"""The command line: every command, errors that name the nearest right word, and a quick --help."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from warm import warm

import gridmill
from gridmill import cli, games
from gridmill.config import install
from gridmill.workshop import machine

ROOT = Path(__file__).resolve().parents[1]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def test_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"gridmill {gridmill.__version__}\n")


def test_help_names_every_command() -> None:
    result = call("--help")
    assert result.exit_code == 0
    for command in (
        "ab",
        "artifacts",
        "bench",
        "compare-presets",
        "gate",
        "profile",
        "sweep",
        "throughput",
        "tune",
        "validate",
        "games",
        "train",
        "resume",
        "recipes",
        "explain",
        "diff",
        "show",
        "doctor",
        "--version",
    ):
        assert re.search(rf"^  {command}\s", result.stdout, re.MULTILINE), command


@pytest.mark.parametrize(
    "command",
    [
        ["bench"],
        ["bench", "step"],
        ["profile"],
        ["profile", "step"],
        ["profile", "train"],
        ["ab"],
        ["artifacts"],
        ["compare-presets"],
        ["gate"],
        ["sweep"],
        ["throughput"],
        ["tune"],
        ["validate"],
        ["games"],
        ["train"],
        ["resume"],
        ["recipes"],
        ["explain"],
        ["diff"],
        ["show"],
        ["doctor"],
    ],
)
def test_every_command_has_help(command: list[str]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_bench_step_has_every_documented_flag_and_default() -> None:
    text = " ".join(call("bench", "step", "--help").stdout.split())
    for flag, default in {
        "--agents": "(20)",
        "--map-size": "(40)",
        "--density": "(0.04)",
        "--iterations": "20000",
        "--rounds": "20",
        "--warmup": "150000",
        "--seed": "42",
        "--game": "toy",
        "--worlds": "1",
        "--threads": "1",
        "--lanes": "1",
    }.items():
        assert re.search(rf"{flag} [^\[]*(\[:function\]\. )?\[default: {re.escape(default)}\]", text), flag
    for flag in ("--profile", "--output", "--baseline", "--phase", "--report", "--peers"):
        assert f" {flag} " in text


def test_help_imports_nothing_heavy() -> None:
    """What makes --help slow is imports, so they are what is checked, not the clock."""
    code = (
        "import sys, json\n"
        "from gridmill.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "gridmill.cli" in loaded
    heavy = ("numpy", "pydantic", "torch", "rich", "gymnasium", "pettingzoo", "matplotlib", "psutil")
    assert [name for name in loaded if name.split(".")[0] in heavy or name == "gridmill._native"] == []


def test_games_lists_every_game_with_a_line_of_its_own() -> None:
    result = call("games")
    assert result.exit_code == 0, result.output
    header, *lines = result.stdout.splitlines()
    assert header.split() == ["game", "agents", "map", "actions"]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == gridmill.games.names()
    text = " ".join(result.stdout.split())
    assert "toy 20 40x40 9 Agents walking among scattered walls: noop and eight moves, the world of the step" in text


def test_explain_prints_the_figures_of_the_arenas() -> None:
    for game, figures in {
        "arena_basic_easy_shaped": ["heart 89 90 85 89 90", "heart: 30.8, bottleneck generator:", "would allow 31.7"],
        "arena": ["heart 189 190 235 89 90", "3 mine > 3 generator > 1 altar", "at least 190 ticks"],
    }.items():
        result = call("explain", game)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.isascii()
        assert max(map(len, result.stdout.splitlines())) <= 80
        for figure in figures:
            assert figure in " ".join(result.stdout.split()), figure


def test_explain_as_json_and_with_a_first_episode() -> None:
    said = json.loads(call("explain", "arena", "--json", "--min-first-episode", "100").stdout)
    heart = next(product for product in said["products"] if product["name"] == "heart")
    assert (heart["one_ready"], heart["one_paid"], heart["sequence"], heart["all_ready"]) == (189, 190, 235, 89)
    assert heart["ceiling"]["stages"][0]["machine"] == "generator"
    assert said["min_first_episode"] == 100
    assert any("first episode of 100 ticks" in warning for warning in said["warnings"])


def test_diff_shows_exactly_what_differs() -> None:
    result = call("diff", "arena", "arena_basic_easy_shaped")
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in re.sub(r"\n +", " ", result.stdout).splitlines()]
    easy = "arena_basic_easy_shaped"
    assert lines == [
        f"name: arena -> {easy}",
        "attack.cost.laser: 1 -> 100",
        "objects.altar.converter.inputs.battery: 3 -> 1",
        "objects.lasery: only in arena",
        "objects.armory: only in arena",
        f"objects.block: only in {easy}",
        "map.maps[0].objects.wall: 10 -> 20",
        "map.maps[0].objects.lasery: only in arena: 1",
        "map.maps[0].objects.armory: only in arena: 1",
        f"map.maps[0].objects.block: only in {easy}: 20",
        f"rewards[0]: only in {easy}: 0.1 x ore, up to 1",
        f"rewards[1]: only in {easy}: 0.8 x battery, up to 1",
        f"rewards[2]: only in {easy}: 0.5 x laser, up to 1",
        f"rewards[3]: only in {easy}: 0.5 x armor, up to 1",
        f"rewards[4]: only in {easy}: 0.5 x blueprint, up to 1",
    ]


def test_diff_of_equals_of_files_and_as_json(tmp_path: Path) -> None:
    assert call("diff", "toy", "toy").stdout == "toy and toy do not differ\n"
    (tmp_path / "tiny.py").write_text(
        "import gridmill\ndef tiny(): return gridmill.games.toy(2)\ndef none(): return 3\n"
    )
    result = call("diff", "toy", f"{tmp_path}/tiny.py:tiny", "--json")
    assert json.loads(result.stdout) == {
        "a": "toy",
        "b": "toy",
        "differences": [{"path": "num_agents", "a": 20, "b": 2, "only": ""}],
    }
    assert call("diff", "toy", f"{tmp_path}/tiny.py").stdout == "num_agents: 20 -> 2\n"
    wrong = call("diff", "toy", f"{tmp_path}/tiny.py:none")
    said = f"gridmill: `{tmp_path}/tiny.py:none`: expected a function that returns a Game, got int\n"
    assert (wrong.exit_code, wrong.stderr) == (2, said)


def test_show_prints_the_world() -> None:
    result = call("show", "toy")
    assert result.exit_code == 0, result.output
    assert result.stdout == call("show", "toy").stdout
    assert "#" * 40 in result.stdout
    pictures = {
        result.stdout,
        call("show", "toy", "--seed", "1").stdout,
        call("show", "toy", "--world", "1").stdout,
        call("show", "toy", "--steps", "5").stdout,
    }
    assert len(pictures) == 4


def test_show_writes_a_png(tmp_path: Path) -> None:
    file = tmp_path / "made" / "on the way" / "world.png"
    result = call("show", "toy", "--png", str(file), "--scale", "4", "--steps", "2")
    assert result.exit_code == 0, result.output
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (320, 160)  # 40 cells of 4 pixels, and a legend
    call("show", "toy", "--png", str(file), "--scale", "4", "--plain")
    assert struct.unpack(">II", file.read_bytes()[16:24]) == (160, 160)


def test_show_takes_a_game_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text("import gridmill\ndef tiny(): return gridmill.games.toy(2, 8, 0.0)\n")
    result = call("show", str(tmp_path / "tiny.py"))
    assert result.exit_code == 0, result.output
    assert "#" * 8 in result.stdout
    assert "#" * 9 not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "tyo"], "did you mean `toy`?"),
        (["explain", "tyo"], "did you mean `toy`?"),
        (["explain", "toy", "--min-first-episode", "0"], "--min-first-episode must be at least 1, got 0"),
        (["explain", "nowhere.py"], "no game file `nowhere.py`"),
        (["diff", "toy", "areno"], "did you mean `arena`?"),
        (["diff", "tyo", "arena"], "did you mean `toy`?"),
        (["bench", "step", "--game", "tooy"], "did you mean `toy`?"),
        (["show", "toy", "--scale", "0"], "--scale must be at least 1, got 0"),
        (["show", "toy", "--world", "-1"], "--world must be at least 0, got -1"),
        (["show", "toy", "--png", "/"], "expected a file to write, got a folder: `/`"),
        (["bench", "step", "--agents", "-3"], "-3"),
        (["bench", "step", "--worlds", "3", "--lanes", "2"], "3"),
    ],
)
def test_errors_of_the_caller_are_one_line_on_stderr(arguments: list[str], text: str) -> None:
    result = call(*arguments)
    assert result.exit_code == (64 if "bench" in arguments else 2), result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("gridmill: ")
    assert text in result.stderr
    assert "Traceback" not in result.output


def test_what_is_no_game_may_have_been_meant_as_a_run_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first" / "checkpoints").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    wanted = "expected a game, a replay or the folder of a run, got"
    listed = f"games: {', '.join(games.names())}; `{install.command('runs')}` lists the runs"
    expected = {
        ("watch", "nosuch"): f"unknown game or run `nosuch` - {listed}",
        ("watch", "ci"): "`ci` is a recipe, not a game: it trains `arena_basic_easy_shaped`",
        ("watch", "frist"): f"unknown game or run `frist`; did you mean `first`? - {listed}",
        ("view", "lost.replay"): "no file or folder `lost.replay`",
        ("explain", "runs/lost"): "no file or folder `runs/lost`",
        ("eval", "runs/first/checkpoints"): f"{wanted} a folder: `runs/first/checkpoints`",
        ("show", "./pipe"): f"{wanted} a pipe: `./pipe`",
        ("view", "pipe"): f"{wanted} a pipe: `pipe`",
        ("view", "first@best"): f"unknown game or run `first@best`; did you mean `first`? - {listed}",
        ("watch", "first@worst"): "expected @last, @best or @EPOCH after a run's folder, got `runs/first@worst`",
    }
    for words, said in expected.items():
        assert call(*words).stderr == f"gridmill: {said}\n"


def test_a_folder_that_was_removed_is_said(tmp_path: Path) -> None:
    """A library of torch's ended the process with a line of its own."""
    folder = tmp_path / "gone"
    folder.mkdir()
    words = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-P", "-m", "gridmill", "train", "ci"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    said = "gridmill: expected a folder to work in, got one that was removed: cd to another\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_warning_is_one_line_too(tmp_path: Path) -> None:
    arguments = ["bench", "step", "--threads", "99", "--worlds", "2", "--rounds", "2", "--iterations", "1"]
    done = warm([sys.executable, "-m", "gridmill", *arguments, "--warmup", "0"], tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: one step a round is too few to be steady
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("gridmill: warning: threads=99 is more than")


def test_the_traceback_is_there_when_asked_for() -> None:
    result = call("--traceback", "show", "tyo")
    assert isinstance(result.exception, ValueError)


@pytest.mark.parametrize(
    "arguments", [["shwo", "toy"], ["bench", "step", "--roundz", "3"], ["bench", "step", "--rounds", "x"]]
)
def test_unknown_words_end_with_2_or_64_where_2_is_a_finding(arguments: list[str]) -> None:
    result = call(*arguments)
    assert result.exit_code == (64 if "bench" in arguments else 2)
    assert "Traceback" not in result.output


def test_doctor_says_what_works_and_what_is_missing() -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    assert re.search(r"^ok       base: toy steps", result.stdout, re.MULTILINE)
    for extra, needs in machine.extras().items():
        state = "ok" if all(needs.values()) else "missing"
        assert re.search(rf"^{state} +{extra}: ", result.stdout, re.MULTILINE), extra
    assert {"train", "zoo", "plots"} <= set(machine.extras())


def test_doctor_gives_the_command_for_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version_of", lambda name: None if name == "torch" else "1.0")
    text = " ".join(call("doctor").stdout.split())
    assert re.search(r"missing train: \S*python\S* -m pip install torch==", text)
    assert re.search(r"ok zoo: pettingzoo 1\.0", text)


def test_doctor_ends_with_1_when_the_base_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no core here")

    monkeypatch.setattr(gridmill, "make", broken)
    result = call("doctor")
    assert result.exit_code == 1
    assert "BROKEN   base: RuntimeError: no core here" in result.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "text"),
    [
        (
            "perf_benchmark.py",
            ["--rounds", "2", "--iterations", "3", "--warmup", "0"],
            "gridmill bench step: toy",
        ),
        ("profile_multi_config.py", ["--steps", "5", "--warmup", "0"], "toy: 20 agents"),
    ],
)
def test_the_scripts_are_doors_to_the_commands(script: str, arguments: list[str], text: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr  # 1: three steps are too few to be steady
    assert text in done.stdout
