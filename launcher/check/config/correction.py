"""Corrections of the difference between engine and trainer: CORR-1 to CORR-3.

veRL: `verl/trainer/ppo/rollout_corr_helper.py: compute_rollout_rejection_mask, _parse_rollout_is_threshold,
apply_bypass_mode`, `verl/trainer/ppo/v1/trainer_base.py: _compute_advantage`.
"""

from typing import Any

from launcher.check.config.base import Findings, error, of_keys, warning
from launcher.check.subject import Subject
from launcher.core.format import counted
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
"""Measures by which veRL can reject responses, from 0.7.1 on."""


@of_keys
def limits(subject: Subject) -> Findings:
    """CORR-1: rejection has known measures and a limit for each; veRL reads them in the first step."""
    value = subject.get(WEIGHT_LIMIT)
    if subject.get(WEIGHTS) is not None and not _ordered(value):
        message = f"{WEIGHT_LIMIT} is {value!r}; veRL reads a number above 0, or two as '0.5_5'"
        yield error("CORR-1", message, "set correction.rollout_is_threshold to 2.0", [WEIGHT_LIMIT, WEIGHTS])
    if subject.get(REJECTION) is None or not subject.at_least("0.7.1"):
        return
    measures = [each.strip() for each in str(subject.get(REJECTION)).split(",") if each.strip()]
    for name in measures:
        if name not in OPTIONS:
            message = f"{REJECTION} has no measure '{name}'{did_you_mean(name, OPTIONS)}"
            yield error("CORR-1", message, f"use any of {', '.join(OPTIONS)}", [REJECTION])
    given = subject.get(REJECTION_LIMIT)
    if given is None:
        message = f"{REJECTION} is set, but {REJECTION_LIMIT} is not"
        yield error("CORR-1", message, "set correction.rollout_rs_threshold, such as 2.0", [REJECTION, REJECTION_LIMIT])
        return
    parts = [each.strip() for each in str(given).split(",") if each.strip()]
    if len(parts) not in (1, len(measures)):
        message = (
            f"{REJECTION} has {counted(len(measures), 'measure')}, and {REJECTION_LIMIT} {counted(len(parts), 'limit')}"
        )
        yield error("CORR-1", message, "give one limit for all, or one for each", [REJECTION, REJECTION_LIMIT])
        return
    for name, part in zip(measures, parts * (len(measures) if len(parts) == 1 else 1), strict=True):
        if not _ordered(part) or ("_" in part and not name.endswith("k1")):
            form = "a number above 0, or two as '0.5_2'" if name.endswith("k1") else "a number above 0"
            message = f"{REJECTION_LIMIT} is {part!r} for {name}; veRL reads {form}"
            yield error("CORR-1", message, "set correction.rollout_rs_threshold to 2.0", [REJECTION_LIMIT])


@of_keys
def log_probs(subject: Subject) -> Findings:
    """CORR-2: a correction requires the engine's own log-probabilities."""
    wanted = [key for key in (BYPASS, WEIGHTS, REJECTION) if subject.get(key) not in (None, False)]
    if not wanted or subject.flag(LOG_PROBS, False):
        return
    what = "fails in the first step" if wanted[0] == BYPASS else f"ignores {' and '.join(wanted)}"
    message = f"{LOG_PROBS} is false: veRL {what}"
    make = error if wanted[0] == BYPASS else warning
    change = {"rollout.calculate_log_probs": True}
    yield make("CORR-2", message, "set rollout.calculate_log_probs to true", [LOG_PROBS, *wanted], change)


def in_bypass_mode(subject: Subject) -> Findings:
    """CORR-3: in bypass mode, the v1 trainer leaves weights and rejection to a loss that does not read them."""
    if not subject.is_v1 or subject.get(BYPASS) is not True:
        return
    block = f"{ACTOR}.policy_loss.rollout_correction"
    wanted = [key for key in (WEIGHTS, REJECTION) if subject.get(key) is not None]
    if subject.get(f"{CORRECTION}.loss_type") == "reinforce":
        wanted.append(f"{CORRECTION}.loss_type")
    missing = [key for key in wanted if not subject.is_set(f"{block}.{key.rpartition('.')[2]}")]
    if wanted and subject.get(LOSS_MODE) == "bypass_mode" and missing and not subject.is_set(block):
        message = f"the loss bypass_mode does not read {', '.join(missing)}, but the same names in {block}"
        names = ", ".join(f"+{block}.{key.rpartition('.')[2]}" for key in missing)
        yield warning("CORR-3", message, f"set {names} under overrides", [*missing, LOSS_MODE])
    elif wanted and subject.get(LOSS_MODE) != "bypass_mode":
        message = f"in bypass mode the loss '{subject.get(LOSS_MODE)}' ignores {', '.join(wanted)}"
        fix = "set correction.bypass_mode to false, or trainer.use_v1 to false"
        yield warning("CORR-3", message, fix, [*wanted, BYPASS], {"correction.bypass_mode": False})


def _ordered(value: Any) -> bool:
    """Whether it is a number above 0, or two as in `0.5_5`, the smaller first."""
    if isinstance(value, bool):
        return False
    try:
        numbers = [float(part) for part in str(value).strip().split("_", 1)]
    except ValueError:
        return False
    return 0 < numbers[0] <= numbers[-1]


RULES = (limits, log_probs, in_bypass_mode)
