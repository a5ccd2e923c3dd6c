"""What a sweep searches: `key=log(1e-4,1e-2)`, `range(0.9,0.999)`, `int(1,8)`, `choice(a,b,c)`, read and checked.

A wrong word, a wrong bound and a wrong setting are refused in one line before anything starts. `log` and `range` give
whole numbers where the setting is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gridmill.config import ConfigError, did_you_mean
from gridmill.config.text import clipped
from gridmill.run import Run
from gridmill.runs import older_words, overrides

FORMS = {"log": "log(LOW,HIGH)", "range": "range(LOW,HIGH[,STEP])", "int": "int(LOW,HIGH[,STEP])",
         "choice": "choice(A,B,...)"}  # fmt: skip
DIGITS = 5  # of a number that is tried: enough to learn from, short enough to type
NOT_SWEPT = {
    "run": "names the sweep's folder: run=NAME",
    "seed": "cannot be searched: --seeds N trains every trial with several seeds",
    "seeds": "cannot be searched: --seeds N trains every trial with several seeds",
    "recipe": "is the first argument of the command",
}
_FORM = re.compile(r"([A-Za-z_]+)\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Dimension:
    """One setting and the values that are tried."""

    path: str
    word: str  # of FORMS
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    choices: tuple[str, ...] = ()  # as they were typed
    whole: bool = False

    @property
    def is_log(self) -> bool:
        return self.word == "log"

    def suggest(self, trial: Any) -> None:
        """Let Optuna choose a value for a trial; one that it has stays."""
        if self.choices:
            trial.suggest_categorical(self.path, self.choices)
        elif self.whole:
            low, high = int(self.low), int(self.high)
            trial.suggest_int(self.path, low, high, step=int(self.step or 1), log=self.is_log)
        else:
            trial.suggest_float(self.path, self.low, self.high, step=self.step, log=self.is_log)

    def written(self, value: Any) -> str:
        """A value that Optuna chose, as a setting; ValueError if it is none of this space."""
        if self.choices:
            if value not in self.choices:
                raise ValueError(
                    f"expected one of {', '.join(self.choices)} for {self.path}, got `{clipped(str(value))}`"
                )
            return overrides.written(self.path, value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise ValueError(f"expected {self.low:g} to {self.high:g} for {self.path}, got `{clipped(str(value))}`")
        if self.whole:
            return overrides.written(self.path, int(value))
        rounded = float(f"{value:.{DIGITS}g}")
        return overrides.written(self.path, min(self.high, max(self.low, rounded)))

    def ends(self) -> tuple[Any, ...]:
        return self.choices or (self.low, self.high)


def read(texts: Sequence[str], base: Run) -> tuple[tuple[Dimension, ...], tuple[str, ...]]:
    """The space and the plain overrides among some `key=value` texts; `base` is the recipe that they are for.

    Every end and every choice is tried on the run, so that a value that no trial could have is refused now.
    """
    found: list[Dimension] = []
    plain: list[str] = []
    for text in texts:
        dimension = parse(text)
        if dimension is None:
            plain.append(text)
            continue
        path = dimension.path
        if path in NOT_SWEPT:
            raise ConfigError(f"expected a setting to search, got `{path}`, which {NOT_SWEPT[path]}", f"$.{path}")
        found.append(dimension)
    paths = [dimension.path for dimension in found]
    for path in paths:
        if paths.count(path) > 1 or any(overrides.split(text)[0] == path for text in plain):
            raise ConfigError("expected one space or one value, got several", f"$.{path}")
    fixed = overrides.apply(base, plain)
    return tuple(_fitted(dimension, fixed) for dimension in found), tuple(plain)


def parse(text: str) -> Dimension | None:
    """One `key=log(1e-4,1e-2)` by itself; None for a plain setting."""
    path, value = overrides.split(text)
    form = _FORM.fullmatch(value)
    return None if form is None else _dimension(path, form[1], form[2], text)


def _dimension(path: str, word: str, inside: str, text: str) -> Dimension:
    if word not in FORMS:
        said = f"expected {', '.join(FORMS.values())}, got `{clipped(text)}`{did_you_mean(word, list(FORMS))}"
        raise ConfigError(said, f"$.{path}")
    parts = _parts(inside)
    wrong = ConfigError(f"expected {FORMS[word]}, got `{clipped(text)}`", f"$.{path}")
    if word == "choice":
        if len(parts) < 2 or len(set(parts)) < len(parts) or "" in parts:
            raise ConfigError(
                f"expected two or more different values, choice(A,B,...), got `{clipped(text)}`", f"$.{path}"
            )
        return Dimension(path, word, choices=tuple(parts))
    values = [overrides.read(part, path) for part in parts]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values) or not 2 <= len(values) <= (2 if word == "log" else 3):
        raise wrong
    low, high, step = numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None
    if not low < high or not math.isfinite(high - low):
        raise ConfigError(f"expected LOW below HIGH, got `{clipped(text)}`", f"$.{path}")
    if word == "log" and low <= 0:
        raise ConfigError(f"expected LOW above 0 in a log space, got `{clipped(text)}`", f"$.{path}")
    if step is not None and not 0 < step <= high - low:
        raise ConfigError(f"expected STEP above 0 and at most HIGH - LOW, got `{clipped(text)}`", f"$.{path}")
    if word == "int" and any(number != int(number) for number in numbers):
        raise ConfigError(f"expected whole numbers, got `{clipped(text)}`", f"$.{path}")
    return Dimension(path, word, low, high, step, whole=word == "int")


def _parts(inside: str) -> list[str]:
    """The values between commas; brackets, braces and quotes hold theirs together."""
    found, depth, quoted = [""], 0, False
    for letter in inside:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def _fitted(dimension: Dimension, run: Run) -> Dimension:
    """Whole numbers where the setting is one; ConfigError if the run does not take an end."""
    now = overrides.value_at(run.tree(), older_words.ours(dimension.path))
    numbers = (dimension.low, dimension.high, dimension.step or 1.0)
    if isinstance(now, int) and not isinstance(now, bool) and not dimension.choices:
        if any(number != int(number) for number in numbers):
            listed = ", ".join(f"{number:g}" for number in numbers[:2])
            raise ConfigError(
                f"expected whole numbers, because the setting is one, got {listed}", f"$.{dimension.path}"
            )
        dimension = Dimension(dimension.path, dimension.word, *numbers[:2], dimension.step, whole=True)
    for end in dimension.ends():
        overrides.apply(run, [dimension.written(end)])
    return dimension
