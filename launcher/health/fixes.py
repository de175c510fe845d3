"""First aid for each rule as data, shown with the present value and only where it fits the run."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from launcher.health.config import RunConfig
from launcher.record.check import Suggestion
from launcher.verl.config import GAMMA

Direction = Literal["raise", "lower", "set", "check"]
Fits = Literal["any", "critic", "kl in reward", "kl in loss", "groups"]

_ARROWS: dict[Direction, str] = {"raise": " ↑", "lower": " ↓", "set": " →", "check": ""}


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to try: a veRL key with a direction, or advice without a key.

    `value` is the one to set, and for the other directions the one that a trial takes; `note` is in words. `old` is
    what the key was called in earlier veRL versions; `fits` says for which runs it makes sense.
    """

    key: str = ""
    direction: Direction = "check"
    note: str = ""
    fits: Fits = "any"
    old: str = ""
    value: float | str | None = None

    @property
    def words(self) -> str:
        """What stands behind the direction: the value to set, then the note."""
        return " ".join(filter(None, (str(self.value) if self.direction == "set" else "", self.note)))

    def suggest(self, config: RunConfig) -> Suggestion:
        """`actor_rollout_ref.actor.optim.lr ↓ 2–5× (now 1e-06)`."""
        if not self.key:
            return Suggestion(None, self.note)
        key = self.old if self.old and self.old in config and self.key not in config else self.key
        words = f" {self.words}" if self.words else ""
        present = f" (now {config.get(key)})" if config.get(key) is not None else ""
        return Suggestion(key, f"{key}{_ARROWS[self.direction]}{words}{present}")


def _lower(key: str, note: str = "", fits: Fits = "any", old: str = "", value: float | None = None) -> Fix:
    return Fix(key, "lower", note, fits, old, value)


def _raise(key: str, note: str = "", fits: Fits = "any", value: float | None = None) -> Fix:
    return Fix(key, "raise", note, fits, value=value)


def _set(key: str, value: float | str, note: str = "", fits: Fits = "any") -> Fix:
    return Fix(key, "set", note, fits, value=value)


def _say(note: str, fits: Fits = "any") -> Fix:
    return Fix(note=note, fits=fits)


_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
_LOWER_LR = _lower(f"{_ACTOR}.optim.lr")
_CLIP_GRAD, _OLD_CLIP_GRAD = f"{_ACTOR}.optim.clip_grad", f"{_ACTOR}.grad_clip"
_STRONGER_KL = (
    _raise("algorithm.kl_ctrl.kl_coef", fits="kl in reward"),
    _raise(f"{_ACTOR}.kl_loss_coef", fits="kl in loss"),
)
_KL_AFTER_ALL = tuple(replace(fix, note="against a slow drift, not against a jump") for fix in _STRONGER_KL)
_FEWER_EPOCHS = _lower(f"{_ACTOR}.ppo_epochs")
_LARGER_MINI = _raise(f"{_ACTOR}.ppo_mini_batch_size")
_SMALL_STEPS = (_LOWER_LR, _FEWER_EPOCHS, _LARGER_MINI, _lower(f"{_ACTOR}.clip_ratio"))
_READ_SAMPLES = _say(
    "read samples and check that high-scoring responses are correct, not just formatted for the parser"
)
_LENGTH_PENALTY = _say("penalize overlong responses in the reward function")
_GPU_MEMORY = (
    _lower(f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
    _lower("critic.ppo_micro_batch_size_per_gpu", fits="critic"),
    _lower(f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu"),
    _lower(f"{_ROLLOUT}.gpu_memory_utilization"),
    _lower("data.max_response_length"),
    _set(f"{_ACTOR}.fsdp_config.param_offload", True),
    _set(f"{_ACTOR}.fsdp_config.optimizer_offload", True),
    _set("actor_rollout_ref.model.enable_gradient_checkpointing", True),
)
_HOST_MEMORY = (
    _set(f"{_ACTOR}.fsdp_config.param_offload", False, "if the GPU has room"),
    _lower("data.dataloader_num_workers"),
    _say("look for other processes on this host; when memory runs out, the kernel kills the largest process"),
)
_SIGNAL = (
    _say("check the answer parser and the prompt format on samples"),
    _say("use easier data if nothing is solved; stop or use harder data if everything is solved"),
    _raise(f"{_ROLLOUT}.n", fits="groups"),
    _set("algorithm.filter_groups.enable", True, fits="groups"),
    _raise("data.train_batch_size", f"with {_ACTOR}.ppo_mini_batch_size, where few responses are solved or wrong"),
)

FIXES: dict[str, Sequence[Fix]] = {
    "NUM-1": (
        _lower(f"{_ACTOR}.optim.lr", "2–5×, and resume from the last checkpoint"),
        Fix(_CLIP_GRAD, "check", "must be set and finite", old=_OLD_CLIP_GRAD),
        _say("train in bf16, not fp16"),
        _set(f"{_ACTOR}.kl_loss_type", "low_var_kl", fits="kl in loss"),
        _lower(
            "critic.optim.lr",
            "if only critic/ metrics are non-finite; also check the critic's padding and dtype",
            "critic",
        ),
    ),
    "KL-0": (
        _set(f"{_ROLLOUT}.temperature", 1.0),
        _set(f"{_ROLLOUT}.top_p", 1),
        _set(f"{_ROLLOUT}.top_k", -1),
        _say("use the same model for the reference; do not force a minimum length"),
    ),
    "KL-1": (_LOWER_LR, _FEWER_EPOCHS, *_KL_AFTER_ALL),
    "KL-2": _SMALL_STEPS,
    "KL-3": (_raise("algorithm.kl_ctrl.kl_coef", "from the start"), _lower("algorithm.kl_ctrl.horizon")),
    "KL-4": (
        _LOWER_LR,
        _say("check the reward function on samples"),
        _say("check ENT-2: entropy that rises takes the KL along"),
        *_KL_AFTER_ALL,
    ),
    "CLIP-1": (*_SMALL_STEPS, _say("the usual cause: several mini-batches per step with a large learning rate")),
    "ENT-1": (
        _set(f"{_ACTOR}.entropy_coeff", 0.001, "to 0.01"),
        _raise(f"{_ROLLOUT}.temperature", "up to 1.2", value=1.2),
        _LOWER_LR,
        _raise(f"{_ACTOR}.clip_ratio_high", "0.28", value=0.28),
    ),
    "ENT-2": (
        _lower(f"{_ACTOR}.entropy_coeff", "or 0", value=0),
        _lower(f"{_ROLLOUT}.temperature", "to 1.0", value=1.0),
        _LOWER_LR,
        _say("check MIS-1: rollout and training must agree"),
        _lower(f"{_ACTOR}.clip_ratio_high"),
    ),
    "ENT-3": (_say("stop here, or change the data"), _raise(f"{_ACTOR}.entropy_coeff")),
    "REW-1": (
        _say("resume from the checkpoint before the drop"),
        _LOWER_LR,
        _say("check KL-1, ENT-1 and TRUNC-1 for the cause"),
        _say("without such a flag: check the sign, the scale and the parser of the reward function"),
    ),
    "REW-2": (
        _say("check the reward function on samples"),
        _raise(f"{_ACTOR}.optim.lr"),
        _raise(f"{_ROLLOUT}.n", fits="groups"),
        _say("use harder or new data"),
    ),
    "REW-4": (_READ_SAMPLES,),
    "HACK-1": (
        _READ_SAMPLES,
        _LENGTH_PENALTY,
        _lower("data.max_response_length"),
        _say("make the reward stricter"),
        *_STRONGER_KL,
    ),
    "HACK-2": (_READ_SAMPLES, _say("make the reward as strict as the audit reward"), *_STRONGER_KL),
    "SIG-1": _SIGNAL,
    "VAL-1": (
        _say("keep the best checkpoint and stop early"),
        *_STRONGER_KL,
        _say("use more varied data, or a larger validation set if the score is only noisy"),
    ),
    "LEN-1": (
        _say("if length grows: check HACK-1 and TRUNC-1"),
        _say("if length shrinks: check the reward of empty and short responses, and the end-of-sequence token"),
        *_STRONGER_KL,
        _LOWER_LR,
    ),
    "TRUNC-1": (
        _raise("data.max_response_length"),
        _LENGTH_PENALTY,
        _say("check the stop token and the chat template"),
    ),
    "ABORT-1": (
        _say("look for rollout engine errors and timeouts in the log"),
        Fix("data.max_prompt_length", "check", "must leave room for the response in the model's context"),
    ),
    "CRIT-1": (
        _lower("critic.optim.lr", fits="critic"),
        _raise("trainer.critic_warmup", "10–20 steps", fits="critic", value=10),
        _lower("critic.cliprange_value", fits="critic"),
        _say("check the scale of the reward"),
    ),
    "DISC-1": (
        _set(GAMMA, 1.0, "so that all tokens of a response get its reward"),
        _say("if the reward is given within the response: discounting may be meant; mute this check"),
    ),
    "GRAD-1": (
        _LOWER_LR,
        _raise(f"{_ACTOR}.optim.lr_warmup_steps"),
        _lower(_CLIP_GRAD, old=_OLD_CLIP_GRAD),
        _raise("data.train_batch_size"),
    ),
    "GRAD-2": (*_SIGNAL, _say("check ENT-1 for an entropy collapse"), Fix(f"{_ACTOR}.optim.lr", "check")),
    "LOSS-1": (_LOWER_LR, _say("check the advantage normalization and the scale of the reward")),
    "LR-1": (
        Fix(f"{_ACTOR}.optim.lr", "check"),
        Fix(f"{_ACTOR}.optim.lr_warmup_steps", "check"),
        Fix(f"{_ACTOR}.optim.lr_warmup_steps_ratio", "check"),
        Fix("trainer.total_training_steps", "check"),
        Fix(f"{_ACTOR}.optim.lr_scheduler_type", "check"),
    ),
    "MIS-1": (
        Fix(f"{_ROLLOUT}.dtype", "check", "must match the training dtype"),
        _set(f"{_ROLLOUT}.enforce_eager", True, "as a test"),
        _set("algorithm.rollout_correction.rollout_is", "token"),
        _lower("trainer.v1.separate_async.parameter_sync_step"),
    ),
    "MIS-2": (
        _set("algorithm.rollout_correction.rollout_is", "token"),
        _LOWER_LR,
        _say("check LEN-1: if length grows without reward, limit it first"),
    ),
    "RATIO-1": (
        _say("look for dropout in the model's configuration, which must be 0"),
        _say("look at actor.fsdp_config.mixed_precision: it must be the same with and without gradients"),
        _say("for a mixture of experts: the router must choose the same experts in both passes (router replay)"),
    ),
    "STALE-1": (
        _lower("trainer.v1.sampler.max_off_policy_threshold"),
        _lower("trainer.v1.separate_async.parameter_sync_step"),
        _set("algorithm.rollout_correction.rollout_is", "token"),
    ),
    "GROUP-1": (
        _say("all right: use harder data; all wrong: use easier data, or check the answer parser on samples"),
        _raise(f"{_ROLLOUT}.n", "more responses differ more often", fits="groups"),
        _set("algorithm.filter_groups.enable", True, fits="groups"),
    ),
    "TEXT-1": (
        _READ_SAMPLES,
        _say("make the reward function give nothing for what is repeated, copied, or has no answer"),
        _raise(f"{_ROLLOUT}.temperature", "up to 1.2", value=1.2),
        *_STRONGER_KL,
    ),
    "EVICT-1": (
        _say("equal rewards: use data of another difficulty; check the reward on samples"),
        _raise(f"{_ROLLOUT}.n", "more responses differ more often", fits="groups"),
        _raise("trainer.v1.sampler.max_off_policy_threshold", "if groups are too old"),
        _say("too old: give the trainer more GPUs, or the rollout fewer"),
        _say("failed: look for errors of the rollout engine, tools or reward in the log"),
    ),
    "WAIT-1": (
        _raise(f"{_ROLLOUT}.n_gpus_per_node", "if the trainer waits"),
        _set("trainer.v1.separate_async.hybrid_rollout.enable_switch", True, "if the trainer waits"),
        _raise("trainer.n_gpus_per_node", "if the rollout waits"),
        _raise("trainer.v1.sampler.max_off_policy_threshold", "if the rollout waits"),
    ),
    "TURN-1": (
        Fix(f"{_ROLLOUT}.multi_turn.format", "check", "must be the tool format of the model"),
        Fix(f"{_ROLLOUT}.agent.default_agent_loop", "check", "single_turn_agent calls no tools; use tool_agent"),
        _say("check on samples that the prompt describes the tools and that the model tries to call one"),
    ),
    "THR-1": (
        _say("check for other processes on the GPU and for thermal throttling"),
        Fix(f"{_ROLLOUT}.gpu_memory_utilization", "check", "if too low, the engine preempts requests"),
        _say("check LEN-1 for longer responses"),
    ),
    "MEM-1": _GPU_MEMORY,
    "MEM-2": _HOST_MEMORY,
    "STALL-1": (
        _say("check the last log line and the GPU: no output and an idle GPU mean a dead or waiting process"),
        _say("look in the log for NCCL and engine timeouts, which are logged some minutes later"),
    ),
    "ERR-1": (_say("read the last exception of the traceback: the root cause is usually last"),),
}

CAUSES: dict[str, Sequence[Fix]] = {
    "memory": _GPU_MEMORY,
    "disk": (
        _say("free disk space, then resume from the previous checkpoint"),
        _lower("trainer.max_actor_ckpt_to_keep"),
    ),
    "nccl": (_say("find the rank that failed first: the others only waited for it"),),
    "actor": (_say("check host memory (MEM-2): a worker was killed"), *_HOST_MEMORY),
}


def fitting(fixes: Sequence[Fix], config: RunConfig, logged: Set[str]) -> tuple[Suggestion, ...]:
    """The fixes that fit the run, rendered. Where the configuration is silent, the logged keys decide."""

    def known(answer: bool | None, otherwise: bool) -> bool:
        return otherwise if answer is None else answer

    critic = known(config.has_critic, "critic/vf_loss" in logged)
    fits: dict[Fits, bool] = {
        "any": True,
        "critic": critic,
        "kl in reward": known(config.kl_in_reward, not logged.isdisjoint(("actor/reward_kl_penalty", "critic/kl"))),
        "kl in loss": known(config.kl_in_loss, "actor/kl_loss" in logged),
        "groups": known(config.group_based, not critic),
    }
    return tuple(fix.suggest(config) for fix in fixes if fits[fix.fits])
