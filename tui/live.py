"""Asks the process that judges drafts (`launcher.preflight.live`), and hears its answers."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

Heard = Callable[[dict[str, Any]], None]
_DIED = {"error": "the checks ended unexpectedly", "command": None}


class Live:
    """Only the newest text counts: what came while an answer was awaited is asked next, the last of it."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._wanted: tuple[Path, str] | None = None
        self._asking = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, path: Path, text: str) -> None:
        """Judges the preset that the file `path` would be with this text."""
        self._wanted = path, text
        self._asking.set()

    async def run(self) -> None:
        """Works until it is closed or cancelled."""
        while not self._closed:
            await self._asking.wait()
            self._asking.clear()
            if self._wanted is not None and not self._closed:
                await self._judge(*self._wanted)

    async def _judge(self, path: Path, text: str) -> None:
        process = self._alive()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(orjson.dumps({"path": str(path), "text": text}) + b"\n")
            process.stdin.flush()
        for _ in range(2):
            line = await asyncio.to_thread(process.stdout.readline)
            if self._closed:
                return
            if self._wanted == (path, text):
                self._heard(orjson.loads(line) if line else _DIED)
            if not line:  # it died of this one
                process.wait()
                return

    def _alive(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "launcher.preflight.live"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        """Ends the process; who waits for its answer is told at once."""
        self._closed = True
        if self._process is not None:
            self._process.kill()  # it holds nothing
            self._process.wait()
