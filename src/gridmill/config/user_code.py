"""People's own games, recipes and parts: `path/to/file.py[:name]` or `package.module:name` becomes an object.

Wherever a name of ours is taken, such a text is taken too, so nobody has to touch the package. The folder of the file
(or the current one, for a package) is importable while it runs, as it would be for a script. What goes wrong inside is
one line that names the file and the line; the whole traceback hangs on it as its cause.

`module_of` is the only place where a name becomes code. Names that a person says, in a command or a program, do. Those
that stand in a file (a run's record, a preset) do not: `from_a_file` is around whatever is made of one, and inside of
it only code that the person named (`take`, the option --code) is found.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import sys
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gridmill.config import ConfigError, did_you_mean
from gridmill.config.text import clipped, printable

Base = TypeVar("Base")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
FILES = "gridmill_own_"  # how the names of modules begin that are people's own files
_packages: set[str] = set()  # modules of packages that are people's own


def is_own(text: str) -> bool:
    """True for a file or a function in a package, False for a plain name."""
    return text.endswith(".py") or ":" in text


def module_of(text: str, what: str, anew: bool = False) -> ModuleType:
    """The module that `path/to/file.py[:name]` or `package.module:name` lies in; its code runs here and nowhere else.

    A file that was loaded before stays the same module, so that its classes stay the same ones; `anew` reads it again.
    `what` ("game", "loss") is for messages.
    """
    place = _allowed(split(text)[0])
    if not place.endswith(".py"):
        if not _MODULE.fullmatch(place):
            said = f"`{clipped(text, 400)}`"
            raise ValueError(f"expected FILE.py, FILE.py:name or package.module:name for a {what}, got {said}")
        with _importable(Path.cwd()), one_line(text, place):
            module = importlib.import_module(place)
            if module.__name__.partition(".")[0] != __name__.partition(".")[0]:  # ours may be named too
                _packages.add(module.__name__)
            return module
    if not os.path.isfile(place):
        raise ValueError(f"no {what} file `{clipped(place, 400)}`")
    file = Path(place).resolve()
    known = None if anew else sys.modules.get(_module_name(file))
    with _importable(file.parent), one_line(text, place):
        return known or _from_file(file)


def split(text: str) -> tuple[str, str]:
    """The file or module, and the name in it; empty if none is said."""
    place, _, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    return place, name


def function(text: str, what: str, anew: bool = False) -> Callable[..., Any]:
    """The function or class of a text; without a name, the one that is called like the file."""
    place, name = split(text)
    module = module_of(text, what, anew)
    return _callable(module, name or Path(place).stem, Path(place).name if place.endswith(".py") else place)


def call(text: str, what: str, **arguments: Any) -> Any:
    """What the function returns; its file is read again, so that a program sees what was changed meanwhile."""
    found = function(text, what, anew=True)
    place = _allowed(split(text)[0])
    with _importable(Path(place).resolve().parent if place.endswith(".py") else Path.cwd()), one_line(text, place):
        return found(**arguments)


# ---- code that files name

# Where plain data of a run names code, as paths; * is any name.
PLACES = ("losses.*.kind", "policy.network", "policy.encoder", "policy.core", "optimizer.kind")
SCRIPTS = ("script", "bot")  # script:NAME is a script of the game
_taken: list[str] = []  # files, by their whole paths, and modules that the person named
_reading: ContextVar[bool] = ContextVar("reading", default=False)


class CodeNeeded(ValueError):
    """A file names code that the person has not named."""


def take(code: Iterable[str]) -> list[str]:
    """Let files name this code: `path/to/file.py` or `package.module`, with or without a name in it.

    One line for each, with its sha256, so that the person can see what will run.
    """
    told = []
    for text in code:
        place = place_of(text)
        if place.endswith(".py"):
            if not os.path.isfile(place):
                raise ValueError(f"no code file `{clipped(place, 400)}`")
            place = str(Path(place).resolve())
        elif place not in sys.modules and _spec(place) is None:
            raise ValueError(f"cannot find code `{clipped(text, 400)}`: expected FILE.py or package.module")
        if place not in _taken:
            _taken.append(place)
        told.append(f"code: {place}, sha256 {sha256(place)[:12]}")
    return told


def taken() -> list[str]:
    """The code that files may name."""
    return list(_taken)


def named_in(tree: Any) -> list[str]:
    """The user's own code that plain data of a run names, without running any of it."""
    found: list[str] = []
    for path in PLACES:
        parts = [tree]
        for name in path.split("."):
            whole = [part for part in parts if isinstance(part, dict)]
            parts = [value for part in whole for key, value in part.items() if name in ("*", key)]
        found += [text for text in parts if isinstance(text, str) and is_own(text)]
    players = tree.get("players") if isinstance(tree, dict) else None
    names = [name for name in players if isinstance(name, str)] if isinstance(players, dict) else []
    found += [name for name in names if is_own(name) and name.partition(":")[0] not in SCRIPTS]
    return list(dict.fromkeys(found))


@contextmanager
def from_a_file(tree: Any, file: Path) -> Iterator[None]:
    """While plain data of a run is used that stands in a file: of code that it names, only what was taken is found.

    CodeNeeded if the data names other code.
    """
    missing = [text for text in named_in(tree) if _found(split(text)[0]) is None]
    if missing:
        raise CodeNeeded(f"`{file}` {_need(missing)}")
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def meant(text: str) -> str:
    """The text with the place that was taken for the one it names; texts with one meaning are equal then."""
    place, name = split(text)
    return f"{_found(place) or place}:{name}" if is_own(text) else text


def place_of(text: str) -> str:
    """The file or module of code by its name."""
    return split(text)[0] if is_own(text) else text


def sha256(text: str) -> str:
    """Of the file in which code is, in hex digits; empty if there is none."""
    place = place_of(text)
    file = place if place.endswith(".py") else getattr(_spec(place), "origin", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""


def _spec(module: str) -> ModuleSpec | None:
    """Where Python would find a module from here, if it is one; the packages that it is in are imported for it."""
    if not _MODULE.fullmatch(module):
        return None
    with _importable(Path.cwd()), one_line(module), suppress(ImportError, ValueError):
        return importlib.util.find_spec(module)
    return None


def _allowed(place: str) -> str:
    """The place itself if a person says it; of one in a file's data, what was taken for it."""
    if not _reading.get():
        return place
    found = _found(place)
    if found is None:
        raise CodeNeeded(_need([place]))
    return found


def _found(place: str) -> str | None:
    """What was taken for a place: it itself, or the one file of the same name, which may lie elsewhere here."""
    whole = os.path.realpath(place) if place.endswith(".py") and "\0" not in place else place
    if whole in _taken:
        return whole
    same = [taken for taken in _taken if taken.endswith(".py") and Path(taken).name == Path(place).name]
    return same[0] if len(same) == 1 else None


def _need(texts: Iterable[str]) -> str:
    named = list(texts)
    shown = ", ".join(printable(text, 120) for text in named)
    options = " ".join(dict.fromkeys(f"--code {_from_here(split(text)[0] or text)}" for text in named))
    return f"names custom code, which runs only if you name it too: {shown}; add {options}"


def _from_here(place: str) -> str:
    """What --code finds a place by if it is typed here: of a file, its name, or its path if it lies elsewhere."""
    if not place.endswith(".py"):
        return printable(place, 120)
    file = Path(place)
    if os.path.isfile(place) and not os.path.isfile(file.name):
        here = Path.cwd()
        return shlex.quote(printable(str(file.relative_to(here) if file.is_relative_to(here) else file), 400))
    return shlex.quote(printable(file.name, 120))


# ---- classes: one file each in a folder of ours, or the user's own


def names(folder: Path) -> list[str]:
    """The names that ship: those of the files in a package's folder."""
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")


def find(text: str, package: str, base: type[Base], what: str) -> type[Base]:
    """The class behind a name of ours in `package`, or behind `path/to/file.py[:Class]` or `package.module:Class`.

    Without a class's name it is the one that the file defines.
    """
    if not is_own(text):
        return _only(importlib.import_module(f"{package}.{text}"), base, text)
    place, name = split(text)
    module = module_of(text, what)
    if not name:
        return _only(module, base, text)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        hint = did_you_mean(name, [each.__name__ for each in _own_classes(module, base)])
        raise ValueError(f"no {what} `{name}` (a {base.__name__}) in `{place}`{hint}")
    return found


def one_of(name: str, known: Sequence[str]) -> str:
    """One of these names, or the settled text of a class of the user's own; ConfigError if it is neither."""
    if name in known:
        return name
    if is_own(name):
        try:
            return settled(name)
        except CodeNeeded as error:
            raise ConfigError(str(error)) from None
    hint = did_you_mean(name, list(known))
    raise ConfigError(f"expected {', '.join(known)}, FILE.py:Class or package.module:Class, got {name!r}{hint}")


def settled(text: str) -> str:
    """The text that finds the same from any folder: a file has its whole path. Plain names stay as they are."""
    if not is_own(text):
        return text
    place, name = split(text)
    place = _allowed(place)
    return f"{Path(place).resolve()}{':' if name else ''}{name}" if place.endswith(".py") else f"{place}:{name}"


def name_of(found: type, package: str) -> str:
    """The text that `find` finds a class again by: its file's name if it ships, else its place."""
    module = found.__module__
    if module.rpartition(".")[0] == package:
        return module.rpartition(".")[2]
    if module == "__main__" or module.startswith(FILES):
        module = str(Path(str(sys.modules[module].__file__)).resolve())
    return f"{module}:{found.__qualname__}"


def _own_classes(module: ModuleType, base: type[Base]) -> list[type[Base]]:
    classes = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, base)]
    return [each for each in classes if each.__module__ == module.__name__]


def _only(module: ModuleType, base: type[Base], text: str) -> type[Base]:
    found = _own_classes(module, base)
    if len(found) != 1:
        listed = ", ".join(each.__name__ for each in found) or "none"
        raise ValueError(f"`{text}`: expected one {base.__name__} in the file, got {listed}; name it: FILE.py:Class")
    return found[0]


def _module_name(file: Path) -> str:
    return f"{FILES}{file.stem}_{zlib.crc32(str(file.resolve()).encode()):08x}"


def _from_file(file: Path) -> ModuleType:
    name = _module_name(file)
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # half of a module is none
        raise
    return module


def _callable(module: ModuleType, name: str, place: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
    hint = did_you_mean(name, own) or f"; it has: {', '.join(sorted(own)) or 'none'}"
    raise ValueError(f"no function `{name}` in `{place}`{hint}")


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """While code of the user's own runs: what lies beside it can be imported, and what it says is the user's word."""
    sys.path.insert(0, str(folder))
    token = _reading.set(False)
    try:
        yield
    finally:
        _reading.reset(token)
        sys.path.remove(str(folder))


@contextmanager
def one_line(text: str, place: str = "") -> Iterator[None]:
    """Whatever goes wrong in code of the user's own is one line, with the last of its own lines that led there.

    `place` is where the code was found, if not where the text says.
    """
    try:
        yield
    except Exception as error:
        place = place or split(text)[0]
        own = str(Path(place).resolve()) if place.endswith(".py") else None
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if own in (None, frame.filename)]
        line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        where = f" in line {line}" if line else ""
        raise ValueError(f"`{text}` failed{where}: {type(error).__name__}: {said}") from error


@contextmanager
def their_own(text: str) -> Iterator[None]:
    """The same; but what we find wrong with the code, a ConfigError, says so itself."""
    try:
        with one_line(text):
            yield
    except ValueError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise


def own_fault(error: BaseException) -> str | None:
    """What to tell of an error that came out of the user's own code, in the middle of ours: its file and line."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(name := frame.f_globals.get("__name__", "")).startswith(FILES) or name in _packages
    ]
    if not frames or not isinstance(error, Exception):
        return None
    shown, line = Path(frames[-1][0]), frames[-1][1]
    with suppress(OSError, ValueError):  # it lies elsewhere, or the current folder was removed
        shown = shown.relative_to(Path.cwd())
    return f"`{shown}` failed in line {line}: {type(error).__name__}: {error}"
