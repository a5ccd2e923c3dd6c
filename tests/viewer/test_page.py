"""The page as files: no markup from strings, modules that the bundle knows, an exported page that allows itself."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gridmill import games
from gridmill.evaluate import evaluate
from gridmill.viewer import bundle, engine, export

MODULES = sorted(export.PAGE.glob("*.js"))
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|"
    r"new Function|setTimeout\(\s*[\"'`]|javascript:|setHTML"
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_text_becomes_markup_or_code(path: Path) -> None:
    assert not MARKUP.search(path.read_text("utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_says_what_it_is_for_and_is_short(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("// ")
    assert text.count("\n") <= 600


def test_the_page_loads_no_inline_script() -> None:
    text = (export.PAGE / "index.html").read_text("utf-8")
    assert re.findall(r"<script[^>]*>", text) == ['<script type="module" src="main.js">']
    assert not re.search(r"\son\w+=|style=", text)


def test_all_modules_become_one_script() -> None:
    script = bundle.bundle({path.name: path.read_text("utf-8") for path in MODULES}, "main.js")
    assert not re.search(r"^\s*(import|export)\s*[\w{*]", script, re.MULTILINE)
    for path in MODULES:
        assert (f"const module_{path.stem} = " in script) == (path.name != "early.js")  # a script of its own


def test_a_bundle_keeps_the_order_and_the_names() -> None:
    modules = {
        "main.js": 'import {two as deux, Three} from "./a.js";\nconsole.log(deux, Three);\n',
        "a.js": 'import {one} from "./b.js";\nexport const two = one + 1;\nexport class Three {}\n',
        "b.js": "export const one = 1;\n",
        "unused.js": "export const four = 4;\n",
    }
    script = bundle.bundle(modules, "main.js")
    assert script.index("module_b = ") < script.index("module_a = ") < script.index("module_main = ")
    assert "const {two: deux, Three} = module_a;" in script
    assert "return {two, Three};" in script
    assert "four" not in script


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"main.js": 'import {a} from "./gone.js";\n'}, "gone.js"),
        ({"main.js": 'import {a} from "./b.js";\n', "b.js": 'import {c} from "./main.js";\n'}, "import each other"),
        ({"main.js": 'import x from "./main2.js";\n', "main2.js": ""}, "in a form"),
        ({"main.js": "export default 3;\n"}, "in a form"),
    ],
)
def test_what_a_bundle_does_not_know_is_refused(modules: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bundle.bundle(modules, "main.js")


def test_a_bundle_has_no_comments_and_no_indentation() -> None:
    text = """// What it is for.
export function f(x) {
  /** Why. */
  // more
  return `a // b ${x}`; // stays
}
"""
    script = bundle.bundle({"main.js": text}, "main.js")
    assert "function f(x) {\nreturn `a // b ${x}`; // stays\n}\n" in script
    assert "What" not in script
    assert "Why" not in script


@pytest.mark.parametrize("text", ["const a = `\n  // text\n`;\n", '"a\\\n  b";\n', "/* a\n  b */\n"])
def test_a_string_of_several_lines_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="of several lines"):
        bundle.bundle({"main.js": text}, "main.js")


class Elements(HTMLParser):
    """Scripts and styles of a page with their text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = str(dict(attrs)["content"])

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.fixture(scope="module")
def page() -> Elements:
    names = ("a</script><script>alert(1)</script>.replay", '"><img src=x onerror=alert(1)>.replay')
    text = export.exported({}, b"\0asm engine", [(name, b"replay") for name in names])
    found = Elements()
    found.feed(text)
    return found


def test_an_exported_page_allows_exactly_its_own_scripts(page: Elements) -> None:
    run = [text for tag, attrs, text in page.found if tag == "script" and "type" not in attrs]
    packed = next(text for _, attrs, text in page.found if attrs.get("id") == "data-script")
    script = gzip.decompress(base64.b64decode(packed)).decode()
    sources = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
    early = bundle.bundle({path.name: path.read_text("utf-8") for path in MODULES}, "early.js")
    assert run == [export.UNPACK, early]
    assert sources["script-src"] == f"{digest(export.UNPACK)} {digest(early)} {digest(script)} 'wasm-unsafe-eval'"
    assert sources["style-src"] == digest(next(text for tag, _, text in page.found if tag == "style"))
    assert sources["default-src"] == "'none'"
    assert [attrs.get("src") or attrs["href"] for _, attrs, _ in page.found if {"src", "href"} & set(attrs)] == [
        "data:,"
    ]


def from_seven_bits(text: str) -> bytes:
    bits = "".join(f"{ord(character) & 127:07b}" for character in text)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))


def test_bytes_as_text_come_back_and_end_no_element() -> None:
    for data in (b"", b"\0", bytes(range(256)) * 3, b"</script><!--\r\n" * 5, bytes(7)):
        text = export._seven_bits(data)
        assert from_seven_bits(text) == data
        assert not set(text) & set("\0\r\n<")
        read = Elements()
        read.feed(f'<script id="x" type="y">{text}</script>')
        assert read.found[0][2] == text


def test_an_exported_page_holds_engine_and_files_as_data(page: Elements) -> None:
    data = {
        attrs["id"]: (attrs["type"], text) for tag, attrs, text in page.found if tag == "script" and "type" in attrs
    }
    assert gzip.decompress(from_seven_bits(data["data-engine"][1])) == b"\0asm engine"
    assert from_seven_bits(data["data-file-1"][1]) == b"replay"
    assert {kind for kind, _ in data.values()} == {"application/json", "application/octet-stream"}
    assert "alert(1)" in data["data-start"][1]
    assert "<" not in data["data-start"][1]


def test_an_arena_episode_is_one_file_of_600_kilobytes(tmp_path: Path) -> None:
    """Engine, page and a thousand ticks of 24 agents."""
    try:
        module = engine.read()
    except engine.EngineMissing as missing:
        pytest.skip(str(missing))
    evaluate(games.arena(), "script:arena", 1, 0, replay=tmp_path / "a.replay")
    text = export.exported({}, module, [("a.replay", (tmp_path / "a.replay").read_bytes())])
    assert len(text.encode()) <= 600_000


def test_three_files_do_not_fit_in_a_page() -> None:
    with pytest.raises(ValueError, match="at most 2"):
        export.exported({}, b"", [("a", b"")] * 3)


def test_a_served_page_has_all_its_files() -> None:
    files = export.page_files({"files": []}, b"engine", {"open-0.replay": b"x"})
    assert {"index.html", "main.js", "style.css", "panels.css", "engine.wasm", "start.json", "open-0.replay"} <= set(
        files
    )
    assert files["start.json"] == b'{"files": []}'
