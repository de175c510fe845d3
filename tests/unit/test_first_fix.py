"""A flag has one first fix: in `status`, `health`, both as JSON, on the page of the rule and in alerts."""

import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from subprocess import CompletedProcess

import pytest
from console_logs import DATA

from launcher.core import paths
from launcher.machine.targets import message
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.problems import first_fix, fixed_flag
from launcher.runs.watch.reader import RunReader
from tui.kit.run_words import verdict_words

Command = Callable[..., "CompletedProcess[str]"]
ARCHIVES = {"gpu/runs.tar.xz": "runs", "runs-0.1.tar.xz": "."}


@pytest.fixture
def recorded(in_process: Command) -> list[RunDir]:
    """All recorded runs, as this version would have recorded their flags."""
    for name, inside in ARCHIVES.items():
        with tarfile.open(DATA / name) as archive:
            archive.extractall(paths.runs_dir() / "in", filter="data")
        for folder in (paths.runs_dir() / "in" / inside).iterdir():
            folder.rename(paths.runs_dir() / folder.name)
        shutil.rmtree(paths.runs_dir() / "in")
    runs = [RunDir(folder) for folder in sorted(paths.runs_dir().iterdir())]
    for run in runs:
        checklist = judged(run, []).checklist
        state = replace(current(run), checks=tuple(checklist.checks()), verdict=str(checklist.verdict))
        state.write(run.state)
    return runs


def shown(text: str) -> dict[str, str]:
    """By rule the first fix below its flag, in the text of a command."""
    found: dict[str, str] = {}
    rule = ""
    for line in map(str.strip, text.splitlines()):
        level, _, rest = line.partition(" ")
        if level in ("NOTICE", "WARN", "CRITICAL") and ": " in rest:
            rule = rest.partition(": ")[0]
        elif line.startswith("fix: ") and rule:
            found.setdefault(rule, line.removeprefix("fix: "))
    return found


def trials(text: str) -> dict[str, list[str]]:
    """By rule the settings of the first trial, in the JSON of `status`, which `health` shares."""
    checks = json.loads(text.splitlines()[-1])["checks"]
    return {check["rule"]: check["trial"]["settings"] for check in checks if "trial" in check}


@pytest.mark.nightly("launcher/cli/", "launcher/health/", "launcher/preset/settle.py", "launcher/runs/")
@pytest.mark.slow
def test_all_show_the_same_first_fix(recorded: list[RunDir], in_process: Command) -> None:
    compared = 0
    for run in recorded:
        status, health = shown(in_process("status", run.id).stdout), shown(in_process("health", run.id).stdout)
        reader = RunReader(run.path)
        reader.poll()
        on = [check for check in current(run).checks if check.on and not check.muted]
        settings = {}
        for check in on:
            fix = first_fix(run, check.rule)
            page = fixed_flag(Parent(run), check)
            assert fix == status.get(check.rule) == (page.offers[0].text if page.offers else None), (run.id, check.rule)
            assert check.rule not in health or health[check.rule] == fix, (run.id, check.rule)
            compared += fix is not None and check.rule in health
            if page.offers and page.offers[0].edits:
                settings[check.rule] = [f"{edit.key}=" for edit in page.offers[0].edits]
        for rule, words in trials(in_process("status", run.id, "--json").stdout).items():
            assert rule not in settings or settings[rule] == [f"{each.partition('=')[0]}=" for each in words]
    assert compared > 20, compared


@pytest.mark.nightly("launcher/health/", "launcher/runs/judge/", "tui/kit/run_words.py")
@pytest.mark.slow
def test_the_level_in_the_title_is_that_of_the_rule_beside_it(recorded: list[RunDir]) -> None:
    for run in recorded:
        state = current(run)
        levels = {check.rule: check.level for check in state.checks}
        assert [levels[rule] for rule in state.flags] == sorted((levels[rule] for rule in state.flags), reverse=True)
        if state.flags:
            title = "".join(text for text, _ in verdict_words(state)[:2])
            assert state.flags[0] in title and levels[state.flags[0]].words == state.verdict, run.id


def test_an_alert_has_the_first_fix() -> None:
    event = {"kind": "health", "step": 5, "rule": "KL-1", "to": str(Level.WARN), "message": "KL rose", "run": "7f"}
    title, body = message([{**event, "name": "toy", "fix": "actor.lr 0.03 → 3e-4"}])
    assert title == "WARN KL-1 · toy" and "KL rose; fix: actor.lr 0.03 → 3e-4" in body
