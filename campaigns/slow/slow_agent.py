"""An agent loop that blocks its process after each response, like one that calls a tool without `await`."""

import time
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

SECONDS = 0.05


class SlowAgentLoop(SingleTurnAgentLoop):
    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        output = await super().run(sampling_params, **kwargs)
        time.sleep(SECONDS)  # blocking is the fault
        return output
