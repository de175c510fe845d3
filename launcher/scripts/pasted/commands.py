"""The commands in blocks of a pasted text, as a shell would read them: without prompts, traces and curly quotes."""

import ast
import contextlib
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from launcher.scripts.pasted.blocks import PROMPT, Block, is_open

_ASKED = re.compile(r"(?:quote|dquote|heredoc|cmdand|pipe)?> ?")
_TRACED = re.compile(r"\++ (?=\S)")
_EXPORTED = re.compile(
    r"(?:CUDA|NCCL|VLLM|SGLANG|HF|RAY|HYDRA|WANDB|TORCH|PYTORCH|PYTHON|TOKENIZERS|HCCL|ASCEND|VERL)_?\w*="
)
_KEPT = re.compile(r"(?:export |cd |declare -x |[A-Za-z_]\w*=)")
_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w-]*(?:[./@][\w-]+)+=")
_HYDRA = re.compile(r"Error executing job with overrides: (?=\[)")
_LIST = re.compile(r"\[(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[,\s])*\]?")
_FRAME = re.compile(r'File "[^"\n]*?/((?:recipe|verl)/(?:(?!verl/)\w+/)*\w+)\.py", line')
_OTHER = re.compile(
    r'\s*Traceback \(most recent call last\):\s+File "(?:[^"\n]*/site-packages/)?([^"\n]+\.py)", line \d+, in main\b'
)
_SPAN = re.compile(r"`([^`]{20,5000})`")
_CURLY = re.compile(
    r"'[^']*'|\"(?:\\.|[^\"\\])*\"|(?:^|(?<=\s))#[^\n]*|[“”„‟‘’‛‚]|(?:(?<=\s)|^)[–—]-?(?=\w)", re.MULTILINE
)
_STRAIGHT = dict.fromkeys("“”„‟", '"') | dict.fromkeys("‘’‛‚", "'")

STARTS = re.compile(
    r"^(?!\s*(?:#|File \"|Error executing))"
    r"(?:.*?(?:-m\s+[\"']?[\w.]*\bverl[\w.]*\.|\bmain_ppo(?!\.py\", line)\b(?!['\"]?:))"
    r"|\s*[+~]{0,2}(?:actor_rollout_ref|algorithm|critic|data|trainer)\.[\w.]+=)",
    re.MULTILINE,
)
"""Matches a line that starts veRL, or a part of such a command."""


def typed(block: Block) -> Block:
    """The commands typed at prompts, without their output; a block without prompts stays unchanged."""
    lines = block.lines
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    prompted = [line for line in lines if PROMPT.match(line)]
    bare = [line for line in lines if not PROMPT.match(line) and STARTS.match(line) and not _TRACED.match(line)]
    if not prompted or (not PROMPT.match(first) and (bare or not any(map(STARTS.match, prompted)))):
        return block
    found: list[str] = []
    command = ""
    for line in lines:
        asked = _ASKED.match(line)
        if command and (asked or is_open(command)):
            kept = line[asked.end() :] if asked else line
            command = f"{command}\n{kept}"
        else:
            command = kept = PROMPT.sub("", line, count=1) if PROMPT.match(line) else ""
        found.append(kept)
    return replace(block, lines=tuple(found))


def traced(lines: Sequence[str]) -> str:
    """The commands printed by `set -x`, with all values; "" if none starts veRL."""
    found = [""] * len(lines)
    for at, line in enumerate(lines):
        match = _TRACED.match(line)
        if match is None:
            continue
        words = line[match.end() :]
        if _KEPT.match(words) and not STARTS.match(words):
            exported = _EXPORTED.match(words) and next(
                (True for each in lines[at + 1 : at + 6] if STARTS.search(each)), False
            )
            found[at] = f"export {words}" if exported else words
        elif STARTS.match(words):
            found[at] = "".join(_unwrapped(lines, at, words))
    return "\n".join(found) if any(STARTS.match(line) for line in found) else ""


def _unwrapped(lines: Sequence[str], at: int, words: str) -> Iterator[str]:
    """A traced command, joined from lines wrapped by a terminal."""
    yield words
    for line in lines[at + 1 : at + 60]:
        if is_open(words):
            yield f"\n{line}"
            words += f"\n{line}"
            continue
        last, parts = words.rpartition(" ")[2], line.split(" ")
        torn = "=" not in last or not _OVERRIDE.match(parts[0])
        rest = [part for part in parts[1:] if part]
        if _TRACED.match(line) or not line or line[0].isspace() or not all(map(_OVERRIDE.match, rest)):
            return
        if not (rest or (torn and "=" in line)) or ("=" not in last and "=" not in parts[0]):
            return
        joined = line if torn else f" {line}"
        yield joined
        words += joined


def listed(text: str) -> str:
    """The command of Hydra's list of overrides, the first line of most tracebacks; "" without one."""
    for match in _HYDRA.finditer(text):
        found = _LIST.match(text, match.end())
        words = _words(found[0].replace("\n", "")) if found else []
        if any(map(_OVERRIDE.match, words)):
            frame = _FRAME.search(text, match.end())
            entry = frame[1].replace("/", ".") if frame and "/main" in frame[1] else "verl.trainer.main_ppo"
            other = _OTHER.match(text, found.end()) if found else None  # the first frame is the program's
            if other and not _FRAME.search(other[0]):
                entry = other[1] if other[1].startswith("/") else other[1].removesuffix(".py").replace("/", ".")
            before = "\n" * text.count("\n", 0, match.start())
            program = shlex.quote(entry) if entry.startswith("/") else f"-m {entry}"
            return f"{before}python3 {program} {' '.join(map(shlex.quote, words))}"
    return ""


def _words(text: str) -> list[str]:
    """The strings of a Python list, which may be truncated."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about escapes that Python does not know
        for each in re.finditer(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", text):
            with contextlib.suppress(SyntaxError, ValueError):
                found.append(str(ast.literal_eval(each[0])))
    return found


def spans(text: str) -> Iterator[str]:
    """Commands between backticks in a sentence."""
    yield from (match[1] for match in _SPAN.finditer(text) if STARTS.search(match[1]))


def straightened(command: str) -> str:
    """The command with straight quotes and dashes for typographic ones outside of straight quotes."""

    def straight(match: re.Match[str]) -> str:
        text = match[0]
        return _STRAIGHT.get(text) or ("--" if text[0] in "–—" else text)

    return _CURLY.sub(straight, command)
