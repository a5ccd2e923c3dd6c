"""People's own games, recipes and parts: `path/to/file.py[:function]` or `package.module:function` becomes a call.

Wherever a name of ours is taken, such a text is taken too, so nobody has to touch the package. The folder of the file
(or the current one, for a package) is importable while it runs, as it would be for a script. What goes wrong inside is
one line that names the file and the line; the whole traceback hangs on it as its cause.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gridmill.config import did_you_mean

Base = TypeVar("Base")
FILES = "gridmill_own_"  # how the names of modules begin that are people's own files


def is_own(text: str) -> bool:
    """True for a file or a function in a package, False for a plain name."""
    return text.endswith(".py") or ":" in text


def call(text: str, what: str, **arguments: Any) -> Any:
    """What the function returns; `what` ("game", "recipe") is for messages. Without a function: the file's own name."""
    place, _, function = text.rpartition(":") if not text.endswith(".py") else (text, "", Path(text).stem)
    in_file = place.endswith(".py")
    if in_file and not Path(place).is_file():
        raise ValueError(f"no {what} file `{place}`")
    with _importable(Path(place).resolve().parent if in_file else Path.cwd()), _one_line(text):
        module = _from_file(Path(place)) if in_file else importlib.import_module(place)
        return _function(module, function, Path(place).name if in_file else place)(**arguments)


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
    place, _, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    file = Path(place).resolve() if place.endswith(".py") else None
    if file is not None and not file.is_file():
        raise ValueError(f"no {what} file `{place}`")
    with _importable(file.parent if file is not None else Path.cwd()), _one_line(text):
        module = importlib.import_module(place) if file is None else _once_from_file(file)
    if not name:
        return _only(module, base, text)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        hint = did_you_mean(name, [each.__name__ for each in _own_classes(module, base)])
        raise ValueError(f"no {what} `{name}` (a {base.__name__}) in `{place}`{hint}")
    return found


def settled(text: str) -> str:
    """The text that finds the same from any folder: a file has its whole path."""
    place, colon, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    return f"{Path(place).resolve()}{colon}{name}" if place.endswith(".py") else text


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


def _once_from_file(file: Path) -> ModuleType:
    """The module of a file that may have been loaded already, so that its classes stay the same ones."""
    return sys.modules.get(_module_name(file)) or _from_file(file)


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


def _function(module: ModuleType, name: str, place: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
    hint = did_you_mean(name, own) or f"; it has: {', '.join(sorted(own)) or 'none'}"
    raise ValueError(f"no function `{name}` in `{place}`{hint}")


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _one_line(text: str) -> Iterator[None]:
    """Errors that speak for themselves pass; of others, such as a SyntaxError, the kind and the line are said."""
    try:
        yield
    except (ValueError, TypeError, OSError):
        raise
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)[-1].lineno
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"`{text}` failed in line {line}: {type(error).__name__}: {said}") from error
