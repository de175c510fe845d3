"""The MCP server with a real client over stdio: what it reads, how it pages, and that the user is asked."""

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters
from tables import tabled
from waiting import PATIENCE, wait_until
from whole_run import whole_run

from launcher.agents.server import AgentServer
from launcher.agents.tools import PAGE, TIME_LIMIT, Job, page, tools
from launcher.agents.tools import run as run_tool
from launcher.core.errors import UserError
from launcher.core.paths import own_command
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    return whole_run(tmp_path / "home")


@asynccontextmanager
async def client(*words: str, answer: str | None = None, mode: str = "auto") -> AsyncIterator[tuple[Client, list[str]]]:
    """A client of `ppo-tui mcp`; `answer` is what its user says when asked (accept, decline), None if it cannot ask."""
    asked: list[str] = []

    async def ask(_: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        content: Any = {"confirm": True} if answer == "accept" else None
        return types.ElicitResult(action=answer, content=content)  # type: ignore[arg-type]

    command, *arguments = [*own_command("launcher.cli.main"), "mcp", *words]
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with Client(server, elicitation_callback=ask if answer else None, mode=mode) as found:  # type: ignore[arg-type]
        yield found, asked


async def called(found: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    """The text of an answer, and whether it is one of success."""
    result = await found.call_tool(tool, arguments)
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text, not result.is_error


@pytest.mark.slow
async def test_an_agent_reads_runs_but_cannot_change_them(run: RunDir) -> None:
    async with client() as (found, _):
        listed = (await found.list_tools()).tools
        assert {"list_runs", "status", "health", "diagnose", "metrics", "samples", "check"} <= {t.name for t in listed}
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)
        text, fine = await called(found, "list_runs")
        assert fine and json.loads(text.splitlines()[0])["run"] == run.id
        text, fine = await called(found, "status", run="last")
        assert fine and json.loads(text)["state"] == "failed"
        text, fine = await called(found, "samples", run=run.id, count=1)
        assert fine and "response" in json.loads(text)
        text, fine = await called(found, "explain", topic="KL-1")
        assert fine and "KL" in text
        text, fine = await called(found, "stop", run=run.id)
        assert not fine and text.startswith("error: there is no tool 'stop'")
        text, fine = await called(found, "status", run="nothing-like-it")
        assert not fine and text.startswith("error: ")


@pytest.mark.slow
async def test_metrics_are_paged_from_the_newest_step(run: RunDir) -> None:
    async with client() as (found, _):
        run = import_logs([str(Path(__file__).parents[1] / "data" / "logs" / "learning.log.gz")])[0]
        text, _ = await called(found, "metrics", source=run.id)
        assert len(text) <= PAGE + 200
        *lines, note = text.splitlines()
        newest = json.loads(lines[-1])["step"]
        offset = int(note.split("earlier: offset=")[1].split("]")[0].split(";")[0])
        before, _ = await called(found, "metrics", source=run.id, offset=offset)
        assert "later: offset=" in before
        text, _ = await called(found, "metrics", source=run.id, key=["critic/score/mean"])
        assert json.loads(text.splitlines()[-1])["step"] == newest


@pytest.mark.nightly("launcher/agents/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_the_user_is_asked_before_a_run_is_touched(run: RunDir, answer: str, mode: str) -> None:
    async with client("--write", answer=answer, mode=mode) as (found, asked):
        text, fine = await called(found, "stop", run=run.id)
    assert asked == [f"May the agent run this?\n\nppo-tui stop --by agent {run.id}"]
    assert ("not allow" in text) is (answer == "decline")
    assert fine is (answer == "accept")


@pytest.mark.slow
async def test_a_client_that_cannot_ask_gets_the_command(run: RunDir) -> None:
    async with client("--write") as (found, _):
        text, fine = await called(found, "start", preset="toy-cpu", settings=["actor.lr=1e-4"])
    assert not fine
    assert text.endswith("hint: ask the user to run ppo-tui run --detach --json toy-cpu actor.lr=1e-4")


@pytest.mark.slow
async def test_a_long_command_is_a_job_whose_progress_is_asked_for(run, monkeypatch):
    """`check` stands for `tune`, which takes minutes on a free machine."""

    async def agree(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"confirm": True})

    monkeypatch.setattr("launcher.agents.server._AT_ONCE", 0.0)
    monkeypatch.setitem(tools(), "tune", dataclasses.replace(tools()["tune"], words=("check",)))
    async with Client(AgentServer(write=True).server(), elicitation_callback=agree) as found:
        begun, fine = await called(found, "tune", preset="toy-cpu")
        assert fine and begun.startswith("job ") and "running for 0s" in begun
        job = begun.split()[1].rstrip(":")
        while (text := (await called(found, "progress", job=job))[0]).startswith(f"job {job}: running for "):
            await asyncio.sleep(0.2)
        assert json.loads(text)["ok"] is True
        assert await called(found, "progress", job="nope") == (f"error: there is no job 'nope'\nhint: use {job}", False)
        monkeypatch.setattr("launcher.agents.server._AT_ONCE", 60.0)
        text, fine = await called(found, "tune", preset="nothing-like-it")
        assert not fine and "no preset named 'nothing-like-it'" in text  # at once, without a job


@pytest.mark.slow
async def test_the_answers_of_the_last_twenty_jobs_are_kept_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.agents.server._AT_ONCE", 0.0)
    monkeypatch.setattr("launcher.agents.tools.own_command", lambda *_: ["sh", "-c", "sleep 0.05"])
    agents, tool = AgentServer(write=True), tools()["tune"]

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = open_files()
    for _ in range(40):
        await agents._begin(tool, {"preset": "toy-cpu"})
    jobs = list(agents._jobs.values())
    wait_until(lambda: all(job.ended(0) for job in jobs))
    agents._forget()
    assert len(agents._jobs) == 20 and open_files() <= before + 40
    assert not agents._progress({"job": list(agents._jobs)[-1]}).is_error
    now = time.monotonic()
    monkeypatch.setattr("launcher.agents.tools.time.monotonic", lambda: now + 3601)
    with pytest.raises(UserError, match="there is no job"):
        agents._progress({"job": list(agents._jobs)[-1]})
    assert open_files() == before


@pytest.mark.slow
@pytest.mark.parametrize("trap", ["", "trap '' INT; "])
def test_the_children_of_a_command_end_with_its_time_limit(trap, tmp_path, monkeypatch):
    monkeypatch.setattr("launcher.agents.tools.TIME_LIMIT", 0.0)
    monkeypatch.setattr("launcher.agents.tools._LAST_WORDS", 0.2)
    (pids := tmp_path / "pids").touch()
    script = f"{trap}sleep 600 & echo $! >> {pids}; wait; wait; sleep 600"
    real = Job.ended

    def begun(job: Job, seconds: float) -> bool:
        wait_until(lambda: pids.read_text().endswith("\n"))
        return real(job, seconds)

    monkeypatch.setattr(Job, "ended", begun)
    monkeypatch.setattr("launcher.agents.tools.own_command", lambda *_: ["sh", "-c", script])
    with pytest.raises(UserError, match="no answer within"):
        run_tool(tools()["check"], {"preset": "toy-cpu"})
    child = int(pids.read_text())
    wait_until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


@pytest.mark.slow
def test_the_reward_function_that_a_check_tries_ends_with_its_time_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    (pid := tmp_path / "pid").touch()
    (reward := tmp_path / "hang.py").write_text(
        f"import os, time\nopen({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(3600)\n"
    )
    real = Job.ended

    def begun(job: Job, seconds: float) -> bool:
        wait_until(lambda: pid.read_text().endswith("\n"))
        return real(job, 0.0 if seconds == TIME_LIMIT else PATIENCE)

    monkeypatch.setattr(Job, "ended", begun)
    settings = [f"reward.path={reward}", "reward.function=compute_score"]
    with pytest.raises(UserError, match="no answer within"):
        run_tool(tools()["check_fully"], {"preset": "toy-cpu", "settings": settings})
    child = int(pid.read_text())
    wait_until(lambda: not psutil.pid_exists(child))


@tabled
def test_wrong_arguments_never_become_options(tool: str, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tools()[tool].command(arguments)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\n"), max_size=400), max_size=200))
def test_pages_cover_everything_and_stay_small(lines: list[str]) -> None:
    text = "\n".join(lines).strip()
    seen, offset = "", 0
    while True:
        shown = page(text, offset)
        assert len(shown) <= PAGE + 200
        body, more, note = shown.rpartition("\n[characters ")
        if not more:
            seen = shown
            break
        stop = int(note.split(" to ")[1].split(" ")[0])
        assert text[offset:stop].rstrip() == body
        seen += text[offset:stop]
        if "later" not in note:
            break
        offset = stop
    assert seen == text
