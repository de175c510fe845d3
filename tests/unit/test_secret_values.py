"""Secrets by value: hidden wherever a text has them as a word; kept as keyed hashes outside the run folders."""

import io
from pathlib import Path

import pytest
from commands import OF_RUNS, call
from hypothesis import given
from hypothesis import strategies as st
from whole_run import whole_run

from launcher.core.secret_values import keep
from launcher.core.secrets import Redacted, redact
from launcher.record.layout import RunDir
from launcher.report.anonymous import Anonymous
from launcher.report.bundle import parts

VALUE = "plainlettersofavalue"  # of no form


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    keep({"HF_TOKEN": VALUE, "MAX_TOKENS": "x" * 20, "A_KEY": "/home/me/.ssh/id_rsa", "B_TOKEN": "short"})
    return tmp_path


def test_only_hashes_are_kept_and_only_for_their_owner(home: Path) -> None:
    keep({"HF_TOKEN": VALUE, "OTHER_TOKEN": VALUE})  # again
    files = {path.name: path for path in home.iterdir()}
    assert sorted(files) == ["secret-hashes", "secret-key"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files.values())
    assert VALUE not in files["secret-hashes"].read_text() and len(files["secret-hashes"].read_text().splitlines()) == 1
    assert redact("x" * 20 + " /home/me/.ssh/id_rsa short") == "x" * 20 + " /home/me/.ssh/id_rsa short"


def test_another_key_gives_other_hashes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (other := tmp_path / "other").mkdir()
    monkeypatch.setenv("PPO_TUI_HOME", str(other))
    keep({"HF_TOKEN": VALUE})
    assert (other / "secret-hashes").read_text() != (home / "secret-hashes").read_text()


signs = st.text(" \t.,:;-_/+=~@()[]{}'\"|", max_size=3)


@pytest.mark.usefixtures("home")
@given(st.lists(st.tuples(signs, st.sampled_from(["word", "0.5", "path/of", VALUE]), signs), min_size=1, max_size=8))
def test_a_value_between_signs_is_hidden_by_each_filter(words: list[tuple[str, str, str]]) -> None:
    text = " ".join(before + word + after for before, word, after in words)
    out = io.StringIO()
    Redacted(out).write(text)  # type: ignore[arg-type]
    for found in (redact(text), out.getvalue(), Anonymous().text(text), redact(f"\x1b[1m{text}")):
        assert VALUE not in found
    assert VALUE in redact(f"a{VALUE} {VALUE}2")  # parts of longer words


@pytest.mark.slow
def test_no_command_and_no_bundle_shows_a_value_that_a_run_printed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    run = whole_run(home)
    whole_run(home, "0ld111", "older")
    log = run.attempt(1).console
    log.write_text(f"{log.read_text()}logged in as {VALUE}\nValueError: no \x1b[1m{VALUE[:5]}\x1b[0m{VALUE[5:]}\n")
    run.state.write_text(run.state.read_text().replace("the reward function failed", f"failed with {VALUE}"))
    for words in (*OF_RUNS, ["logs", run.id]):
        out, err, _ = call(words)
        assert VALUE not in (out + err).decode(), words
    hashes = (home / "secret-hashes").read_text().split()[1]
    for name, text in parts(RunDir(run.path)).items():
        assert VALUE not in text and hashes not in text, name
    assert not any(hashes in path.read_text(errors="replace") for path in run.path.rglob("*") if path.is_file())
