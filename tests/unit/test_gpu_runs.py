"""What the product recorded of veRL on H200s and an H100 (tests/data/gpu, docs/evidence/gpus.md), without the consoles.

A run that learned, stopped after 42 steps and resumed from the checkpoint of step 40; one whose entropy
collapsed, one whose KL blew up; one on two GPUs; the LoRA preset with random weights; 133 steps of
such a model of 0.5B, which never gets a reward. Of the second campaign, twelve side by side: algorithms, breaks,
one whose worker was killed and which was retried, one whose supervisor was killed. Of the third, six side by side
on one H100: one that learned and four that broke. Of the fourth, three side by side and the 24 GB preset in 24 GB.
Of the fifth, three side by side, two trials of the one that collapsed, and the LoRA preset in 24 GB.
"""

import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from launcher.compare.trial_verdicts import trials_of
from launcher.record.events import Action, LevelChange, Note, read_kind
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import MachineSample
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.reader import RunReader

Command = Callable[..., "subprocess.CompletedProcess[str]"]
LEARNED, COLLAPSED, BLEW_UP, ON_TWO = (
    f"{start}-gsm8k-format-reward" for start in ("674db1", "d3d9b9", "07dc01", "a58df9")
)
LORA = "dfd502-gsm8k-1.5b-lora-24gb"
UNREWARDED = "6d93da-gsm8k-0.5b-24gb"
GSPO, RLOO, REMAX, DAPO, APART, CISPO, COLLAPSED_AT_ONCE, BLEW_UP_AT_ONCE, RETRIED, ADOPTED = (
    f"{start}-gsm8k-format-reward"
    for start in ["284da5", "e19d4e", "898b5b", "c2f546", "62a70e", "2a68c2", "8a3d1c", "aa3dd3", "69d053", "e7f2ef"]
)
LEARNED_FAST, BLEW_UP_BY_RATE, COLLAPSED_BY_PENALTY, ENTROPY_ROSE, REINFORCE_COLLAPSED = (
    f"{start}-gsm8k-format-reward" for start in ("7d6e4c", "10b541", "0bdc9e", "79b059", "e61b36")
)
CISPO_WELL, REINFORCE_WELL, GAMED = (f"{start}-gsm8k-format-reward" for start in ("373f35", "10484e", "06aff8"))
COLOCATED, DAPO_WELL, COLLAPSED_AGAIN = (f"{start}-gsm8k-format-reward" for start in ("4ad828", "bfe254", "c9a338"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu")
    with tarfile.open(Path(__file__).parents[1] / "data/gpu/runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


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
@pytest.mark.parametrize(
    "run", [LEARNED, ON_TWO, RLOO, REMAX, DAPO, APART, ADOPTED, REINFORCE_WELL, COLOCATED, DAPO_WELL]
)
def test_a_run_that_learns_is_let_alone(runs: Path, run: str) -> None:
    assert flagged_live(runs / run) == flagged_now(runs / run) == []


@pytest.mark.parametrize(
    ("run", "now"),
    [
        # it does harm from step 17 on
        (
            COLLAPSED,
            "CRIT-1 5 WARN, ENT-1 7 WARN, KL-1 9 WARN, TRUNC-1 16 WARN, KL-1 17 CRITICAL, ENT-1 17 CRITICAL, "
            "TRUNC-1 21 CRITICAL",
        ),
        (LORA, "MIS-1 2 CRITICAL"),  # its model has three times as many words as its tokenizer
        (BLEW_UP, "KL-1 9 WARN, KL-4 10 WARN, LEN-1 25 WARN"),
        # the host's memory, shared by twelve runs; responses that grew into the limit, from 13 to 48 per cent of them
        (GSPO, "MEM-2 3 WARN, TRUNC-1 18 WARN"),
        (CISPO_WELL, "TRUNC-1 20 WARN"),  # the same, from 19 to 53 per cent
        (COLLAPSED_AT_ONCE, "KL-2 4 WARN, KL-1 5 CRITICAL, ENT-1 5 WARN, ENT-1 6 CRITICAL"),
        (BLEW_UP_AT_ONCE, "KL-2 2 CRITICAL, CLIP-1 2 WARN, KL-1 3 WARN"),
        # every response is cut and has the same score from step 4 on
        (CISPO, "TRUNC-1 5 CRITICAL, KL-1 7 WARN, ENT-1 19 CRITICAL"),
        # a reward for length: from 16 to 41 per cent in five steps, and to 97 in sixteen
        (GAMED, "TRUNC-1 5 WARN, TRUNC-1 16 CRITICAL"),
        # REINFORCE++, learning rate 1e-4: every response has the same score, 0.25, from step 10 on, and few are cut
        (REINFORCE_COLLAPSED, "KL-2 3 WARN, TRUNC-1 8 WARN, ENT-1 8 WARN"),
        # there is never a reward, of which no critic is to blame
        (UNREWARDED, "MIS-1 2 CRITICAL, STOP-1 4 WARN, TRUNC-1 6 WARN, SIG-1 10 WARN, SIG-1 25 CRITICAL"),
    ],
)
def test_a_run_that_goes_wrong_is_flagged_and_warned_of_no_later_than_on_the_gpu(
    runs: Path, run: str, now: str
) -> None:
    flags = flagged_now(runs / run)
    assert ", ".join(f"{rule} {step} {level}" for rule, step, level in flags) == now
    assert first(flags, Level.WARN) <= first(flagged_live(runs / run), Level.WARN)


@pytest.mark.parametrize("run", [BLEW_UP_BY_RATE, COLLAPSED_BY_PENALTY, ENTROPY_ROSE])
def test_what_breaks_is_critical_no_later_than_it_was(runs: Path, run: str) -> None:
    """Which rule speaks is left open."""
    then, now = flagged_live(runs / run), flagged_now(runs / run)
    assert all(first(now, level) <= first(then, level) for level in (Level.WARN, Level.CRITICAL))


def test_nothing_is_critical_in_a_run_whose_accuracy_rises_from_26_to_72_per_cent(runs: Path) -> None:
    """LEN-1 and ENT-1 warned of it, wrongly: short and sure answers are what it learned."""
    assert "CRITICAL" not in {level for _, _, level in flagged_now(runs / LEARNED_FAST)}
    reader = RunReader(runs / LEARNED_FAST)
    reader.poll()
    right = reader.series.get("val-core/sums/acc/mean@1")
    assert right is not None
    assert dict(zip(right.steps, right.values, strict=True)) == {0: 0.2578125, 10: 0.65625, 20: 0.71875}


def scores(run: Path, attempt: int) -> dict[int, float]:
    """What veRL's own file logger wrote in one attempt."""
    lines = (run / f"attempts/{attempt}/metrics.jsonl").read_text().splitlines()
    records = [(record["step"], record["data"]) for record in map(json.loads, lines)]
    return {step: data["critic/score/mean"] for step, data in records if "critic/score/mean" in data}


def test_the_curves_of_both_attempts_are_one(runs: Path) -> None:
    """Steps 41 and 42 were done twice; the second time counts."""
    reader = RunReader(runs / LEARNED)
    reader.poll()
    series = reader.series.get("critic/score/mean")
    one, two = scores(runs / LEARNED, 1), scores(runs / LEARNED, 2)
    assert (max(one), min(two), max(two)) == (42, 41, 46) and one[41] != two[41]
    assert series is not None
    assert dict(zip(series.steps, series.values, strict=True)) == {**one, **two}


def test_a_run_whose_worker_was_killed_goes_on_from_its_checkpoint(runs: Path) -> None:
    """Killed in step 4, retried after 30 s from the checkpoint of step 2: step 3 was done twice."""
    reader = RunReader(runs / RETRIED)
    reader.poll()
    actions = [event.what for event in reader.events if isinstance(event.what, Action)]
    assert [(each.verb, each.by) for each in actions[:2]] == [("retry", "retry after worker-died"), ("resume", "user")]
    one, two = scores(runs / RETRIED, 1), scores(runs / RETRIED, 2)
    assert ([*one], [*two]) == ([1, 2, 3], [3, 4])
    series = reader.series.get("critic/score/mean")
    assert series is not None and dict(zip(series.steps, series.values, strict=True)) == {**one, **two}


def test_an_adopted_run_has_every_step_once_and_says_so(runs: Path) -> None:
    reader = RunReader(runs / ADOPTED)
    reader.poll()
    series, notes = (
        reader.series.get("critic/score/mean"),
        [e.what.text for e in reader.events if isinstance(e.what, Note)],
    )
    assert series is not None and dict(zip(series.steps, series.values, strict=True)) == scores(runs / ADOPTED, 1)
    assert notes == ["the supervisor was killed; another one took over the run, whose driver continues"]


def test_a_run_that_was_stopped_is_not_told_as_failed_or_going_on(runs: Path, ppo_tui: Command) -> None:
    told = ppo_tui("health", LEARNED, PPO_TUI_HOME=str(runs.parent)).stdout
    assert told.splitlines()[0].startswith("NOTICE — 34 of 49 rules judged")
    told = ppo_tui("status", COLLAPSED, PPO_TUI_HOME=str(runs.parent)).stdout
    assert "step     25 of 4660, 12.9 s per step\n" in told
    assert "(since step 10)\n" in told
    told = ppo_tui("diagnose", COLLAPSED, PPO_TUI_HOME=str(runs.parent)).stdout
    assert "fix: start it again with `ppo-tui fork d3d9 --checkpoint 0`: no checkpoint was found" in told


def test_the_twin_of_a_collapse_repeats_it_and_the_learning_rate_alone_does_not_heal_it(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(runs.parent))
    (found,) = trials_of(COLLAPSED_AGAIN)
    assert (found.rule, found.step) == ("KL-1", 2)
    assert [(arm.changes, arm.verdict) for arm in found.arms] == [((), "repeated"), (("actor.lr=5e-6",), "no effect")]


def test_samples_of_gpus_and_their_holders_are_the_same_lines_when_written_back(runs: Path) -> None:
    lines = [line for file in runs.glob("*/gpu.jsonl") for line in file.read_bytes().splitlines()]
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
