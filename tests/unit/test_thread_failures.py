"""The failures from public threads stay what they were: halves, order, decisive lines."""

import hashlib

import pytest
from console_logs import DATA, diagnosis_of
from ruamel.yaml import YAML
from thread_failures import HALVES, ThreadFailure, cases, outcome

from launcher.console.causes import catalogue

FOLDER = DATA / "failures" / "threads"
CASES = {half: YAML(typ="safe").load(FOLDER / half / "cases.yaml") for half in HALVES}


@pytest.mark.parametrize(("learn", "measure", "size"), [("learn", "measure", 75), ("learn-2", "measure-2", 20)])
def test_the_halves_are_split_by_the_hash_of_the_thread(learn: str, measure: str, size: int) -> None:
    threads = {half: [case["thread"] for case in cases] for half, cases in CASES.items()}
    every = sorted(threads[learn] + threads[measure], key=lambda url: hashlib.sha256(url.encode()).hexdigest())
    assert len(set(every)) == 2 * size
    assert sorted(threads[learn]) == sorted(every[:size])


def test_no_entry_of_the_catalogue_is_made_from_a_measured_thread() -> None:
    cited = {sample.thread for cause in catalogue() for sample in cause.samples}
    assert not cited & {case["thread"] for half in ("measure", "measure-2") for case in CASES[half]}


@pytest.mark.parametrize("half", CASES)
def test_each_console_has_its_decisive_line(half: str) -> None:
    for case in CASES[half]:
        lines = (FOLDER / half / case["console"]).read_text("utf-8").splitlines()
        assert 15 <= len(lines) <= 60 and any(case["decisive"] in line for line in lines), case["console"]
    assert {case["console"] for case in CASES[half]} == {path.name for path in (FOLDER / half).glob("*.log")}


@pytest.mark.parametrize(("case", "console"), cases("learn"), ids=lambda value: getattr(value, "console", ""))
def test_the_cause_of_a_failure_to_learn_from_is_named(case: ThreadFailure, console: bytes) -> None:
    assert outcome(case, diagnosis_of(console)) == "right"
