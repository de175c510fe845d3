"""States, phases and verdicts in words."""

import pytest
from pilots import words

from launcher.record.attempt import Exit
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import ALIVE, ENDED, RunState
from tui.kit.drawing import glyphs
from tui.kit.run_words import STATES, lineage, notice, state_words, uptime, verdict_words


def test_every_state_of_the_launcher_has_a_sign():
    assert set(STATES) == ALIVE | ENDED | set(glyphs.signs("queue"))
    assert all(len(sign) == 1 for sign, _ in STATES.values())


def test_a_state_says_what_a_run_does_and_an_end_not_what_it_did_last(make):
    def told(state, now=None, **more):
        made = make.running(**more) if state == "running" else make.ended(state, **more)
        return words([state_words(made, now) if now else state_words(made)])

    assert told("running") == "● running · rollout 24/32"
    assert told("running", phase="log-prob") == "● running · log-prob", "the counts are the rollout's"
    assert told("running", stalled=True) == "▲ hangs · rollout 24/32"
    for phase, word in (("save", "save"), ("unheard-of", "unheard-of"), ("final", "shutdown")):
        assert told("running", phase=phase, rollout=None) == f"● running · {word}"
    slow = {"rollout": None, "phase_since": 100.0, "phase_usual": 31.4}
    assert told("running", 123.0, **slow) == "● running · rollout 20s of ~31s"
    assert told("running", 141.0, **slow) == "● running · rollout 40s, usually 31s", "no total that is over"
    assert told("running", **slow) == "● running · rollout"
    assert told("running", 123.0, **slow | {"phase_usual": 2.0}) == "● running · rollout", "a clock would only flicker"
    assert told("finished", phase="validate") == "✔ finished"
    assert told("imported", outcome="stopped") == "■ stopped · imported"
    assert told("something new") == "? something new"


def test_the_verdict_names_the_worst_flag_and_counts_the_others(make):
    flagged = make.running(verdict="WARN", flags=("KL-4", "ENT-1", "LEN-1"))
    found = [flagged, make.running(), make.running(verdict="WARM"), RunState("queued")]
    said = ["▲ WARN KL-4 +2", "● OK", "· warming up", "· not judged"]
    assert [words([verdict_words(state)]) for state in found] == said
    for state in ENDED:
        found = [words([verdict_words(make.ended(state, verdict=verdict))]) for verdict in ("WARM", "OK")]
        assert found == ["· too short", "● OK"]


def test_uptime_counts_minutes_while_the_run_lives_and_until_its_exit(make):
    def told(state, at=9000, **more):
        return uptime(make.running(state=state, **more), make.start + at)

    lives = {30: "up <1m", 3159: "up 52m", 3600: "up 1h 00m", 11040: "up 3h 04m", -5: ""}
    assert {seconds: told("running", seconds) for seconds in lives} == lives
    exit = Exit(t=make.start + 65)
    assert told("finished", 3159) == "ran 52m 39s" and told("failed", exit=exit) == "ran 1m 05s"
    assert told("imported", ended=make.start + 10) == "ran 10s" and told("imported", ended=make.start) == ""
    assert told("stopped", exit=exit, seconds=185.0) == "ran 3m 05s"


SCREEN = Exit(requested_by="screen")
GONE = "its folder was removed"


@pytest.mark.parametrize(
    ("state", "more", "said"),
    [
        ("failed", {"step": 30, "error": "OOM", "cause": "gpu-oom"}, "failed at step 30 of 80: OOM"),
        ("failed", {"step": None}, "failed before the first step: press l for the log"),
        ("stopped", {"exit": SCREEN}, "stopped at step 62 of 80: requested from the screen"),
        ("finished", {"step": 80}, "finished at step 80 of 80"),
        ("imported", {"outcome": "failed", "error": "OOM"}, "imported (failed) at step 62 of 80: OOM"),
        ("imported", {"outcome": "running"}, "imported (unfinished) at step 62 of 80"),
        ("lost", {"error": GONE}, f"lost at step 62 of 80: {GONE}"),
    ],
)
def test_each_end_has_its_sentence(make, state, more, said):
    assert notice(make.ended(state, **more))[1] == said


def test_a_notice_is_of_the_level_of_its_state(make):
    assert notice(make.running()) is None
    assert notice(make.running(stalled=True, stall="No output for 5m")) == ("warn", "No output for 5m")
    assert notice(make.ended("finished", step=80), place=False) is None, "the head has state and step"
    assert notice(make.ended("failed", error="no GPU"), place=False) == ("critical", "no GPU")
    for alive in (True, False):
        assert ("press x to stop it" in notice(make.ended("lost", driver_alive=alive))[1]) is alive


def test_where_a_run_came_from_is_one_sentence(tmp_path):
    edits = (Edit("actor.lr", 3e-4, 6e-5), Edit("rollout.n", None, 4))
    origins = {
        "fork of a1-toy at step 24, trial for KL-1: actor.lr 3e-4 → 6e-5, rollout.n unset → 4": Origin(
            "a1-toy", edits, 24, "KL-1"
        ),
        "fork of a1-toy from its start, no change": Origin("a1-toy", step=0),
        "with the settings of a1-toy: actor.lr 3e-4 → 6e-5": Origin("a1-toy", edits[:1]),
        "": None,
    }
    for at, (said, origin) in enumerate(origins.items()):
        run = RunDir(tmp_path / str(at))
        run.path.mkdir()
        RunInfo("b2-toy", "toy", after=origin).write(run.run_yaml)
        assert lineage(run.path) == said
    assert lineage(tmp_path / "gone") == ""
