"""The tools of an agent change nothing: an audit hook in each process; and wrong arguments start no process."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from whole_run import lose_supervisor, whole_run

from launcher.agents.tools import _LONGEST, run, tools
from launcher.core.files import READ_ONLY
from launcher.core.paths import own_command
from launcher.preset.files import load
from launcher.record.queued import Queued

pytestmark = pytest.mark.slow
LOG, REFUSED = "AUDIT_LOG", "AUDIT_REFUSES_PROGRAMS"
AUDIT = f"""
import json, os, sys
log = os.open(os.environ[{LOG!r}], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
CHANGES = ("os.chm", "os.cho", "os.link", "os.mkd", "os.re", "os.rmd", "os.setx", "os.symlink", "os.trunc", "os.utime")
ACTS = ("os.exec", "os.fork", "os.kill", "os.posix_spawn", "os.spawn", "os.system", "pty.", "signal.pthread_kill")
def look(event, args):
    if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
        told = [os.path.realpath(args[0])] if isinstance(args[0], (str, bytes, os.PathLike)) else []
    elif event.startswith(CHANGES):
        told = [os.path.realpath(each) for each in args if isinstance(each, (str, bytes, os.PathLike))]
    elif event == "subprocess.Popen":
        told = [list(map(os.fsdecode, args[1]))]
    elif event.startswith(ACTS) and args[1:] != (0,):  # 0 asks whether a process is there
        told = [str(args)]
    else:
        return
    for each in told:
        os.write(log, json.dumps([event, each]).encode() + b"\\n")
    if event == "subprocess.Popen" and {REFUSED!r} in os.environ:
        raise OSError
sys.addaudithook(look)
"""
FREE = {name: tool for name, tool in tools().items() if tool.free}
OWN = {"check": "our interpreter: the versions of packages, and veRL's defaults by Hydra, which keeps global state"}
"""The tools that start a program, and why."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a finished and an orphaned run, and a queue that was paused: a run that names a program, and an entry
    that a start has left. Each process that is started has the audit hook.
    """
    home, site = tmp_path / "home", tmp_path / "site"
    whole_run(home, failed=False)
    lose_supervisor(whole_run(home, "0ld111"))
    (evil := tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    preset = load("toy-cpu", [f"python={evil}"]).snapshot()
    for folder in (home / "queue", site):
        folder.mkdir()
    for id in ("aaaaaa-toy-cpu", "7f3a1c-toy-cpu"):
        Queued(id, "toy-cpu", preset, socket.gethostname(), 0, 1.0, 1.0).write(home / "queue" / f"{id}.json")
    (site / "sitecustomize.py").write_text(AUDIT)
    for name, value in {"PPO_TUI_HOME": home, "PYTHONPATH": site, LOG: tmp_path / "log", "HOME": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("PPO_TUI_PYTHON", raising=False)
    yield home
    assert not (tmp_path / "ran").exists()


def audited(folder: Path) -> list[tuple[str, Any]]:
    """What processes opened for writing, changed, started and signaled, outside the cache and that of Python."""
    lines = (folder / "log").read_text().splitlines()
    caches = re.compile(f"{folder}/home/cache|/dev/null|.*__pycache__")
    return [(event, told) for event, told in map(json.loads, lines) if isinstance(told, list) or not caches.match(told)]


@pytest.mark.nightly("launcher/agents/", "launcher/cli/", "launcher/core/", every=4)
@pytest.mark.parametrize("name", FREE)
def test_a_tool_that_reads_opens_nothing_for_writing_and_starts_and_signals_nothing(home: Path, name: str) -> None:
    tool = tools()[name]
    for id in ("0ld111-toy-cpu", "7f3a1c-toy-cpu") if {"run", "source"} & {*tool.places} else ("0ld111-toy-cpu",):
        known = {"run": id, "source": id, "runs": ["7f3a1c", id], "preset": "toy-cpu", "topic": "KL-1"}
        text, fine = run(tool, {place: known[place] for place in tool.places if place in known})
        assert fine, text
    found = audited(home.parent)
    if name in OWN:
        assert all(told[0] == sys.executable and "supervise" not in str(told) for _, told in found), found
    else:
        assert not found


def test_the_hook_sees_what_a_command_does_that_may_write(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REFUSED, "1")
    subprocess.run(own_command("launcher.cli.main", "list"), capture_output=True)
    found = audited(home.parent)
    assert {"open", "os.remove", "subprocess.Popen"} <= {event for event, _ in found}
    programs = [told[3] for event, told in found if event == "subprocess.Popen"]
    assert programs == ["launcher.runs.supervise", "launcher.runs.act.queue_runner"]


def test_an_orphaned_run_is_shown_with_the_command_that_takes_it_over(home: Path) -> None:
    lines = [json.loads(line) for line in run(FREE["list_runs"], {})[0].splitlines()]
    shown = {line["run"]: line.get("takeover") for line in lines}
    assert shown == {"0ld111-toy-cpu": "ppo-tui status 0ld111-toy-cpu", "7f3a1c-toy-cpu": None}
    assert json.loads(run(FREE["status"], {"run": "0ld"})[0])["takeover"] == "ppo-tui status 0ld111-toy-cpu"


CHANGES = """
import os, sys
from pathlib import Path
from launcher.core.files import guard
place, inside = Path(sys.argv[1]), sys.argv[2] == "inside"
(old := place / "old").write_text("x")
(place / "folder").mkdir()
changes = [
    lambda: old.open("a"), lambda: old.open("r+"), lambda: os.open(place / "new", os.O_CREAT), lambda: old.touch(),
    lambda: (place / "made").mkdir(), lambda: old.chmod(0o600), lambda: os.utime(old), lambda: os.truncate(old, 0),
    lambda: (place / "link").symlink_to(old), lambda: os.link(old, place / "hard"), lambda: os.chown(old, -1, -1),
    lambda: old.rename(place / "moved"), lambda: (place / "moved").replace(old), lambda: (place / "folder").rmdir(),
    lambda: old.unlink(),
]
acts = [
    lambda: os.kill(os.getpid(), 19), lambda: os.system("true"), lambda: os.fork() or os._exit(0),
    lambda: __import__("subprocess").run(["true"]), lambda: os.execv("/bin/true", ["true"]),
    lambda: __import__("launcher.runs.supervise.spawn").runs.supervise.spawn.detached(["x"], place / "log"),
]
__import__("launcher.runs.supervise.spawn")
guard()
for number, each in enumerate((*changes, *([] if inside else acts))):
    try:
        each()
    except OSError as error:
        refused = error.errno == 125
    else:
        refused = False
    assert refused is not inside, number
os.kill(os.getpid(), 0)
print("done", sys.dont_write_bytecode)
"""


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_a_process_that_only_reads_is_refused_each_change_outside_the_cache(where, tmp_path, monkeypatch):
    (place := tmp_path / "home" / ("cache" if where == "inside" else "runs")).mkdir(parents=True)
    env = {**os.environ, "PPO_TUI_HOME": str(tmp_path / "home"), READ_ONLY: "1"}
    done = subprocess.run([sys.executable, "-c", CHANGES, place, where], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done True\n"), done.stderr


WRONG: dict[str, list[Any]] = {
    "string": ["\ud800", "a\0b", "x" * 200_000, "--help", 5, 1.5, True, {}, [], ["x"], [[["x"]]], float("nan")],
    "integer": [1.5, "5", -5, True, 10**30, 9.0, "\udfff", "1" * 200_000, [], {}, float("inf")],
    "array": [["a=\ud800"], ["a=\0"], ["a=" + "x" * 200_000], ["a=b"] * _LONGEST, ["--help"], [5], 5, {}, [["a=b"]]],
}


class Agent:
    """A client of `ppo-tui mcp --write` that writes JSON-RPC by itself."""

    def __init__(self) -> None:
        command = [*own_command("launcher.cli.main"), "mcp", "--write"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.answers([{"jsonrpc": "2.0", "id": -1, "method": "initialize", "params": about}])

    def answers(self, calls: list[Any]) -> dict[Any, Any]:
        """The answer to each call, by its id; a call may be a line. Hangs where one is not answered."""
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in calls]
        writer = Thread(target=os.write, args=(self.process.stdin.fileno(), b"\n".join([*lines, b""])))
        writer.start()
        found = [json.loads(self.process.stdout.readline()) for _ in calls]
        writer.join()
        return {each["id"]: each for each in found}


@pytest.fixture
def agent(home: Path) -> Iterator[Agent]:
    found = Agent()
    yield found
    found.process.communicate()
    assert not [told for event, told in audited(home.parent) if event == "subprocess.Popen"]


def call(id: int, tool: str, arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_each_wrong_argument_gets_an_error_with_its_name_before_a_process_starts(agent: Agent) -> None:
    right = {"run": "last", "source": "last", "runs": ["a", "b"], "preset": "toy-cpu", "topic": "KL-1", "job": "abc"}
    calls, names = [], {}
    for tool, argument in ((tool, name) for tool, each in tools().items() for name in each.schema()["properties"]):
        schema = tools()[tool].schema()
        given = {name: right[name] for name in schema["required"]}
        wrong: list[Any] = WRONG[schema["properties"][argument]["type"]]
        for value in (*wrong, *([None] if argument in schema["required"] else [])):
            names[len(calls)] = argument
            calls.append(call(len(calls), tool, {**given, argument: value}))
    answers = agent.answers(calls)
    for id, argument in names.items():
        result = answers[id]["result"]
        assert result["isError"] and argument in result["content"][0]["text"].splitlines()[0], calls[id]
        assert len(result["content"][0]["text"]) < 500


def test_no_call_stays_unanswered(agent: Agent) -> None:
    pairs = ((b"[", b"]"), (b'{"a":', b"}"))
    deep = [b'{"run": %s}' % (begin * deep + end * deep) for deep in (300, 100_000) for begin, end in pairs]
    broken = [b"{", b'{"run": "\xff"}', b'{"run": "\\ud800\\ud800"}', b'"x"', b"[]", b'{"\\ud800": 1}', b"1" * 200_000]
    begin = b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "status", "arguments": '
    lines = [b'%s%s}, "id": %d}' % (begin, each, id) for id, each in enumerate([*deep, *broken])]
    strange = [b'{"id": 100, "method": "tools/list"}', b'{"jsonrpc": "2.0", "method": 5, "id": 101}']
    strange.append(b'{"jsonrpc": "2.0", "id": 102, "method": "\\udc00"}')
    assert agent.answers([*lines, *strange]).keys() == {*range(len(lines)), 100, 101, 102}
    assert "result" in agent.answers([{"jsonrpc": "2.0", "id": 0, "method": "tools/list"}])[0]
