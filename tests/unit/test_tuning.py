"""What `tune` tries next, on simulated GPUs, and what it writes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import call
from fake_nvml import FakeGpu, FakeNvml
from tables import tabled

from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.core.format import GIB
from launcher.estimate.tuning import Measured, Peak, Point, Space, best_of
from launcher.preset.files import load
from launcher.record.layout import RunDir, all_runs, create
from launcher.record.note import RunNote
from launcher.record.state import RunState
from launcher.runs.act import tune as tuning
from launcher.runs.act.start import Plan
from launcher.runs.act.tune import COURSE, measured, preset_text, tune
from launcher.runs.watch.peak_memory import peak_memory
from launcher.runs.watch.steps import steps

DATA = Path(__file__).parents[1] / "data"

Truth = Callable[[Point], tuple[float | None, float]]  # tokens per second (None: out of memory), GiB


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    FakeNvml([gpu := FakeGpu(total=24 * GIB, name="simulated")]).install(monkeypatch)
    return gpu


def searched(space: Space, truth: Truth, most: int = 6) -> list[Measured]:
    """The probes of a machine that behaves as `truth` says."""
    probes: list[Measured] = []
    while len(probes) < most and (point := space.next(probes)) is not None:
        tokens, peak = truth(point)
        total = space.subject.machine.gpus[0].total
        probes.append(Measured(point, "x", tokens, _peak(peak, total), memory=tokens is None))
    return probes


def rising(point: Point) -> tuple[float | None, float]:
    """Larger is faster up to twice the preset's batches, offloading is slower; 22 GiB are enough."""
    peak = 10.0 + 4.0 * point.batch + 10.0 * ((point.share or 0) - 0.4) - 2.0 * point.offload
    speed = 1000.0 + 100.0 * min(point.batch, 1) + 200.0 * (point.share or 0) - 150.0 * point.offload
    return (speed if peak <= 22.0 else None), peak


@pytest.mark.parametrize("preset", ["gsm8k-0.5b-24gb", "gsm8k-grpo-24gb", "gsm8k-1.5b-24gb"])
@pytest.mark.parametrize("gib", [16, 24, 80])
def test_the_best_of_six_probes_is_no_slower_than_the_preset_and_fits(preset: str, gib: int, card: FakeGpu) -> None:
    card.total = gib * GIB
    space = Space(subject(load(preset)))
    probes = searched(space, rising)
    best = best_of(probes)
    assert 1 <= len(probes) <= 6 and best is not None and best.tokens is not None
    changes = [json.dumps(dict(space.change(each.point)), sort_keys=True) for each in probes]
    assert len(set(changes)) == len(changes), "nothing is probed twice"
    preset_itself = [each.tokens for each in probes if each.point == space.origin and each.tokens]
    assert all(best.tokens >= tokens * 0.98 for tokens in preset_itself)


def test_the_estimate_chooses_the_first_point(card: FakeGpu) -> None:
    first = {}
    for card.total in (24 * GIB, 80 * GIB):
        space = Space(subject(load("gsm8k-0.5b-24gb")))
        first[card.total // GIB] = space.first()
    assert first[24].offload > first[80].offload == 0 and first[80].batch > first[24].batch


def test_without_room_it_moves_down(card: FakeGpu) -> None:
    space = Space(subject(load("gsm8k-0.5b-24gb")))
    probes = searched(space, lambda _: (None, 23.9))
    assert len(probes) == 6 and best_of(probes) is None
    shares = [each.point.share or 0 for each in probes]
    assert probes[-1].point.batch < probes[0].point.batch or shares[-1] < shares[0]


def test_a_gpu_that_is_almost_full_is_not_recommended() -> None:
    full = Measured(Point(1), "a", 200.0, _peak(79, 80 * GIB))
    roomy = Measured(Point(0), "b", 150.0, _peak(60, 80 * GIB))
    assert best_of([full, roomy]) is roomy
    assert best_of([roomy, Measured(Point(2), "c", 151.0, _peak(70, 80 * GIB))]) is roomy, "a gain of 1 % is noise"


def _peak(used: float, total: int | None, needed: float | None = None) -> Peak:
    return Peak(int(used * GIB), total, int((used if needed is None else needed) * GIB))


@tabled
def test_memory_that_torch_frees_when_it_needs_it_is_not_needed(preset: str, used: float, needed: float) -> None:
    """Two runs in 24 GB on a GPU."""
    run = RunDir(DATA / "peaks" / preset)
    found = peak_memory(run, [record.data for _, record in steps(run)])
    assert found is not None and found.total == 25_755_123_712
    assert (round(found.used / GIB, 1), round(found.needed / GIB, 1)) == (used, needed)
    assert Measured(Point(), "a", 200.0, found).usable is (needed < 23)


def test_gpus_of_their_own_for_the_rollout_have_no_cache_of_the_training() -> None:
    run = RunDir(DATA / "peaks/share-0.3")
    rows = [{**record.data, "fully_async/trainer/idle_ratio": 0.1} for _, record in steps(run)]
    found = peak_memory(run, rows)
    assert found is not None and found.needed == found.used


ROWS = (
    *("actor.ppo_micro_batch_size_per_gpu", "critic.ppo_micro_batch_size_per_gpu"),
    *("rollout.log_prob_micro_batch_size_per_gpu", "ref.log_prob_micro_batch_size_per_gpu"),
)


def test_micro_batches_stay_even_and_within_a_mini_batch() -> None:
    space = Space(subject(load("toy-cpu", ["actor.ppo_micro_batch_size_per_gpu=4", "actor.ppo_mini_batch_size=24"])))
    assert [space.change(Point(power))["actor.ppo_micro_batch_size_per_gpu"] for power in (-3, -1, 1, 2, 3)] == [
        *(1, 2, 8),
        *(12, 24),
    ]
    assert space.change(Point(0)) == {}


def test_only_fields_that_this_verl_reads_are_set() -> None:
    settings = ["actor.use_dynamic_bsz=false", *(f"{field}=16" for field in ROWS)]
    found = subject(load("gsm8k-0.5b-24gb", settings))
    changed = Space(found).change(Point(-1))
    assert changed["critic.ppo_max_token_len_per_gpu"] == 8192 and set(changed) == {
        *(field for field in ROWS if not field.startswith("critic")),
        "critic.ppo_max_token_len_per_gpu",
    }
    assert set(Space(replace(found, version="0.7.1")).change(Point(-1))) == set(ROWS)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Runs in veRL's place: each logs tokens that grow with the actor's micro-batch, as files only."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    started: list[list[str]] = []

    def start(plan: Plan, *, force: bool) -> RunDir:
        run, name = create(plan.loaded.name), plan.loaded.name
        RunNote.parse(plan.note).write(run.note)
        run.run_yaml.write_text(f"id: {run.id}\nname: {name}\noverrides: {json.dumps(plan.changes)}\n")
        attempt = run.add_attempt()
        chosen = dict(word.split("=", 1) for word in plan.changes)
        size = int(chosen.get("actor.ppo_micro_batch_size_per_gpu", "4"))
        values = {"perf/throughput": 100.0 * size, "response_length/mean": 8}
        lines = [json.dumps({"schema": 1, "step": step, "t": 1.0, "data": values}) for step in (1, 2, 3)]
        attempt.steps.write_text("\n".join([*lines, ""]))
        sample = {"schema": 1, "t": 1.0, "host": {"total": 99 * GIB}, "run": {"rss": size * GIB}}
        run.machine.write_text(json.dumps(sample))
        RunState("finished", attempt=1, created=1.0, updated=1.0).write(run.state)
        started.append(list(plan.changes))
        return run

    monkeypatch.setattr(tuning, "start", start)
    return started


def small() -> Any:
    sizes = ("actor.ppo", "critic.ppo", "rollout.log_prob", "ref.log_prob")
    return load("toy-cpu", [f"{name}_micro_batch_size_per_gpu=4" for name in sizes])


def test_a_preset_is_written_and_an_interrupted_search_continues(runs: list[list[str]], tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        tune(small(), tmp_path / "x.yaml", _interrupting(said, 3))
    begun = len(runs)
    found = tune(small(), tmp_path / "toy-tuned.yaml", said.append)
    assert begun < len(runs) == len(found.probes) <= 6, "no probe was made twice"
    assert all(f"{name}=" in " ".join(runs[0]) for name in COURSE)
    assert found.change["actor.ppo_micro_batch_size_per_gpu"] == 32 and not (tmp_path / "x.yaml").exists()
    text = found.path.read_text()
    assert text.count("tokens/s per GPU") == len(found.probes) and "peak" in text
    assert load(str(found.path)).preset.actor.ppo_micro_batch_size_per_gpu == 32
    assert load(str(found.path)).preset.model == load("toy-cpu").preset.model


def _interrupting(said: list[str], after: int) -> Callable[[str], None]:
    def narrate(text: str) -> None:
        said.append(text)
        if len(said) > after:
            raise KeyboardInterrupt

    return narrate


def test_a_probe_that_fails_for_another_reason_ends_it(runs, tmp_path, monkeypatch):
    begin = tuning.start

    def fails(*args: Any, **kwargs: Any) -> RunDir:
        run = begin(*args, **kwargs)
        RunState("failed", attempt=1, created=1.0, updated=1.0).write(run.state)
        return run

    monkeypatch.setattr(tuning, "start", fails)
    with pytest.raises(UserError, match=r"probe \S+ failed: .*; 'ppo-tui diagnose"):
        tune(small(), tmp_path / "x.yaml", lambda _: None)


@tabled
def test_out_of_memory_is_a_result(runs: list[list[str]], console: str, memory: bool) -> None:
    run = tuning.start(Plan.of("toy-cpu"), force=False)
    attempt = run.attempt(1)
    attempt.console.write_text(f'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n{console}')
    attempt.exit.write_text('{"schema": 1, "code": 1}')
    RunState("failed", attempt=1, created=1.0, updated=1.0).write(run.state)
    found = measured(run, Point())
    assert (
        found is not None
        and found.memory is memory
        and found.tokens is None
        and found.peak == Peak(4 * GIB, 99 * GIB, 4 * GIB)
    )


def test_responses_that_were_not_filled_are_mentioned(runs: list[list[str]]) -> None:
    space = Space(subject(load("toy-cpu")))
    short = Measured(Point(), "x", 10.0, length=3.0)
    assert "3 tokens on average" in preset_text(load("toy-cpu"), {}, [short], short, space)


def test_the_command_prints_the_preset_and_its_probes(runs: list[list[str]]) -> None:
    out, err, _ = call(["tune", "toy-cpu", "--name", "fast", "--limit", "2", "--json"])
    found = json.loads(out)
    assert found["preset"] == "fast" and Path(found["file"]).is_file(), err
    assert {each["run"] for each in found["probes"]} == {run.id for run in all_runs()}
