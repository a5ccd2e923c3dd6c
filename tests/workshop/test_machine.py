"""The machine behind a figure, where it is a Mac."""

from __future__ import annotations

import platform
import sys

import pytest

from gridmill.policy import onednn
from gridmill.workshop import machine


def test_a_mac_is_described_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"sysctl -n machdep.cpu.brand_string": "Apple M1"}
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(onednn, "cpu", dict)
    monkeypatch.setattr(platform, "mac_ver", lambda: ("14.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "release", lambda: "23.5.0")
    monkeypatch.setattr(machine, "_output_of", lambda *words: said.get(" ".join(words)))
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    assert machine.cpu()["model"] == "Apple M1"
    assert machine.system() == "macOS 14.5, Darwin 23.5.0"
    tools = machine.tools()
    assert tools["compiler"] == (None, "xcode-select --install (needed to build only)")
    assert tools["valgrind"] == (None, "not available on macOS (needed by `bench step --instructions`)")
