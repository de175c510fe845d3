"""The Chromium that `.ci/run` installs, for tests that open pages in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_PATH = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(_PATH is None, reason="needs Chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=_PATH, args=["--no-sandbox"])
        yield found
        found.close()
