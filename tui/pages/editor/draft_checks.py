"""Queries the process that checks drafts during editing (`launcher.check.live`) from the event loop."""

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from launcher.core.paths import own_command

_DIED = {"error": "the preflight process exited unexpectedly", "command": None}


class DraftChecks:
    """Only the newest text counts: of texts arriving during a check, only the last one is checked next."""

    def __init__(self, on_reply: Callable[[Mapping[str, Any]], None]) -> None:
        self._on_reply = on_reply
        self._wanted: tuple[Path, str] | None = None
        self._asking = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, path: Path, text: str) -> None:
        """Requests the checks of a preset file `path` with this text."""
        self._wanted = path, text
        self._asking.set()

    async def run(self) -> None:
        """Sends texts and yields replies until closed or cancelled."""
        while not self._closed:
            await self._asking.wait()
            self._asking.clear()
            if self._wanted is not None and not self._closed:
                await self._check(*self._wanted)

    async def _check(self, path: Path, text: str) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                own_command("launcher.check.live"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(orjson.dumps({"path": str(path), "text": text}) + b"\n")
            process.stdin.flush()
        for _ in range(2):
            line = await asyncio.to_thread(process.stdout.readline)
            if self._closed:
                return
            if self._wanted == (path, text):
                self._on_reply(orjson.loads(line) if line else _DIED)
            if not line:  # the process ended at this text
                process.wait()
                return

    def close(self) -> None:
        """Ends the process, and with it the wait for its reply."""
        self._closed = True
        if self._process is not None:
            self._process.kill()  # it has no state
            self._process.wait()
