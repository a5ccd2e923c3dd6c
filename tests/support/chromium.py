"""A real browser for tests: Chromium through Playwright, and the pages of the viewer opened in it."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing() -> str:
    """What a browser test lacks here, or nothing."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "needs playwright: pip install playwright"
    path = program()
    if path is None:
        return "needs chromium: apt-get install chromium"
    return launch_fault(path)


def program() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@functools.cache
def launch_fault(path: str) -> str:
    """Why a program that is there cannot be launched, or nothing: some systems have a stub instead."""
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as play:
            play.chromium.launch(executable_path=path, args=FLAGS, timeout=60_000).close()
    except Error as fault:
        return f"needs chromium that can be launched, got `{path}`: {fault.message.splitlines()[0][:200]}"
    return ""


def require(*, fail: bool) -> None:
    """Without a browser the every-change tier skips, and the long one fails."""
    lack = missing()
    if lack and fail:
        pytest.fail(lack)
    if lack:
        pytest.skip(lack)


class Faults(list[str]):
    """What went wrong in a page: uncaught errors, dialogs, refusals of the policy."""


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, headless."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=program(), args=FLAGS)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def page_of(running: Any, address: str, **options: Any) -> Iterator[tuple[Any, Faults]]:
    """A page that has opened an address and is ready; with what goes wrong in it."""
    context = running.new_context(**({"viewport": {"width": 1280, "height": 840}} | options))
    page = context.new_page()
    page.set_default_timeout(60_000)
    faults = Faults()
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    try:
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached")
        yield page, faults
    finally:
        context.close()


def picture(page: Any, name: str) -> None:
    """A screenshot for people, if GRIDMILL_PICTURES names a folder."""
    folder = os.environ.get("GRIDMILL_PICTURES", "")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
