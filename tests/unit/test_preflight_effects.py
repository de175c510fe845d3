"""KEY-7: settings without effect (launcher/check/effects.toml), against veRL's source and over all presets."""

import ast
import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import cases, machine
from tables import parts

from launcher.check.config.effects import Effect, effects, without_effect
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.errors import UserError
from launcher.preset.files import load, recipes, shipped
from launcher.verl import defaults, hydra
from launcher.verl.config import LOSS_MODE

ROWS = effects()
SPEC = importlib.util.find_spec("verl")
VERL = Path(SPEC.origin).parent if SPEC and SPEC.origin else None
BELOW = dict(parts("preflight_effects")["below"][1])
"""A key below each block."""
VALUES = dict(parts("preflight_effects")["values"][1])
"""Values of the keys that a number or a switch does not fit."""


def look(*settings: str, preset: str = "gsm8k-0.5b-24gb") -> list[Finding]:
    return list(without_effect(_subject(preset, settings)))


def _subject(preset: str, settings: tuple[str, ...]) -> Subject:
    return subject(load(preset, settings), on=machine("8x80"))


def _pairs() -> Iterator[tuple[Effect, str]]:
    for row in ROWS:
        yield from ((row, BELOW.get(key, key)) for key in row.keys)


def _set(key: str, value: Any) -> str:
    listed = defaults.leaf(defaults.bundled("0.9.1"), key)[0]
    return f"{'' if listed else '+'}{key}={hydra.quote(value)}"


def _other(key: str) -> Any:
    """A value that is not the default of a key."""
    usual = defaults.leaf(defaults.bundled("0.9.1"), key)[1]
    if key in VALUES:
        return VALUES[key]
    if isinstance(usual, bool):
        return not usual
    if isinstance(usual, float):
        return usual + 0.5 if usual > 1 else 0.25
    return "x" if isinstance(usual, str) and not hydra.refers(usual) else 7


def _meet(key: str, wanted: Any) -> Any:
    """A value that meets a condition: a rank or a path for true."""
    first = wanted[0] if isinstance(wanted, list) else wanted
    usual = defaults.leaf(defaults.bundled("0.9.1"), key)[1]
    if not isinstance(first, bool) or isinstance(usual, (bool, str)):
        return first
    path = "token" if "rollout_is" in key else "/x"
    return VALUES.get(key, 8 if isinstance(usual, (int, float)) else path) if first else None


def _miss(key: str, wanted: Any) -> Any:
    """A value that does not meet it."""
    if isinstance(wanted, bool):
        return _meet(key, not wanted)
    values = wanted if isinstance(wanted, list) else [wanted]
    known = ["grpo", "gae", "rloo", "gpg", "adaptive", "fixed", "cosine", "constant", "fsdp", "fsdp2", "sync"]
    kinds = {"loss_mode": "gpg", "loss_agg_mode": "token-mean", "lr_warmup_steps": 5, "trainer_mode": "sync"}
    kinds |= {"type": "fixed", "lr_scheduler_type": "constant", "strategy": "fsdp" if "fsdp2" in values else "fsdp2"}
    kinds |= {"adv_estimator": next(each for each in known if each not in values)}
    return "vanilla" if values == ["gpg"] else kinds[key.rpartition(".")[2]]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "key"), list(_pairs()), ids=lambda each: each if isinstance(each, str) else "")
def test_a_setting_is_found_until_its_condition_is_met(row: Effect, key: str) -> None:
    conditions = {name: (_miss(name, wanted), _meet(name, wanted)) for name, wanted in row.needs.items()}
    conditions |= {name: (_other(name), None) for name in row.replaced_by}
    missed = [_set(name, miss) for name, (miss, _) in conditions.items()]
    found = [each for each in look(*missed, _set(key, _other(key))) if key in each.keys]
    assert len(found) == 1 and found[0].id == "KEY-7" and found[0].fix
    if row.why:
        return
    first = next(iter(conditions))
    met = [_set(first, conditions[first][1]), *missed[1:]] if row.needs else missed[1:]
    later = [each.keys for each in look(*met, _set(key, _other(key)))]
    assert [keys for keys in later if key in keys and keys[-len(conditions) :] == tuple(conditions)] == []


@pytest.mark.skipif(VERL is None, reason="needs veRL: pip install ppo-tui[cpu]")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.keys[0])
def test_the_source_reads_it(row: Effect) -> None:
    """File and symbol exist in the installed veRL, and the file names each key or the block that it is in."""
    file, symbol = row.source.split(": ")
    text = (VERL.parent / file).read_text("utf-8")
    scope: ast.AST = ast.parse(text)
    for name in symbol.split("."):
        scope = next(each for each in ast.walk(scope) if getattr(each, "name", None) == name)
    words = set(re.findall(r"\w+", text))
    for key in [*row.keys, *row.needs, *row.replaced_by][: len(row.keys) + 1]:
        assert words & {*key.rstrip(".").split(".")[-2:]} or (row.why and "Unused" in words), key


@pytest.mark.skipif(VERL is None, reason="needs veRL: pip install ppo-tui[cpu]")
def test_the_losses_of_a_row_are_those_that_read_its_keys() -> None:
    tree = ast.parse((VERL / "trainer/ppo/core_algos.py").read_text("utf-8"))
    reads = {
        str(ast.literal_eval(mark.args[0])): {
            str(getattr(node, "attr", None) or getattr(node, "value", "")) for node in ast.walk(function)
        }
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "register_policy_loss"
    }
    assert len(reads) >= 12
    for row in ROWS:
        wanted = row.needs.get(LOSS_MODE)
        for key in row.keys if wanted else ():
            named = {name for name, read in reads.items() if key.rpartition(".")[2] in read}
            assert named | {"bypass_mode"} == {*([wanted] if isinstance(wanted, str) else wanted), "bypass_mode"}, key


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_no_shipped_preset_or_recipe_has_one(name: str) -> None:
    for recipe in (None, *recipes()):
        assert look(*([f"recipe={recipe}"] if recipe else []), preset=name) == []


@pytest.mark.slow
def test_those_of_the_corpus_are_these() -> None:
    found = {}
    for case in cases():
        with contextlib.suppress(UserError):
            found[" ".join(case.set)] = [each.keys[0].rpartition(".")[2] for each in look(*case.set, preset=case.on)]
    assert {name: keys for name, keys in found.items() if keys} == dict(parts("preflight_effects")["of_the_corpus"][1])


def test_only_what_the_user_set_is_found(tmp_path: Path) -> None:
    """Also by a recipe in the file; more rows: test_findings.py."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: toy-cpu\nrecipe: grpo\ncritic: {lr: 1e-4}\n")
    (found,) = look(preset=str(mine))
    assert (found.keys[0], found.level) == ("critic.optim.lr", "info")
