"""The native constants of Prospector equal the Python model's: names, order, types, defaults, bounds."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import create_model
from test_schema import bounds, same

from gridmill import _native
from gridmill.config import Config
from gridmill.prospector import Commodities, Commodity, ProspectorConfig

NUMBERS = [name for name in ProspectorConfig().core_tree() if name != "commodities"]


def defaults(native: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: defaults(value) if kind == "struct" else value for name, (kind, value, _) in native.items()}


def test_names_types_and_defaults() -> None:
    native = _native.ProspectorBatch.schema()
    assert defaults(native) == ProspectorConfig().core_tree()
    assert list(native["commodities"][1]) == list(Commodities.model_fields)
    same({name: said for name, said in native.items() if name != "commodities"}, numbers_only())


def numbers_only() -> type[Config]:
    """The model without its one nested part, whose defaults differ by commodity."""
    fields = {
        name: (field.annotation, field) for name, field in ProspectorConfig.model_fields.items() if name in NUMBERS
    }
    return create_model("Numbers", __base__=Config, **fields)  # type: ignore[call-overload, no-any-return]


def native_takes(path: list[str], value: Any) -> bool:
    tree: dict[str, Any] = ProspectorConfig().core_tree()
    spot = tree
    for name in path[:-1]:
        spot = spot[name]
    spot[path[-1]] = value
    try:
        _native.LoneProspector(tree)
    except ValueError as error:
        if f"at `$.{'.'.join(path)}`" in str(error):
            return False
        raise
    return True


@pytest.mark.parametrize("name", NUMBERS)
def test_both_sides_allow_the_same_numbers(name: str) -> None:
    low, high = bounds(ProspectorConfig, name)
    kind = int if ProspectorConfig.model_fields[name].annotation is int else float
    step = 1 if kind is int else 1e-4
    for inside, outside in ((low, low - step), (high, high + max(step, high * 1e-6))):
        assert native_takes([name], kind(inside))
        assert not native_takes([name], kind(outside) if kind is float else int(outside) + (outside > high))
        assert ProspectorConfig().replace(name, kind(inside)).tree()[name] == inside
        with pytest.raises(ValueError, match=rf"at `\$\.{name}`$"):
            ProspectorConfig().replace(name, kind(outside) if kind is float else int(outside) + (outside > high))


@pytest.mark.parametrize("name", ["base", "low", "high"])
def test_both_sides_allow_the_same_prices(name: str) -> None:
    low, high = bounds(Commodity, name)
    # Wide borders for the other two, so that only the one under test can be refused.
    for value, fits in ((low, True), (low / 2, False), (high, True), (high * 2, False)):
        tree: dict[str, Any] = ProspectorConfig().core_tree()
        tree["commodities"]["pge"] = {"base": 1.0, "low": low, "high": high} | {name: value}
        assert taken(lambda tree=tree: _native.LoneProspector(tree)) == fits
        assert taken(lambda tree=tree: ProspectorConfig.load(tree)) == fits


def taken(call: Any) -> bool:
    try:
        call()
    except ValueError:
        return False
    return True


def test_borders_of_a_price_must_be_in_order_on_both_sides() -> None:
    tree = ProspectorConfig().core_tree()
    tree["commodities"]["iron"]["low"] = 200.0
    expected = r"^expected low <= high, got 200(\.0)? > 180(\.0)? - at `\$\.commodities\.iron\.low`$"
    with pytest.raises(ValueError, match=expected):
        _native.LoneProspector(tree)
    with pytest.raises(ValueError, match=expected):
        ProspectorConfig.load(tree)
