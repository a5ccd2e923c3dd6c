"""Frozen settings: the base of every record a person writes (games, maps, rules, runs).

A config is a value: `replace` makes a changed copy and validates it again, `diff` lists what differs,
`fingerprint` names it. Errors are one line with the path, what was expected, what came and the nearest name.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, Tag, ValidationError
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema

from gridmill.config.text import clipped

K = TypeVar("K")
V = TypeVar("V")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^$"  # of a run
MOST_DEEP = 200  # levels of plain data
MOST_PARTS = 1_000_000  # settings and parts of a tree; one that lies in it twice is written twice
MOST_SHOWN = 1_000  # parts of a value whose text a message begins
MOST_NESTED = 8  # parts of one name inside each other: game values, conditions, layers of a map


class ConfigError(ValueError):
    """A setting that cannot be used: one line, ending in the path of the setting."""

    def __init__(self, what: str, path: str = "$") -> None:
        self.what = _one_line(clipped(what, 4000))
        self.path = _one_line(clipped(path, 400))
        super().__init__(f"{self.what} - at `{self.path}`")

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfigError, (self.what, self.path)


def _one_line(text: str) -> str:
    """Messages are one line whatever a name contains."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


class FrozenDict(Mapping[K, V]):
    """A mapping that cannot be changed and keeps its order of declaration."""

    _items: dict[K, V]
    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        object.__setattr__(self, "_items", dict(items or {}))

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("a FrozenDict cannot be changed")

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __eq__(self, other: object) -> bool:
        # The order counts: it is the order of declaration, and the core numbers things by it.
        return isinstance(other, Mapping) and list(self._items.items()) == list(other.items())

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self._items),)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        key_type, value_type = source.__args__
        inner = handler.generate_schema(dict[key_type, value_type])  # type: ignore[valid-type]
        from_mapping = core_schema.chain_schema([core_schema.no_info_plain_validator_function(_as_dict), inner])
        return core_schema.no_info_after_validator_function(
            cls,
            from_mapping,
            serialization=core_schema.plain_serializer_function_ser_schema(_plain),
        )


# For type checkers a field takes any mapping; what it holds is frozen.
if TYPE_CHECKING:
    Frozen = Mapping
else:
    Frozen = FrozenDict


def _as_dict(value: Any) -> Any:
    """A plain dict; lists in it stand for tuples, as in every field."""
    if not isinstance(value, Mapping):
        return value
    return {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Config(BaseModel):
    """Base of all settings: frozen; unknown fields are refused; ints are not accepted as bools or text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)
    renamed: ClassVar[Mapping[str, str]] = {}  # names that settings had before, and have now

    def __init__(self, **data: Any) -> None:
        data = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain_error(error, type(self)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise ConfigError(
            f"a {type(self).__name__} cannot be changed; use .replace({name!r}, {_show(value)})", f"$.{name}"
        )

    @classmethod
    def load(cls, data: Any) -> Self:
        """From plain data (JSON or TOML): lists become tuples, whole numbers may stand for floats."""
        refuse_endless(data)
        try:
            text = json.dumps(data, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            what, path = _not_plain(data, "$") or (str(error), "$")
            raise ConfigError(f"expected plain data (text, finite numbers, lists, dicts), got {what}", path) from None
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise explain_error(error, cls) from None

    @classmethod
    def upgraded(cls, tree: Any) -> Any:
        """Saved plain data with the names that settings have now; what people write is not upgraded but told."""
        if not isinstance(tree, dict):
            return tree
        found = {cls.renamed.get(name, name): value for name, value in tree.items()}
        for name, about in cls.model_fields.items():
            part = about.annotation
            if name in found and isinstance(part, type) and issubclass(part, Config):
                found[name] = part.upgraded(found[name])
        return found

    def tree(self) -> dict[str, Any]:
        """Plain data: what crosses to the core and what a file holds."""
        refuse_endless(self)
        try:
            return json.loads(self.model_dump_json())  # type: ignore[no-any-return]
        except PydanticSerializationError as error:  # it has a depth of its own, and no path
            path = _too_deep(self, "$", ())
            if path is None:
                raise ConfigError(str(error)) from None
            raise ConfigError(f"expected settings nested at most {MOST_NESTED} levels deep, got more", path) from None

    def replace(self, path: str, value: Any) -> Self:
        """A copy with one setting changed (`"observation.num_tokens"`), validated as a whole."""
        return self.replace_all([(path, value)])

    def replace_all(self, changes: Iterable[tuple[str, Any]]) -> Self:
        """A copy with several settings changed, one after the other, and validated once: they may need each other."""
        data = self.tree()
        for path, value in changes:
            place(self, data, path, value)
        return type(self).load(data)

    def diff(self, other: Config) -> dict[str, tuple[Any, Any]]:
        """Every path whose value differs: {path: (mine, theirs)}; a missing side is None."""
        mine, theirs = flatten(self.tree()), flatten(other.tree())
        paths = list(mine) + [path for path in theirs if path not in mine]
        return {p: (mine.get(p), theirs.get(p)) for p in paths if mine.get(p) != theirs.get(p)}

    def fingerprint(self) -> str:
        """Twelve hex digits that name this value; equal settings have equal fingerprints."""
        text = json.dumps(self.tree(), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def place(config: Config, tree: Any, path: str, value: Any) -> None:
    """Set one value in `tree`, the plain data of `config`; refuses a path that is not there and nothing else."""
    spot = tree
    names = path.split(".")
    for depth, name in enumerate(names):
        last = depth == len(names) - 1
        if isinstance(spot, list) and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(spot):
            key: Any = int(name)
        elif isinstance(spot, dict) and (name in spot or (last and _open_dict(config, names[:depth]))):
            key = name
        else:
            known = [str(k) for k in spot] if isinstance(spot, dict) else []
            here = "$" + "".join("." + n for n in names[:depth])
            raise ConfigError(_unknown(name, known, _part(config, names[:depth])), here)
        if last:
            refuse_endless(value, f"$.{path}")
            try:
                spot[key] = _plain(value)
            except RecursionError:
                raise ConfigError(f"expected plain data of at most {MOST_DEEP} levels, got more", f"$.{path}") from None
        else:
            spot = spot[key]


def _open_dict(config: Config, names: list[str]) -> bool:
    """True where the path leads to a FrozenDict, whose keys are free."""
    return isinstance(_part(config, names), FrozenDict)


def _part(config: Config, names: list[str]) -> Any:
    """What a path leads to; None if nothing."""
    spot: Any = config
    for name in names:
        if isinstance(spot, Config):
            spot = getattr(spot, name, None)
        elif isinstance(spot, tuple) and name.isdigit() and int(name) < len(spot):
            spot = spot[int(name)]
        elif isinstance(spot, Mapping):
            spot = spot.get(name)
        else:
            return None
    return spot


def _unknown(name: str, known: list[str], part: Any) -> str:
    """What is said of a setting that a part does not have; one that was renamed is told its new name."""
    now = getattr(part, "renamed", {}).get(name)
    return f"`{name}` is now `{now}`" if now else f"unknown setting `{clipped(name)}`{did_you_mean(name, known)}"


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """A tree as {dotted path: leaf}; empty containers stay as leaves."""
    items: Iterator[tuple[Any, Any]] | None = None
    if isinstance(tree, dict) and tree:
        items = iter(tree.items())
    elif isinstance(tree, list) and tree:
        items = iter(enumerate(tree))
    if items is None:
        return {path: tree}
    flat: dict[str, Any] = {}
    for key, value in items:
        flat.update(flatten(value, f"{path}.{key}" if path else str(key)))
    return flat


def _not_plain(tree: Any, path: str, deep: int = 0) -> tuple[str, str] | None:
    """The first thing in a tree that JSON has no word for, and where it is."""
    if deep > MOST_DEEP:
        return "more levels than can be read", path
    if isinstance(tree, Mapping):
        for key in tree:
            if not isinstance(key, str | int | float | bool | None):
                return f"{_show(key)} as a key", path
    parts = tree.items() if isinstance(tree, Mapping) else enumerate(tree) if isinstance(tree, list | tuple) else ()
    found = (_not_plain(part, f"{path}.{key}", deep + 1) for key, part in parts)
    inside = next((one for one in found if one is not None), None)
    plain = isinstance(tree, Mapping | list | tuple | str | int | float | bool | None)
    if inside is None and (not plain or (isinstance(tree, float) and not math.isfinite(tree))):
        return _show(tree), path
    return inside


_HOLDS = (Config, FrozenDict, tuple, list, dict)  # what has parts


def refuse_endless(tree: Any, path: str = "$") -> None:
    """ConfigError if a tree is too large to be written: the same few parts inside of each other, again and again."""
    known: dict[int, int] = {}  # what was counted, by its id: each part once, however often it is there
    try:
        part, size = tree, _size(tree, known)
        if size <= MOST_PARTS:
            return
        while large := [(where, one) for where, one in _inside(part, path) if _size(one, known) > MOST_PARTS]:
            path, part = large[0]
    except RecursionError:  # as deep as that it is refused where it is written
        return
    raise ConfigError(f"expected at most {MOST_PARTS:,} settings, got {size:,}", path)


def _size(part: Any, known: dict[int, int]) -> int:
    if not isinstance(part, _HOLDS):
        return 1
    if (found := known.get(id(part))) is None:
        inside = (
            vars(part).values() if isinstance(part, Config) else part.values() if isinstance(part, Mapping) else part
        )
        found = 1
        for one in inside:
            found += _size(one, known) if isinstance(one, _HOLDS) else 1
        known[id(part)] = found
    return found


def _inside(part: Any, path: str) -> list[tuple[str, Any]]:
    """What lies in a part, and where."""
    if isinstance(part, Config):
        return [(f"{path}.{name}", getattr(part, name)) for name in type(part).model_fields]
    if isinstance(part, Mapping):
        return [(f"{path}.{name}", value) for name, value in part.items()]
    return [(f"{path}[{number}]", value) for number, value in enumerate(part if isinstance(part, list | tuple) else ())]


def _too_deep(part: Any, path: str, names: tuple[str, ...]) -> str | None:
    """Where the first part is that lies in too many others of its name; None if no part does."""
    if names and names.count(names[-1]) > MOST_NESTED:
        return path
    of_settings = isinstance(part, Config)
    found = (
        _too_deep(value, where, (*names, where.rpartition(".")[2]) if of_settings else names)
        for where, value in _inside(part, path)
    )
    return next((where for where in found if where is not None), None)


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint, if something is called alike; nobody mistypes a name of thousands of letters."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5) if len(name) <= 1000 else []
    return f"; did you mean `{close[0]}`?" if close else ""


def _show(value: Any) -> str:
    with contextlib.suppress(RecursionError):
        if isinstance(value, _HOLDS) and (size := _size(value, {})) > MOST_SHOWN:
            return f"a {type(value).__name__} of {size:,} parts"
    try:
        text = repr(value[:60] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        return f"a{'n' if isinstance(value, int) else ''} {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def explain_error(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """The first problem as one line: what was expected, what came, where."""
    first = error.errors(include_url=False)[0]
    kind, context, location = first["type"], first.get("ctx", {}), list(first["loc"])
    unknown = str(location.pop()) if kind == "extra_forbidden" else ""
    where, spot = _walk(model, location)
    if isinstance(context.get("error"), ConfigError):  # a part refused itself: its path continues ours
        inner: ConfigError = context["error"]
        return ConfigError(inner.what, where + inner.path[1:])
    if unknown:
        known = list(getattr(spot, "model_fields", {}))
        return ConfigError(_unknown(unknown, known, spot), where)
    if kind == "missing":
        return ConfigError("expected a value, got nothing", where)
    if kind == "union_tag_invalid":
        tags = [tag.strip("'") for tag in context["expected_tags"].split(", ")]
        listed = ", ".join(f"`{tag}`" for tag in tags)
        given = context["tag"]
        return ConfigError(
            f"expected a kind among {listed}, got {_show(given)}{did_you_mean(given, tags)}", where + ".kind"
        )
    if kind == "union_tag_not_found":
        return ConfigError("expected a `kind`, got none", where)
    message = first["msg"]
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        message = "letters, digits, `.`, `_` and `-`, a letter or digit first"
    for lead in ("Input should be ", "Value should "):
        message = message.removeprefix(lead)
    return ConfigError(f"expected {message}, got {_show(first['input'])}{_hint(kind, first['input'])}", where)


SCALES = {"k": 1_000, "M": 1_000_000, "m": 1_000_000, "G": 1_000_000_000, "B": 1_000_000_000}


def _hint(kind: str, given: Any) -> str:
    """How a value could be written that is meant well."""
    if kind == "tuple_type" and isinstance(given, str):
        return '; a list of one is written `["x"]`'
    if kind == "tuple_type" and isinstance(given, Config):
        return "; one alone is written with a comma: `(x,)`"
    if kind in ("int_type", "int_parsing") and isinstance(given, str):
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([kMmGB])", given, re.ASCII)
        meant = Decimal(found[1]) * SCALES[found[2]] if found else Decimal(0)
        if meant > 0 and meant == int(meant):
            return f"; write {int(meant):_}"
    return ""


def _walk(model: Any, location: list[int | str]) -> tuple[str, Any]:
    """The path of an error and the config class it lies in; names of union members are not part of a path."""
    where, spot = "$", model
    for part in location:
        tagged = _tags_of(spot)
        member = tagged.get(part) or next((m for m in _models_of(spot) if _kind_of(m) == part), None)
        if isinstance(part, int):
            where += f"[{part}]"
        elif (member is not None or part in tagged) and part not in getattr(spot, "model_fields", {}):
            spot = member
        else:
            where += f".{part}"
            fields = getattr(spot, "model_fields", {})
            spot = fields[part].annotation if part in fields else spot
        found = _models_of(spot)
        if len(found) == 1 and not _tags_of(spot):
            spot = found[0]
    return where, spot


def _kind_of(model: type[Config]) -> Any:
    field = model.model_fields.get("kind")
    return None if field is None else field.default


def _models_of(annotation: Any) -> list[type[Config]]:
    """The config classes an annotation mentions, through tuples, dicts and unions."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [model for argument in getattr(annotation, "__args__", ()) for model in _models_of(argument)]


def _tags_of(annotation: Any) -> dict[Any, type[Config] | None]:
    """The members of a union that are told apart by a `Tag`, by tag; None for one that is no config."""
    found: dict[Any, type[Config] | None] = {}
    for member in getattr(annotation, "__args__", ()):
        for mark in getattr(member, "__metadata__", ()):
            if isinstance(mark, Tag):
                found[mark.tag] = next(iter(_models_of(member)), None)
    return found
