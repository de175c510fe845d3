"""findings.toml against the rules: every template is used, its values are given, and the reference shows it."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import launcher
from launcher.check.finding import GROUPS, LEVELS, found, rows, setting
from launcher.console.causes import UNSEEN, catalogue

HOME = Path(launcher.__path__[0])
OWN = {"keys", "level", "fixes"}
"""What a rule gives beside the values in the words."""
ANY = "[A-Za-z0-9-]+"


@functools.cache
def made() -> list[tuple[str, ast.Call]]:
    """Each call that makes a finding, with a pattern of the names that it can have."""
    calls = []
    for path in HOME.rglob("*.py"):
        text = path.read_text("utf-8")
        tree = ast.parse(text if "launcher.check.finding import" in text else "")
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "found" and call.args:
                calls.append(("|".join(_names(call.args[0], tree)), call))
    return calls


def _names(node: ast.expr, module: ast.Module) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(name)):
            yield re.escape(name)
        case ast.IfExp(body=body, orelse=other):
            yield from (*_names(body, module), *_names(other, module))
        case ast.JoinedStr(values=parts):
            yield "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ANY for part in parts)
        case _:  # a name of the module that the function was given
            texts = {each.value for each in ast.walk(module) if isinstance(each, ast.Constant)}
            yield from map(re.escape, rows().keys() & texts)


def wanted(name: str, given: set[str | None]) -> set[str]:
    """The values that a row's words ask of a rule that gives these."""
    row = rows()[name]
    texts = [row["message"], *(() if "keys" in given else row["keys"])]
    for fix in () if "fixes" in given else row["fix"]:
        texts += [fix.do, fix.when, fix.why]
        texts += [str(text) for each in fix.changes for text in (each.key, each.words, *each.values)]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


def test_every_row_is_used_and_every_call_has_a_row() -> None:
    patterns = {name for name, _ in made()}
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in rows())] == []
    assert [name for name in rows() if not any(re.fullmatch(pattern, name) for pattern in patterns)] == []


def test_a_rule_gives_every_value_of_its_words_and_no_other() -> None:
    patterns = {pattern for pattern, _ in made()}
    exact = {name for name in rows() if re.escape(name) in patterns}
    for pattern, call in made():
        given = {each.arg for each in call.keywords}
        if None in given or pattern.startswith(ANY) or isinstance(call.args[0], ast.Name):
            continue  # values in a dictionary, or a name from elsewhere
        fits = [name for name in rows() if re.fullmatch(pattern, name)]
        names = [name for name in fits if re.escape(name) == pattern or name not in exact]
        for name in names:
            assert wanted(name, given) <= given, name
            assert ("level" in given) == ("," in rows()[name]["level"]), name
        assert given - OWN <= {word for name in names for word in wanted(name, given)}, names


def test_rows_are_sound() -> None:
    for name, row in rows().items():
        assert row["group"] in GROUPS and set(row["level"].split(", ")) <= set(LEVELS), name
        assert row["text"].endswith(".") and row["message"], name


def test_the_reference_shows_every_message_and_fix() -> None:
    page = (HOME.parent / "docs/reference/findings.md").read_text("utf-8")
    for name, row in rows().items():
        words = [
            re.sub(r"\{(\w+)[:!][^}]*\}", r"{\1}", each) for each in (row["message"], *(fix.text for fix in row["fix"]))
        ]
        assert all(f"`{each}`" in page for each in words), name


def test_words_join_lists_and_count() -> None:
    count = found("P1.apart", wanted=8, engine="", where="this machine has", have="1 GPU", left=1, own=1)
    assert count.message == "the run requires 8 GPUs, but this machine has 1 GPU"
    assert count.fix == "set trainer.gpus=1, with 1 GPU only for the engine, or set trainer.mode=sync"
    assert count.change == {"trainer.gpus": 1}
    several = found("V1", batch=10, n=1, total=10, gpus=8, better=[8, 16])
    assert several.fix == "set data.train_batch_size=8 or 16" and several.change == {"data.train_batch_size": 8}
    assert setting({"actor.lr": 5e-6, "actor.betas": [0.9, None], "trainer.use_v1": False}).text == (
        "set actor.lr=5e-6 and actor.betas=[0.9,null] and trainer.use_v1=false"
    )
    misspelled = found(
        "KEY-1.near", source="veRL", key="data.sed", perhaps="", then="", near="data.seed", level="error"
    )
    assert (misspelled.rename, misspelled.fix) == (("data.sed", "data.seed"), "rename data.sed to data.seed")


def test_each_cause_names_the_findings_that_show_it_or_why_none_does() -> None:
    ids = {name.partition(".")[0] for name in rows()}
    assert [(cause.id, id) for cause in catalogue() for id in cause.findings if id not in ids] == []
    silent = [cause for cause in catalogue() if not cause.findings and cause.check not in UNSEEN]
    assert [cause.id for cause in silent if not cause.level.symptom] == []
    assert {cause.check for cause in catalogue()} >= UNSEEN.keys()
