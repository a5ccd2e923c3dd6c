"""The page's modules as one script, for a page that is one file.

Each module becomes a function that returns what it exports, in the order in which they need each other; imports become
constants. Lines that are only comments and the indentation are left out. Only the forms that the page uses are known,
and anything else is refused, so nothing is lost in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?function\b|class\b|const\b|let\b)", re.MULTILINE)
NAMED = re.compile(r"^export\s+(?:async\s+)?(?:function\*?|class|const|let)\s+([\w$]+)", re.MULTILINE)
LEFT = re.compile(r"^(?:import\b(?!\s*\()|export\b)", re.MULTILINE)
COMMENT = re.compile(r"//.*|/\*(?:(?!\*/).)*\*/")


def bundle(modules: Mapping[str, str], first: str) -> str:
    """One classic script of modules by file name; `first` is the one that starts the page."""
    needs = {name: {found[1] for found in IMPORT.findall(text)} for name, text in modules.items()}
    missing = {name for names in needs.values() for name in names} - set(modules)
    if missing:
        raise ValueError(f"viewer: modules are imported that are not there: {', '.join(sorted(missing))}")
    try:
        order = list(TopologicalSorter({name: sorted(needs[name]) for name in sorted(needs)}).static_order())
    except CycleError as reason:
        raise ValueError(f"viewer: modules import each other: {' -> '.join(reason.args[1])}") from None
    used = _reached(needs, first)
    parts = [_wrapped(name, modules[name]) for name in order if name in used]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def _reached(needs: Mapping[str, set[str]], first: str) -> set[str]:
    found, open_names = {first}, [first]
    while open_names:
        new = needs[open_names.pop()] - found
        found |= new
        open_names += new
    return found


def _wrapped(name: str, text: str) -> str:
    exported = NAMED.findall(text)
    body = _shortened(name, EXPORT.sub("", IMPORT.sub(_constants, text)))
    if LEFT.search(body):
        raise ValueError(f"viewer: {name} imports or exports in a form that the bundle does not know")
    return f"const {_module(name)} = (() => {{\n{body}\nreturn {{{', '.join(exported)}}};\n}})();"


def _constants(found: re.Match[str]) -> str:
    names = [part.strip().replace(" as ", ": ") for part in found[1].split(",") if part.strip()]
    return f"const {{{', '.join(names)}}} = {_module(found[2])};"


def _module(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _shortened(name: str, text: str) -> str:
    """Without whole-line comments and indentation, which are text only within a string that goes on in another line."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not COMMENT.fullmatch(line)]
    if any(line.count("`") % 2 or line.startswith("/*") or line.endswith("\\") for line in lines):
        raise ValueError(f"viewer: {name} has a string or a comment of several lines, which the bundle does not know")
    return "\n".join(lines)
