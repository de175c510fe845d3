"""Like verl_probe.py, with more stages of a start: data sets and loaders, agent loop and tools, the reward function,
and the metrics of a validation, before the models are built. Only the engine's tokens and the queue are not veRL's.

Slower than verl_probe.py: for campaigns/held_out.py, not for `make test`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import verl_probe

Config = Any
ANSWERS = ("#### 7", "")  # the second one: the model ends its response at once, as an untrained one does


def loaders(config: Config) -> Any:
    """Reads the other files that the trainer reads before its workers start."""
    from verl.trainer.ppo.checkpoint_callback import build_checkpoint_callback
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.utils.config import omega_conf_to_dataclass

    build_checkpoint_callback(config)
    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    mode = config.trainer.v1.trainer_mode
    updates = config.trainer.v1.get(mode, {}).get("parameter_sync_step", 1)
    fake = SimpleNamespace(
        config=config,
        tokenizer=model.tokenizer,
        processor=model.processor,
        trainer_mode=mode,
        parameter_sync_step=updates,
    )
    PPOTrainer._init_dataloader(fake)
    return fake


def rows(fake: Any) -> list[dict[str, Any]]:
    """The first row of training and of validation, in the form for an agent loop."""
    found = []
    for loader in (fake.train_dataloader, fake.val_dataloader):
        batch = next(iter(loader), None)
        if batch is None:
            raise RuntimeError("no batch: fewer rows than a batch has")
        row = {key: value[0] for key, value in batch.items()}
        found.append({**row, "uid": "u", "session_id": 0, "global_steps": 1})
    return found


async def responses(config: Config, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that the agent loop puts into the queue for each row and answer."""
    import transfer_queue as tq
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
    from verl.trainer.ppo.v1 import agent_loop_tq
    from verl.workers.rollout.replica import TokenOutput

    said: list[str] = []

    class Engine:
        async def generate(self, **asked: Any) -> TokenOutput:
            tokens = [*worker.tokenizer.encode(said[0], add_special_tokens=False), worker.tokenizer.eos_token_id]
            return TokenOutput(token_ids=tokens, log_probs=[-0.1] * len(tokens))

    class Handle:
        def __init__(self) -> None:
            self.compute_score = SimpleNamespace(remote=RewardLoopWorker(config).compute_score)

    kept: list[dict[str, Any]] = []

    async def keep(*, fields: Any, **_: Any) -> None:
        kept.extend({key: fields[key][i] for key in fields.keys()} for i in range(len(fields)))  # noqa: SIM118

    tq.init, tq.async_kv_batch_put = (lambda: None), keep
    kind = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class  # without Ray
    worker = kind(config, Engine(), reward_loop_worker_handles=[Handle()])
    where = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": False}
    for row in given:
        for answer in ANSWERS:
            said[:] = [answer]
            name = row.get("agent_name", config.actor_rollout_ref.rollout.agent.default_agent_loop)
            plain = {key: value for key, value in row.items() if key != "agent_name"}
            await worker._run_agent_loop({}, where, agent_name=str(name), trace=False, **plain)
    return kept


def validation(config: Config, fields: list[dict[str, Any]]) -> None:
    """The metrics of a validation, gathered as `PPOTrainer._validate` gathers them."""
    from verl.trainer.ppo.metric_utils import process_validation_metrics

    infos = defaultdict[str, list[Any]](list)
    count = config.actor_rollout_ref.rollout.val_kwargs.n
    if not count:
        fields = []
    for n, field in enumerate(fields):
        infos["reward"].append(float(field["rm_scores"].sum()))
        extra = field["extra_fields"]
        info = getattr(extra, "data", extra).get("reward_extra_info", {})
        for key in infos:
            if key != "reward" and key not in info:
                infos[key].append(None)
        for key, value in info.items():
            infos.setdefault(key, [None] * n).append(value)
    sources = [str(getattr(field.get("data_source"), "data", "unknown")) for field in fields]
    process_validation_metrics(sources, ["u"] * len(fields), infos)


def more(config: Config) -> Iterator[str]:
    """Runs the stages; announces each one before it runs."""
    yield "data load"
    fake = loaders(config)
    yield "first batch"
    given = rows(fake)
    yield "rollout"
    fields = asyncio.run(responses(config, given))
    yield "validation"
    validation(config, fields)


def warm() -> None:
    """Imports in advance the modules that later requests need."""
    import verl.experimental.reward_loop.reward_loop
    import verl.trainer.ppo.v1.agent_loop_tq
    import verl.workers.engine_workers  # noqa: F401


def install(*, deep: bool) -> None:
    """Puts the further stages into verl_probe; without `deep` they are the last ones."""
    plain, inside, parts = verl_probe.trainer, verl_probe.critic_worker, verl_probe.rewards_and_trackers

    def trainer(config: Config) -> None:
        plain(config)
        if config.trainer.device != "cpu":  # its model and rows are not here
            return
        at = "trainer"
        try:
            for at in more(config):  # noqa: B007
                pass
        except Exception as error:
            raise RuntimeError(f"[{at}] {type(error).__name__}: {error}") from error

    def critic_worker(config: Config) -> Any:
        return inside(config) if deep else SimpleNamespace()

    def start(config: Config) -> None:
        if config.reward.reward_manager.source == "importlib":
            config.reward.reward_manager.name = "naive"  # the user's own one was loaded for the rollout
        parts(config)

    verl_probe.trainer, verl_probe.critic_worker, verl_probe.rewards_and_trackers = trainer, critic_worker, start
    if not deep:
        verl_probe.actor_worker = lambda config: SimpleNamespace()
        verl_probe.step = lambda config, actor, critic: iter(())
