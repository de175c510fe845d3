"""A tool for the toy task, whose model writes only answers such as `#### 7`: each answer calls the tool once.

    ppo-tui run toy-cpu rollout.agent_loop=tool_agent 'rollout.function_tool_path=$PPO_TUI_TOOLS/toy_check.py' \
        rollout.tool_format=toy rollout.max_assistant_turns=2 data.max_response_length=32
"""

import json
import re
from typing import Any

from verl.experimental.agent_loop.tool_parser import FunctionCall, ToolParser
from verl.tools.function_tool import function_tool

_ANSWER = re.compile(r"#### (\d+)")


@function_tool("check")
def check(total: str) -> str:
    """Asks for the answer again.

    Args:
        total: The answer.
    """
    return f"{total}?"


@ToolParser.register("toy")
class ToyParser(ToolParser):
    """Reads an answer as a call of `check`; other formats are JSON, which the toy model cannot write."""

    async def extract_tool_calls(self, responses_ids: list[int], tools: Any = None) -> tuple[str, list[FunctionCall]]:
        text = self.tokenizer.decode(responses_ids, skip_special_tokens=True)
        calls = [FunctionCall(name="check", arguments=json.dumps({"total": total})) for total in _ANSWER.findall(text)]
        return text, calls[:1]
