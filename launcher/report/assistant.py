"""The user's assistant, a command or an endpoint with OpenAI's interface: sends a text, and passes on its answer.

Only the text is sent; to an endpoint also the model's name and the request headers. A command gets only the environment
that programs need to start, and the variable `key_env`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime

from launcher.core.errors import UserError, of_file
from launcher.core.files import append_lines, read_only
from launcher.core.secret_forms import HIDDEN
from launcher.core.secrets import Redactor, redact
from launcher.preset.named import settings_in
from launcher.record.control import refuse_later
from launcher.record.layout import RunDir
from launcher.settings import Assistant

SILENT = 60.0
"""Maximum seconds without a byte of the answer."""
LARGEST = 1 << 20
"""Maximum bytes of an answer, with the frames of a stream."""
QUOTED = "> "
"""Prefix of the answer's lines; other lines are ours."""
_REFUSAL = 2000  # maximum bytes of a failed command's output
_END = 5.0  # seconds for the end of a killed command
_NEEDED = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
)


class NoAnswer(UserError):
    """The assistant gave no answer, or an incomplete one."""

    exit_code = 1


class _Passing(NoAnswer):
    """A temporary error."""


async def answered(
    assistant: Assistant, text: str, version: str, run: RunDir | None = None
) -> AsyncGenerator[str, None]:
    """The quoted lines of the answer to a case, as they arrive.

    The first line marks it; each line is followed by its settings that veRL `version` lacks. A complete answer is
    stored with the run. Raises as `ask`.
    """
    yield (head := f"answer of {assistant.name}, not checked by ppo-tui")
    kept = [f"## {datetime.now():%Y-%m-%d %H:%M}: {head}\n"]
    async with aclosing(ask(assistant, text)) as lines:
        async for line in lines:
            unknown = dict.fromkeys(name for name, key in settings_in(line, version) if key is None)
            for shown in (f"{QUOTED}{line}", *(f"{name} is not a setting of veRL {version}" for name in unknown)):
                kept.append(shown)
                yield shown
    if run is not None:
        refuse_later(run)
        append_lines(run.answers, [f"{line}\n".encode() for line in (*kept, "")])


async def ask(assistant: Assistant, text: str) -> AsyncGenerator[str, None]:
    """The lines of an answer as they arrive, inert and without secrets. Retries once if it fails before the first byte.

    Raises NoAnswer: after `SILENT` seconds without a byte, beyond `LARGEST` bytes, for a broken or empty answer.
    """
    if read_only():
        raise UserError("a read-only command sends nothing to an assistant", "use --ask in a terminal")
    key, hide, rest, begun = _key(assistant), Redactor(), "", False
    for again in (True, False):
        try:
            async with aclosing(_pieces(assistant, key, text)) as pieces:
                async for piece in pieces:
                    begun = begun or bool(piece)
                    *lines, rest = (rest + piece).split("\n")
                    for line in lines:
                        yield hide(line.replace(key or "\0", HIDDEN))
            break
        except _Passing:
            if begun or not again:
                raise
    if not begun:
        raise NoAnswer(f"{assistant.name} gave an empty answer")
    if rest:
        yield hide(rest.replace(key or "\0", HIDDEN))


def _key(assistant: Assistant) -> str:
    """The value of the key's variable; empty if config.yaml names none."""
    key = os.environ.get(assistant.key_env, "").strip() if assistant.key_env else ""
    if assistant.key_env and not (key and key.isascii() and key.isprintable()):
        raise UserError(f"the variable {assistant.key_env} is not set", f"export {assistant.key_env}=KEY in the shell")
    return key


async def _pieces(assistant: Assistant, key: str, text: str) -> AsyncGenerator[str, None]:
    """The pieces of the answer."""
    async with aclosing((_of_command if assistant.command else _of_url)(assistant, key, text)) as raw:
        limited = _limited(assistant.name, raw)
        if assistant.url:
            async for piece in _contents(assistant, limited):
                yield piece
            return
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data in limited:
            yield decoder.decode(data)


async def _limited(name: str, raw: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The bytes of an answer within the limits of time and size."""
    size = 0
    while True:
        try:
            data = await asyncio.wait_for(anext(raw, b""), SILENT)
        except asyncio.TimeoutError:
            raise NoAnswer(f"{name} sent nothing for {SILENT:.0f} s", "try again, or check why it is silent") from None
        if not data:
            return
        if (size := size + len(data)) > LARGEST:
            raise NoAnswer(f"the answer of {name} has more than {LARGEST >> 20} MiB", "ask for a shorter answer")
        yield data


async def _of_command(assistant: Assistant, key: str, text: str) -> AsyncGenerator[bytes, None]:
    """The output of a command that gets the text on stdin, in an empty folder. Kills remaining processes."""
    env = {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("LC_")}
    env |= {assistant.key_env: key} if key else {}
    with tempfile.TemporaryDirectory(prefix="ppo-tui-ask-") as folder, tempfile.TemporaryFile() as said:
        try:
            process = await asyncio.create_subprocess_exec(
                *assistant.command, stdin=PIPE, stdout=PIPE, stderr=said, env=env, cwd=folder, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise of_file(f"cannot run {assistant.command[0]}", error, "correct 'command' in config.yaml") from None
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(text.encode(errors="replace"))
            process.stdin.close()
            while data := await process.stdout.read(1 << 14):
                yield data
            code = await process.wait()
        except BaseException:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(asyncio.TimeoutError):  # asyncio sees an end only of pipes that are read
                await asyncio.wait_for(process.communicate(), _END)
            raise
        if code:
            said.seek(0)
            last = redact(said.read(_REFUSAL).decode(errors="replace").replace(key or "\0", HIDDEN)).strip()
            raise _Passing(": ".join(filter(None, (f"{assistant.name} failed with exit code {code}", last[-200:]))))


async def _of_url(assistant: Assistant, key: str, text: str) -> AsyncGenerator[bytes, None]:
    """The body of an endpoint's answer. No proxy, netrc, cookie or redirect gets the text."""
    import httpx

    head = {"Accept": "text/event-stream", "Accept-Encoding": "identity", "User-Agent": "ppo-tui"}
    head |= {"Authorization": f"Bearer {key}"} if key else {}
    body = {"model": assistant.model, "messages": [{"role": "user", "content": text}], "stream": True}
    url = f"{assistant.url.rstrip('/')}/chat/completions"
    try:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=None) as client,
            client.stream("POST", url, json=body, headers=head) as answer,
        ):
            if answer.status_code != 200:
                raise _refused(url, answer.status_code)
            async for data in answer.aiter_raw():
                yield data
    except httpx.HTTPError as error:
        raise _Passing(
            f"{url} does not answer ({error or type(error).__name__})", "check 'url' in config.yaml"
        ) from None


def _refused(url: str, status: int) -> NoAnswer:
    kind = _Passing if status >= 500 or status == 429 else NoAnswer
    hints = {401: "correct the key in the variable 'key_env'", 404: "correct 'model', and 'url', which ends in /v1"}
    hints[403] = hints[401]
    return kind(f"{url} answered {status}", hints.get(status, "read the endpoint's log"))


async def _contents(assistant: Assistant, raw: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """The texts in a stream of events, or in one JSON object."""
    other, streams = b"", False
    async for line in _lines(raw):
        if line.startswith(b"data:"):
            streams = True
            if line[5:].strip() == b"[DONE]":
                return
            yield _content(assistant, line[5:])
        elif not streams:
            other += line
    if not streams:
        yield _content(assistant, other)


async def _lines(raw: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    rest = b""
    async for data in raw:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
    yield rest


def _content(assistant: Assistant, data: bytes) -> str:
    try:
        said = (each["delta"] if "delta" in each else each["message"] for each in json.loads(data)["choices"])
        return "".join(each.get("content") or "" for each in said)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoAnswer(f"{assistant.url} does not answer like OpenAI's interface", "the url ends in /v1") from None
