"""What can be done to a run, and the reason for what cannot."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tables import tabled

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.record.attempt import Exit
from launcher.record.events import Event, LevelChange
from launcher.record.info import Head, RunInfo
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import RunState, current
from launcher.runs.act.fork import fork
from launcher.runs.act.removal import delete
from launcher.runs.act.resume import proposed, resume
from launcher.runs.act.use_checkpoint import evaluate
from launcher.runs.watch.checkpoints import TRACKER
from launcher.runs.watch.possible import Verb, refusals
from launcher.runs.watch.run_diagnosis import explained

OURS = Head("mine", True, frozenset({"preset"}))
FLAG = Event(0.0, LevelChange(4, "KL-1", Level.OK, Level.WARN))


@pytest.fixture
def run(home: Path) -> RunDir:
    return RunDir(paths.runs_dir() / "aaaa00-mine")


def checkpoint(run: RunDir, step: int) -> None:
    (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (run.checkpoints / TRACKER).write_text(str(step))


def test_a_live_run_can_be_stopped_and_forked(run: RunDir) -> None:
    found = refusals(run, RunState("running"), OURS, [])
    assert found[Verb.RESUME] == found[Verb.DELETE] == "the run has not ended; stop it first"
    assert found[Verb.EVALUATE] == "no complete checkpoint yet"
    assert not {Verb.STOP, Verb.FORK, Verb.MUTE, Verb.EDIT} & set(found) and Verb.TRY in found
    assert Verb.TRY not in refusals(run, RunState("running"), OURS, [FLAG]), "fixes are tried of a flag"


def test_an_ended_run_is_resumed_from_a_checkpoint_alone(run: RunDir) -> None:
    ended = RunState("stopped", step=7, total=10)
    found = refusals(run, ended, OURS, [])
    assert found[Verb.STOP] == "the run has ended"
    assert found[Verb.EVALUATE] == found[Verb.MERGE] == "no complete checkpoint (trainer.save_every)"
    saving = refusals(run, ended, OURS._replace(saves=10), [])
    assert saving[Verb.MERGE] == "no complete checkpoint; it saves one every 10 steps and at the last"
    checkpoint(run, 6)
    assert not {Verb.RESUME, Verb.MERGE, Verb.EVALUATE, Verb.DELETE} & set(refusals(run, ended, OURS, []))


@tabled
def test_more_steps_are_proposed_for_a_complete_run(
    run: RunDir, trainer: dict[str, int], kept: list[int], typed: str, note: str
) -> None:
    run.path.mkdir(parents=True)
    RunInfo(preset={"trainer": trainer}).write(run.run_yaml)
    for step in kept:
        checkpoint(run, step)
    attempt, ended = run.add_attempt(), RunState("stopped", attempt=1, step=10, total=10)
    attempt.console.write_text("Total training steps: 10\nstep:10 - actor/entropy:0.5\n")
    Exit(137).write(attempt.exit)
    ended.write(run.state)
    advised = " ".join(offer.text for offer in explained(run).offers)
    assert ("ppo-tui resume" in advised) == (kept == [5]), "as resume refuses it"
    assert (f"ppo-tui fork {run.id[:4]} --checkpoint 0" in advised) == (not kept)
    assert Verb.RESUME not in refusals(run, ended, OURS, [])
    words, said = proposed(run, ended)
    assert words == typed and said.startswith(note)
    RunInfo(preset={"trainer": trainer}, imported_from=("x.log",)).write(run.run_yaml)
    assert "ppo-tui" not in " ".join(offer.text for offer in explained(run).offers), "another program runs it"


def test_a_log_from_elsewhere_starts_nothing(run: RunDir) -> None:
    found = refusals(run, RunState("imported"), Head("x", False, frozenset({"imported_from"})), [FLAG])
    assert {found[verb] for verb in (Verb.RESUME, Verb.FORK, Verb.EVALUATE, Verb.MERGE, Verb.TRY)} == {
        "it is an imported log"
    }
    assert found[Verb.EDIT] == "its log contains no settings"


@pytest.mark.parametrize(
    ("verb", "act"),
    [
        (Verb.RESUME, resume),
        (Verb.FORK, fork),
        (Verb.EVALUATE, lambda run: evaluate(run, [], None, print, force=False)),
        (Verb.DELETE, delete),
    ],
)
@pytest.mark.parametrize("info", [RunInfo(), RunInfo(preset={}), RunInfo(preset={}, imported_from=("x",))])
def test_what_the_screen_refuses_an_act_refuses_with_the_same_reason(
    run: RunDir, verb: Verb, act: Callable[[RunDir], object], info: RunInfo
) -> None:
    run.path.mkdir(parents=True)
    info.write(run.run_yaml)
    RunState("running", updated=time.time()).write(run.state)
    refused = refusals(run, current(run), run.read_head(), []).get(verb)
    if refused is not None and "checkpoint" not in refused:
        with pytest.raises(UserError) as raised:
            act(run)
        assert f"cannot {verb.value} run {run.id}: {refused.partition(';')[0]}" == raised.value.message
