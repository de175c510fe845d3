"""What the one-line widgets say at different widths; drawn without a screen."""

import dataclasses
import itertools
from dataclasses import replace

import pytest
from pilots import words

from launcher.core.format import GIB
from launcher.record.check import Check
from launcher.record.levels import Level
from launcher.record.machine import DiskSpace, GpuSample, HostSample
from launcher.record.problem import Rival
from launcher.record.state import Rollout
from launcher.runs.watch.startup import DONE, ENDED, RUNNING, STAGES, WAITING, Stage, Startup
from tui.kit.drawing.glyphs import to_ascii
from tui.kit.run_words import summary
from tui.kit.widgets.header_line import HeaderLine
from tui.kit.widgets.log_tail import LogTail
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.head_lines import ProgressLine
from tui.pages.dashboard.memory_line import Memory
from tui.pages.dashboard.startup import startup_rows


def lines(rows):
    return [line.rstrip() for line in words(rows).split("\n")] if rows else []


def header(state, columns, name="gsm8k-0.5b-24gb"):
    widget = HeaderLine()
    widget.run_name, widget.run_id, widget.state, widget.now = name, "7f3a1c-x", state, state.updated
    return lines(widget.draw(columns, 1))[0]


def progress(columns, state, startup=None):
    widget = ProgressLine()
    widget.state, widget.startup = state, startup
    return lines(widget.draw(columns, 1))[0]


def tail(*said, rows=9):
    widget = LogTail()
    widget.lines = list(said)
    return lines(widget.draw(80, rows))


def checklist(checks, columns, rows):
    widget = Checklist()
    widget.checks = checks
    return lines(widget.draw(columns, rows))


def test_the_header_gives_up_the_name_before_state_and_verdict(make):
    state = make.running(verdict="WARN", flags=("KL-4",))
    assert header(state, 80) == " gsm8k-0.5b-24gb · 7f3a  ● running · rollout 24/32  ▲ WARN KL-4           up 3m"
    assert header(state, 60) == " gsm8k-0.5b…  ● running · rollout 24/32  ▲ WARN KL-4  up 3m"
    assert header(state, 34) == " ● running  ▲ WARN KL-4"
    assert all(len(header(state, columns, name="n" * 70)) <= columns for columns in range(1, 120, 7))


def test_a_row_without_room_for_both_has_the_leading_cause_or_the_message():
    lead = Rival("rate-high", "Learning rate 30× the usual")
    flag = Check("KL-2", "Update size", Level.WARN, "ppo_kl 0.3", lead=lead)
    assert checklist([flag], 50, 3)[0] == " ▲ WARN     Learning rate 30× the usual"
    assert checklist([flag], 78, 3)[0].endswith("Learning rate 30× the usual Update size: ppo_kl 0.3")
    assert checklist([replace(flag, lead=None)], 50, 3)[0] == " ▲ WARN     ppo_kl 0.3"


def startup(at, now, state="starting", usual=0.0, starts=3):
    """A start whose stages up to `at` took 10 seconds each."""
    stages, begun = [], 0.0
    for stage in STAGES:
        where = STAGES.index(stage) - STAGES.index(at)
        word = DONE if where < 0 else WAITING
        if not where:
            word = RUNNING if state == "starting" else ENDED
        seconds = 10.0 if where < 0 else now
        known = (begun, seconds) if word != WAITING else (None, None)
        slow = word != WAITING and 0 < usual * 2 < seconds
        stages.append(Stage(stage, word, *known, (usual, usual) if usual else None, slow))
        begun += 10.0
    return Startup(tuple(stages), 10.0 * STAGES.index(at) + now, starts if usual else 0)


def test_progress_leaves_out_the_eta_then_the_pace_and_a_start_says_its_stage_and_its_time(make):
    state, starting = make.running(), make.running(state="starting", step=None)
    assert progress(60, state) == " step 62/80  77 %  2.1 s/step  ETA 38s  ━━━━━━━━━━━━━━╸────"
    assert progress(40, state) == " step 62/80  77 %  2.1 s/step  ━━━━━━──"
    assert progress(26, state) == " step 62/80  77 %  ━━━━╸─"
    assert progress(60, make.running(total=None)) == " step 62  2.1 s/step"
    told = " loading the models  1m 02s of about 1m 40s"
    assert progress(80, starting, startup("model", 12.0, usual=9.0)) == told
    over = progress(80, starting, startup("model", 12.0, usual=1.0))
    assert over.startswith(" loading the models  1m 02s · usually "), "no total that is over"
    ended = progress(80, starting, startup("model", 12.0, state="failed"))
    assert ended == " ended while loading the models after 1m 02s, before the first step"


def test_the_stages_of_a_start_have_their_times_and_places():
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


def test_a_stage_that_takes_long_says_why_where_there_is_room():
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


def test_little_room_puts_stages_that_are_done_or_wait_together():
    drawn = lines(startup_rows(startup("model", 5.0), None, 60, 4, on_cpu=True))
    assert drawn == [
        " ✔ configuration, Ray, trainer, data, workers",
        " ○ models            running                   5s",
        " · engine            waiting",
        " · CUDA graphs, checkpoint, first validation, first step",
    ]
    narrow = lines(startup_rows(startup("model", 5.0), None, 20, 3, on_cpu=True))
    assert narrow == [" ✔ configuration, R…", " ○ models", " · engine, CUDA gra…"]


def test_stages_keep_to_their_room():
    for stage, columns, rows in itertools.product(STAGES, range(1, 170, 13), [1, 2, 7, 12, 40]):
        found = startup(stage, 900.0, usual=4.0)
        assert len(startup_rows(found, Rollout(3, 0, 8), columns, rows, on_cpu=False)) <= rows


def memory(sample, rows, columns=80, on_cpu=False):
    widget = Memory()
    widget.sample, widget.on_cpu = sample, on_cpu
    return lines(widget.draw(columns, rows))


def test_memory_is_one_line_of_a_gpu_of_more_than_fit_or_of_the_host(make):
    one = " GPU 0 RTX 4090   19.4/24.0 GiB   97 %  312 W   71 °C  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░"
    eight = " 8 × RTX 4090  19.4–21.5/24.0 GiB  90–97 %  312–319 W  64–71 °C  ▓▓▓▓▓▓▓▓▓▓▓▓▓░"
    assert memory(make.gpus(1), 1) == [one] and memory(make.gpus(2), 2)[0] == one
    assert memory(make.gpus(8), 1) == [eight]
    assert memory(make.gpus(1), 1, columns=40) == [" GPU 0 RTX 4090   19.4/24.0 GiB   97 %"]
    busy, disk = HostSample(9 * GIB, 31 * GIB, load=9.3, cores=16), DiskSpace("/", 41 * GIB, 99 * GIB)
    found = memory(replace(make.gpus(1), host=busy, disk=disk), 1)
    assert found == [" GPU 0 RTX 4090   19.4/24.0 GiB   97 %  load 9.3/16  disk 41.0 GiB free  ▓▓▓▓▓░"]
    assert "GiB  load 9.3/16  disk" in memory(replace(make.gpus(2), host=busy, disk=disk), 9)[2]
    host, bar = " host 9.2/31.0 GiB  run 3.4 GiB", "▓▓▓▓▓▓▓░░░░░░░░░░░░░░░░░"
    said = "no GPU figures: NVML does not start here"
    why = f"{said} (Driver Not Loaded); it comes with the NVIDIA driver"
    assert memory(make.host(missing=why), 1, columns=130) == [f"{host}  {said}  {bar}"]
    assert memory(make.host(), 1, on_cpu=True) == [f"{host}  {bar}"]
    assert memory(None, 1) == []
    silent = make.host(gpus=(GpuSample(0, "GPU"),))
    assert memory(silent, 1) == [" GPU 0 GPU      –/– GiB  ░░░░░░░░░░░░░░░░░░░░░░░░"]


def test_the_checklist_counts_what_it_does_not_show():
    checks = [
        Check("X-1", "Unrewarded drift", Level.WARN, "KL rose by 0.12"),
        Check("X-1", "Entropy collapse", Level.NOTICE, "entropy 0.04"),
        Check("X-1", "Non-finite numbers", Level.OK, "112 figures, all finite"),
        *[Check("X-1", "Policy drift (KL)", Level.OK)] * 17,
        *[Check("X-1", "Stale samples", Level.N_A)] * 2,
    ]
    assert checklist(checks, 80, 4) == [
        " ▲ WARN     Unrewarded drift   KL rose by 0.12",
        " ◆ NOTICE   Entropy collapse   entropy 0.04",
        " ● OK       Non-finite numbers 112 figures, all finite",
        f"{'   17 more OK · 2 not judged':<56} ↑↓ select · enter open",
    ]
    assert checklist(checks, 50, 4)[1:3] == [" ◆ NOTICE   entropy 0.04", " ● OK       Non-finite numbers"]
    assert checklist(checks, 80, 1) == [" ▲ WARN     Unrewarded drift KL rose by 0.12"]
    assert checklist(checks, 60, 3)[2] == "   18 more OK · 2 not judged"
    assert checklist(checks, 60, 2)[1] == "   1 more NOTICE · 18 more OK · 2 not judged"
    assert len(checklist(checks, 80, 60)) == 21  # all that were judged, and a line about those that were not
    levels = [Level.OK] * 27 + [Level.WARM] * 4 + [Level.N_A] * 9
    many = [Check(f"R-{number}", "name", level) for number, level in enumerate(levels)]
    for columns in (70, 76, 80):  # the counts are not cut for a hint
        assert checklist(many, columns, 4)[-1].startswith("   24 more OK · 4 warming up · 9 not judged")
    muted = [Check("KL-1", "Is it?", Level.OK), Check("KL-4", "Is it?", Level.CRITICAL, muted=True)]
    assert summary(muted) == "1 more OK · 1 muted"
    assert checklist(muted, 60, 4) == [" ● OK       Is it?", "   1 muted"]


STEP = "(TaskRunnerV1) step:7 - actor/entropy:0.5"
BAR = "(TaskRunnerV1) Training Progress:   7%|▋  | 7/100 ["
SHARDS = "(T) shards:  50%|█ | 1/2"
CAPTURED = ("(T) Capturing:   7%|▋  | 7/100 [", "(T) Capturing:   8%|▋  | 8/100 [")
LOADED = "(T) Loading weights: 100%|██████████| 26/26 [00:00<00:00, 22876.42it/s]"
DUMPED = [f"(T) Dumped generations to /samples/{step}.jsonl" for step in (8, 9, 10)]
RAY = "[2026-11-22 00:33:08,360 E 22699 22699] logging.cc:474: "
SIGNAL = (
    "*** SIGTERM received at time=1795307588 on cpu 5 ***",
    "PC: @     0x7f1e6e098e51  (unknown)  (unknown)",
    "    @     0x7f1e6e045330  228561360  (unknown)",
    "    @           0x5499b5         32  PyObject_Vectorcall",
)
TRACE = ['(T)   File "a.py", line 3, in run', "(T)     return call()", "(T) ValueError: ^"]
AGAIN = " [repeated 21x across cluster]"
VALIDATION = """(T) ("Final validation metrics: {'val-aux/sums/reward/mean@4': \""""
FIGURES = [""" "np.float64(0.85), 'val-aux/sums/std@4': \"""", """ 'np.float64(2.0)}')""", """ 'val-core/x': 1,"""]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (["one", "", "two", "   ", STEP, "three", BAR], ["one", "two", "three"]),
        (["one", CAPTURED[0], SHARDS, "two", CAPTURED[1], LOADED], ["one", SHARDS, "two", CAPTURED[1]]),
        (["one", DUMPED[0], STEP, DUMPED[1], STEP, DUMPED[2]], ["one", DUMPED[2]]),
        (["one", *SIGNAL, *(RAY + line for line in SIGNAL)], ["one", SIGNAL[0]]),
        (
            ["one", f"{RAY}Out of disk space.", *(f"(WorkerDict) {line}" for line in SIGNAL)],
            ["one", "Out of disk space.", f"(WorkerDict) {SIGNAL[0]}"],
        ),
        ([*TRACE[:2], "(T)            ^^^^^^", *TRACE[:2], "(T)            ~~^^~~", TRACE[2]], [*TRACE[:2], *TRACE]),
        ([f"(T)     ~~^^{AGAIN}", f"(T) ValueError: no{AGAIN}", "(T) "], [f"(T) ValueError: no{AGAIN}"]),
        ([VALIDATION, *(f"(T) {line}" for line in FIGURES), "(T)  'nnodes': 1,"], [VALIDATION, "(T)  'nnodes': 1,"]),
    ],
    ids=["steps", "bars", "repeated", "signal", "ray's own line", "underlines", "cluster", "validation"],
)
def test_the_log_tail_leaves_out_what_stands_elsewhere_or_repeats(said, shown):
    assert tail(*said) == [f" {line}" for line in shown]
    assert tail(*said, rows=2) == [f" {line}" for line in shown[-2:]]


def test_every_sign_has_an_ascii_twin_of_one_cell(make):
    drawn = "".join(checklist(make.checks(), 80, 4) + memory(make.gpus(8), 1) + [header(make.running(), 80)])
    assert not drawn.isascii() and to_ascii(drawn).isascii() and len(to_ascii(drawn)) == len(drawn)
    assert to_ascii(drawn).count("?") == drawn.count("?") and to_ascii("⣀⠉⣿ 中") == "_': ??"
