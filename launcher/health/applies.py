"""Conditions of rules.toml: which rules do not apply to a run, and which fixes fit it."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace

from launcher.core.format import number
from launcher.health.catalogue import plain_settings, supervised_settings
from launcher.health.config import RunConfig
from launcher.health.keys import CLIPPED
from launcher.metrics.frameworks import Framework
from launcher.record.fix import Change, Fix
from launcher.verl.config import ACTOR, BATCH, CORRECTION, GAMMA, LOSS_MODE, MINI, ROLLOUT

_MODE = "trainer.v1.trainer_mode"
_SEQUENCES = ("sequence", "")
_TOOLS = tuple(f"{ROLLOUT}.multi_turn.{name}" for name in ("tool_config_path", "function_tool_path"))


def _reference(config: RunConfig) -> str | None:
    if config.kl_in_reward is False and config.kl_in_loss is False:
        return "no KL logged" if config.framework else "no KL logged; set use_kl_loss or use_kl_in_reward"
    return None


def _clipping(config: RunConfig) -> str | None:
    mode = config.clips_by_design
    if LOSS_MODE not in config and config.framework is not None:  # veRL's own is vanilla
        return f"the policy loss is unknown, and some losses clip by design; set it ({LOSS_MODE})"
    if config.framework is not None and not config.framework.units(CLIPPED[0], config.estimator).isdisjoint(_SEQUENCES):
        return "the clip ratio may count sequences instead of tokens"
    return f"the {mode} loss clips by design" if mode else None


def _tools(config: RunConfig) -> str | None:
    if any(config.text(key) for key in _TOOLS):
        return None
    return f"{'whether tools are on is unknown' if config.framework else 'no tools in this run'} ({_TOOLS[0]})"


def _separate(config: RunConfig) -> str | None:
    mode = config.text(_MODE)
    if mode is None and config.framework:
        return "whether trainer and rollout share their GPUs is unknown"
    return None if mode in (None, "separate_async") else "trainer and rollout share their GPUs"


def _one_update(config: RunConfig) -> str | None:
    if config.several_updates is None:
        return f"{BATCH} or {MINI} is unknown"
    if config.several_updates:
        return "several updates per batch"
    return "the old policy is the rollout policy (bypass_mode)" if config.flag(f"{CORRECTION}.bypass_mode") else None


def _sampling(config: RunConfig) -> str | None:
    unknown = all(config.number(f"{ROLLOUT}.{name}") is None for name in ("top_p", "top_k"))
    return "rollout.top_p and rollout.top_k are unknown" if unknown else None


def _discounting(config: RunConfig) -> str | None:
    gamma = config.number(GAMMA)
    if config.discounts is False:
        return f"no discounting in this run ({config.estimator})"
    if config.discounts is None or gamma is None:
        return f"{GAMMA} is unknown"
    return None if 0 <= gamma < 1 else f"no discounting in this run (gamma {number(gamma)})"


REASONS: dict[str, Callable[[RunConfig], str | None]] = {
    "always": lambda config: None,
    "reference": _reference,
    "clipping": _clipping,
    "critic": lambda config: f"no critic in this run ({config.estimator})" if config.has_critic is False else None,
    "groups": lambda config: "this estimator has no groups" if config.group_based is False else None,
    "validation": lambda config: (
        None if config.validates else "no validation in this run (trainer.test_freq, trainer.val_before_train)"
    ),
    "batch": lambda config: None if (config.number(BATCH) or 0) > 0 else f"{BATCH} is unknown",
    "separate": _separate,
    "tools": _tools,
    "one update": _one_update,
    "sampling": _sampling,
    "decay": lambda config: (
        "actor.optim.weight_decay is unknown" if config.number(f"{ACTOR}.optim.weight_decay") is None else None
    ),
    "discounting": _discounting,
}
"""Per condition, the reason why its rules do not apply to a run; None if they apply."""


def fitting(fixes: Sequence[Fix], config: RunConfig, logged: Set[str]) -> tuple[Fix, ...]:
    """The fixes that fit the run. Keys missing from the configuration are judged by the logged keys."""

    def known(answer: bool | None, otherwise: bool) -> bool:
        return otherwise if answer is None else answer

    critic = known(config.has_critic, "critic/vf_loss" in logged)
    fits: dict[str, bool] = {
        "any": True,
        "critic": critic,
        "kl in reward": known(config.kl_in_reward, not logged.isdisjoint(("actor/reward_kl_penalty", "critic/kl"))),
        "kl in loss": known(config.kl_in_loss, "actor/kl_loss" in logged),
        "groups": known(config.group_based, not critic),
        "gpu": config.text("trainer.device") != "cpu",
    }
    found = tuple(fix for fix in fixes if fits[fix.fits])
    if config.supervised:
        found = tuple(fix for fix in found if {change.key for change in fix.changes} <= supervised_settings())
    return tuple(_of_framework(found, config.framework, config)) if config.framework else found


def _of_framework(fixes: Sequence[Fix], framework: Framework, config: RunConfig) -> Iterator[Fix]:
    """The fixes in the framework's setting names or in plain words; changes with neither are left out.

    A number that is 1 is not lowered.
    """
    settings = framework.settings
    defaults = {settings[name]: value for name, value in framework.defaults.items() if name in settings}
    theirs = {ours: name for name, ours in reversed([*framework.settings.items()])}
    group = False  # whether a fix remains before an alternative
    for fix in fixes:
        group = group and fix.alternative
        kept = (
            each
            for each in fix.changes
            if each.operation != "lower" or config.get(each.key, defaults.get(each.key)) != 1
        )
        changes = tuple(filter(None, (_named(each, theirs.get(each.key)) for each in kept)))
        if changes or not fix.changes:
            yield replace(fix, changes=changes, alternative=group)
            group = True


def _named(change: Change, name: str | None) -> Change | None:
    if name is not None:
        return replace(change, key=name)
    words = plain_settings().get(change.key)
    if words is None:
        return None
    if change.operation == "set":  # no KEY=VALUE
        return Change(words, "choose", words=str(change.values[0]))
    return replace(change, key=words)
