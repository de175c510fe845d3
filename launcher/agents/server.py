"""The MCP server: the commands of ppo-tui for an agent, over stdin and stdout.

Reading is always allowed. Tools that run a preset's code, or start, stop or change a run, require `--write`, and each
call asks the user through the client (elicitation). A client without elicitation gets the command for the user to run.
"""

import asyncio
import json
import re
import secrets
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from io import TextIOWrapper
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from launcher.agents.tools import Job, Tool, run, tools
from launcher.core.errors import UserError
from launcher.core.secrets import redact

_ASKS_AGAIN = "2026-07-28"  # the protocol from which a call that needs the user is sent twice
_ABOUT = (
    "Runs of PPO training with veRL on this machine. Begin with list_runs; then status, health and metrics of a run. "
    "diagnose says why a run failed. explain has the reference text of every rule, finding, cause and field."
)
_AT_ONCE = 15.0  # seconds in which a job is refused that cannot start
_KEPT, _KEPT_FOR = 20, 3600.0  # ended jobs, and the seconds for which their answers can be fetched
_CONFIRM = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Do it", "default": False}},
    "required": ["confirm"],
}
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)(?=\s*[,}])')
_DIGITS = 18  # maximum digits of an exact integer
Context = ServerRequestContext[dict[str, object]]


class Lines(TextIOWrapper):
    """A client's lines in a form that mcp can read: it does not answer others.

    Half of a surrogate pair becomes U+FFFD, as a byte that is not UTF-8 does; no argument may have it. Of an unreadable
    line only the id remains, so that mcp refuses the call.
    """

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """The next line; empty at the end."""
        line = super().readline(size)
        try:
            told = json.loads(line, parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else float(digits))
            line = re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(told, ensure_ascii=False)) + "\n"
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            if len(ids := set(_ID.findall(line))) == 1:
                return f'{{"jsonrpc": "2.0", "id": {ids.pop()}, "method": "unreadable"}}\n'
        return line


class AgentServer:
    """Answers the calls of one client."""

    def __init__(self, *, write: bool) -> None:
        """`write` offers the tools that run code or change runs."""
        self._tools = {name: tool for name, tool in tools().items() if write or tool.free}
        self._asked: dict[str, list[str]] = {}  # the command that each question is about
        self._jobs: dict[str, Job] = {}

    def server(self) -> Server[dict[str, object]]:
        """The server, to be connected with a client."""
        return Server(
            "ppo-tui",
            version=version("ppo-tui"),
            instructions=_ABOUT,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(name, tool) for name, tool in self._tools.items()])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self._tools.get(params.name)
        if tool is None:
            return _answer(f"error: there is no tool {params.name!r}\nhint: use {', '.join(self._tools)}", ok=False)
        arguments = params.arguments or {}
        try:
            if not tool.words:
                return self._progress(arguments)
            if tool.effect != "reads":
                confirmed = await self._confirmed(context, params, tool.command(arguments))
                if confirmed is not None:
                    return confirmed
            return await (self._begin(tool, arguments) if tool.long else _ended(tool, arguments))
        except UserError as error:
            hint = f"\nhint: {error.hint}" if error.hint else ""
            return _answer(f"error: {error.message}{hint}", ok=False)

    async def _begin(self, tool: Tool, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Starts a job. One that fails at once is answered like other calls."""
        self._forget()
        job = Job(tool, arguments)
        if await asyncio.to_thread(job.ended, _AT_ONCE):
            return _answer(*job.answer())
        self._jobs[name := secrets.token_hex(3)] = job
        return _answer(f"job {name}: ask for it with the tool progress\n{job.progress}", ok=True)

    def _forget(self) -> None:
        """Drops the answers of old jobs."""
        ages = {name: age for name, job in self._jobs.items() if (age := job.age) is not None}
        for place, name in enumerate(sorted(ages, key=ages.__getitem__)):
            if place >= _KEPT or ages[name] > _KEPT_FOR:
                self._jobs.pop(name).close()

    def _progress(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        self._forget()
        (name,) = tools()["progress"].given(arguments)["job"]
        if (job := self._jobs.get(name)) is None:
            known = ", ".join(self._jobs)
            raise UserError(f"there is no job {name!r}", f"use {known}" if known else "start one first")
        if not job.ended(0):
            return _answer(f"job {name}: {job.progress}", ok=True)
        return _answer(*job.answer(arguments.get("offset")))

    async def _confirmed(
        self, context: Context, params: types.CallToolRequestParams, command: list[str]
    ) -> types.CallToolResult | types.InputRequiredResult | None:
        """None if the user agreed to this command, otherwise the answer."""
        line = shlex.join(["ppo-tui", *command])
        question = types.ElicitRequestFormParams(
            message=f"May the agent run this?\n\n{line}", requested_schema=_CONFIRM
        )
        able = context.session.client_capabilities
        if able is None or able.elicitation is None:
            return _answer(f"error: this client cannot ask the user\nhint: ask the user to run {line}", ok=False)
        if context.protocol_version < _ASKS_AGAIN:
            reply = await context.session.elicit_form(question.message, _CONFIRM, context.request_id)
        elif (state := params.request_state) is not None and self._asked.pop(state, None) == command:
            found = (params.input_responses or {}).get("confirm")
            reply = found if isinstance(found, types.ElicitResult) else types.ElicitResult(action="cancel")
        else:
            state = secrets.token_urlsafe(16)
            self._asked[state] = command
            asked = types.ElicitRequest(params=question)
            return types.InputRequiredResult(input_requests={"confirm": asked}, request_state=state)
        if reply.action == "accept" and (reply.content or {}).get("confirm") is True:
            return None
        return _answer(f"error: the user did not allow it: {line}", ok=False)


def serve(*, write: bool) -> None:
    """Serves one client over stdin and stdout until it closes them."""
    asyncio.run(_serve(AgentServer(write=write)))


async def _serve(agents: AgentServer) -> None:
    server = agents.server()
    lines = Lines(sys.stdin.buffer, encoding="utf-8", errors="replace")
    async with stdio_server(stdin=anyio.wrap_file(lines)) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def _ended(tool: Tool, arguments: Mapping[str, Any]) -> types.CallToolResult:
    return _answer(*await asyncio.to_thread(run, tool, arguments))


def _described(name: str, tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=tool.effect == "reads", destructive_hint=tool.effect != "reads", open_world_hint=False
    )
    return types.Tool(name=name, description=tool.about, input_schema=tool.schema(), annotations=hints)


def _answer(text: str, ok: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=redact(text))], is_error=not ok)
