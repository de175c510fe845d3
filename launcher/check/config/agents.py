"""Agent loops, tools and conversations (AGENT-1 to AGENT-4), and options of engines (ENGINE-3, ENGINE-4).

veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker`, `tool_agent_loop.py: ToolAgentLoop`,
`tool_parser.py: ToolParser`. The data column `agent_name` selects the loop of a response [default:
`agent.default_agent_loop`]; since 0.7, `multi_turn.enable` has no effect.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.check.config.base import Findings, of_keys, of_registry
from launcher.check.facts import known_names
from launcher.check.finding import Words, found
from launcher.check.subject import Subject
from launcher.core.text import clean, did_you_mean
from launcher.verl.config import ENGINE, MODEL, ROLLOUT

LOOP, LOOPS = f"{ROLLOUT}.agent.default_agent_loop", f"{ROLLOUT}.agent.agent_loop_config_path"
ROUTER = f"{ROLLOUT}.router_config_path"
MULTI_TURN = f"{ROLLOUT}.multi_turn"
TOOLS = (f"{MULTI_TURN}.tool_config_path", f"{MULTI_TURN}.function_tool_path")
FORMAT, ENABLED = f"{MULTI_TURN}.format", f"{MULTI_TURN}.enable"
SINGLE, WITH_TOOLS = "single_turn_agent", "tool_agent"
TEMPLATE_ARGUMENTS = "data.apply_chat_template_kwargs"
PASSED = ("add_generation_prompt", "tokenize", "tools")
QUANTIZED = {"vllm": ("fp8", "torchao", "ascend"), "sglang": ("fp8",)}
"""The quantizations of each engine, by `rollout.quantization`."""


@of_registry
def loop(subject: Subject) -> Findings:
    """AGENT-1: veRL or the configuration file of agent loops defines the agent loop."""
    name, path = subject.text(LOOP), subject.get(LOOPS)
    known, own = known_loops(subject)
    if name is None or not known or name in known or name in own or (path and not own):
        return
    names = [*known, *own]
    words: Words = {"name": name, "near": did_you_mean(name, names), "names": names}
    where = f"{Path(str(path)).name} has none of that name" if path else f"no {LOOPS} is set that could register it"
    if subject.get(f"{MODEL}.external_lib") and not path:
        yield found("AGENT-1.external", **words)
        return
    yield found("AGENT-1.unknown", **words, where=where)


def loop_file(subject: Subject) -> Findings:
    """AGENT-1: the file of agent loops is a list of names with their classes.

    veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker.__init__`.
    """
    path = Path(str(subject.get(LOOPS)))
    if not subject.get(LOOPS) or not path.is_file() or not subject.at_least("0.7.0"):
        return  # FILE-1
    listed = _yaml(_text(path))
    if not isinstance(listed, list) or not all(
        isinstance(each, dict) and {"name", "_target_"} <= {*each} for each in listed
    ):
        yield found("AGENT-1.file", path=path)


def tools(subject: Subject) -> Findings:
    """AGENT-2: the agent loop with tools has tools."""
    if subject.at_least("0.7.0") and subject.get(LOOP) == WITH_TOOLS and not any(map(subject.get, TOOLS)):
        yield found("AGENT-2", keys=[LOOP, *TOOLS])


@of_registry
def tool_file(subject: Subject) -> Findings:
    """AGENT-3: each tool has a class and a known type. veRL: `verl/tools/tool_registry.py: ToolType`."""
    path = subject.get(TOOLS[0])
    if not path or not Path(str(path)).is_file() or not subject.at_least("0.7.0"):
        return  # FILE-1
    content = _yaml(_text(path))
    listed = content.get("tools") if isinstance(content, dict) else None
    known = subject.facts.names.get("tool_types", [])
    if not isinstance(listed, list) or not listed:
        yield found("AGENT-3.unlisted", path=path)
        return
    for place, tool in enumerate(listed, 1):
        block = tool if isinstance(tool, dict) else {}
        settings = block.get("config")
        missing = [name for name in ("class_name", "config") if name not in block]
        missing += ["config.type"] if isinstance(settings, dict) and "type" not in settings else []
        if missing:
            yield found("AGENT-3.incomplete", path=path, place=place, missing=missing)
        kind = settings.get("type") if isinstance(settings, dict) else None
        if kind is not None and known and kind not in known:
            yield found("AGENT-3.type", path=path, place=place, kind=kind, version=subject.version, known=known)


@of_registry
def tool_format(subject: Subject) -> Findings:
    """AGENT-4: the format of tool calls is known; the file of function tools may register one."""
    known, value = subject.facts.names.get("tool_formats", []), subject.text(FORMAT)
    if subject.get(LOOP) == WITH_TOOLS and value is not None and known and value not in known:
        if f'ToolParser.register("{value}")' in _text(subject.get(TOOLS[1])):
            return
        yield found("AGENT-4", value=value, near=did_you_mean(value, known), known=known)


def unread(subject: Subject) -> Findings:
    """ENGINE-4: veRL does not pass these keys to SGLang (`sglang_rollout/async_sglang_server.py: launch_server`)."""
    if subject.text(ENGINE) != "sglang" or not subject.at_least("0.7.0"):
        return
    for name in known_names().of_vllm:
        key = f"{ROLLOUT}.{name}"
        if subject.source(key) in ("field", "override"):
            yield found("ENGINE-4", key=key)


@of_keys
def quantization(subject: Subject) -> Findings:
    """ENGINE-3: the engine supports the requested quantization of its weights."""
    key, engine = f"{ROLLOUT}.quantization", subject.text(ENGINE) or ""
    value, known = subject.text(key), QUANTIZED.get(subject.text(ENGINE) or "")
    if value is None or known is None or value in known or not subject.at_least("0.9.0"):
        return
    yield found("ENGINE-3", engine=engine, value=value, near=did_you_mean(value, known), key=key, known=known)


def known_loops(subject: Subject) -> tuple[list[str], list[str]]:
    """Names of veRL's agent loops, and of the loops in the configuration file."""
    return subject.facts.names.get("agent_loops", []), [name for name, _, _ in loops(subject.get(LOOPS))]


def loops(path: Any) -> Iterator[tuple[str, str, list[str]]]:
    """Name, class and arguments of each agent loop in a configuration file; empty if it is unreadable."""
    found = _yaml(_text(path))
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            arguments = [str(key) for key in each if not str(key).startswith("_")]
            yield clean(each["name"]), str(each.get("_target_") or ""), arguments


def router(path: Path) -> str:
    """The class in the configuration file of a router; empty without one.

    veRL: `verl/workers/rollout/router.py: _create_plugin_extension`.
    """
    found = _yaml(_text(path))
    return str(found.get("router_class") or "") if isinstance(found, dict) else ""


def template_arguments(subject: Subject) -> Findings:
    """P27: additional arguments of the chat template do not repeat veRL's own.

    veRL: `verl/utils/tokenizer/continuous_token.py`, before 0.9 `agent_loop.py: AgentLoopBase.apply_chat_template`.
    """
    for name in sorted({*subject.names_below(TEMPLATE_ARGUMENTS)} & {*PASSED}):
        yield found("P27.arguments", name=name)


def _text(path: Any) -> str:
    """The text of a file; None if it is unreadable."""
    try:
        return Path(str(path)).read_text("utf-8") if path else ""
    except (OSError, ValueError):
        return ""


@functools.lru_cache(maxsize=8)  # each tried change checks the preset again
def _yaml(text: str) -> Any:
    """The content of a YAML file; None if it is invalid."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except (ValueError, YAMLError):
        return None


RULES = (loop, loop_file, tools, tool_file, tool_format, template_arguments, unread, quantization)
