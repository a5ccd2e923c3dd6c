"""What settings are, in words: the path of each, its default, what it takes and what it means.

A meaning is the text under a field; `Takes` says what a field takes where its type does not. Read from the source when
somebody asks, so that importing settings costs nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from gridmill.config.base import Config, FrozenDict

UNBOUNDED = 1e12  # limits from here on are there to keep arithmetic sound; nobody needs to know them


@dataclass(frozen=True)
class Takes:
    """Beside a type: what it takes, in words, and those of them that can be typed as they are."""

    text: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """One setting of a record."""

    path: str
    default: Any  # plain data
    takes: str
    meaning: str
    words: tuple[str, ...] = ()  # what can be typed, if it is one of some words


def settings(model: type[Config], start: str = "", defaults: Mapping[str, Any] | None = None) -> Iterator[Setting]:
    """Every setting of a record, those of its parts too, in the order of the fields."""
    said = meanings(model)
    for name, field in model.model_fields.items():
        path = f"{start}.{name}" if start else name
        default = _default(field) if defaults is None else defaults.get(name)
        part = field.annotation
        if isinstance(part, type) and issubclass(part, Config) and not _own_words(field.metadata):
            yield from settings(part, path, default if isinstance(default, dict) else None)
            continue
        words = _words(part, field.metadata)
        yield Setting(path, default, takes(part, field.metadata), said.get(name, ""), words)
        inner = get_args(part)[-1] if get_origin(part) is FrozenDict else None
        if isinstance(inner, type) and issubclass(inner, Config):
            yield from settings(inner, f"{path}.NAME")


@functools.cache
def meanings(model: type[Config]) -> dict[str, str]:
    """The text under each field of a record, also of fields that it has from its bases."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not (_is_config(each) and "__annotations__" in each.__dict__):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        except (OSError, TypeError):  # no source: made in a console
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def takes(annotation: Any, metadata: Any = ()) -> str:
    """What a field takes: `1 to 64`, `adam, adamw or muon`, `true or false`."""
    if own := _own_words(metadata):
        return own
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return takes(inner[0], [*metadata, *inner[1:]])
    if origin in (Union, UnionType):
        parts = [takes(part) for part in inner if part is not NoneType]
        return ", ".join([*dict.fromkeys(parts), *(["or none"] if NoneType in inner else [])])
    if origin is Literal:
        return _either([str(word) for word in inner])
    if origin is tuple:
        return f"a list of {_plural(inner[0])}"
    if origin is FrozenDict:
        return f"NAME: {_one(inner[1])}"
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        return _bounds("whole number" if annotation is int else "number", metadata)
    return _one(annotation)


def _words(annotation: Any, metadata: Any) -> tuple[str, ...]:
    own = next((mark for mark in metadata if isinstance(mark, Takes)), None)
    if own is not None:
        return own.words
    if annotation is bool:
        return ("true", "false")
    return tuple(map(str, get_args(annotation))) if get_origin(annotation) is Literal else ()


def _one(kind: Any) -> str:
    if _is_config(kind):
        return "{" + ", ".join(kind.model_fields) + "}" if kind.__name__ != "Schedule" else "or a schedule"
    return "text" if kind is str else takes(kind)


def _plural(kind: Any) -> str:
    return {str: "texts"}.get(kind) or (_one(kind) if _is_config(kind) else "parts")


def _bounds(noun: str, metadata: Any) -> str:
    """From the limits that pydantic checks."""
    limits: dict[str, float] = {}
    for mark in metadata:
        for rule in [mark, *(mark.metadata if isinstance(mark, FieldInfo) else ())]:
            for name in ("gt", "ge", "lt", "le", "multiple_of"):
                if getattr(rule, name, None) is not None:
                    limits[name] = getattr(rule, name)
    low = f"above {limits['gt']:g}" if "gt" in limits else _number(limits.get("ge"), "from")
    high = limits.get("le", limits.get("lt", UNBOUNDED))
    step = f", in steps of {limits['multiple_of']:g}" if "multiple_of" in limits else ""
    if high >= UNBOUNDED:
        return f"{noun} {low}".rstrip() + step
    if "gt" in limits:
        return f"{noun} {low}, at most {_plain(high)}{step}"
    return f"{noun}, {_plain(limits.get('ge', 0))} to {_plain(high)}{step}"


def _number(value: float | None, word: str) -> str:
    return "" if value is None or value <= -UNBOUNDED else f"{word} {value:g}"


def _plain(value: float) -> str:
    return f"{int(value):_}" if value == int(value) else f"{value:g}"


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _own_words(metadata: Any) -> str:
    marks = [mark for each in metadata for mark in [each, *(each.metadata if isinstance(each, FieldInfo) else ())]]
    return next((mark.text for mark in marks if isinstance(mark, Takes)), "")


def _is_config(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Config)


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True) if not field.is_required() else None
    return value.tree() if isinstance(value, Config) else value
