"""Pages about presets: their fields, the shipped ones, recipes."""

from pathlib import Path

from page_words import cell, code, table

import presets as shipped_files
from launcher.core.format import number
from launcher.preset.fields import Spec
from launcher.preset.files import load, recipe_about, shipped
from launcher.preset.files import recipes as known_recipes
from launcher.preset.schema import BY_KEY, TITLES, fields_of
from launcher.verl import versions
from launcher.verl.usual import BY_VERL_KEY, RANGES, WITHOUT, UsualRange

FILES = Path(shipped_files.__path__[0])


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
