"""States, phases and verdicts in words."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from launcher.record.attempt import Exit
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import ALIVE, ENDED, RunState
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row
from tui.kit.run_words import STATES, lineage, notice, state_words, uptime, verdict_words


def text(row: Row) -> str:
    return "".join(part for part, _ in row)


def test_every_state_of_the_launcher_has_a_sign() -> None:
    assert set(STATES) == ALIVE | ENDED | set(glyphs.signs("queue"))
    assert all(len(sign) == 1 for sign, _ in STATES.values())


def test_a_running_run_says_what_it_does(make: SimpleNamespace) -> None:
    assert text(state_words(make.running())) == "● running · rollout 24/32"
    assert text(state_words(make.running(phase="save", rollout=None))) == "● running · save"
    assert text(state_words(make.running(phase="log-prob"))) == "● running · log-prob", "the counts are the rollout's"
    assert text(state_words(make.running(stalled=True))) == "▲ hangs · rollout 24/32"
    assert text(state_words(make.running(phase="unheard-of", rollout=None))) == "● running · unheard-of"


def test_an_ended_run_does_not_say_what_it_did_last(make: SimpleNamespace) -> None:
    assert text(state_words(make.ended("finished", phase="validate"))) == "✔ finished"
    assert text(state_words(make.ended("imported", outcome="stopped"))) == "■ stopped · imported"
    assert text(state_words(RunState("something new"))) == "? something new"


def test_the_verdict_names_the_worst_flag_and_counts_the_others(make: SimpleNamespace) -> None:
    assert text(verdict_words(make.running(verdict="WARN", flags=("KL-4", "ENT-1", "LEN-1")))) == "▲ WARN KL-4 +2"
    assert text(verdict_words(make.running())) == "● OK"
    assert text(verdict_words(RunState("queued"))) == "· not judged"


def test_a_run_that_has_ended_warms_up_no_more(make: SimpleNamespace) -> None:
    assert text(verdict_words(make.running(verdict="WARM"))) == "· warming up"
    for state in ENDED:
        assert text(verdict_words(make.ended(state, verdict="WARM"))) == "· too short"
        assert text(verdict_words(make.ended(state, verdict="OK"))) == "● OK"


@pytest.mark.parametrize(
    ("state", "seconds", "said"),
    [
        ("running", 30, "up <1m"),
        ("running", 3159, "up 52m"),
        ("running", 3600, "up 1h 00m"),
        ("running", 11040, "up 3h 04m"),
        ("finished", 3159, "ran 52m 39s"),
        ("running", -5, ""),
    ],
)
def test_uptime_counts_minutes_while_the_run_lives(
    make: SimpleNamespace, state: str, seconds: float, said: str
) -> None:
    assert uptime(make.running(state=state), make.start + seconds) == said


def test_an_ended_run_ran_until_its_exit(make: SimpleNamespace) -> None:
    late = make.start + 9000
    assert uptime(make.ended("failed", exit=Exit(t=make.start + 65)), late) == "ran 1m 05s"
    assert uptime(make.ended("imported", ended=make.start + 10), late) == "ran 10s"
    assert uptime(make.ended("imported", ended=make.start), late) == ""
    assert uptime(make.ended("stopped", exit=Exit(t=make.start + 65), seconds=185.0), late) == "ran 3m 05s"


def test_each_end_has_its_sentence(make: SimpleNamespace) -> None:
    def said(state: str, **more: object) -> str:
        closing = notice(make.ended(state, **more))
        return closing[1] if closing else ""

    assert notice(make.running()) is None
    assert notice(make.running(stalled=True, stall="No output for 5m")) == ("warn", "No output for 5m")
    told = "failed at step 30 of 80: out of memory"
    assert said("failed", step=30, error="out of memory", cause="gpu-oom") == told
    assert said("failed", step=None) == "failed before the first step: press l for the log"
    assert said("stopped", exit=Exit(requested_by="screen")) == "stopped at step 62 of 80: requested from the screen"
    assert said("finished", step=80) == "finished at step 80 of 80"
    assert notice(make.ended("finished", step=80), place=False) is None, "the head has state and step"
    assert notice(make.ended("failed", error="no GPU"), place=False) == ("critical", "no GPU")
    assert said("imported", outcome="failed", error="no GPU") == ("imported run, failed at step 62 of 80: no GPU")
    assert "press x to stop it" in said("lost", driver_alive=True)
    assert "press x to stop it" not in said("lost", driver_alive=False)
    assert said("lost", error="its folder was removed") == "lost at step 62 of 80: its folder was removed"


def test_a_slow_phase_says_how_long_of_how_long() -> None:
    state = RunState("running", phase="rollout", phase_since=100.0, phase_usual=31.4)
    assert state_words(state, 123.0)[1][0] == " · rollout 20s of ~31s"
    assert state_words(state, 141.0)[1][0] == " · rollout 40s, usually 31s", "no total that is over"
    assert state_words(state)[1][0] == " · rollout"
    assert text(state_words(RunState("running", phase="final"))) == "● running · shutdown"
    quick = dataclasses.replace(state, phase_usual=2.0)
    assert state_words(quick, 123.0)[1][0] == " · rollout", "a clock would only flicker"


def test_where_a_run_came_from_is_one_sentence(tmp_path: Path) -> None:
    edits = (Edit("actor.lr", 3e-4, 6e-5), Edit("rollout.n", None, 4))
    origins = {
        "fork of a1-toy at step 24, trial for KL-1: actor.lr 3e-4 → 6e-5, rollout.n unset → 4": Origin(
            "a1-toy", edits, 24, "KL-1"
        ),
        "fork of a1-toy from its start, no change": Origin("a1-toy", step=0),
        "with the settings of a1-toy: actor.lr 3e-4 → 6e-5": Origin("a1-toy", edits[:1]),
        "": None,
    }
    for at, (words, origin) in enumerate(origins.items()):
        run = RunDir(tmp_path / str(at))
        run.path.mkdir()
        RunInfo("b2-toy", "toy", after=origin).write(run.run_yaml)
        assert lineage(run.path) == words
    assert lineage(tmp_path / "gone") == ""
