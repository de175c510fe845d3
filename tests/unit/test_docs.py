"""The documentation against the program: generated parts, links, commands, names, and blocks that are run."""

import re
from collections import Counter
from collections.abc import Iterable
from operator import and_
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import screenshot
import tomllib
import yaml
from cast_svg import Frame, animated
from casts import recorded
from commands import call
from doc_pages import ALL, DOCS, PAGES, README, ROOT, anchors, blocks, commands, links, name, prose
from page_about import settings
from page_outputs import follow, normal, shown, with_commands
from page_program import tree
from page_wrong import measured
from pages import PART, PARTS, filled, parts
from PIL import Image
from terminal_cells import Cell

from launcher.check.finding import variants
from launcher.cli.parsing import examples
from launcher.console.causes import catalogue
from launcher.core.about import ABOUT
from launcher.core.tables import read_tables
from launcher.health.catalogue import rules
from launcher.preset.files import recipes, shipped
from launcher.preset.layers import ROOTS
from launcher.preset.schema import FIELDS
from launcher.settings import _NAMES


def nightly(pages: Iterable[Path], *inputs: str, **every: int) -> list[Any]:
    marks = {page: pytest.mark.nightly(str(page.relative_to(ROOT)), *inputs, **every) for page in pages}
    return [pytest.param(page, marks=mark) for page, mark in marks.items()]


ON_THE_TOY = nightly(page for page in with_commands() if any(each.on_toy for each in shown(page)))
DRAWN = {"svg", "title", "style", "rect", "g", "text", "path"}
DATA = ROOT / "tests" / "data"
PROJECT, SITE = ROOT / "pyproject.toml", ROOT / "zensical.toml"
GROUPS = {"data", "preset", "config"}
LONGEST = 700  # words of a guide, without outputs, generated parts and comments


GENERATED = [page for page in (README, *PAGES) if parts(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", [*GENERATED, PROJECT, SITE], ids=name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == (settings if page.suffix == ".toml" else filled)(text), "make pages"


def test_every_generated_part_has_a_place() -> None:
    assert {part for page in GENERATED for part in parts(page.read_text("utf-8"))} == set(PARTS)


@pytest.mark.parametrize("address", ["", "https://github.com/owner/name"])
def test_one_setting_brings_the_address_to_all_places(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ABOUT, "repository", address)
    project = tomllib.loads(settings(PROJECT.read_text("utf-8")))["project"]
    assert project.get("urls", {}).get("Repository", "") == address
    site = tomllib.loads(settings(SITE.read_text("utf-8")))["project"]
    assert (site["site_url"], project["description"]) == (
        "https://owner.github.io/name/" if address else "",
        site["site_description"],
    )
    assert (f"git clone {address}`" in filled(README.read_text("utf-8"))) == bool(address)
    shown = call(["stop", "--help"])[0].decode()
    assert (
        (f"Documentation: {address}/blob/main/docs/" in shown)
        == ("ppo-tui help explanation" not in shown)
        == bool(address)
    )


@pytest.mark.parametrize("page", sorted((DOCS / "howto").iterdir()), ids=name)
def test_a_guide_is_short(page: Path) -> None:
    text = PART.sub("", page.read_text("utf-8"))
    for left_out in (r"^ *```output\n.*?```$", r"<!--.*?-->"):
        text = re.sub(left_out, "", text, flags=re.DOTALL | re.MULTILINE)
    assert len(text.split()) <= LONGEST


@pytest.mark.parametrize("page", ALL, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert page not in PAGES or target.is_relative_to(DOCS), f"{link} leaves the site"
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


def test_the_site_has_every_page_and_the_version() -> None:
    text = (ROOT / "zensical.toml").read_text("utf-8")
    named = re.findall(r'= "([\w./-]+\.md)"', text)
    assert sorted(set(named)) == sorted(str(page.relative_to(DOCS)) for page in PAGES)
    skill = (DOCS / "SKILL.md").read_text("utf-8")
    version = re.findall(r'^version = "(.+?)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert re.findall(r'^copyright = "ppo-tui (.+?)"', text, re.MULTILINE) == version
    assert re.findall(r'^  version: "(.+?)"', skill, re.MULTILINE) == version


@pytest.mark.parametrize("page", sorted((DOCS / "evidence").iterdir()), ids=name)
def test_a_search_in_the_site_leaves_evidence_out(page: Path) -> None:
    assert page.read_text("utf-8").startswith("---\nsearch:\n  exclude: true\n---\n")


def test_the_tables_of_fields_have_at_most_four_columns() -> None:
    text = (DOCS / "reference/fields.md").read_text("utf-8")
    assert {row.count("---") for row in text.splitlines() if row.startswith("| ---")} <= {2, 3, 4}


@pytest.mark.parametrize("page", [page for page in ALL if page.name != "CHANGELOG.md"], ids=name)
def test_commands_can_be_typed(page: Path) -> None:
    """Commands, options and settings that a page names."""
    known = tree()
    for words in commands(page):
        words = words[2:] if words[:1] == ["--host"] else words
        if not words or words[0].startswith("-") or words[0] == "COMMAND":
            continue
        path = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        assert path in known, words
        command = known[path][0]
        options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
        for word in words[len(path.split()) :]:
            if word.startswith("-") and len(word) > 1:
                assert word.partition("=")[0] in options, f"{path} has no {word}"
            elif setting := re.fullmatch(r"([a-z+~][\w.+]*)=.*", word):
                key = setting[1].lstrip("+~")
                blocks_of_ours = {"health", "env", "sweep", "overrides", "port"}
                assert key in FIELDS or key.partition(".")[0] in {*ROOTS, *blocks_of_ours}, word


def test_every_command_has_a_page_and_two_examples() -> None:
    rows = {name: row for group in examples().values() for name, row in group.items()}
    assert set(rows) == set(tree()) - GROUPS
    for path, row in rows.items():
        one, other = row["examples"]
        assert (DOCS / f"{row['page']}.md").exists() and f"ppo-tui {path}" in one, path
        assert {*one.split()} ^ {*other.split()} > {"--json"} or "--json" not in one + other, path


def test_every_setting_of_ppo_tui_is_described() -> None:
    page = (DOCS / "reference/config.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| .*\| .*\| .*\|$", page, re.MULTILINE)) >= set(_NAMES)


@pytest.mark.parametrize("page", ALL, ids=name)
def test_names_exist(page: Path) -> None:
    """Rules, findings and presets that a page mentions."""
    text = prose(page)
    known = {*rules(), *variants(), "UTF-8", "UTF-16", "SHA-256"}
    assert {id for id in re.findall(r"(?<![\w/-])[A-Z]{2,}-\d+\b", text) if id not in known} == set()
    presets = {*shipped(), *recipes()}
    named = re.findall(r"`((?:gsm8k|math|toy)-[\w.-]+)`", text)
    assert {each for each in named if not each.endswith((".log", ".sbatch", ".py")) and each not in presets} == set()


def test_health_rules_are_described() -> None:
    words = read_tables(ROOT / "launcher/health/limits.toml")
    assert set(words) == set(rules())
    for rule, limits in words.items():
        assert set(limits) == {limit.partition(".")[2] for limit in rules()[rule].limits}, rule


@pytest.mark.parametrize("page", ALL, ids=name)
def test_counts_are_right(page: Path) -> None:
    text = page.read_text("utf-8")
    counted = re.findall(r"(\d+) health rules|\| rules that judge [a-zA-Z ]+ \| (\d+)|\d of (\d+) rules judge", text)
    assert {"".join(each) for each in counted} <= {str(len(rules()))}
    assert set(re.findall(r"(\d+) causes", text)) <= {str(len(catalogue()))}


def test_every_tutorial_has_its_recording() -> None:
    """Small, without a script, embedded in its page, and without an error that its row does not explain."""
    casts = {path.stem: path.read_text("utf-8") for path in (DOCS / "casts").iterdir()}
    pages = {page.stem: page.read_text("utf-8") for page in (DOCS / "tutorials").iterdir()}
    pages |= {"readme": README.read_text("utf-8"), "first-run": (DOCS / "start/first-run.md").read_text("utf-8")}
    rows = read_tables(ROOT / "tools/casts.toml")
    assert set(casts) == set(pages) == set(rows)
    for which, svg in casts.items():
        assert bool(re.search(r"would fail|error [A-Z]|error:", svg)) == ("error" in rows[which]), which
        assert len(svg.encode()) < 200_000, which
        assert {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(svg).iter()} <= DRAWN, which
        assert f"casts/{which}.svg)" in pages[which], which


def layer(svg: str) -> set[str]:
    """The text of a recording, without what differs from run to run."""
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    return set(normal(texts, numbers=True))


@pytest.mark.nightly("tools/", "tui/", "launcher/", "docs/casts/")
@pytest.mark.parametrize("row", sorted({*read_tables(ROOT / "tools/casts.toml")} - {"collapse", "first-run", "readme"}))
def test_a_recording_shows_what_is_printed_today(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of all but those of `demo` and of the toy, whose runs move while they are recorded: make pictures."""
    monkeypatch.setenv("PPO_TUI_HOME", "")  # the recording sets another one
    drawn = recorded(row, read_tables(ROOT / "tools/casts.toml")[row])
    assert layer(drawn) == layer((DOCS / f"casts/{row}.svg").read_text("utf-8"))


@pytest.mark.nightly("tools/", "tui/", "launcher/", "docs/pictures/")
def test_the_pictures_show_the_screen_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text layer of each: make pictures."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    for which, svg in screenshot.pictures(tmp_path).items():
        text = screenshot.text_of(svg, screenshot.COLUMNS, screenshot.ROWS)
        with Image.open(DOCS / f"pictures/{which}.png") as picture:
            before = str(picture.info[screenshot.LAYER])
        assert normal(before.splitlines(), numbers=True) == normal(text.splitlines(), numbers=True), which


def test_a_recording_draws_a_row_once_and_shows_it_while_its_frames_last() -> None:
    def row(text: str) -> list[Cell]:
        return [(sign, "#d0d0d0", False, None) for sign in text]

    svg = animated([Frame([row("stays"), row("first")], "", 1), Frame([row("stays"), row("a < b ⣿█")], "", 3)], 9, 2)
    assert svg.count("stays") == svg.count("first") == svg.count("a &lt; b") == 1
    assert "0.00%{visibility:visible}25.00%{visibility:hidden}" in svg and "4.0s step-end infinite" in svg
    assert svg.count("h0M") == 7 and "⣿" not in svg and "█" not in svg, "dots and bars are drawn"
    assert svg.count(";visibility:hidden}") == 1, "without movement, it shows the last frame"


def test_the_readme_is_short() -> None:
    text = re.sub(r"<[^>]+>|\]\([^)]*\)|[#|`*>-]", " ", README.read_text("utf-8"))
    assert len(text.split()) <= 900


@pytest.mark.slow
@pytest.mark.parametrize("page", nightly(with_commands(), "launcher/", "tools/page_", every=5), ids=name)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Those that need neither minutes nor a machine, in their order and in one folder."""
    for each, lines in follow(page, tmp_path):
        assert each.normal(each.shown) == each.normal(lines), f"make docs-record: {each.block.text}"


@pytest.mark.e2e
@pytest.mark.xdist_group("toy pages")  # one after the other: each is several processes with torch
@pytest.mark.parametrize("page", ON_THE_TOY, ids=name)
def test_commands_on_the_toy(page: Path, tmp_path: Path, toy_build: Any) -> None:
    """The same with those that train the toy."""
    for each, lines in follow(page, tmp_path, toy_build.cache):
        assert each.normal(each.shown) == each.normal(lines), f"make docs-record: {each.block.text}"


def test_commands_show_their_output_or_why_there_is_none() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert block.language != "console", f"{name(page)}: commands in `sh`, their output in `output`"
        for each in shown(page) if page in with_commands() else ():
            assert each.runs or (each.block.marks["needs"] and not each.output), each.block.text


def test_first_answers_are_those_of_the_recorded_sets() -> None:
    """The shares of causes and preflight are counted again; each worst case is one of its set."""
    shares = [(row["part"], row["of"], row["hits"], row.get("wrong", False)) for row in measured()["share"]]
    judged = (DATA / "failures/unseen/judged.md").read_text("utf-8")
    verdicts = Counter(re.findall(r"^\| measure/\S+ \| (\w+) \|", judged, re.MULTILINE))
    assert ("causes", 30, verdicts["exact"] + verdicts["likely"], False) in shares
    assert ("causes", 30, verdicts["wrong"], True) in shares
    lists = sorted((DATA / "preflight").glob("held_out*.yaml"))[:4]
    rows = [row for each in lists for row in yaml.safe_load(each.read_text("utf-8"))]
    found, fails = [_reported(row) for row in rows], [_stops(row) for row in rows]
    true = sum(map(and_, found, fails))
    assert ("preflight", sum(fails), true, False) in shares and ("preflight", sum(found), true, False) in shares
    cases = {path.name for path in (DATA / "failures/unseen/second").iterdir()}
    runs = (DATA / "bank/manifest.json").read_text("utf-8")
    for row in measured()["worst"]:
        assert f"| {row['case']} | wrong |" in judged or row["case"] in {*cases} or f"first {row['case']}" in runs, row


def _reported(row: dict[str, Any]) -> bool:
    """Whether the preflight reported an error at first sight."""
    return row["first"] in ("found", "alarm") or "the preflight found it" in row.get("by", "")


def _stops(row: dict[str, Any]) -> bool:
    """Whether veRL stops; `verl` corrects its first answer."""
    return row["verl"] == "fails" if "verl" in row else row["first"] in ("found", "missed")
