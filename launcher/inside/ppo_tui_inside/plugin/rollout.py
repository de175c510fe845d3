"""The rollout engine "hf": transformers' generate() behind veRL's interface of a rollout server.

A server is one Ray actor with its own copy of the policy. The trainer's load balancer sends it the requests of the
agent loop; the actor worker sends it the weights after each update, directly or by a checkpoint engine.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
import torch
from verl.utils.tracking import RLInsightLogger
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

QUIET_SECONDS = 0.05  # the prompts of a step arrive one by one; no more have come for so long: they are all


def _server_name(replica_rank: int) -> str:
    return f"ppo_tui_hf_server_{replica_rank}"


class Sampling(NamedTuple):
    """Sampling parameters; requests with equal ones form a batch."""

    temperature: float
    top_p: float
    top_k: int
    max_tokens: int


@dataclass
class Request:
    prompt: list[int]
    sampling: Sampling
    answer: "asyncio.Future[TokenOutput]"


class HFServer:
    """Collects simultaneous requests and samples them in one batch."""

    def __init__(
        self,
        model_path: str,
        prompt_length: int,
        response_length: int,
        seed: int,
        replica_rank: int,
        ignore_eos: bool = False,
    ) -> None:
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

        torch.manual_seed(seed)
        self.lane = f"replica_{replica_rank}"  # the form of veRL's own servers
        self.model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model_path)).eval()
        tokenizer = AutoTokenizer.from_pretrained(model_path)
        self.eos: int | None = None if ignore_eos else tokenizer.eos_token_id  # all responses are as long as allowed
        self.pad: int = tokenizer.pad_token_id
        self.response_length = response_length
        self.context = prompt_length + response_length  # also for several turns together
        self.weights_of_step: int | None = None
        self.has_weights = False  # initial weights are random until the trainer sends its own
        self.waiting: list[Request] = []
        self.batch: asyncio.Task[None] | None = None
        self.model_in_use = asyncio.Lock()

    async def ready(self) -> None:
        """Returns after the constructor."""

    async def load_weights(self, state: dict[str, torch.Tensor], step: int | None) -> None:
        async with self.model_in_use:
            missing, unexpected = self.model.load_state_dict(state, strict=False)
            if unexpected or any("lm_head" not in name for name in missing):  # a tied head is not sent
                raise RuntimeError(f"the trainer's weights do not fit: missing {missing}, unexpected {unexpected}")
            self.model.tie_weights()
            self.weights_of_step, self.has_weights = step, True

    async def generate(
        self, request_id: str, *, prompt_ids: Iterable[int], sampling_params: dict[str, Any], **_unused: Any
    ) -> TokenOutput:
        """Samples one response; sampling parameters have vLLM's names."""
        if not self.has_weights:
            raise RuntimeError("the trainer has not sent any weights to this rollout server yet")
        sampling = Sampling(
            temperature=float(sampling_params.get("temperature", 1.0)),
            top_p=float(sampling_params.get("top_p", 1.0)),
            top_k=max(0, int(sampling_params.get("top_k", 0))),  # -1 is vLLM's "all", 0 is transformers'
            max_tokens=int(sampling_params.get("max_tokens") or self.response_length),
        )
        request = Request(list(prompt_ids), sampling, asyncio.get_running_loop().create_future())
        self.waiting.append(request)
        if self.batch is None:
            self.batch = asyncio.create_task(self._answer_waiting())
        with RLInsightLogger.trace_state("hf_generate", state_lane_id=self.lane):
            return await request.answer

    async def _answer_waiting(self) -> None:
        known = 0
        while known < len(self.waiting):
            known = len(self.waiting)
            await asyncio.sleep(QUIET_SECONDS)
        requests, self.waiting, self.batch = self.waiting, [], None
        groups: defaultdict[Sampling, list[Request]] = defaultdict(list)
        for request in requests:
            groups[request.sampling].append(request)
        async with self.model_in_use:
            for sampling, group in groups.items():
                await self._answer(sampling, group)

    async def _answer(self, sampling: Sampling, group: list[Request]) -> None:
        waiting = [request for request in group if not request.answer.cancelled()]
        try:
            outputs = await asyncio.to_thread(self._sample, [request.prompt for request in waiting], sampling)
        except Exception as error:  # the caller must get the error, or the trainer waits forever
            for request in waiting:
                if not request.answer.cancelled():
                    request.answer.set_exception(error)
            return
        for request, output in zip(waiting, outputs, strict=True):
            if not request.answer.cancelled():
                request.answer.set_result(output)

    @torch.no_grad()
    def _sample(self, prompts: list[list[int]], sampling: Sampling) -> list[TokenOutput]:
        """Responses up to and including the end token, with the log-probability of each sampled token."""
        width = max(map(len, prompts))
        choice: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            choice = {
                "do_sample": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k,
            }
        output = self.model.generate(
            input_ids=torch.tensor([[self.pad] * (width - len(prompt)) + prompt for prompt in prompts]),
            attention_mask=torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts]),
            max_new_tokens=max(1, min(sampling.max_tokens, self.context - min(map(len, prompts)))),
            eos_token_id=self.eos,
            pad_token_id=self.pad,
            return_dict_in_generate=True,
            output_scores=True,
            **choice,
        )
        tokens = output.sequences[:, width:]
        scores = torch.stack(output.scores, dim=1).float().log_softmax(-1)
        log_probs = scores.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        return [self._output(row, probs) for row, probs in zip(tokens.tolist(), log_probs.tolist(), strict=True)]

    def _output(self, tokens: list[int], log_probs: list[float]) -> TokenOutput:
        length = tokens.index(self.eos) + 1 if self.eos is not None and self.eos in tokens else len(tokens)
        return TokenOutput(
            token_ids=tokens[:length],
            log_probs=log_probs[:length],
            stop_reason="completed",
            extra_fields={"global_steps": self.weights_of_step},
        )

    async def sleep(self, **_unused: Any) -> None:
        """Does nothing: veRL frees and rebuilds engine memory around each step, and this engine has none."""

    wake_up = clear_kv_cache = release_kv_cache = resume_kv_cache = resume_generation = sleep
    abort_all_requests = start_profile = stop_profile = sleep


class HFReplica(RolloutReplica):
    """Starts the server of one actor worker."""

    async def launch_servers(self) -> None:
        name = _server_name(self.replica_rank)
        options = {"name": name, "num_cpus": 0, "max_concurrency": self.max_concurrency}
        server = (
            ray.remote(HFServer)
            .options(**options)
            .remote(
                self.model_config.path,
                self.config.prompt_length,
                self.config.response_length,
                self.config.seed + self.replica_rank,  # otherwise all workers would draw equal numbers
                self.replica_rank,
                bool(self.config.ignore_eos),
            )
        )
        await server.ready.remote()
        self.servers = [server]
        self._server_handle = server
        self._server_address = name


class HFAdapter(BaseRollout):
    """Passes updated weights from the actor worker to its server."""

    server = None
    is_leader_rank = True

    def __init__(self, *args: Any, replica_rank: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # one server a worker: nothing is split over workers here. Servers next to the trainer say which they are.
        self.replica_rank = int(os.environ["RANK"]) if replica_rank is None else replica_rank

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]] | AsyncIterable[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_unused: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise NotImplementedError(f"the hf rollout supports whole tensors only, not wire format {wire_format!r}")
        if self.server is None:
            self.server = ray.get_actor(_server_name(self.replica_rank))
        state = {name: tensor.detach().float().cpu().clone() async for name, tensor in ensure_async_iterator(weights)}
        await self.server.load_weights.remote(state, global_steps)

    async def resume(self, tags: list[str]) -> None:
        pass

    async def release(self) -> None:
        pass
