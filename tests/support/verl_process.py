"""Scripts in separate processes, forked from one that has imported veRL's dependencies: torch, Ray and transformers
take five seconds each time, veRL itself one.

Neither veRL nor our plugin is in that process, so each script imports them like a new process. Code that looks for
packages during transformers' import needs a really new process.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher import inside

WITH_VERL = [  # of tests that run such scripts: they share one parent
    pytest.mark.xdist_group("veRL"),
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"),
]
_PATIENCE = 300  # seconds until a script that hangs is ended
_PLUGIN = {"VERL_USE_EXTERNAL_MODULES": inside.PLUGIN, "HF_HUB_OFFLINE": "1"}


def environment(**env: str) -> dict[str, str]:
    """veRL's environment: our plugin, and nothing set by the user who runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VERL_", "PPO_TUI_"))}
    path = os.pathsep.join(filter(None, [str(inside.FOLDER), env.get("PYTHONPATH", kept.get("PYTHONPATH"))]))
    return {**kept, **_PLUGIN, **env, "PYTHONPATH": path}


class Parent:
    """The process to fork."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def python(self, script: str, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run([sys.executable, "-c", script, *words])` with output captured."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            request = {"script": script, "words": words, "env": environment(**env), "folder": folder}
            print(json.dumps(request), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            out, err = ((Path(folder) / name).read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess([sys.executable, "-c", script, *words], code, out, err)


@contextlib.contextmanager
def parent() -> Iterator[Parent]:
    with subprocess.Popen(
        [sys.executable, __file__], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Parent(process)


def _serve() -> None:
    import ray
    import tensordict
    import torch
    import transformers

    heavy = (ray, tensordict, torch, transformers.PreTrainedModel)
    assert all(heavy) and "verl" not in sys.modules
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(request: dict[str, Any]) -> None:
    """Runs in the child, and never returns."""
    signal.alarm(_PATIENCE)
    code = 1
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(request["folder"]) / name, os.O_CREAT | os.O_WRONLY), number)
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["-c", *request["words"]]
    try:
        exec(compile(request["script"], "<script>", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # as with `python -c`
    _serve()
