"""Help on topics, completion of words, and the groups of --help: all from the same data as the reference."""

import os
import shutil
import subprocess
from pathlib import Path

import page_program
import pytest
from commands import call
from tables import tabled

from launcher import topics
from launcher.cli.completion import SCRIPTS, WORDS, complete
from launcher.core.errors import UserError
from launcher.core.tables import read_tables
from launcher.preset.alerting import OPTIONS
from launcher.record.info import RunInfo
from launcher.record.layout import create
from launcher.record.queued import Queued
from launcher.settings import _NAMES

SEARCHES = Path(__file__).parents[1] / "data" / "searches.toml"
QUESTIONS = SEARCHES.with_name("questions.toml")
SHELLS = read_tables(SCRIPTS)


@tabled
def test_each_kind_of_topic_has_a_text(topic: str, part: str) -> None:
    printed = call(["help", topic])[0].decode()
    assert part in printed
    assert all(len(line) <= 100 for line in printed.splitlines())


def test_every_topic_can_be_printed() -> None:
    assert all(each.text().strip() and each.about for each in topics.topics())


@pytest.mark.parametrize(("query", "wanted"), read_tables(SEARCHES).items())
def test_a_search_finds_what_is_meant(query: str, wanted: str) -> None:
    assert wanted in [each.name for each in topics.search(query) if each.kind != topics.GUIDE][:3]


@pytest.mark.parametrize("part", ("typed", "phrased"))
def test_a_question_lists_the_guide_that_answers_it_first(part: str) -> None:
    for question, pages in read_tables(QUESTIONS)[part].items():
        assert set(pages) & {each.name for each in topics.hits(question)[:2]}, question


def test_help_lists_what_fits_words() -> None:
    printed = call(["help", "kl", "loss"])[0].decode().splitlines()
    assert printed[0].split() == ["TOPIC", "KIND", "ABOUT"] and printed[1].split()[0] == "kl.loss_coef"


def test_health_options_and_settings_are_topics() -> None:
    named = {each.name for each in topics.topics()}
    assert {f"health.{name}" for name in ("preset", *OPTIONS)} | set(_NAMES) <= named


def test_an_unknown_topic_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError) as caught:
        topics.text_of("KL-44")
    assert "KL-4" in caught.value.hint


@pytest.mark.parametrize(
    ("word", "near"), [("nosuch", ""), ("xyzzy", ""), ("leraning", "learning-rate"), ("KL-44", "KL-4")]
)
def test_help_with_an_unknown_word_is_an_error_with_the_nearest_topic(word: str, near: str) -> None:
    _, said, code = call(["help", word])
    asked = f"did you mean '{near}'? " if near else ""
    assert (code, said.decode()) == (2, f"error: no topic '{word}'\nhint: {asked}'ppo-tui help' lists the kinds\n")
    found = [each for each in topics.hits("reward") if each.kind != topics.GUIDE]
    assert found and all(topics.occurs("reward", each.words) for each in found)


@tabled
def test_completion_offers(words: list[str], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    assert wanted in [word for word, _ in complete(words)]


def test_completion_offers_names_that_runs_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    for id, name, preset in (("0a11-mine", "mine", "toy-cpu"), ("0b22-toy-cpu", "toy-cpu", None)):
        run = create(id)
        RunInfo(run.id, name, 1.0, preset_name=preset).write(run.run_yaml)
        Queued(f"9{id}", f"next-{name}", {}, "here", 0, 1.0, 1.0, preset_name=preset).save()
    offered = [word for word, _ in complete(["status", ""])]
    assert "mine" in offered and "toy-cpu" not in offered
    assert [word for word, _ in complete(["queue", "remove", "n"])] == ["next-mine"]


def test_the_words_of_completion_are_those_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = WORDS.read_text("utf-8")
    monkeypatch.setattr(page_program, "WORDS", tmp_path / "words.toml")
    page_program.write_words()
    assert (tmp_path / "words.toml").read_text("utf-8") == before, "make pages"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=SHELLS[shell].encode()).returncode == 0


def test_bash_completes_a_field(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "ppo-tui").write_text("#!/bin/sh\nshift\nprintf 'actor.lr=\\tabout\\n%s\\n' \"$*\"\n")
    (bin_ / "ppo-tui").chmod(0o755)
    asked = '\nCOMP_WORDS=(ppo-tui run toy-cpu actor.l); COMP_CWORD=3; _ppo_tui; printf "%s|" "${COMPREPLY[@]}"'
    script = SHELLS["bash"] + asked
    env = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout == "actor.lr=|run toy-cpu actor.l|"


def test_help_has_groups_examples_and_whole_summaries() -> None:
    top = call(["--help"])[0].decode()
    assert "Watch:" in top and "Judge and fix:" in top
    assert "..." not in top.replace("[ARGS]...", "")
    shown = call(["check", "--help"])[0].decode()
    assert "Examples:\n    ppo-tui check gsm8k" in shown and "\n  Documentation: ppo-tui help howto/pitfalls" in shown
    assert "<str>" not in shown
