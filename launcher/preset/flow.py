"""The flow of a preset's data: prompts, responses, mini- and micro-batches, optimizer steps, and a run's totals.

Counted like veRL (rules P6 to P13 of docs/reference/findings.md): batch sizes are prompts, multiplied by `rollout.n`
into responses, which are then divided among GPUs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.preset.effective import EffectiveConfig
from launcher.preset.schedule import Schedule, schedule
from launcher.verl.config import (
    ACTOR,
    BATCH,
    CRITIC,
    CRITIC_MICRO,
    CRITIC_TOKENS,
    LOG_PROB,
    LOG_PROB_TOKENS,
    MAX_AGE,
    MICRO,
    MODEL,
    PROMPT,
    RESPONSE,
    TOKENS,
    N,
)


@dataclass(frozen=True)
class Passes:
    """The passes of one rank's responses through a model.

    `per_gpu` responses (a fraction if they cannot be divided evenly) come in `micro_batches` of `micro`. With dynamic
    batches, `tokens` per GPU fill one instead, and `micro_batches` is the number for responses of maximum length.
    `largest`: tokens of the largest micro-batch per GPU, as far as they use memory.
    """

    per_gpu: float
    micro: int | None
    tokens: int | None
    micro_batches: int | None
    largest: int = field(compare=False)


@dataclass(frozen=True)
class Updates(Passes):
    """A model's updates in a step: `mini` prompts make one optimizer step, of `mini_batches` in each of `epochs`
    passes. `per_gpu`: responses of one mini-batch.
    """

    mini: int
    mini_batches: int
    epochs: int

    @property
    def steps(self) -> int:
        """Optimizer steps in one training step."""
        return self.mini_batches * self.epochs


@dataclass(frozen=True)
class Flow:
    """The flow of a preset's data. None if it depends on an unknown number of rows.

    `gpus` share the prompts as `ranks` (a sequence may use several GPUs). `padding`: responses added by veRL for
    mini-batches of equal size. `early`: the epochs end before the wanted `steps`. `portion`: prompts trained on at a
    time, a batch or, with separate_async, a mini-batch. `ahead`: batches requested in advance. `oldest`: maximum age of
    a response in weight versions (None: no limit). `engine_gpus`: GPUs only for the engine.
    """

    mode: str
    prompts: int
    portion: int
    ahead: float
    oldest: int | None
    engine_gpus: int
    n: int
    gpus: int
    ranks: int
    longest: int
    actor: Updates
    critic: Updates | None
    log_probs: Passes
    padding: int
    rows: int | None
    steps_an_epoch: int | None
    unused_rows: int | None
    epochs: int
    steps: int | None
    early: bool
    critic_warmup: int
    actor_rate: Schedule | None
    critic_rate: Schedule | None
    validations: int | None
    checkpoints: int | None
    kept: int | None

    @property
    def responses(self) -> int:
        """Responses in one step."""
        return self.prompts * self.n

    @property
    def actor_updates(self) -> int | None:
        """Optimizer steps of the actor in the whole run."""
        return None if self.steps is None else max(0, self.steps - self.critic_warmup) * self.actor.steps


def flow(config: EffectiveConfig, rows: int | None = None) -> Flow:
    """The flow of a configuration; `rows`: number of rows in its training files."""
    prompts, n = config.whole(BATCH) or 1024, config.whole(N) or 1
    longest = (config.whole(PROMPT) or 512) + (config.whole(RESPONSE) or 512)
    actor = _updates(config, ACTOR, prompts, n, longest)
    critic = _updates(config, CRITIC, prompts, n, longest) if config.has_critic else None
    most = config.whole("data.train_max_samples")
    if rows is not None and most is not None:
        rows = min(rows, most)
    steps_an_epoch = None if rows is None else rows // prompts
    epochs, wanted = config.whole("trainer.total_epochs") or 30, config.whole("trainer.total_training_steps", 0)
    by_epochs = None if steps_an_epoch is None else steps_an_epoch * epochs
    steps = min((each for each in (by_epochs, wanted) if each is not None), default=None)
    early = wanted is not None and by_epochs is not None and by_epochs < wanted
    saves = times(steps, config.get("trainer.save_freq"), last=not early)
    most_kept = config.whole("trainer.max_actor_ckpt_to_keep")
    first = int(config.get("trainer.val_before_train") is not False)
    validations = times(steps, config.get("trainer.test_freq"), last=not early)
    portion, mode = max(1, prompts // config.updates_a_step), config.trainer_mode
    return Flow(
        mode=mode,
        prompts=prompts,
        portion=portion,
        ahead=0.0 if mode == "sync" else config.number(f"trainer.v1.{mode}.num_warmup_batches") or 0.0,
        oldest=config.whole(MAX_AGE),
        engine_gpus=config.engine_gpus,
        n=n,
        gpus=config.gpus,
        ranks=config.data_parallel(),
        longest=longest,
        actor=actor,
        critic=critic,
        log_probs=Passes(*_passes(config, ACTOR, max(portion, actor.mini) * n, longest, log_probs=True)),
        padding=-(-prompts // actor.mini) * actor.mini * n - prompts * n,
        rows=rows,
        steps_an_epoch=steps_an_epoch,
        unused_rows=None if rows is None else rows % prompts,
        epochs=epochs,
        steps=steps,
        early=early,
        critic_warmup=config.whole("trainer.critic_warmup") or 0 if critic else 0,
        actor_rate=schedule(config, ACTOR, steps, wanted),
        critic_rate=schedule(config, CRITIC, steps, wanted) if critic else None,
        validations=None if validations is None else validations + first,
        checkpoints=saves,
        kept=saves if saves is None or most_kept is None else min(saves, most_kept),
    )


def rows_of(files: Any) -> int | None:
    """Total rows of parquet files, from their last kilobytes; None if one is unreadable."""
    names: Iterable[Any] = files if isinstance(files, list) else [files] if files else []
    try:
        from pyarrow.parquet import read_metadata

        counts = [int(read_metadata(Path(str(name)).expanduser()).num_rows) for name in names]
    except (ImportError, OSError, ValueError):  # pyarrow's own errors are ValueErrors
        return None
    return sum(counts) if counts else None


def _updates(config: EffectiveConfig, model: str, prompts: int, n: int, longest: int) -> Updates:
    mini = config.whole(f"{model}.ppo_mini_batch_size") or prompts
    epochs = config.whole(f"{model}.ppo_epochs") or 1
    return Updates(*_passes(config, model, mini * n, longest), mini, -(-prompts // mini), epochs)


def _passes(
    config: EffectiveConfig, model: str, responses: int, longest: int, *, log_probs: bool = False
) -> tuple[float, int | None, int | None, int | None, int]:
    """The fields of `Passes` for all responses that go through a model at once.

    A token budget is per GPU that shares a sequence, and does not count padding, which may double the tokens of
    unpacked sequences. veRL: `verl/workers/engine/utils.py: prepare_micro_batches`, up to 0.7
    `verl/workers/critic/dp_critic.py` and `actor/dp_actor.py`.
    """
    ranks, sharing = config.data_parallel(model), config.sequence_parallel(model)
    packed = config.flag(f"{MODEL}.use_remove_padding", False)
    if model == CRITIC:
        packed = config.flag(f"{CRITIC}.model.use_remove_padding", packed)
        dynamic, budget, usual, micro_key = config.critic_dynamic, CRITIC_TOKENS, 32768, CRITIC_MICRO
    elif log_probs:
        dynamic, budget, usual, micro_key = config.log_prob_dynamic, LOG_PROB_TOKENS, 16384, LOG_PROB
    else:
        dynamic, budget, usual, micro_key = config.dynamic, TOKENS, 16384, MICRO
    tokens = (config.whole(budget) or usual) if dynamic else None
    micro = None if tokens else config.whole(micro_key)
    size = max(1, tokens * sharing // longest) if tokens else micro
    rows = max(1, responses // ranks)
    if tokens:
        largest = min(max(tokens * sharing, longest) * (1 if packed else 2), rows * longest) // sharing
    else:
        largest = min(micro or 1, rows) * longest // sharing
    per_gpu = responses / ranks
    return per_gpu, micro, tokens, None if size is None else int(-(-per_gpu // size)), largest


def times(steps: int | None, every: Any, *, last: bool) -> int | None:
    """How often an action occurs every `every` steps and after the last one; None if `steps` is."""
    if not isinstance(every, int) or every <= 0:
        return 0
    if steps is None:
        return None
    return steps // every + (1 if last and steps % every else 0)
