"""What the one-line widgets say at different widths; drawn without a screen."""

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from launcher.core.format import GIB
from launcher.record.check import Check
from launcher.record.levels import Level
from launcher.record.machine import DiskSpace, GpuSample, HostSample, MachineSample
from launcher.record.state import Rollout, RunState
from launcher.runs.watch.startup import DONE, ENDED, RUNNING, STAGES, WAITING, Stage, Startup
from tui.kit.drawing.glyphs import to_ascii
from tui.kit.drawing.rows import Row
from tui.kit.run_words import summary
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.log_tail import LogTail
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.head_lines import ProgressLine
from tui.pages.dashboard.memory_line import Memory
from tui.pages.dashboard.startup import startup_rows


def lines(rows: Sequence[Row]) -> list[str]:
    return ["".join(text for text, _ in row).rstrip() for row in rows]


def header(state: RunState, columns: int, name: str = "gsm8k-0.5b-24gb") -> str:
    widget = HeaderLine()
    widget.run_name, widget.run_id, widget.state, widget.now = name, "7f3a1c-x", state, state.updated
    return lines(widget.draw(columns, 1))[0]


def test_the_header_gives_up_the_name_before_state_and_verdict(make: SimpleNamespace) -> None:
    state = make.running(verdict="WARN", flags=("KL-4",))
    assert header(state, 80) == (" gsm8k-0.5b-24gb · 7f3a  ● running · rollout 24/32  ▲ WARN KL-4           up 3m")
    assert header(state, 60) == " gsm8k-0.5b…  ● running · rollout 24/32  ▲ WARN KL-4  up 3m"
    assert header(state, 34) == " ● running  ▲ WARN KL-4"


@pytest.mark.parametrize("columns", range(1, 120, 7))
def test_a_header_never_overflows(make: SimpleNamespace, columns: int) -> None:
    assert len(header(make.running(flags=("KL-4",)), columns, name="n" * 70)) <= columns


def test_progress_leaves_out_the_eta_then_the_pace(make: SimpleNamespace) -> None:
    widget = ProgressLine()
    widget.state = make.running()
    assert lines(widget.draw(60, 1)) == [" step 62/80  77 %  2.1 s/step  ETA 38s  ━━━━━━━━━━━━━━╸────"]
    assert lines(widget.draw(40, 1)) == [" step 62/80  77 %  2.1 s/step  ━━━━━━──"]
    assert lines(widget.draw(26, 1)) == [" step 62/80  77 %  ━━━━╸─"]
    widget.state = make.running(total=None)
    assert lines(widget.draw(60, 1)) == [" step 62  2.1 s/step"]


def startup(at: str, now: float, state: str = "starting", usual: float = 0.0, starts: int = 3) -> Startup:
    """A start whose stages up to `at` took 10 seconds each."""
    stages, begun = [], 0.0
    for stage in STAGES:
        where = STAGES.index(stage) - STAGES.index(at)
        word = DONE if where < 0 else WAITING
        if not where:
            word = RUNNING if state == "starting" else ENDED
        known = word != WAITING
        span = (usual, usual) if usual else None
        seconds = 10.0 if where < 0 else now
        stages.append(
            Stage(
                stage,
                word,
                begun if known else None,
                seconds if known else None,
                span,
                known and 0 < usual * 2 < seconds,
            )
        )
        begun += 10.0
    return Startup(tuple(stages), 10.0 * STAGES.index(at) + now, starts if usual else 0)


def test_a_start_says_its_stage_and_its_time(make: SimpleNamespace) -> None:
    widget = ProgressLine()
    widget.state = make.running(state="starting", step=None)
    widget.startup = startup("model", 12.0, usual=9.0)
    assert lines(widget.draw(80, 1)) == [" loading the models  1m 02s of about 1m 40s"]
    widget.startup = startup("model", 12.0, usual=1.0)
    assert lines(widget.draw(80, 1))[0].startswith(" loading the models  1m 02s · usually "), "no total that is over"
    widget.startup = startup("model", 12.0, state="failed")
    assert lines(widget.draw(80, 1)) == [" ended while loading the models after 1m 02s, before the first step"]


def test_the_stages_of_a_start_have_their_times_and_places() -> None:
    drawn = lines(startup_rows(startup("model", 25.0, usual=9.0), None, 90, 18, on_cpu=True))
    assert drawn == [
        "   stage                                     time        usually",
        " ✔ configuration     done                     10s             9s  ━━",
        " ✔ Ray               done                     10s             9s    ━━",
        " ✔ trainer           done                     10s             9s      ━━",
        " ✔ data              done                     10s             9s        ━━",
        " ✔ workers           done                     10s             9s          ━━",
        " ◆ models            longer than usual        25s             9s            ━━━━",
        " · engine            waiting                                  9s                ──",
        " · CUDA graphs       waiting                                  9s                  ──",
        " · checkpoint        waiting                                  9s                    ──",
        " · first validation  waiting                                  9s                      ─",
        " · first step        waiting                                  9s                       ──",
        "",
        "   usual times: median of the last 3 starts of this preset",
    ]


def test_a_stage_that_takes_long_says_why_where_there_is_room() -> None:
    found = startup("model", 25.0, usual=9.0)
    slow = tuple(dataclasses.replace(each, why="downloaded 3.1 GB") if each.slow else each for each in found.stages)
    drawn = lines(startup_rows(dataclasses.replace(found, stages=slow), None, 80, 18, on_cpu=True))
    assert "   models: downloaded 3.1 GB" in drawn
    drawn = lines(startup_rows(dataclasses.replace(found, stages=slow), None, 80, 12, on_cpu=True))
    assert drawn[-1] == "   models: downloaded 3.1 GB" and len(drawn) == 12
    fixes = {"model": "set model.path=/dev/shm/x", "engine": "not yet"}
    drawn = lines(startup_rows(found, None, 80, 24, on_cpu=True, fixes=fixes))
    assert drawn[-2:] == [
        "   shorter next time: set model.path=/dev/shm/x",
        "   usual times: median of the last 3 starts of this preset",
    ]


def test_little_room_puts_stages_that_are_done_or_wait_together() -> None:
    drawn = lines(startup_rows(startup("model", 5.0), None, 60, 4, on_cpu=True))
    assert drawn == [
        " ✔ configuration, Ray, trainer, data, workers",
        " ○ models            running                   5s",
        " · engine            waiting",
        " · CUDA graphs, checkpoint, first validation, first step",
    ]
    narrow = lines(startup_rows(startup("model", 5.0), None, 20, 3, on_cpu=True))
    assert narrow == [" ✔ configuration, R…", " ○ models", " · engine, CUDA gra…"]


def test_the_counts_of_checks_are_not_cut_for_a_hint() -> None:
    levels = [Level.OK] * 3 + [Level.OK] * 24 + [Level.WARM] * 4 + [Level.N_A] * 9
    widget = Checklist()
    widget.show([Check(f"R-{number}", name="name", level=level) for number, level in enumerate(levels)])
    for columns in (70, 76, 80):
        assert lines(widget.draw(columns, 4))[-1].startswith("   24 more OK · 4 warming up · 9 not judged")


@pytest.mark.parametrize("columns", range(1, 170, 13))
@pytest.mark.parametrize("rows", [1, 2, 7, 12, 40])
def test_stages_keep_to_their_room(columns: int, rows: int) -> None:
    for stage in STAGES:
        assert (
            len(startup_rows(startup(stage, 900.0, usual=4.0), Rollout(3, 0, 8), columns, rows, on_cpu=False)) <= rows
        )


def memory(sample: MachineSample | None, rows: int, columns: int = 80, on_cpu: bool = False) -> list[str]:
    widget = Memory()
    widget.sample, widget.on_cpu = sample, on_cpu
    return lines(widget.draw(columns, rows))


def test_memory_of_one_gpu_of_several_and_of_more_than_fit(make: SimpleNamespace) -> None:
    one = " GPU 0 RTX 4090   19.4/24.0 GiB   97 %  312 W   71 °C  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░"
    assert memory(make.gpus(1), 1) == [one]
    assert memory(make.gpus(2), 2)[0] == one
    assert memory(make.gpus(8), 1) == [
        " 8 × RTX 4090  19.4–21.5/24.0 GiB  90–97 %  312–319 W  64–71 °C  ▓▓▓▓▓▓▓▓▓▓▓▓▓░"
    ]
    assert memory(make.gpus(1), 1, columns=40) == [" GPU 0 RTX 4090   19.4/24.0 GiB   97 %"]
    host, disk = HostSample(9 * GIB, 31 * GIB, load=9.3, cores=16), DiskSpace("/", 41 * GIB, 99 * GIB)
    found = memory(replace(make.gpus(1), host=host, disk=disk), 1)
    assert found == [" GPU 0 RTX 4090   19.4/24.0 GiB   97 %  load 9.3/16  disk 41.0 GiB free  ▓▓▓▓▓░"]
    assert "GiB  load 9.3/16  disk" in memory(replace(make.gpus(2), host=host, disk=disk), 9)[2]


def test_without_a_gpu_the_host_and_one_sentence_stand_there(make: SimpleNamespace) -> None:
    host = " host 9.2/31.0 GiB  run 3.4 GiB"
    bar = "▓▓▓▓▓▓▓░░░░░░░░░░░░░░░░░"
    why = "no GPU figures: NVML does not start here (Driver Not Loaded); it comes with the NVIDIA driver"
    said = "no GPU figures: NVML does not start here"
    assert memory(make.host(missing=why), 1, columns=130) == [f"{host}  {said}  {bar}"]
    assert memory(make.host(), 1, on_cpu=True) == [f"{host}  {bar}"]
    assert memory(None, 1) == []


def test_a_gpu_that_tells_nothing_is_still_listed(make: SimpleNamespace) -> None:
    silent = make.host(gpus=(GpuSample(0, "GPU"),))
    assert memory(silent, 1) == [" GPU 0 GPU      –/– GiB  ░░░░░░░░░░░░░░░░░░░░░░░░"]


def test_the_checklist_counts_what_it_does_not_show(make: SimpleNamespace) -> None:
    def check(level: Level, name: str, message: str = "") -> Check:
        return Check("X-1", name, level, message)

    widget = Checklist()
    widget.checks = [
        check(Level.WARN, "Unrewarded drift", "KL rose by 0.12"),
        check(Level.NOTICE, "Entropy collapse", "entropy 0.04"),
        check(Level.OK, "Non-finite numbers", "112 figures, all finite"),
        *[check(Level.OK, "Policy drift (KL)")] * 17,
        *[check(Level.N_A, "Stale samples")] * 2,
    ]
    assert lines(widget.draw(80, 4)) == [
        " ▲ WARN     Unrewarded drift   KL rose by 0.12",
        " ◆ NOTICE   Entropy collapse   entropy 0.04",
        " ● OK       Non-finite numbers 112 figures, all finite",
        f"{'   17 more OK · 2 not judged':<56} ↑↓ select · enter open",
    ]
    assert lines(widget.draw(50, 4))[1:3] == [" ◆ NOTICE   entropy 0.04", " ● OK       Non-finite numbers"]
    assert lines(widget.draw(80, 1)) == [" ▲ WARN     Unrewarded drift KL rose by 0.12"]
    assert lines(widget.draw(60, 3))[2] == "   18 more OK · 2 not judged"
    assert lines(widget.draw(60, 2))[1] == "   1 more NOTICE · 18 more OK · 2 not judged"
    assert len(widget.draw(80, 60)) == 21  # all that were judged, and a line about those that were not


def test_a_muted_check_is_only_counted() -> None:
    checks = [Check("KL-1", "Is it?", Level.OK), Check("KL-4", "Is it?", Level.CRITICAL, muted=True)]
    assert summary(checks) == "1 more OK · 1 muted"
    widget = Checklist()
    widget.checks = checks
    assert lines(widget.draw(60, 4)) == [" ● OK       Is it?", "   1 muted"]


def test_the_log_tail_skips_what_stands_elsewhere() -> None:
    widget = LogTail()
    widget.lines = [
        "one",
        "",
        "two",
        "   ",
        "(TaskRunnerV1) step:7 - actor/entropy:0.5",
        "three",
        "(TaskRunnerV1) Training Progress:   7%|▋  | 7/100 [",
    ]
    assert lines(widget.draw(80, 2)) == [" two", " three"]


def test_the_log_tail_shows_the_newest_state_of_a_progress_bar() -> None:
    widget = LogTail()
    widget.lines = [
        "one",
        "(T) Capturing:   7%|▋  | 7/100 [",
        "(T) shards:  50%|█ | 1/2",
        "two",
        "(T) Capturing:   8%|▋  | 8/100 [",
        "(T) Loading weights: 100%|██████████| 26/26 [00:00<00:00, 22876.42it/s]",
    ]
    assert lines(widget.draw(80, 4))[1:] == [f" {line}" for line in widget.lines[2:-1]]


def test_the_log_tail_shows_what_each_step_repeats_once() -> None:
    widget = LogTail()
    dumped = [f"(T) Dumped generations to /samples/{step}.jsonl" for step in (8, 9, 10)]
    step = "(T) step:9 - actor/entropy:0.5"
    widget.lines = ["one", dumped[0], step, dumped[1], step, dumped[2]]
    assert lines(widget.draw(80, 4)) == [" one", f" {dumped[2]}"]


def test_the_log_tail_leaves_out_the_addresses_of_a_signal() -> None:
    """As Ray prints them when a run is stopped: once as they are, once more through its own logger."""
    ray = "[2026-11-22 00:33:08,360 E 22699 22699] logging.cc:474: "
    signal = [
        "*** SIGTERM received at time=1795307588 on cpu 5 ***",
        "PC: @     0x7f1e6e098e51  (unknown)  (unknown)",
        "    @     0x7f1e6e045330  228561360  (unknown)",
        "    @           0x5499b5         32  PyObject_Vectorcall",
    ]
    widget = LogTail()
    widget.lines = ["one", *signal, *(ray + line for line in signal)]
    assert lines(widget.draw(80, 9)) == [" one", f" {signal[0]}"]
    widget.lines = ["one", ray + "Out of disk space.", *(f"(WorkerDict) {line}" for line in signal)]
    assert lines(widget.draw(80, 9)) == [" one", " Out of disk space.", f" (WorkerDict) {signal[0]}"]


def test_the_log_tail_shows_a_traceback_without_underlines() -> None:
    trace = ['(T)   File "a.py", line 3, in run', "(T)     return call()", "(T) ValueError: ^"]
    widget = LogTail()
    widget.lines = [*trace[:2], "(T)            ^^^^^^", *trace[:2], "(T)            ~~^^~~", trace[2]]
    assert lines(widget.draw(80, 9)) == [f" {line}" for line in (*trace[:2], *trace)]
    again = " [repeated 21x across cluster]"
    widget.lines = [f"(T)     ~~^^{again}", f"(T) ValueError: no{again}", "(T) "]
    assert lines(widget.draw(80, 9)) == [f" (T) ValueError: no{again}"]


def test_the_log_tail_names_a_validation_without_its_figures() -> None:
    head = """(T) ("Final validation metrics: {'val-aux/sums/reward/mean@4': \""""
    figures = [""" "np.float64(0.85), 'val-aux/sums/std@4': \"""", """ 'np.float64(2.0)}')""", """ 'val-core/x': 1,"""]
    widget = LogTail()
    widget.lines = [head, *(f"(T) {line}" for line in figures), "(T)  'nnodes': 1,"]
    assert lines(widget.draw(80, 9)) == [f" {head}", " (T)  'nnodes': 1,"]


def test_every_sign_has_an_ascii_twin_of_one_cell(make: SimpleNamespace) -> None:
    widget = Checklist()
    widget.checks = make.checks()
    drawn = "".join(lines(widget.draw(80, 4)) + memory(make.gpus(8), 1) + [header(make.running(), 80)])
    assert not drawn.isascii()
    assert to_ascii(drawn).isascii()
    assert to_ascii(drawn).count("?") == drawn.count("?")
    assert len(to_ascii(drawn)) == len(drawn)
    assert to_ascii("⣀⠉⣿ 中") == "_': ??"
