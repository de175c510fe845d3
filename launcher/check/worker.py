"""Runs one of our probes in veRL's Python: JSON in, JSON out."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

import orjson

from launcher import inside
from launcher.core.text import clean


def ask(
    python: str, probe: str, request: Mapping[str, Any], *, timeout: float, env: Mapping[str, str] | None = None
) -> dict[str, object]:
    """The reply of a module of `ppo_tui_inside.probes`.

    `{"failed": why}` if it did not start, ended without one, or took longer than `timeout` seconds. All its processes
    are killed.
    """
    with tempfile.TemporaryFile() as errors:  # not a pipe: remaining processes of the probe would keep it open
        try:
            process = subprocess.Popen(
                inside.probe(python, probe),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": f"{python} cannot be started: {error.strerror}"}
        with process:
            try:
                out, _ = process.communicate(orjson.dumps(request), timeout=timeout)
            except subprocess.TimeoutExpired:
                return {"failed": f"no reply within {timeout:g} s", "timeout": True}
            finally:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 10_000))
        err = errors.read()
    try:
        answer: dict[str, object] = orjson.loads(out)
    except orjson.JSONDecodeError:
        last = clean(err.decode(errors="replace")).strip().rpartition("\n")[2]
        ended = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        return {"failed": f"it ended with {ended}" + (f": {last}" if last else "")}
    return answer
