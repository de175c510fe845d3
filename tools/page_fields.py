"""Pages about presets: their fields, the shipped ones, recipes."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from page_words import cell, code, table

import presets as shipped_files
from launcher.core.format import number, yaml_number
from launcher.preset.fields import Spec
from launcher.preset.files import load, recipe_about, shipped
from launcher.preset.files import recipes as known_recipes
from launcher.preset.schema import BY_KEY, TITLES, fields_of
from launcher.verl import versions
from launcher.verl.usual import BY_VERL_KEY, RANGES, WITHOUT, UsualRange

FILES = Path(shipped_files.__path__[0])
EXAMPLES = Path(__file__).parents[1] / "tests/data/verl_examples.json.gz"
_LOSS = "actor_rollout_ref.actor.policy_loss.loss_mode"
ASKED = [
    "actor.lr",
    "critic.lr",
    "kl.loss_coef",
    "kl.coef",
    "data.train_batch_size",
    "actor.ppo_mini_batch_size",
    "rollout.n",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor.ppo_epochs",
    "actor.clip_ratio_low",
    "actor.clip_ratio_high",
    "rollout.temperature",
    "actor.entropy_coeff",
    "advantage.gamma",
    "advantage.lam",
    "actor.lr_warmup_steps_ratio",
    "actor.weight_decay",
    "model.lora_rank",
    "model.lora_alpha",
]
"""The most requested fields, in order of importance."""
_SCRIPTS: dict[str, Callable[[dict[str, object]], bool]] = {
    "LoRA": lambda script: bool(script.get("actor_rollout_ref.model.lora_rank")),
    "full fine-tuning": lambda script: not script.get("actor_rollout_ref.model.lora_rank"),
    "GSPO loss": lambda script: script.get(_LOSS) == "gspo",
    "vanilla loss": lambda script: script.get(_LOSS, "vanilla") == "vanilla",
}
"""The example scripts that a range applies to, by its `runs`."""


def fields() -> str:
    """Every field, group by group, and the older names of veRL's keys."""
    lines = []
    for group, title in TITLES.items():
        lines += [
            f"## {title}\n",
            table(("field", "meaning, veRL key", "values", "default, usual"), map(_row, fields_of(group))),
        ]
    moves = [(code(move.new), code(move.old), move.since) for move in versions.moves()]
    lines += ["## Sources of usual values\n", table(("fields", "usual", "source"), map(_source, RANGES))]
    reasons = {why: [name for name, each in WITHOUT.items() if each == why] for why in WITHOUT.values()}
    without = [(cell(why), ", ".join(map(code, names))) for why, names in reasons.items()]
    lines += ["Fields with numbers that have no usual range:\n", table(("reason", "fields"), without)]
    return "\n".join([*lines, "## Older names of keys\n", table(("key", "before", "since veRL"), moves)])


def _row(spec: Spec) -> tuple[str, ...]:
    unit = f" ({spec.unit})" if spec.unit else ""
    default = "veRL's" if spec.default is None and spec.key else _value(spec.default)
    if spec.follows and spec.default is None:
        default = f"that of {code(spec.follows)}"
    usual = "; ".join(cell(each.words) for each in BY_VERL_KEY.get(spec.key, ()))
    meaning = _lines(cell(spec.help), code(f"{spec.plus}{spec.key}"))
    return (code(spec.name), meaning, cell(spec.allowed + unit), _lines(default, usual))


def _lines(*parts: str) -> str:
    return "<br>".join(filter(None, parts))


def _source(range_: UsualRange) -> tuple[str, ...]:
    names = ", ".join(code(BY_KEY[key].name) for key in range_.keys)
    return (names, f"{cell(range_.words)} ([{range_.id}](findings.md#{range_.id.lower()}))", cell(range_.source))


def usual() -> str:
    """The most requested fields: usual values with sources, veRL's examples, and exceptions."""
    by_name = {spec.name: spec for group in TITLES for spec in fields_of(group)}
    rows = []
    for name in ASKED:
        key = by_name[name].key
        for range_ in BY_VERL_KEY.get(key, ()) or (None,):
            words, outside = "no source", ""
            if range_ is not None:
                words = _lines(cell(range_.words), cell(range_.source or "no source"))
                ends = (("below", range_.low, range_.below), ("above", range_.high, range_.above))
                outside = _lines(*(f"{end} {yaml_number(value)}: {cell(text)}" for end, value, text in ends if text))
            rows.append((_linked(name), words, _examples(key, range_), outside))
    tag = json.loads(gzip.decompress(EXAMPLES.read_bytes()))["tag"]
    return table(("field", "usual, source", f"veRL {tag}: scripts that set it", "outside"), rows)


def _linked(name: str) -> str:
    return f"[{code(name)}](../reference/fields.md)"


def _examples(key: str, range_: UsualRange | None) -> str:
    """A key's most frequent value in veRL's example scripts, the ends, and the number of scripts."""
    scripts = json.loads(gzip.decompress(EXAMPLES.read_bytes()))["examples"].values()
    fits = _SCRIPTS.get(range_.runs if range_ else "", lambda script: True)
    values = [each[key] for each in scripts if fits(each) and isinstance(each.get(key), (int, float))]
    if not values:
        return "none"
    ((most, count),) = Counter(values).most_common(1)
    ends = f"; {yaml_number(min(values))} to {yaml_number(max(values))}" if len(set(values)) > 1 else ""
    return f"{yaml_number(most)} in {count} of {len(values)}{ends}"


def _value(value: object) -> str:
    if value in (None, "", {}, []):
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else number(value) if isinstance(value, float) else value)


def presets() -> str:
    """The shipped presets with their files."""
    names = list(shipped())
    about = {name: load(name).preset for name in names}
    rows = [(f"[`{name}`](#{_anchor(name)})", about[name].needs, cell(about[name].description)) for name in names]
    return "\n".join([table(("preset", "needs", "description"), rows), *_files(names, FILES)])


def recipes() -> str:
    """The shipped recipes with their files."""
    names = [name for name in known_recipes() if (FILES / "recipes" / f"{name}.yaml").exists()]
    rows = [(f"[`{name}`](#{_anchor(name)})", cell(recipe_about(name))) for name in names]
    return "\n".join([table(("recipe", "what it sets"), rows), *_files(names, FILES / "recipes")])


def _files(names: list[str], folder: Path) -> list[str]:
    return [f"### {name}\n\n```yaml\n{(folder / f'{name}.yaml').read_text('utf-8').strip()}\n```\n" for name in names]


def _anchor(name: str) -> str:
    return name.replace(".", "")
