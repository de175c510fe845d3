"""What the product recorded of veRL on H200s and an H100 (tests/data/gpu, docs/evidence/gpus.md), without the consoles.

A run that learned, stopped after 42 steps and resumed from the checkpoint of step 40; one whose entropy
collapsed, one whose KL blew up; one on two GPUs; the LoRA preset with random weights; 133 steps of
such a model of 0.5B, which never gets a reward. Of the second campaign, twelve side by side: algorithms, breaks,
one whose worker was killed and which was retried, one whose supervisor was killed. Of the third, six side by side
on one H100: one that learned and four that broke. Of the fourth, three side by side and the 24 GB preset in 24 GB.
Of the fifth, three side by side, two trials of the one that collapsed, and the LoRA preset in 24 GB.
"""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from commands import call

from launcher.compare.trial_verdicts import trials_of
from launcher.record.events import Action, LevelChange, Note, read_kind
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import MachineSample
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.reader import RunReader

Runs = Callable[[str], Path]
# Beginnings of ids.
LEARNED, COLLAPSED, RETRIED, ADOPTED, LEARNED_FAST = "674db1", "d3d9b9", "69d053", "e7f2ef", "7d6e4c"
WELL = f"{LEARNED} {ADOPTED} a58df9 e19d4e 898b5b c2f546 62a70e 10484e 4ad828 bfe254"  # of several algorithms


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The folder of a run by the beginning of its id."""
    folder = tmp_path_factory.mktemp("gpu")
    with tarfile.open(Path(__file__).parents[1] / "data/gpu/runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return lambda start: next((folder / "runs").glob(f"{start}-*"))


def flagged_live(run: Path) -> list[tuple[str, int, str]]:
    """The flags that rose while the run went on."""
    reader = RunReader(run)
    reader.poll()
    changes = [event.what for event in reader.events if isinstance(event.what, LevelChange)]
    return [(change.rule, change.step, change.after.name) for change in changes if change.after >= Level.WARN]


def flagged_now(run: Path) -> list[tuple[str, int, str]]:
    """The flags that today's rules raise on the same steps."""
    changes = judged(RunDir(run), []).changes
    high = [change for change in changes if change.after >= Level.WARN and change.after > change.before]
    return [(change.rule, change.step, change.after.name) for change in high]


def first(flags: list[tuple[str, int, str]], level: Level) -> int:
    return next(step for _, step, name in flags if Level[name] >= level)


@pytest.mark.slow
@pytest.mark.parametrize("run", WELL.split())
def test_a_run_that_learns_is_let_alone(runs: Runs, run: str) -> None:
    assert flagged_live(runs(run)) == flagged_now(runs(run)) == []


@pytest.mark.parametrize(
    ("run", "now"),
    [
        # it does harm from step 17 on
        (COLLAPSED, "CRIT-1 5 W, ENT-1 7 W, KL-1 9 W, TRUNC-1 16 W, KL-1 17 C, ENT-1 17 C, TRUNC-1 21 C"),
        ("dfd502", "MIS-1 2 C"),  # LoRA; its model has three times as many words as its tokenizer
        ("07dc01", "KL-1 9 W, KL-4 10 W, LEN-1 25 W"),  # the KL blew up
        # GSPO: the host's memory, shared by twelve runs; responses that grew into the limit, from 13 to 48 % of them
        ("284da5", "MEM-2 3 W, TRUNC-1 18 W"),
        ("373f35", "TRUNC-1 20 W"),  # CISPO: the same, from 19 to 53 %
        ("8a3d1c", "KL-2 4 W, KL-1 5 C, ENT-1 5 W, ENT-1 6 C"),  # collapsed at once
        ("aa3dd3", "KL-2 2 C, CLIP-1 2 W, KL-1 3 W"),  # blew up at once
        ("2a68c2", "TRUNC-1 5 C, KL-1 7 W, ENT-1 19 C"),  # CISPO: every response is cut, with one score from step 4 on
        ("06aff8", "TRUNC-1 5 W, TRUNC-1 16 C"),  # a reward for length: from 16 to 41 % in five steps, to 97 in sixteen
        # REINFORCE++, learning rate 1e-4: every response has the same score, 0.25, from step 10 on, and few are cut
        ("e61b36", "KL-2 3 W, TRUNC-1 8 W, ENT-1 8 W"),
        # there is never a reward, of which no critic is to blame
        ("6d93da", "MIS-1 2 C, STOP-1 4 W, TRUNC-1 6 W, SIG-1 10 W, SIG-1 25 C"),
    ],
)
def test_a_run_that_goes_wrong_is_flagged_and_warned_of_no_later_than_on_the_gpu(
    runs: Runs, run: str, now: str
) -> None:
    flags = flagged_now(runs(run))
    assert ", ".join(f"{rule} {step} {level[0]}" for rule, step, level in flags) == now
    assert first(flags, Level.WARN) <= first(flagged_live(runs(run)), Level.WARN)


@pytest.mark.parametrize("run", ["10b541", "0bdc9e", "79b059"])  # by a rate, a penalty; entropy rose
def test_what_breaks_is_critical_no_later_than_it_was(runs: Runs, run: str) -> None:
    """Which rule speaks is left open."""
    then, now = flagged_live(runs(run)), flagged_now(runs(run))
    assert all(first(now, level) <= first(then, level) for level in (Level.WARN, Level.CRITICAL))


def test_nothing_is_critical_in_a_run_whose_accuracy_rises_from_26_to_72_per_cent(runs: Runs) -> None:
    """LEN-1 and ENT-1 warned of it, wrongly: short and sure answers are what it learned."""
    assert "CRITICAL" not in {level for _, _, level in flagged_now(runs(LEARNED_FAST))}
    assert whole(runs(LEARNED_FAST), "val-core/sums/acc/mean@1")[1] == {0: 0.2578125, 10: 0.65625, 20: 0.71875}


def scores(run: Path, attempt: int) -> dict[int, float]:
    """What veRL's own file logger wrote in one attempt."""
    lines = (run / f"attempts/{attempt}/metrics.jsonl").read_text().splitlines()
    records = [(record["step"], record["data"]) for record in map(json.loads, lines)]
    return {step: data["critic/score/mean"] for step, data in records if "critic/score/mean" in data}


def whole(run: Path, metric: str = "critic/score/mean") -> tuple[RunReader, dict[int, float]]:
    """A reader of a run, and the curve of a metric."""
    reader = RunReader(run)
    reader.poll()
    series = reader.series.get(metric)
    assert series is not None
    return reader, dict(zip(series.steps, series.values, strict=True))


def test_the_curves_of_both_attempts_are_one(runs: Runs) -> None:
    """Steps 41 and 42 were done twice; the second time counts."""
    one, two = scores(runs(LEARNED), 1), scores(runs(LEARNED), 2)
    assert (max(one), min(two), max(two)) == (42, 41, 46) and one[41] != two[41]
    assert whole(runs(LEARNED))[1] == {**one, **two}


def test_a_run_whose_worker_was_killed_goes_on_from_its_checkpoint(runs: Runs) -> None:
    """Killed in step 4, retried after 30 s from the checkpoint of step 2: step 3 was done twice."""
    reader, curve = whole(runs(RETRIED))
    actions = [event.what for event in reader.events if isinstance(event.what, Action)]
    assert [(each.verb, each.by) for each in actions[:2]] == [("retry", "retry after worker-died"), ("resume", "user")]
    one, two = scores(runs(RETRIED), 1), scores(runs(RETRIED), 2)
    assert ([*one], [*two]) == ([1, 2, 3], [3, 4]) and curve == {**one, **two}


def test_an_adopted_run_has_every_step_once_and_says_so(runs: Runs) -> None:
    reader, curve = whole(runs(ADOPTED))
    notes = [event.what.text for event in reader.events if isinstance(event.what, Note)]
    assert curve == scores(runs(ADOPTED), 1)
    assert notes == ["the supervisor was killed; another one took over the run, whose driver continues"]


def test_a_run_that_was_stopped_is_not_told_as_failed_or_going_on(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(runs(COLLAPSED).parents[1]))
    said = {
        ("health", runs(LEARNED).name): "NOTICE — 34 of 49 rules judged",
        ("status", runs(COLLAPSED).name): "step     25 of 4660, 12.9 s per step\n",
        ("diagnose", COLLAPSED): "fix: start it again with `ppo-tui fork d3d9 --checkpoint 0`: no checkpoint was found",
    }
    for words, text in said.items():
        assert text in call(words)[0].decode()
    (found,) = trials_of(runs("c9a338").name)
    assert (found.rule, found.step) == ("KL-1", 2)
    twin = [((), "repeated"), (("actor.lr=5e-6",), "no effect")]
    assert [(arm.changes, arm.verdict) for arm in found.arms] == twin, "the learning rate alone does not heal it"


def test_samples_of_gpus_and_their_holders_are_the_same_lines_when_written_back(runs: Runs) -> None:
    lines = [line for file in runs(LEARNED).parent.glob("*/gpu.jsonl") for line in file.read_bytes().splitlines()]
    assert len(lines) > 1000
    for line in lines:
        assert orjson.dumps(MachineSample.from_json(orjson.loads(line)).to_json()) == line


def test_the_fix_of_the_readme_is_judged_by_the_end_of_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GROUP-1 rose to WARN with the smaller learning rate alone, and was gone when 70 % of the sums were right."""
    with tarfile.open(Path(__file__).parents[1] / "data/gpu/sums.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    (found,) = trials_of("19b3d4-sums")
    assert [(arm.verdict, arm.step) for arm in found.arms] == [("repeated", 13), ("fixed", 26), ("no effect", 13)]
    changes = read_kind(RunDir(tmp_path / "runs/433a07-sums").events, LevelChange)
    assert {change.rule for change in changes if change.alarming} == {"GROUP-1"}


def test_a_run_that_learns_has_two_warnings(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).parents[1] / "data/gpu/list-numbers.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    run = tmp_path / "runs/6c844c-list-numbers"
    assert {level for _, _, level in flagged_now(run)} <= {"WARN"}, "it does no harm"
