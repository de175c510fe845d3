"""The real veRL's answers to settings, without Ray and GPU, in one process.

The stages are those of a start with the CPU platform, in veRL's order: Hydra composes, the driver validates, the
trainer picks its parts, the workers build a model of 100,000 parameters, the first step splits its batch and learns
from synthetic answers of full length. All called code is veRL's; only the answers are ours.

stdin: a JSON list of lists of overrides. stdout: one JSON object per line, {"stage", "error"}, both null without an
error.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from launcher import inside

sys.path.append(str(inside.FOLDER))
os.environ.update(
    VERL_PLATFORM="cpu",
    VERL_ENGINE_DEVICE="cuda",
    VERL_USE_EXTERNAL_MODULES=inside.PLUGIN,
    RANK="0",
    WORLD_SIZE="1",
    LOCAL_RANK="0",
    MASTER_ADDR="127.0.0.1",
    HF_HUB_OFFLINE="1",
    OMP_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    TRANSFORMERS_VERBOSITY="error",
    VERL_LOGGING_LEVEL="ERROR",
)

Config = Any
WHOLE = "whole"  # veRL's tree as one file: composing it anew from its 40 files would take half of the time


def model_folder(folder: Path) -> None:
    """A model of the toy task's shape with random weights, for building, splitting and updating."""
    from ppo_tui_inside.probes import toy_task

    tokenizer = toy_task._tokenizer([(a, b) for a in range(5) for b in range(5)])
    toy_task._model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def driver(config: Config) -> None:
    """Before Ray: the checks of `python -m verl.trainer.main_ppo`."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    validate_config(config, need_reference_policy(config), need_critic(config))


def trainer(config: Config) -> None:
    """After Ray's start: the trainer and its parts, before the data."""
    from verl.trainer.ppo.core_algos import get_kl_controller
    from verl.trainer.ppo.v1 import get_trainer_cls
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.utils.config import omega_conf_to_dataclass

    get_trainer_cls(config.trainer.v1.trainer_mode)
    if config.algorithm.use_kl_in_reward:
        get_kl_controller(config.algorithm.kl_ctrl)
    if config.trainer.v1.sampler.custom_sampler.path is None:
        PPOTrainer._resolve_filter_groups_metric(SimpleNamespace(config=config))
    omega_conf_to_dataclass(config.actor_rollout_ref.model)


def critic_worker(config: Config) -> Any:
    """The critic's model, as the trainer builds it; None without one."""
    from verl.trainer.ppo.utils import need_critic
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.config import TrainingWorkerConfig
    from verl.workers.engine_workers import TrainingWorker
    from verl.workers.utils.losses import value_loss

    if not need_critic(config):
        return None
    critic = omega_conf_to_dataclass(config.critic)
    critic.engine.infer_max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.engine.max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    worker = TrainingWorker(
        TrainingWorkerConfig(
            model_type="value_model",
            model_config=critic.model,
            engine_config=critic.engine,
            optimizer_config=critic.optim,
            checkpoint_config=critic.checkpoint,
        )
    )
    worker.reset()
    worker.set_loss_fn(partial(value_loss, config=critic))
    return worker


def actor_worker(config: Config) -> Any:
    """The actor, the reference and the rollout engine's adapter."""
    from verl.trainer.ppo.utils import need_reference_policy
    from verl.workers.engine_workers import ActorRolloutRefWorker

    model = config.actor_rollout_ref.model  # with an adapter, the actor without it is the reference
    adapter = model.lora_rank > 0 or model.lora.get("rank", 0) > 0 or model.lora_adapter_path is not None
    role = "actor_rollout_ref" if need_reference_policy(config) and not adapter else "actor_rollout"
    worker = ActorRolloutRefWorker(config=config.actor_rollout_ref, role=role)
    worker.init_model()
    return worker


def rewards_and_trackers(config: Config) -> None:
    """The reward manager by name, then, after loading, the trackers by name."""
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
    from verl.utils.tracking import Tracking

    get_reward_manager_cls(config.reward.reward_manager.name)
    names = [config.trainer.logger] if isinstance(config.trainer.logger, str) else list(config.trainer.logger)
    for name in names:
        assert name in Tracking.supported_backend, f"{name} is not supported"


def rows(config: Config, count: int, prompts: int, answers: int) -> Any:
    """`count` synthetic rows of the given lengths, in the workers' form."""
    import torch
    from verl.utils import tensordict_utils as tu

    def nested(make: Callable[[], Any]) -> Any:
        return torch.nested.as_nested_tensor([make() for _ in range(count)], layout=torch.jagged)

    whole = prompts + answers
    mask = torch.cat([torch.zeros(prompts, dtype=torch.long), torch.ones(answers, dtype=torch.long)])
    noise = partial(torch.randn, answers)
    fields = {
        "input_ids": nested(lambda: torch.randint(3, 20, (whole,))),
        "position_ids": nested(lambda: torch.arange(whole)),
        "loss_mask": nested(lambda: mask),
        "prompts": nested(lambda: torch.ones(prompts, dtype=torch.long)),
        "responses": nested(lambda: torch.ones(answers, dtype=torch.long)),
        "response_mask": nested(lambda: torch.ones(answers, dtype=torch.long)),
        "old_log_probs": nested(noise),
        "ref_log_prob": nested(noise),
        "advantages": nested(noise),
        "values": nested(noise),
        "returns": nested(noise),
    }
    temperature = config.actor_rollout_ref.rollout.temperature
    more = {"temperature": temperature, "global_token_num": [whole] * count, "pad_token_id": 0}
    return tu.get_tensordict(fields, non_tensor_dict=more)


def step(config: Config, actor: Any, critic: Any) -> Iterator[str]:
    """The first step; yields each part before doing it."""
    import torch
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn, kl_penalty
    from verl.trainer.ppo.utils import need_reference_policy
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.utils import tensordict_utils as tu

    rollout, data, model = config.actor_rollout_ref.rollout, config.data, config.actor_rollout_ref.actor
    fake = SimpleNamespace(config=config, use_critic=critic is not None, global_steps=1)
    multiple = PPOTrainer._get_required_batch_multiple(fake, 1)
    answers = data.train_batch_size * rollout.n
    count = math.ceil(answers / multiple) * multiple

    def batch(**more: Any) -> Any:
        made = rows(config, count, data.max_prompt_length, data.max_response_length)
        tu.assign_non_tensor(made, **more)
        return made

    if not config.algorithm.rollout_correction.bypass_mode:
        yield "log-probabilities"
        actor.actor.infer_batch(batch(calculate_entropy=True, compute_loss=False))
    if need_reference_policy(config):
        yield "reference"
        own = getattr(actor, "ref", None)
        adapter = {} if own else {"no_lora_adapter": True}
        (own or actor.actor).infer_batch(batch(calculate_entropy=False, compute_loss=False, **adapter))
    if critic is not None:
        yield "values"
        critic.infer_batch(batch(compute_loss=False))
    yield "advantage"
    if config.algorithm.use_kl_in_reward:
        kl_penalty(torch.zeros(1, 2), torch.zeros(1, 2), kl_penalty=config.algorithm.kl_penalty)
    get_adv_estimator_fn(config.algorithm.adv_estimator)
    for worker, block, name in ((critic, config.critic, "critic update"), (actor.actor, model, "actor update")):
        if worker is not None:
            yield name
            mini = block.ppo_mini_batch_size * rollout.n
            made = batch(
                mini_batch_size=mini,
                global_batch_size=mini,
                epochs=1,
                seed=block.data_loader_seed,
                dataloader_kwargs={"shuffle": block.shuffle},
                calculate_entropy=True,
            )
            worker.train_mini_batch(made)


def stages(overrides: list[str], folder: Path) -> dict[str, str | None]:
    """The stage at which veRL stops, and its message; None for both if it does not."""
    from hydra import compose
    from omegaconf import OmegaConf
    from verl.utils.config import omega_conf_to_dataclass

    at = "hydra"
    try:
        config = compose(WHOLE, overrides=overrides)
        OmegaConf.resolve(config)
        for block in (config.actor_rollout_ref, config.critic):
            if not Path(str(block.model.path)).is_dir():
                block.model.path = str(folder)  # a preset for GPUs: its model is not here
        at = "driver"
        driver(config)
        at = "trainer"
        trainer(config)
        at = "model load"
        if config.trainer.device != "cpu":  # the rest needs a GPU
            omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
            return {"stage": None, "error": None}
        critic, actor = critic_worker(config), actor_worker(config)
        at = "start"
        rewards_and_trackers(config)
        for at in step(config, actor, critic):  # noqa: B007 (read where it fails)
            pass
    except Exception as error:
        return {"stage": at, "error": f"{type(error).__name__}: {error}"[:2000]}
    return {"stage": None, "error": None}


def whole_tree(folder: str) -> None:
    """Hydra's tree of veRL's configuration files, before any override."""
    import verl
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    config_dir = str(Path(verl.__path__[0]) / "trainer" / "config")
    with initialize_config_dir(config_dir=config_dir, version_base=None):
        OmegaConf.save(compose("ppo_trainer"), Path(folder) / f"{WHOLE}.yaml")


def main() -> None:
    import tempfile

    import yaml
    from hydra import initialize_config_dir

    yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[misc]  # with Python's, a fifth of the time goes to reading
    cases = json.load(sys.stdin)
    real = os.dup(1)
    os.dup2(2, 1)  # what veRL prints is not ours to parse
    with tempfile.TemporaryDirectory() as folder, os.fdopen(real, "w") as out:
        os.environ["MASTER_PORT"] = str(_free_port())
        model_folder(Path(folder))
        whole_tree(folder)
        with contextlib.redirect_stdout(sys.stderr), initialize_config_dir(folder, version_base=None):
            for overrides in cases:
                print(json.dumps(stages(overrides, Path(folder))), file=out, flush=True)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
