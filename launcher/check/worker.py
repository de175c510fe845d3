"""Questions to another interpreter: a script of ours run by the Python that has veRL, JSON in, JSON out."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from launcher import inside
from launcher.core.text import clean

# run_path: the script's folder stays out of sys.path, where a model.py of ours would hide somebody else's
_RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def ask(
    python: str, script: str, request: Mapping[str, Any], *, timeout: float, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The reply of the script of that name in this folder.

    `{"failed": why}` when it does not: it did not start, it ended, or it took longer than `timeout` seconds.
    Whatever it started is killed.
    """
    with tempfile.TemporaryFile() as errors:  # no pipe: what the script leaves running would keep it open
        try:
            process = subprocess.Popen(
                [python, "-c", _RUN, str(Path(inside.__path__[0]) / "ppo_tui_inside" / "probes" / script)],
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
        answer: dict[str, Any] = orjson.loads(out)
    except orjson.JSONDecodeError:
        last = clean(err.decode(errors="replace")).strip().rpartition("\n")[2]
        ended = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        return {"failed": f"it ended with {ended}" + (f": {last}" if last else "")}
    return answer
