"""People's own games and recipes: `path/to/file.py[:function]` or `package.module:function` becomes a call.

Wherever a name of ours is taken, such a text is taken too, so nobody has to touch the package. The folder of the file
(or the current one, for a package) is importable while it runs, as it would be for a script. What goes wrong inside is
one line that names the file and the line; the whole traceback hangs on it as its cause.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from gridmill.config import did_you_mean


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


def _from_file(file: Path) -> ModuleType:
    name = f"gridmill_own_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
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
