"""The changes of a fix to a configuration: settings with old and new values. All advice is settled here."""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from launcher.core.errors import UserError
from launcher.health.worse import worsens
from launcher.preset.effective import EffectiveConfig, Setting, Source, of_draft
from launcher.preset.field_values import field_named, where_of
from launcher.preset.files import LoadedPreset, restore
from launcher.preset.schema import FIELDS
from launcher.preset.translate import OURS
from launcher.preset.yaml_text import text_of, value_of
from launcher.record.fix import UNKNOWN, Change, Fix, Offer
from launcher.record.info import Edit
from launcher.verl.config import BATCH, MINI
from launcher.verl.usual import usual_of
from launcher.verl.versions import newest

_RATE = 0.1  # below, a value is a rate or a coefficient with a logarithmic scale
_ORIGINS: Mapping[Source, str] = {
    "default": "veRL's default",
    "field": "set in the preset",
    "derived": "follows from another field",
    "override": "set in the preset",
    "ppo-tui": "ppo-tui's default",
}
_value_of = functools.lru_cache(maxsize=4096)(value_of)  # a log has hundreds of settings
_COEFFICIENT = 0.001  # veRL's default for the KL, in the loss and in the reward


def origin_words(key: str, config: EffectiveConfig) -> str:
    """The origin of a key's current value."""
    where = where_of(key)
    spec = FIELDS.get(".".join(where))
    return _ORIGINS[config.source(spec.key if spec else where[-1])]


def settings_of(edits: Sequence[Edit]) -> tuple[str, ...]:
    """KEY=VALUE for each edit."""
    return tuple(f"{edit.key}={text_of(edit.now)}" for edit in edits)


def configuration(preset: Mapping[str, Any]) -> EffectiveConfig:
    """The configuration of a run's preset; veRL's if it is unreadable."""
    try:
        return configured(restore("", preset))
    except UserError:
        return EffectiveConfig()


def configured(loaded: LoadedPreset) -> EffectiveConfig:
    """The configuration of a preset."""
    return of_draft(loaded.layer)


def of_log(settings: Mapping[str, str]) -> EffectiveConfig | None:
    """The configuration with a log's settings; None for a log without any."""
    known = {newest(key): text for key, text in settings.items()} | dict(settings)
    given = {key: Setting(None if text == "None" else _value_of(text), "override") for key, text in known.items()}
    return EffectiveConfig(settings=given) if given else None


@functools.lru_cache(maxsize=4096)  # without a field, a refusal searches the nearest name
def shown_name(key: str) -> str:
    """A key as typed by users: its preset field, or the veRL key without one."""
    try:
        return field_named(key)
    except UserError:
        return key


def offers(
    fixes: Sequence[Fix],
    config: EffectiveConfig | None,
    *,
    imported: bool = False,
    complete: bool = False,
    rules: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> tuple[Offer, ...]:
    """The fixes that a run can use and that change `config`; without values if it is unknown.

    Excludes fixes that worsen `rules`; `values` come first, as in `settle`.
    """
    unfit = {"own run": imported, "steps left": imported or complete}
    fixes = [fix for fix in fixes if not unfit.get(fix.fits)]
    if config is None:
        return tuple(Offer(fix, fix.sentence(shown_name)) for fix in fixes)
    fits = {
        "critic": config.has_critic,
        "kl in reward": config.kl_in_reward,
        "kl in loss": config.kl_in_loss,
        "groups": config.group_based,
        "gpu": not config.on_cpu,
    }
    found, group = list[Offer](), False  # whether a fix remains before an alternative
    for fix in fixes:
        group = group and fix.alternative
        offer = _offer(replace(fix, alternative=group), config, values) if fits.get(fix.fits, True) else None
        if offer is not None and not harms(rules, offer.edits, config):
            found.append(offer)
            group = True
    return tuple(found)


def harms(rules: Sequence[str], edits: Sequence[Edit], config: EffectiveConfig) -> bool:
    """Whether edits move a setting of a configuration in a direction that worsens a rule."""
    for edit in edits:
        key = _verl_key(edit.key)
        now = EffectiveConfig().get(key) if edit.now is None else edit.now
        if any(worsens(rule, key, config.get(key), now) for rule in rules):
            return True
    return False


def settle(fix: Fix, config: EffectiveConfig, values: Mapping[str, Any] | None = None) -> tuple[Edit, ...]:
    """The edits of a fix; empty for advice without a value, and for values in force or at their bound.

    A value of `values` (from the run's parent, or computed by `check`) comes first if it is in the fix's direction.
    Then comes the first example beyond the current value. Without an example, a value beyond its usual range moves to
    the range's end. Within the range a rate changes by a factor of five, a count by two.
    """
    edits = {}
    for change in fix.changes:
        key, now = setting_name(change.key), value_now(change.key, config)
        value = moved(change, now, (values or {}).get(key), _usual(change.key, config))
        spec = FIELDS.get(".".join(where_of(change.key)))
        if value is not None and value != now and (spec is None or spec.allows(value)):
            edits[key] = Edit(key, now, value)
    batch, mini = edits.get(shown_name(BATCH)), config.whole(MINI)
    if batch is not None and mini and type(batch.before) is int and batch.before > 0:  # same number of updates per step
        own = max(1, mini * int(batch.now) // batch.before)
        edits.setdefault(shown_name(MINI), Edit(shown_name(MINI), mini, own))
    return tuple(edits.values())


def setting_name(key: str) -> str:
    """The name for a fix's key in KEY=VALUE: its preset field, or the key with the fix's prefix."""
    name = shown_name(key)
    return name if name in FIELDS else key


def value_now(key: str, config: EffectiveConfig) -> Any:
    """The current value of a key, or of a field by its name."""
    return config.get(_verl_key(key))


def _verl_key(key: str) -> str:
    where = where_of(key)
    spec = FIELDS.get(".".join(where))
    return spec.key if spec else where[-1]


def _usual(key: str, config: EffectiveConfig) -> tuple[float, float] | None:
    """The usual range of a setting, or of the setting that it follows."""
    followers = (spec.key for spec in FIELDS.values() if spec.follows == shown_name(key))
    found = (usual_of(config, each) for each in (_verl_key(key), *followers))
    return next((each.usual for each in found if each is not None and not each.off), None)


def _offer(fix: Fix, config: EffectiveConfig, values: Mapping[str, Any] | None) -> Offer | None:
    """A fix with its remaining changes; None without any."""
    mine = [change for change in fix.changes if _settable(change.key)]
    if not mine:
        return Offer(fix, fix.sentence(shown_name))
    edits = settle(replace(fix, changes=tuple(mine)), config, values)
    left = tuple(change for change in fix.changes if change not in mine or not _idle(change, edits, config))
    if not left:
        return None
    fix = replace(fix, changes=left)
    moves = {change.key: (text_of(edit.before), text_of(edit.now)) for change, edit in _pairs(fix, edits)}
    return Offer(fix, fix.sentence(shown_name, moves), setting_name(left[0].key), edits)


def _pairs(fix: Fix, edits: Sequence[Edit]) -> Iterator[tuple[Change, Edit]]:
    by_key = {edit.key: edit for edit in edits}
    for change in fix.changes:
        if (edit := by_key.get(setting_name(change.key))) is not None:
            yield change, edit


def _idle(change: Change, edits: Sequence[Edit], config: EffectiveConfig) -> bool:
    """Whether following a change would change nothing."""
    if setting_name(change.key) in {edit.key for edit in edits}:
        return False
    match change.operation:
        case "set":
            now = value_now(change.key, config)
            return any(_typed(value) == now for value in change.values)
        case "lower" | "raise":
            return value_now(change.key, config) is not None
        case "remove":
            where = where_of(change.key)
            return where[0] != "env" and not config.is_set(where[-1])
    return False


def _settable(key: str) -> bool:
    """Whether a word is a key of presets."""
    try:
        return where_of(key)[-1] not in OURS
    except UserError:
        return False


def moved(change: Change, now: Any, before: Any, usual: tuple[float, float] | None = None) -> Any:
    """The value after a change; None without one, or without one beyond the current value."""
    values = [_typed(value) for value in change.values if not (isinstance(value, str) and UNKNOWN in value)]
    if change.operation == "set":
        return values[0] if values else None
    if change.operation not in ("lower", "raise"):
        return None
    if isinstance(now, bool) or not isinstance(now, int | float):  # unset: use the most extreme example
        return values[-1] if values else None
    numbers = [value for value in (before, *values) if isinstance(value, int | float)]
    further = [value for value in numbers if (value < now if change.operation == "lower" else value > now)]
    return further[0] if further else None if values else _stepped(change, now, usual)


def _stepped(change: Change, now: float, usual: tuple[float, float] | None) -> float | None:
    """The end of the `usual` range for a value beyond it. Within it, a fifth or five times a rate, half or twice a
    count. A coefficient of 0 becomes 0.001.
    """
    up = change.operation == "raise"
    low, high = usual or (-math.inf, math.inf)
    factor = 2.0 if isinstance(now, int) or now >= _RATE else 5.0
    value = now * factor if up else now / factor
    if up and now == 0 and change.key.endswith("_coef"):
        value = _COEFFICIENT
    value = low if up and now < low else high if not up and now > high else min(max(value, low), high)
    if value == now or (value > now) != up:
        return None
    return (int(value) or None) if isinstance(now, int) else float(f"{value:.3g}")  # there is no half epoch


def _typed(value: Any) -> Any:
    return value_of(value) if isinstance(value, str) else value
