"""The host comes first where all stages of a step are slow: its CPUs by the samples, THR-1 and the page of the time."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import span_runs
from rule_levels import BASE, row
from waiting import wait_until

from launcher.health.checklist import Checklist
from launcher.machine.host import Usage
from launcher.machine.sampler import Sampler
from launcher.metrics.host import HostLoad, slow_together
from launcher.metrics.store import SeriesStore
from launcher.preset.files import load
from launcher.record.check import Check
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.levels import Level
from launcher.record.machine import HostSample, MachineSample, NodeSample, ProcessesSample
from launcher.runs.watch.history import Onset
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.proposals import proposals
from launcher.timing.report import Timing
from launcher.timing.words import host_words, problems

BUSY = HostLoad(load=60.0, cores=2.0, busy=2.0, others=1.7, waiting=0.58)
QUIET = HostLoad(load=1.4, cores=2.0, busy=1.4, others=0.1)
OTHERS = "other processes on the host: load 60 on 2 cores"
GPU = "other processes on the GPU"


@pytest.mark.parametrize(
    ("found", "crowded"),
    [
        (BUSY, True),
        (QUIET, False),
        (BUSY._replace(others=0.3), False),  # the run itself fills the cores
        (BUSY._replace(cores=64.0), False),  # cores are free
        (QUIET._replace(busy=1.5, stolen=0.5), True),
        (QUIET._replace(busy=1.5, stolen=0.1), False),
    ],
)
def test_others_crowd_a_host_whose_cores_they_take(found: HostLoad, crowded: bool) -> None:
    assert found.crowded is crowded
    assert HostLoad.of(found.metrics()) == found
    assert HostLoad.of({"machine/load": 3.0}) is None
    assert HostLoad.mean([found, found]) == pytest.approx(found)


def test_stages_are_slow_together_only_if_each_main_one_is() -> None:
    usual = {"gen": 2.0, "update_actor": 1.0, "adv": 0.01}
    assert slow_together({"gen": 16.0, "update_actor": 8.0}, usual)
    assert not slow_together({"gen": 16.0, "update_actor": 1.1}, usual)
    assert not slow_together({"gen": 16.0}, {"gen": 2.0}) and not slow_together({}, {})


def slowed(
    factor: float, *, update: float | None = None, host: HostLoad | None = None, config: dict[str, Any] | None = None
) -> Check:
    """The row of THR-1 after twelve usual steps and three slow ones."""

    def step(gen: float, actor: float) -> dict[str, float]:
        stages = {"timing_s/gen": 2 * gen, "timing_s/update_actor": actor, "timing_s/old_log_prob": 0.4 * actor}
        return BASE | stages | {"timing_s/step": sum(stages.values())}

    checklist = Checklist(config, clock=False)
    usual = step(1.0, 1.0) | QUIET.metrics()
    slow = step(factor, factor if update is None else update) | (host.metrics() if host else {})
    for number, data in enumerate([usual] * 12 + [slow] * 3, start=1):
        checklist.step(number, data)
    return row(checklist, "THR-1")


def test_a_slow_step_beside_other_programs_names_them_before_any_setting() -> None:
    found = slowed(8.0, host=BUSY)
    assert found.level == Level.CRITICAL and OTHERS in found.message
    assert "host first" in found.fixes[0].text
    one = slowed(8.0, update=1.0, host=BUSY)  # only the rollout is slow
    assert one.level >= Level.WARN and OTHERS not in one.message
    assert not any("host first" in fix.text for fix in one.fixes)
    quiet = slowed(8.0, host=QUIET)
    assert OTHERS not in quiet.message and not any("host first" in fix.text for fix in quiet.fixes)
    unknown = slowed(8.0)  # of a run without samples
    assert "host" not in unknown.message and "host first" in unknown.fixes[0].text


def test_on_a_cpu_nothing_is_said_about_gpus() -> None:
    for host in (BUSY, QUIET, None):
        found = slowed(8.0, host=host, config={"trainer.device": "cpu"})
        assert found.fixes and "gpu" not in " ".join([found.message, *(fix.text for fix in found.fixes)]).lower()
    assert any(GPU in fix.text for fix in slowed(8.0, config={"trainer.device": "cuda"}).fixes)


def test_the_cpu_of_a_run_is_told_from_that_of_others() -> None:
    """A real program that computes: as the run, and as another one."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            usage, sampler = Usage(), Sampler(visible=())
            assert usage.host().cores is None and usage.run([busy.pid]) is None  # from one call to the next
            sampler.sample([busy.pid])
            used = list[float | None]()
            wait_until(lambda: used.append(usage.run([busy.pid])) or used[-1], every=0.1)
            own, host = used[-1], usage.host()
            assert own and host.cores and host.busy and 0 < host.busy <= host.cores + 0.1 and host.load is not None
            sample = sampler.sample([busy.pid])
            assert sample.host_load is not None and sample.host_load.others >= 0
            assert MachineSample.from_json(sample.to_json()) == sample
        finally:
            busy.kill()


def test_old_samples_and_those_of_clusters_have_no_load() -> None:
    old = MachineSample.from_json({"t": 1.0, "host": {"used": 1, "total": 2}, "run": {"rss": 1}})
    assert old.host_load is None
    host = HostSample(1, 2, load=3.0, cores=2, busy=1.5)
    assert MachineSample(1.0, host, ProcessesSample(1, 0.5)).host_load == HostLoad(3.0, 2, 1.5, 1.0)
    assert MachineSample(1.0, host, ProcessesSample(1, 0.5), nodes=(NodeSample("a"),)).host_load is None


@pytest.fixture
def timing(home: Path) -> tuple[Timing, SeriesStore]:
    """The recorded run of the toy with its spans."""
    run = RunDir(home / "runs/abcdef-toy")
    run.attempts.mkdir(parents=True)
    RunInfo(id=run.id, name="toy", created=1.0, preset=load("toy-cpu").snapshot()).write(run.run_yaml)
    span_runs.write_spans(run.add_attempt(), span_runs.recorded())
    found, store = Timing(run, whole=True), SeriesStore()
    store.add_all(span_runs.recorded_steps(), 1)
    found.poll(False)
    return found, store


def test_the_page_of_the_time_names_the_host_before_any_setting(timing: tuple[Timing, SeriesStore]) -> None:
    report = timing[0].report(timing[1], 4)
    assert report is not None and report.host is None and not report.together
    slow = replace(report, host=BUSY, together=True)
    (problem,) = problems(slow)
    assert slow.crowded and problem.what.startswith(OTHERS)
    assert not any("=" in text for _, text in problem.rows())
    assert host_words(replace(report, host=QUIET)) == "load 1.4 on 2 cores, other processes use 0.10"
    assert host_words(replace(report, together=True)).startswith("not recorded")
    told = slow.to_json()
    assert told["host"]["others"] == 1.7 and told["slow_together"] is True


def test_a_step_that_others_slowed_gets_no_setting(timing: tuple[Timing, SeriesStore]) -> None:
    found, _ = timing
    heavy = SeriesStore()
    for record in span_runs.recorded_steps():
        record.data |= BUSY.metrics() if record.step == 5 else QUIET.metrics()
        if record.step == 5:
            record.data |= {key: 8 * value for key, value in record.data.items() if key.startswith("timing_s/")}
        heavy.add_all([record], 1)
    rough = Timing(found.run)  # nothing was read: by veRL's timers
    told = rough.report(heavy, 5)
    assert told is not None and told.crowded and not told.advice


@pytest.mark.parametrize("rule", ["THR-1", "MEM-2", "KL-1"])
def test_an_unusual_learning_rate_is_tried_only_where_it_can_be_the_reason(rule: str, home: Path) -> None:
    preset = load("toy-cpu", ("actor.lr=0.1",)).snapshot()
    run = create("x")
    RunInfo(id=run.id, name="x", created=1.0, preset=preset).write(run.run_yaml)
    found, _ = proposals(Parent(run), Onset(rule, 20, 20, Level.WARN), 10)
    tried = any("actor.lr=" in setting for each in found for setting in each.settings)
    assert tried is (rule == "KL-1"), found
