"""Every entry of the failure catalog wins on a log in which its line is not the last one.

The logs are written from the samples of the entries, in the forms in which veRL's failures reach a console: colors
and prefixes of Ray, nested prefixes and loggers of vLLM, remote tracebacks, Hydra's short form, late lines of workers
after the driver's last words, and harmless lines that look like failures.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import tomllib
from console_logs import DATA, diagnosis_of
from page_runs import HELD_OUT, HeldOut
from pydantic import TypeAdapter

from launcher.console import causes, evidence
from launcher.console.causes import Cause, Sample, catalogue, read_causes
from launcher.console.recognize import is_verl_output
from launcher.record.attempt import MachineEnd, OomKills
from launcher.record.machine import DiskSpace, HostSample

PACKAGES = "/opt/venv/lib/python3.12/site-packages"
FORMS: dict[str, str] = tomllib.loads((DATA / "failures" / "forms.toml").read_text("utf-8"))


def frames(places: list[str]) -> list[str]:
    lines = []
    for place in places:
        path, _, function = place.partition(":")
        path = path if path.startswith("/") else f"{PACKAGES}/{path}"
        lines += [f'  File "{path}", line 93, in {function}', "    return self.call(batch)", "           ^^^^^^^^^^"]
    return lines


def raised(sample: Sample) -> list[str]:
    """Frames, the exception, and one that was raised from it."""
    lines = [*frames(sample.frames), *sample.text.split("\n")]
    if sample.then:
        lines += ["", "The above exception was the direct cause of the following exception:", ""]
        lines += [f"\x1b[36mray::{sample.method or 'TaskRunnerV1.run'}()\x1b[39m (pid=29994, ip=10.0.0.2)"]
        lines += [*frames(["verl/utils/model.py:load"]), *sample.then.split("\n")]
    return lines


def body(sample: Sample) -> list[str]:
    failure = raised(sample)
    if (form := sample.form) == "raw":
        return sample.text.split("\n")
    if form == "prompt" and sample.method is not None:
        form += " of a call" if sample.method else " without a call"
    if form == "crash" and sample.source == "raylet":
        form += " raylet"
    return filled(form, sample, {"{failure}": failure, "{before}": sample.before})


def filled(form: str, sample: Sample, many: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of a form; one with a mark of `many` is repeated for each of these lines."""
    lines = list[str]()
    for line in FORMS[form].replace("␛", "\x1b").split("\n"):
        for name in ("method", "source", "target", "key"):
            line = line.replace(f"{{{name}}}", getattr(sample, name) or "")
        mark = next((mark for mark in many if mark in line), "")
        lines += [line.replace(mark, each) for each in many[mark]] if mark else [line]
    return lines


def machine_of(sample: Sample) -> MachineEnd | None:
    if sample.oom_killed is None and sample.disk_free is None:
        return None
    disks = () if sample.disk_free is None else (DiskSpace("/runs", sample.disk_free, 1 << 40),)
    after = None if sample.oom_killed is None else OomKills(3 + sample.oom_killed)
    return MachineEnd(OomKills(3), after, HostSample(2 << 30, 8 << 30), disks)


def log(sample: Sample) -> list[str]:
    lines = ["[validate_config] All configuration checks passed successfully!"]
    if sample.form not in ("hydra", "import", "config", "driver"):
        lines += FORMS["start"].replace("␛", "\x1b").split("\n")
    task = "\x1b[36m(TaskRunnerV1 pid=4711)\x1b[0m "
    if sample.steps:
        lines.append(f"{task}INFO:2026-11-21 09:30:00,000:all initialize finished, ready to fit")
        lines += [f"{task}step:{step} - actor/entropy:0.4" for step in range(1, sample.steps + 1)]
    lines += body(sample)
    if sample.form in ("worker", "trainer", "engine", "prompt", "creation", "crash"):
        lines += FORMS["late"].replace("␛", "\x1b").split("\n")
    return lines


def cases() -> Iterator[Any]:
    for cause in catalogue():
        for number, sample in enumerate(cause.samples):
            for exit_code in dict.fromkeys((sample.exit_code, None)):
                if exit_code is None if sample.form in ("hang", "waits") else sample.form != "silent" or exit_code:
                    yield pytest.param(cause, sample, exit_code, id=f"{cause.id}-{number}-{exit_code}")


@pytest.mark.parametrize(("cause", "sample", "exit_code"), cases())
def test_the_entry_wins_and_shows_its_line(cause: Cause, sample: Sample, exit_code: int | None) -> None:
    lines = log(sample)
    found = diagnosis_of("\n".join(lines), exit_code=exit_code, machine=machine_of(sample))
    assert found.cause == cause.id, found
    expected = sample.first or sample.text.split("\n")[0]
    number, text = found.evidence[0].line, found.evidence[0].text
    assert expected[:60] in text
    assert expected[:60] in lines[number - 1]
    assert number < len(lines) or sample.form in ("hang", "import", "refused", "waits", "silent")
    assert not sample.told or sample.told in found.evidence[1].text
    assert sample.words in found.title
    texts = [found.title, *(fix.text for fix in found.fixes)]
    assert found.fixes and not any("{" in text for text in texts if "{'" not in text), found
    assert found.exit_code == exit_code


@pytest.fixture
def reversed_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = (causes.catalogue, causes.cause_of, evidence._any_line)
    monkeypatch.setattr(causes, "FAMILIES", causes.FAMILIES[::-1])
    for cache in made:
        cache.cache_clear()
    yield
    for cache in made:
        cache.cache_clear()


def test_the_rank_decides_between_two_entries_for_one_line_not_the_name_of_their_file(reversed_files: None) -> None:
    """A new entry that another one beats here needs a lower `rank` than that one, or the other one a higher one."""
    wrong = []
    for cause, sample, exit_code in (case.values for case in cases()):
        found = diagnosis_of("\n".join(log(sample)), exit_code=exit_code, machine=machine_of(sample)).cause
        if found != cause.id:
            wrong.append(f"{cause.id} needs a lower rank than {found}")
    recorded = ((held.cause, diagnosis_of("\n".join(log(held.sample)), exit_code=1).cause) for held in HELD_OUT)
    assert wrong + [f"{cause} needs a lower rank than {found}" for cause, found in recorded if cause != found] == []


@pytest.mark.parametrize("held", HELD_OUT, ids=[held.sample.thread for held in HELD_OUT])
def test_consoles_from_threads_that_the_catalogue_was_not_made_from(held: HeldOut) -> None:
    found = diagnosis_of("\n".join(log(held.sample)), exit_code=1)
    assert found.cause == held.cause and found.evidence


def test_every_sample_is_taken_for_output_of_veRL() -> None:
    samples = [*(sample for cause in catalogue() for sample in cause.samples), *(held.sample for held in HELD_OUT)]
    written = {"\n".join(log(sample)).encode() for sample in samples}
    assert [text for text in written if not is_verl_output(lambda text=text: [text])] == []


def test_each_entry_is_typed_and_complete() -> None:
    ids = [cause.id for cause in catalogue()]
    assert len(ids) == len(set(ids))
    for cause in catalogue():
        for row in (cause, *cause.samples, *cause.fixes, *(change for fix in cause.fixes for change in fix.changes)):
            for name, kind in get_type_hints(type(row)).items():
                TypeAdapter(kind).validate_python(getattr(row, name), strict=True)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cause.id)
        assert cause.title and cause.meaning.endswith(".") and cause.fixes and cause.samples
        assert bool(cause.cause_in) == (cause.level.symptom)
        for other in filter(None, cause.explains.split("|")):
            assert other in ids, f"{cause.id} explains {other}"


@pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.id)
def test_the_patterns_of_an_entry_match_its_samples(cause: Cause) -> None:
    patterns = [re.compile(pattern) for pattern in (cause.raised, cause.line) if pattern]
    assert re.compile(cause.where) and re.compile(cause.cause_in)
    for sample in (sample for sample in cause.samples if machine_of(sample) is None):  # the others have records
        shown = "\n".join((sample.text, sample.then, *sample.before))
        lines = (shown, shown.replace("\n", " "), *shown.split("\n"), *log(sample))
        # where Ray waits for CPUs is a place in the log, not a line
        assert sample.form == "hang" or any(pattern.search(line) for pattern in patterns for line in lines), sample


@pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.id)
def test_the_threads_of_an_entry_are_addresses(cause: Cause) -> None:
    for sample in cause.samples:
        assert not sample.thread or re.fullmatch(
            r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+", sample.thread
        )


def test_an_entry_with_a_misspelled_name_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[[cause]]\nid = 'x'\ntitel = 'X'\nmeaning = ''\nfixes = []\nsamples = []\n")
    with pytest.raises(TypeError, match=r"mine\.toml: x: .*titel"):
        list(read_causes(file))
