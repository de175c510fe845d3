"""Writes docs/fields.md, the reference of preset fields, from launcher/preset/fields.toml: `make pages`."""

from pathlib import Path

from launcher.preset.fields import Spec
from launcher.preset.schema import TITLES, fields_of
from launcher.preset.yaml_text import text_of
from launcher.verl import versions

FILE = Path(__file__).parents[1] / "docs" / "fields.md"
HEAD = """# Preset fields

Look here for the name, the veRL key and the values of a field while you write a preset. `make pages` writes this page.

A field that is null leaves the value to veRL. Keys are those of the newest veRL; older versions get their own.
"""


def _row(spec: Spec) -> str:
    default = "null" if spec.default is None else text_of(spec.default)
    about = [spec.help, *([f"Null: as `{spec.follows}`."] if spec.follows else [])]
    key = f"`{spec.plus}{spec.key}`" if spec.key else ""
    cells = (f"`{spec.name}`", key, spec.allowed, spec.unit, f"`{default}`", " ".join(about))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def text() -> str:
    """The page."""
    lines = [HEAD]
    for group, title in TITLES.items():
        rows = [_row(spec) for spec in fields_of(group)]
        lines += [f"## {title}", "", "| field | veRL key | values | unit | default | meaning |"]
        lines += ["| --- " * 6 + "|", *rows, ""]
    lines += ["## Older names of keys", "", "| key | before | since |", "| --- | --- | --- |"]
    lines += [f"| `{move.new}` | `{move.old}` | {move.since} |" for move in versions.moves()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
