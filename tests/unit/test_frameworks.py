"""Logs of other frameworks are recognized, and judged like veRL's by the rules whose metrics they have."""

import importlib
import itertools
import math
import re
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from foreign_logs import FORMS, NAMES, Steps, ours
from tables import tabled

from launcher.cli.timing import _of_log as time_of_log
from launcher.console.reader import ConsoleReader
from launcher.core.errors import UserError
from launcher.health import keys
from launcher.health.applies import REASONS, fitting
from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.health.config import RunConfig
from launcher.metrics.frameworks import Framework, frameworks
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.preset.settle import offers
from launcher.record.events import LevelChange, Note, read_kind
from launcher.record.fix import Fix
from launcher.record.levels import Level
from launcher.report.bundle import write as write_bundle
from launcher.report.run_report import gather
from launcher.runs.act.import_logs import import_logs
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import Log, resolve
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.steps import steps
from launcher.timing.words import no_advice
from launcher.verl.config import KL_IN_LOSS, KL_IN_REWARD

DATA = Path("tests/data/frameworks")
OURS = {name for value in vars(keys).values() if isinstance(value, tuple) for name in value if isinstance(name, str)}
ROWS = [(name, row) for name, each in frameworks().items() for row in each.metrics]
READ = ("launcher/console/", "launcher/health/", "launcher/metrics/", "launcher/runs/", "tests/support/foreign_logs.py")
DIFFERENT = [(name, theirs) for name, row in ROWS if row.differs for theirs in row.theirs]


@pytest.fixture(scope="module")
def bank() -> ModuleType:
    return importlib.import_module("health_bank")


def chosen(bank: ModuleType) -> list[tuple[str, Steps]]:
    """A healthy run and three that go wrong, of the half on which limits are chosen."""
    runs = [run for run in bank.runs("calibration") if not run.before]
    healthy = [run for run in runs if not run.fault and not bank.gone_wrong(run)][:2]
    faulty = [
        next(run for run in runs if run.fault == fault) for fault in sorted({run.fault for run in runs} - {""})[:3]
    ]
    return [(run.name, [(step, data) for step, _, data in run.steps if step > 0]) for run in (*healthy, *faulty)]


def write(folder: Path, form: str, run: Steps) -> Path:
    _, writer, file = FORMS[form]
    path = folder / file
    path.write_text(writer(run), "utf-8")
    return path


def of_foreign(path: Path) -> Log:
    found = resolve(str(path))
    assert isinstance(found, Log) and found.framework is not None
    return found


def seen(changes: list[LevelChange]) -> set[tuple[str, int, Level]]:
    return {(change.rule, change.step, change.after) for change in changes if change.notable}


@pytest.mark.parametrize(
    ("name", "row"), ROWS, ids=[f"{name}:{(row.theirs or (row.pattern,))[0]}" for name, row in ROWS]
)
def test_each_row_says_what_a_metric_is_and_where_its_framework_logs_it(name: str, row: object) -> None:
    assert row.theirs or row.pattern  # type: ignore[attr-defined]
    assert bool(row.ours) != bool(row.differs) or (row.ours and not row.differs)  # type: ignore[attr-defined]
    assert ": " in row.source  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "theirs"), DIFFERENT, ids=[":".join(each) for each in DIFFERENT])
def test_no_rule_judges_a_metric_with_another_meaning(name: str, theirs: str) -> None:
    found = frameworks()[name].translate({theirs: 1.0, **{f"{at}{theirs}": 1.0 for at in frameworks()[name].prefixes}})

    assert found
    assert not OURS & found.keys()
    assert not any(key.startswith(keys.VALIDATION) for key in found)


@pytest.mark.nightly(*READ, every=4)
@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_the_flags_of_the_same_steps_as_verl(form: str, bank: ModuleType, tmp_path: Path) -> None:
    names = FORMS[form][0]
    first = -1 if names == "slime" else 0  # slime counts from 0
    for name, run in chosen(bank):
        log = of_foreign(write(tmp_path, form, run))
        known = [(number + first, ours(names, data)) for number, data in run]

        read = [
            (record.step, {key: record.data.get(key) for key in data})
            for (_, record), (_, data) in zip(steps(log), known, strict=True)
        ]
        assert [number for number, _ in read] == [number for number, _ in known]
        for (_, got), (_, data) in zip(read, known, strict=True):
            assert got == pytest.approx(data, rel=1e-9, nan_ok=True)

        framework = None if log.framework is None or log.framework.own else log.framework
        checklist, changes = Checklist(clock=False, framework=framework), []
        for number, data in known:
            changes += checklist.step(number, data)
        assert seen(judged(log, []).changes) == seen(changes), (form, name)


@pytest.mark.nightly("launcher/health/", "launcher/metrics/frameworks", "tests/support/foreign_logs.py", "bench/")
def test_healthy_runs_are_not_critical_with_the_metrics_of_other_frameworks(bank: ModuleType) -> None:
    """Each healthy run of the bank, of which nobody knows the policy loss; that a log is read right is tested above.

    veRL's v1 trainer counts the longest responses of a step as cut; other frameworks count those at the limit.
    """
    found = set()
    runs = [run for half in ("calibration", "unseen") for run in bank.runs(half)]
    healthy = [run for run in runs if not run.before and not run.fault and not bank.gone_wrong(run)]
    assert len(healthy) > 30
    for run in healthy:
        known = [(step, dict(data)) for step, _, data in run.steps if step > 0]
        for _, data in known:
            if data["response_length/max"] < run.config["data.max_response_length"]:
                data["response_length/clip_ratio"] = 0.0
        for names in NAMES:
            checklist = Checklist(clock=False)
            changes = [change for step, data in known for change in checklist.step(step, ours(names, data))]
            found |= {(run.name, change.rule) for change in changes if change.after == Level.CRITICAL}
    assert not found


@tabled
def test_a_framework_is_recognized_by_its_lines(form: str, title: str, bank: ModuleType, tmp_path: Path) -> None:
    assert of_foreign(write(tmp_path, form, chosen(bank)[0][1])).framework.title == title  # type: ignore[union-attr]


@tabled
def test_a_form_has_its_framework_and_its_steps(
    name: str, text: str, title: str, expected: dict[str, dict[str, float]], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")

    log = of_foreign(path)

    assert log.title == title
    found = {str(record.step): record.data for _, record in steps(log)}
    assert {step: {key: found[step].get(key) for key in data} for step, data in expected.items()} == {
        step: pytest.approx(data) for step, data in expected.items()
    }
    assert found.keys() == expected.keys()


@tabled
def test_words_of_any_program_are_of_no_framework(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")

    with pytest.raises(UserError):
        resolve(str(path))


def test_metrics_that_are_left_out_because_they_are_not_finite_are_nan(bank: ModuleType, tmp_path: Path) -> None:
    run = [(number, dict(data)) for number, data in chosen(bank)[0][1]]
    run[9][1]["actor/grad_norm"] = math.nan

    found = {record.step: record.data for _, record in steps(of_foreign(write(tmp_path, "prime-rl file", run)))}

    assert math.isnan(found[10]["actor/grad_norm"])
    assert all(math.isfinite(found[number]["actor/grad_norm"]) for number in found if number != 10)


def test_cut_and_hostile_lines_leave_the_other_steps(bank: ModuleType, tmp_path: Path) -> None:
    run = chosen(bank)[0][1][:20]
    for form in FORMS:
        path = write(tmp_path, form, run)
        text = path.read_text("utf-8")
        whole = len(list(steps(of_foreign(path))))
        if form not in ("trainer_state", "csv"):
            text = text.replace("\n", "\n\x1b[31m{'reward': '\x1b]0;x\x07\n\u202e step 7: {\n", 3)
        path.write_text(text[: int(0.8 * len(text))], "utf-8")

        found = [record for _, record in steps(of_foreign(path))]

        assert 0.6 * whole <= len(found) <= whole, form
        cut = f"{path.name} is truncated: {len(found)} complete rows were read" if form == "trainer_state" else None
        noted = [note.text for note in read_kind(import_logs([str(path)])[0].events, Note)]
        assert [note for note in noted if "is truncated" in note] == [*filter(None, [cut])] == [*of_foreign(path).notes]
        assert all(key.isprintable() for record in found for key in record.data)


@pytest.mark.parametrize("form", ["skyrl", "nemo-rl", "areal"])
def test_lines_that_are_read_together_have_the_metrics_of_each(form: str, bank: ModuleType, tmp_path: Path) -> None:
    """In small chunks each line is read by itself."""
    path = write(tmp_path, form, chosen(bank)[0][1][:20])
    framework, whole = of_foreign(path).framework, path.read_bytes()
    lines = whole.splitlines(True)
    damages = (b"", b"\r", b"\xe2", b"(other pid=3) ", b"Step 3/20 x", b"Traceback:\n", b"3.5.7")
    for damage in (*damages, b"\x1b[36m"):
        inside = damage if damage in damages else b""  # a color that cuts a hint hides the line from the search
        hurt = b"".join(line[: number % 60] + inside + line[number % 60 :] for number, line in enumerate(lines))
        some = b"".join(damage + line if number % 7 == 3 else line for number, line in enumerate(lines))
        for data in (hurt, some, some[: len(some) * 2 // 3], b"".join(lines[::-1])):
            chunks = [data[at : at + 40] for at in range(0, len(data), 40)]
            together, singly = ConsoleReader(framework), ConsoleReader(framework)
            one_by_one = [event for chunk in chunks for event in singly.feed(chunk)] + singly.close()
            assert [*together.feed(data), *together.close()] == one_by_one, damage


_CONSOLES = ("slime", "trl", "prime-rl", "nemo-rl", "openrlhf", "skyrl")


@pytest.mark.parametrize(
    ("damaged", "forms"), [("0.12.456", _CONSOLES), ("0.12\u00e9456", _CONSOLES), ("0.12\r456", ("csv",))]
)
def test_a_damaged_number_is_left_out(damaged: str, forms: tuple[str, ...], bank: ModuleType, tmp_path: Path) -> None:
    run = [(number, {**data, "critic/score/mean": 0.1 + number / 1000}) for number, data in chosen(bank)[0][1][:12]]
    run[6][1]["critic/score/mean"] = 0.123456
    for form in forms:
        path = write(tmp_path, form, run)
        path.write_bytes(path.read_bytes().replace(b"0.123456", damaged.encode()))

        read = [record.data.get("critic/score/mean", 0.0) for _, record in steps(of_foreign(path))]

        assert {round(x, 9) for x in read if x > 0} == {
            round(0.1 + number / 1000, 9) for number, _ in run if number != 7
        }, form


def test_several_updates_of_a_rollout_are_one_step(tmp_path: Path) -> None:
    line = "[2026-08-20 03:01:40] {} {}: {!r}\n"
    text = ""
    for rollout in range(4):
        text += line.format("t.py:221 - rollout", rollout, {"rollout/raw_reward": 0.5})
        for update in (0, 1):
            row = {"train/grad_norm": 1.0 + update, "train/entropy_loss": 0.3, "train/ppo_kl": 0.0}
            text += line.format("model.py:918 - step", 2 * rollout + update, row)
        text += line.format("t.py:401 - perf", rollout, {"perf/step_time": 60.0})
        text += line.format("r.py:9 - eval", rollout, {"eval/aime": 0.25, "eval/aime-truncated_ratio": 0.5})
    log = tmp_path / "run.log"
    log.write_text(text)

    found = [
        (record.step, record.data.get("actor/grad_norm"), record.data.get("val-core/aime/reward/mean@1"))
        for _, record in steps(of_foreign(log))
    ]

    assert found == [each for step in range(4) for each in ((step, 1.5, None), (step, None, 0.25))]


@pytest.mark.nightly(*READ, every=4)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "trainer_state"])  # which is written anew
def test_a_training_that_is_started_again_replaces_its_steps(form: str, bank: ModuleType, tmp_path: Path) -> None:
    (_, later), *_, (_, earlier) = chosen(bank)
    (tmp_path / "first").mkdir()
    first, path = write(tmp_path / "first", form, earlier[:15]), write(tmp_path, form, later)
    known, *numbers = ([record.step for _, record in steps(of_foreign(each))] for each in (path, first, path))
    alone = judged(of_foreign(path), []).checklist.checks()

    path.write_bytes(first.read_bytes() + path.read_bytes())

    assert [record.step for _, record in steps(of_foreign(path))] == list(itertools.chain(*numbers))
    assert judged(of_foreign(path), []).checklist.checks() == alone
    run = import_logs([str(path)])[0]
    assert judged(run, []).checklist.checks() == alone
    reader = RunReader(run.path)
    reader.poll()
    (_, lengths) = reader.series.first_of("response_length/mean", "critic/score/mean") or ("", None)
    assert lengths is not None and list(lengths.steps) == known


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of TRL 1.16 on the CPU toy, with learning rates of 3e-4, 0.1 and 0.02, each with all that it wrote."""
    folder = tmp_path_factory.mktemp("trl")
    with tarfile.open(DATA / "trl.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(("name", "critical"), [("healthy", False), ("ruined", True), ("broken", True)])
def test_all_that_one_run_of_TRL_wrote_gives_the_same_flags(name: str, critical: bool, real: Path) -> None:
    events, tracked = (import_logs([str(real / name / kind)])[0] for kind in ("tb", "wandb"))
    settings = [f"{key}={value}" for key, value in tracked.attempt(1).read_launch().keys.items()]  # W&B alone has them
    logs = (of_foreign(real / name / file) for file in ("console.log", "trainer_state.json"))

    console, *others = (seen(judged(source, settings).changes) for source in (*logs, events, tracked))

    assert any(level == Level.CRITICAL for _, _, level in console) == critical
    assert len(settings) > 8
    report, archive = gather(tracked), real / f"{name}.zip"
    assert len(report.preset) == len(settings) and not report.changed
    write_bundle(tracked, archive)
    with zipfile.ZipFile(archive) as packed:
        (config,) = (packed.read(each).decode() for each in packed.namelist() if each.endswith("config.yaml"))
    assert "actor.lr: " in config
    for flags in others:
        assert flags == console


VERLS = {name for name in FIELDS if "." in name} | BY_KEY.keys() | {"use_kl_loss", "use_kl_in_reward", "verl", "veRL"}


def names_of_verl(fixes: Iterable[Fix], framework: Framework) -> set[str]:
    """The words of advice that are settings of veRL, and not of this framework."""
    words = " ".join(offer.text for offer in offers(tuple(fixes), None))
    return set(re.findall(r"[\w.]*\w", words)) & VERLS - framework.settings.keys()


@pytest.mark.nightly(*READ, every=4)
@pytest.mark.parametrize("name", [name for name, each in frameworks().items() if not each.own])
def test_no_advice_for_a_framework_names_a_setting_of_verl(name: str) -> None:
    framework = frameworks()[name]
    logged = {"actor/kl_loss", "critic/kl", "critic/vf_loss", "actor/entropy"}
    for known in ({}, {"algorithm.adv_estimator": "grpo"}):
        config = RunConfig(known, framework)
        assert "unknown" in (REASONS["tools"](config) or "") and "unknown" in (REASONS["separate"](config) or "")
        for rule in rules().values():
            assert not names_of_verl(fitting(rule.advice, config, logged), framework), rule.id
            assert "use_kl" not in (
                REASONS[rule.applies](RunConfig(dict.fromkeys((KL_IN_LOSS, KL_IN_REWARD), False), framework)) or ""
            )
        (lower,) = fitting(rules()["DECAY-1"].advice[:1], config, logged)
        own = {ours: theirs for theirs, ours in framework.settings.items()}
        assert own.get("actor_rollout_ref.actor.optim.weight_decay", "weight decay") in lower.sentence()


@pytest.mark.parametrize("log", ["slime-collapse.log.gz", "trl-collapse.log.gz", "prime-rl-collapse.jsonl.gz"])
def test_a_run_of_a_framework_is_advised_in_its_own_words(log: str) -> None:
    read = of_foreign(DATA / log)
    checks = [check for check in judged(read, []).checklist.checks() if check.on]
    assert read.framework is not None and all(check.fixes for check in checks)
    for check in checks:
        assert not names_of_verl(check.fixes, read.framework), check.rule
    timing, series = time_of_log(read)[:2]
    assert not timing.advice(series)
    report = timing.report(series)
    assert report is None or "settings of veRL" in no_advice(report)


def test_a_log_before_its_first_step_is_not_taken_for_veRLs(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("(pid=7) /root/slime/slime/utils/http.py:12: UserWarning: x\n(Actor pid=8) loading\n")

    with pytest.raises(UserError, match="log of slime without a step"):
        resolve(str(path))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('trl/trainer/grpo_trainer.py", line 9, in train\n    x()\nValueError: no such thing\n', "TRL"),
        ('site/nowhere.py", line 1, in <module>\n    import q\nImportError: no such thing\n', None),
    ],
)
def test_a_crash_before_the_first_step_is_diagnosed_whatever_wrote_it(
    tmp_path: Path, text: str, title: str | None
) -> None:
    path = tmp_path / "x.log"
    path.write_text(f'loading\nTraceback (most recent call last):\n  File "/opt/{text}')

    source = resolve(str(path), text=True)
    assert isinstance(source, Log) and (source.framework and source.framework.title) == title
    found = diagnosis(source)
    assert "no such thing" in found.evidence[0].text and found.failed
    assert title is None or not any("ppo-tui" in fix.text for fix in found.fixes)
    with pytest.raises(UserError):
        resolve(str(path))
