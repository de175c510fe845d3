"""`make pages`: writes the generated parts of docs/ and README.md from the code, its tables and recorded results.

A page has its own text; parts between `<!-- begin NAME -->` and `<!-- end NAME -->` are written here.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import matrix
import page_about
import page_fields
import page_frameworks
import page_json
import page_program
import page_rules
import page_runs
import page_wrong

DOCS = Path(__file__).parents[1] / "docs"
PART = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)

PARTS: dict[str, Callable[[], str]] = {
    "tagline": page_about.tagline,
    "checkout": page_about.checkout,
    "commands": page_program.commands,
    "keys": page_program.keys,
    "gallery": page_program.gallery,
    "settings": page_program.settings,
    "signs": page_program.signs,
    "letters": page_program.letters,
    "fields": page_fields.fields,
    "usual": page_fields.usual,
    "presets": page_fields.presets,
    "recipes": page_fields.recipes,
    "rules": page_rules.rules,
    "findings": page_rules.findings,
    "preflight-corpus": page_rules.corpus,
    "causes": page_runs.causes,
    "messages": page_runs.messages,
    "alert": page_runs.alert,
    "stalls": page_runs.stalls,
    "stalls-planted": page_runs.planted,
    "metrics": page_runs.metrics,
    "json": page_json.json,
    "frameworks": page_frameworks.frameworks,
    "records": page_runs.records,
    "trust": page_wrong.trust,
    "wrong-shares": page_wrong.shares,
    "wrong-worst": page_wrong.worst,
    **{f"matrix-{name}": part for name, part in matrix.PARTS.items()},
}


def pages() -> Iterator[Path]:
    """All pages with generated parts: the documentation and the README."""
    yield from (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))


def parts(text: str) -> list[str]:
    """The names of the generated parts of a page."""
    return [found[2] for found in PART.finditer(text)]


def filled(text: str) -> str:
    """The page with its generated parts up to date."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]().strip()}\n\n{found[3]}", text)


WRITERS = (
    (filled, list(pages())),
    (page_about.settings, [DOCS.with_name("pyproject.toml"), DOCS.with_name("zensical.toml")]),
)


def main() -> None:
    page_program.write_words()
    for write, files in WRITERS:
        for file in files:
            before = file.read_text("utf-8")
            if (now := write(before)) != before:
                file.write_text(now, "utf-8")
                print(file.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
