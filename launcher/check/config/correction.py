"""Corrections of the mismatch of engine and trainer: CORR-1 to CORR-3.

veRL: `verl/trainer/ppo/rollout_corr_helper.py: compute_rollout_rejection_mask, _parse_rollout_is_threshold,
apply_bypass_mode`, `verl/trainer/ppo/v1/trainer_base.py: _compute_advantage`.
"""

from typing import Any

from launcher.check.config.base import Findings, of_keys
from launcher.check.finding import found
from launcher.check.subject import Subject
from launcher.core.text import did_you_mean
from launcher.verl.config import ACTOR, CORRECTION, LOSS_MODE, ROLLOUT

WEIGHTS, WEIGHT_LIMIT = f"{CORRECTION}.rollout_is", f"{CORRECTION}.rollout_is_threshold"
REJECTION, REJECTION_LIMIT = f"{CORRECTION}.rollout_rs", f"{CORRECTION}.rollout_rs_threshold"
BYPASS, LOG_PROBS = f"{CORRECTION}.bypass_mode", f"{ROLLOUT}.calculate_log_probs"
OPTIONS = (
    *(f"{level}_k{number}" for level in ("token", "seq_sum", "seq_mean") for number in (1, 2, 3)),
    "seq_max_k2",
    "seq_max_k3",
)
"""Measures for rejecting responses, from 0.7.1 on."""


@of_keys
def limits(subject: Subject) -> Findings:
    """CORR-1: rejection has known measures with one limit each; veRL reads them in the first step."""
    value = subject.get(WEIGHT_LIMIT)
    if subject.get(WEIGHTS) is not None and not _ordered(value):
        yield found("CORR-1.threshold", value=value)
    if subject.get(REJECTION) is None or not subject.at_least("0.7.1"):
        return
    measures = [each.strip() for each in str(subject.get(REJECTION)).split(",") if each.strip()]
    for name in measures:
        if name not in OPTIONS:
            yield found("CORR-1.measure", name=name, near=did_you_mean(name, OPTIONS))
    given = subject.get(REJECTION_LIMIT)
    if given is None:
        yield found("CORR-1.no-limit")
        return
    parts = [each.strip() for each in str(given).split(",") if each.strip()]
    if len(parts) not in (1, len(measures)):
        yield found("CORR-1.limits", measures=len(measures), parts=len(parts))
        return
    for name, part in zip(measures, parts * (len(measures) if len(parts) == 1 else 1), strict=True):
        if not _ordered(part) or ("_" in part and not name.endswith("k1")):
            form = "a number above 0, or two as '0.5_2'" if name.endswith("k1") else "a number above 0"
            yield found("CORR-1.limit", part=part, name=name, form=form)


@of_keys
def log_probs(subject: Subject) -> Findings:
    """CORR-2: a correction requires the engine's log-probabilities."""
    wanted = [key for key in (BYPASS, WEIGHTS, REJECTION) if subject.get(key) not in (None, False)]
    if not wanted or subject.flag(LOG_PROBS, False):
        return
    yield found(f"CORR-2.{'fails' if wanted[0] == BYPASS else 'ignored'}", wanted=wanted, keys=[LOG_PROBS, *wanted])


def in_bypass_mode(subject: Subject) -> Findings:
    """CORR-3: in bypass mode, the v1 trainer passes weights and rejection to a loss that ignores them."""
    if not subject.is_v1 or subject.get(BYPASS) is not True:
        return
    block = f"{ACTOR}.policy_loss.rollout_correction"
    wanted = [key for key in (WEIGHTS, REJECTION) if subject.get(key) is not None]
    if subject.get(f"{CORRECTION}.loss_type") == "reinforce":
        wanted.append(f"{CORRECTION}.loss_type")
    missing = [key for key in wanted if not subject.is_set(f"{block}.{key.rpartition('.')[2]}")]
    if wanted and subject.get(LOSS_MODE) == "bypass_mode" and missing and not subject.is_set(block):
        names = ", ".join(f"+{block}.{key.rpartition('.')[2]}" for key in missing)
        yield found("CORR-3.loss", missing=missing, names=names, keys=[*missing, LOSS_MODE])
    elif wanted and subject.get(LOSS_MODE) != "bypass_mode":
        yield found("CORR-3.ignored", value=subject.get(LOSS_MODE), wanted=wanted, keys=[*wanted, BYPASS])


def _ordered(value: Any) -> bool:
    """Whether it is a positive number, or two ascending ones as in `0.5_5`."""
    if isinstance(value, bool):
        return False
    try:
        numbers = [float(part) for part in str(value).strip().split("_", 1)]
    except ValueError:
        return False
    return 0 < numbers[0] <= numbers[-1]


RULES = (limits, log_probs, in_bypass_mode)
