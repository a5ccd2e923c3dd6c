"""Coverage-guided fuzzers (`make fuzz-config`, `make fuzz-maps`) run in the long tier. On every change their seeds, and
what they have found, are tried without them: each input is taken, or refused in one line.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from config_trees import OPTIONS, rich
from random_games import attempt
from tiny import tiny

from gridmill import Game, _native
from gridmill.config import ConfigError
from gridmill.runs import presets

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT / "tests" / "fuzz" / "seeds"


def from_folder(folder: str, name: str) -> ModuleType:
    if str(ROOT / folder) not in sys.path:
        sys.path.append(str(ROOT / folder))
    return importlib.import_module(name)


@pytest.mark.F1
@pytest.mark.parametrize("file", sorted((SEEDS / "config").iterdir()), ids=lambda file: file.name)
def test_seeds_of_the_settings(file: Path) -> None:
    """Those named `refused...` are, the others are taken."""
    assert from_folder("tests/fuzz", "config").one(file.read_bytes()) == (not file.name.startswith("refused"))


def test_every_way_to_give_settings_has_a_seed() -> None:
    ways = {file.read_bytes()[0] for file in (SEEDS / "config").iterdir() if not file.name.startswith("refused")}
    assert ways == set(range(len(from_folder("tests/fuzz", "config").READERS)))


@pytest.mark.F1
@pytest.mark.parametrize("index", ["0000000009", "0" * 5_000], ids=["leading zeros", "5 000 zeros"])
def test_an_index_with_more_digits_than_any_list_needs(index: str) -> None:
    """Found here: its first nine digits were compared with the list's length, and all of them used."""
    game = Game.load(rich({"kind": "ascii", "text": "@1"}))
    with pytest.raises(ConfigError, match=r"^unknown setting `0+(9|\.\.\.0+)` - at `\$.rewards`$"):
        game.replace(f"rewards.{index}.weight", 2.0)


@pytest.mark.F1
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("without_losses = 3", "expected a list of names of losses, got 3 - at `$.without_losses`"),
        ("without_losses = [[1]]", "expected a list of names of losses, got [[1]] - at `$.without_losses`"),
        ("with_gpu = [1]", "expected a table of settings, got [1] - at `$.with_gpu`"),
        (f"seed = {'9' * 5_000}", "expected TOML, got Exceeds the limit (4300 digits) for integer string conversion"),
    ],
    ids=["losses", "lists of losses", "with_gpu", "digits"],
)
def test_presets_that_were_refused_without_a_name(text: str, said: str, tmp_path: Path) -> None:
    """Found here: the first two were TypeErrors, the others did not say which file."""
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ValueError) as refused:
        presets.merged(tiny(), str(tmp_path / "odd.toml"))
    assert str(refused.value).startswith(f"preset {tmp_path / 'odd.toml'}: {said}")


@pytest.mark.F2
@pytest.mark.parametrize("file", sorted((SEEDS / "maps").glob("*.json")), ids=lambda file: file.stem)
def test_seeds_of_the_core(file: Path) -> None:
    """As the fuzzer does, by way of Python."""
    tree = json.loads(file.read_bytes())
    batch = attempt(lambda: _native.GridBatch([tree], ["seed"], **OPTIONS), ValueError, TypeError)
    if file.name.startswith("refused"):
        assert isinstance(batch, ValueError)
        assert "\n" not in str(batch)
        return
    assert not isinstance(batch, Exception), batch
    batch.reset(0)
    for _ in range(12):
        batch.step()
    saved = batch.save([0])
    batch.restore(saved, [0])  # found here: that of a game without objects was refused
    assert batch.save([0]) == saved
    batch.close()


def turn(target: str, least: int, told: Callable[[str, object], None]) -> None:
    fuzz = from_folder("scripts", "fuzz")
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "fuzz.py"), target], capture_output=True, text=True)
    if done.returncode == 2:
        pytest.fail(done.stderr[-2000:])
    result = fuzz.Fuzzed(**json.loads(fuzz.RECORD.read_text())[target])
    told("figure", result.figure())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert result.executions >= least


@pytest.mark.long
@pytest.mark.F1
@pytest.mark.timeout(1_500)
def test_ten_minutes_of_settings(record_property: Callable[[str, object], None]) -> None:
    """Presets, games in JSON, overrides, changes of a game: no traceback, one line for each refusal."""
    turn("config", 500_000, record_property)  # a quiet core makes 1.5 million


@pytest.mark.long
@pytest.mark.F2
@pytest.mark.timeout(3_600)
def test_half_an_hour_of_maps(record_property: Callable[[str, object], None]) -> None:
    """Maps as text and whole games, built, drawn and played under ASan and UBSan: no report."""
    turn("maps", 100_000, record_property)
