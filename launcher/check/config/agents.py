"""Agent loops, tools and conversations: AGENT-1 to AGENT-4, and what an engine takes: ENGINE-3, ENGINE-4.

veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker`, `tool_agent_loop.py: ToolAgentLoop`,
`tool_parser.py: ToolParser`. The column `agent_name` of the data selects the loop of a response, or
`agent.default_agent_loop` without it; since 0.7, `multi_turn.enable` has no effect.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.check.config.base import Findings, error, info, of_keys, of_registry, warning
from launcher.check.subject import Subject
from launcher.core.text import clean, did_you_mean
from launcher.verl.config import ENGINE, MODEL, ROLLOUT

LOOP, LOOPS = f"{ROLLOUT}.agent.default_agent_loop", f"{ROLLOUT}.agent.agent_loop_config_path"
MULTI_TURN = f"{ROLLOUT}.multi_turn"
TOOLS = (f"{MULTI_TURN}.tool_config_path", f"{MULTI_TURN}.function_tool_path")
FORMAT, ENABLED = f"{MULTI_TURN}.format", f"{MULTI_TURN}.enable"
SINGLE, WITH_TOOLS = "single_turn_agent", "tool_agent"
TEMPLATE_ARGUMENTS = "data.apply_chat_template_kwargs"
PASSED = ("add_generation_prompt", "tokenize", "tools")
OF_VLLM = (
    "cudagraph_capture_sizes",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "ignore_eos",
    "logprobs_mode",
    "max_num_batched_tokens",
)
QUANTIZED = {"vllm": ("fp8", "torchao", "ascend"), "sglang": ("fp8",)}
"""The quantizations of each engine, by `rollout.quantization`."""


@of_registry
def loop(subject: Subject) -> Findings:
    """AGENT-1: the agent loop has a known name, or one that its configuration file gives."""
    name, path = subject.text(LOOP), subject.get(LOOPS)
    known, own = known_loops(subject)
    if name is None or not known or name in known or name in own or (path and not own):
        return
    message = f"{LOOP}: veRL has no agent loop '{name}'{did_you_mean(name, [*known, *own])}"
    where = f"{Path(str(path)).name} has none of that name" if path else f"no {LOOPS} is set that could register it"
    if subject.get(f"{MODEL}.external_lib") and not path:
        yield info("AGENT-1", f"{message}: {MODEL}.external_lib must register it", "", [LOOP])
        return
    fix = f"set rollout.agent_loop to one of {', '.join([*known, *own])}"
    yield error("AGENT-1", f"{message}, and {where}: no responses are generated", fix, [LOOP, LOOPS])


def loop_file(subject: Subject) -> Findings:
    """AGENT-1: the file of agent loops is a list of names with their classes.

    veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker.__init__`.
    """
    path = Path(str(subject.get(LOOPS)))
    if not subject.get(LOOPS) or not path.is_file() or not subject.at_least("0.7.0"):
        return  # FILE-1
    found = _yaml(path)
    if not isinstance(found, list) or not all(
        isinstance(each, dict) and {"name", "_target_"} <= {*each} for each in found
    ):
        message = f"{path} is not a list of agent loops: veRL fails when the agent workers start"
        yield error(
            "AGENT-1", message, "list each loop as `- name: NAME`, with its class as `_target_: module.Class`", [LOOPS]
        )


def tools(subject: Subject) -> Findings:
    """AGENT-2: the agent loop with tools has tools, and the other one leaves them unused."""
    given = [key for key in TOOLS if subject.get(key)]
    if not subject.at_least("0.7.0"):
        return
    if subject.get(LOOP) == WITH_TOOLS and not given:
        message = f"the agent loop {WITH_TOOLS} has no tools to offer: {' and '.join(TOOLS)} are not set"
        yield warning("AGENT-2", message, "set rollout.tool_config_path", [LOOP, *TOOLS])


@of_registry
def tool_file(subject: Subject) -> Findings:
    """AGENT-3: the file of tools lists tools, each with its class and a type that this veRL has.

    veRL: `verl/tools/tool_registry.py: ToolType`.
    """
    path = subject.get(TOOLS[0])
    if not path or not Path(str(path)).is_file() or not subject.at_least("0.7.0"):
        return  # FILE-1
    found = _yaml(Path(str(path)))
    listed = found.get("tools") if isinstance(found, dict) else None
    known = subject.facts.names.get("tool_types", [])
    if not isinstance(listed, list) or not listed:
        message = f"{path} has no list 'tools': veRL fails when the agent workers start"
        yield error(
            "AGENT-3", message, "write `tools:` with a class_name, a config and a tool_schema for each", [TOOLS[0]]
        )
        return
    for place, tool in enumerate(listed, 1):
        block = tool if isinstance(tool, dict) else {}
        settings = block.get("config")
        missing = [name for name in ("class_name", "config") if name not in block]
        missing += ["config.type"] if isinstance(settings, dict) and "type" not in settings else []
        if missing:
            message = f"{path}: tool {place} has no {' and no '.join(missing)}"
            yield error(
                "AGENT-3", message, f"add {' and '.join(missing)}; the type is native for a Python class", [TOOLS[0]]
            )
        kind = settings.get("type") if isinstance(settings, dict) else None
        if kind is not None and known and kind not in known:
            message = f"{path}: tool {place} has the type '{kind}'; veRL {subject.version} has only {', '.join(known)}"
            yield error("AGENT-3", message, f"set config.type to {' or '.join(known)}", [TOOLS[0]])


@of_registry
def tool_format(subject: Subject) -> Findings:
    """AGENT-4: calls of tools are read in a known format; the file of function tools may register one."""
    known, value = subject.facts.names.get("tool_formats", []), subject.text(FORMAT)
    if subject.get(LOOP) == WITH_TOOLS and value is not None and known and value not in known:
        if f'ToolParser.register("{value}")' in _text(subject.get(TOOLS[1])):
            return
        message = f"{FORMAT}: veRL reads no tool calls of format '{value}'{did_you_mean(value, known)}"
        yield error("AGENT-4", message, f"set rollout.tool_format to one of {', '.join(known)}", [FORMAT, LOOP])


def unread(subject: Subject) -> Findings:
    """ENGINE-4: veRL hands SGLang none of these keys (`sglang_rollout/async_sglang_server.py: launch_server`)."""
    if subject.text(ENGINE) != "sglang" or not subject.at_least("0.7.0"):
        return
    for name in OF_VLLM:
        key = f"{ROLLOUT}.{name}"
        if subject.source(key) in ("field", "override"):
            fix = f"remove {key}, or set SGLang's own option below {ROLLOUT}.engine_kwargs.sglang"
            yield info("ENGINE-4", f"{key} has no effect with the engine sglang", fix, [key])


@of_keys
def quantization(subject: Subject) -> Findings:
    """ENGINE-3: the engine can quantize its weights in the way that is asked for."""
    key, engine = f"{ROLLOUT}.quantization", subject.text(ENGINE) or ""
    value, known = subject.text(key), QUANTIZED.get(subject.text(ENGINE) or "")
    if value is None or known is None or value in known or not subject.at_least("0.9.0"):
        return
    message = f"{engine} cannot quantize its weights to '{value}'{did_you_mean(value, known)}: veRL fails at its start"
    yield error(
        "ENGINE-3", message, f"set {key} to {' or '.join(known)}", [key, ENGINE], {"rollout.quantization": "fp8"}
    )


def known_loops(subject: Subject) -> tuple[list[str], list[str]]:
    """Names of the agent loops that veRL has, and of those in the configuration file."""
    path = subject.get(LOOPS)
    own = [name for name, _, _ in loops(Path(str(path)))] if path else []
    return subject.facts.names.get("agent_loops", []), own


def loops(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Name, class and arguments of each agent loop in a configuration file; empty if it is unreadable."""
    found = _yaml(path)
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            arguments = [str(key) for key in each if not str(key).startswith("_")]
            yield clean(each["name"]), str(each.get("_target_") or ""), arguments


def template_arguments(subject: Subject) -> Findings:
    """P27: what is added to the chat template's arguments is not what veRL itself passes.

    veRL: `verl/utils/tokenizer/continuous_token.py`, before 0.9 `agent_loop.py: AgentLoopBase.apply_chat_template`.
    """
    for name in sorted({*subject.names_below(TEMPLATE_ARGUMENTS)} & {*PASSED}):
        message = f"{TEMPLATE_ARGUMENTS} has {name}, which veRL passes itself: no prompt can be written"
        yield error("P27", message, f"remove {name}", [TEMPLATE_ARGUMENTS])


def _text(path: Any) -> str:
    """The text of a file; None if it is unreadable."""
    try:
        return Path(str(path)).read_text("utf-8") if path else ""
    except (OSError, ValueError):
        return ""


def _yaml(path: Path) -> Any:
    """The content of a YAML file; None if it is invalid."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(_text(path))
    except (ValueError, YAMLError):
        return None


RULES = (loop, loop_file, tools, tool_file, tool_format, template_arguments, unread, quantization)
