"""Asks the process that judges drafts (`launcher.preflight.live`), and hears its answers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

_LONGEST = 1 << 24  # bytes of one answer
Heard = Callable[[dict[str, Any]], None]


class Live:
    """Only the newest text counts: what came while an answer was awaited is asked next, the last of it."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._wanted: tuple[Path, str] | None = None
        self._asking = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    def ask(self, path: Path, text: str) -> None:
        """Judges the preset that the file `path` would be with this text."""
        self._wanted = path, text
        self._asking.set()

    async def run(self) -> None:
        """Works until it is cancelled; then the process ends, too."""
        try:
            while True:
                await self._asking.wait()
                self._asking.clear()
                assert self._wanted is not None
                await self._judge(*self._wanted)
        finally:
            self.close()

    async def _judge(self, path: Path, text: str) -> None:
        process = await self._alive()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(orjson.dumps({"path": str(path), "text": text}) + b"\n")
            await process.stdin.drain()
        for _ in range(2):
            line = await process.stdout.readline()
            if not line:  # it died of this one
                self._heard({"error": "the checks ended unexpectedly", "command": None})
                return
            if self._wanted == (path, text):
                self._heard(orjson.loads(line))

    async def _alive(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "launcher.preflight.live", limit=_LONGEST,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
