"""The page about JSON: the output of each command with --json, from the schemas of `ppo-tui schema`."""

import re

from page_runs import RECORDS
from page_words import cell, code, sentence, table

from launcher.cli.schemas import Shape, printed, shapes

OBJECT = re.compile(r"\b[A-Z]\w+")


def json() -> str:
    """The commands with their objects, and a table of the fields of each object."""
    rows = [(code(name), _linked(", ".join(objects))) for name, objects in printed().items()]
    lines = [table(("command", "objects"), rows)]
    for name, shape in shapes().items():
        lines += [f"## {name}\n", f"{sentence(shape.about)}{_filed(shape)}\n"]
        fields = [*(each for each in shape.fields if not each.filed), *([shape.more] if shape.more else [])]
        if fields:
            names = [code(each.name + "?" * (not each.always)) for each in fields]
            body = [(_linked(each.kind), cell(each.meaning), each.since) for each in fields]
            head = ("field", "type", "meaning", "since")
            lines.append(table(head, ((name, *cells) for name, cells in zip(names, body, strict=True))))
    return "\n".join(lines)


def _linked(kinds: str) -> str:
    """Types in words, with links to objects."""
    return OBJECT.sub(lambda found: f"[{found[0]}](#{found[0].lower()})", kinds)


def _filed(shape: Shape) -> str:
    """A link to the explanation of shared fields of a run's file, and the fields newer than 0.1."""
    fields = [each for each in shape.fields if each.filed]
    if not fields:
        return ""
    file = next(file for file, kinds in RECORDS.items() if shape.record in kinds)
    anchor = "".join(letter for letter in file.lower() if letter.isalnum())
    new = {each.since: [code(other.name) for other in fields if other.since == each.since] for each in fields}
    since = [f" Since {release}: {', '.join(names)}." for release, names in sorted(new.items()) if release != "0.1.0"]
    return f" The fields are those of [{shape.record.__name__}](files.md#{anchor}).{''.join(since)}"
