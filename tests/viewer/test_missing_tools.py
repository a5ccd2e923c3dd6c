"""Tests that need node or a browser say what is missing: a program too old or a stub is not there."""

from __future__ import annotations

from pathlib import Path

import chromium
import engine_node
import pytest


def program(folder: Path, name: str, text: str) -> None:
    place = folder / name
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo v18.19.1", "got v18.19.1"), ("echo nonsense", "got nonsense"), ("exit 1", "got no version")],
)
def test_an_old_node_is_skipped(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "node", text)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(pytest.skip.Exception, match=f"needs node \\(20 or later\\).*{said}"):
        engine_node.node()


@pytest.mark.parametrize("version", ["v20.0.0", "v22.11.0"])
def test_a_new_node_is_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "node", f"echo {version}")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert engine_node.node() == str(tmp_path / "node")


def test_a_stub_of_a_browser_is_skipped_or_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright")
    program(tmp_path, "chromium", "echo 'install the snap first' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(pytest.skip.Exception, match="needs chromium that can be launched"):
        chromium.require(fail=False)
    with pytest.raises(pytest.fail.Exception, match="needs chromium that can be launched"):
        chromium.require(fail=True)
