"""Text that acts on a terminal, in every string of every file: what commands write, byte by byte."""

import json
from pathlib import Path

import caches
import pytest
from commands import OF_PRESETS, OF_RUNS, call
from hostile import ACTS, PAYLOAD, poison
from whole_run import whole_run

from launcher.core.text import escaped, inert


@pytest.mark.slow
@pytest.mark.parametrize("everything", [False, True], ids=["free text", "every word"])
def test_no_command_writes_what_acts_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path, everything: bool
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caches.share(tmp_path, shared)
    for run in (whole_run(tmp_path, name=f"toy{PAYLOAD}"), whole_run(tmp_path, "0ld111", f"older{PAYLOAD}")):
        poison(run, everything=everything)
    (tmp_path / "presets").mkdir()
    mine = f"mine{PAYLOAD}"
    (tmp_path / "presets" / f"{mine}.yaml").write_text(f"description: {json.dumps(PAYLOAD)}\nextends: toy-cpu\n")
    (tmp_path / "presets" / f"broken{PAYLOAD}.yaml").write_text(f"actor: {json.dumps(PAYLOAD)}\n")
    (tmp_path / "config.yaml").write_text(f'theme: "{json.dumps(PAYLOAD)[1:-1]}"\n')
    of_presets = [["preset", "show", mine], ["preset", "show", mine, "--json"], ["preset", "copy", mine, PAYLOAD]]
    for words in (*OF_RUNS, *OF_PRESETS, *of_presets, ["run", "toy-cpu", f"actor.{PAYLOAD}=1"], ["status", PAYLOAD]):
        out, err, code = call(words, plain=not everything)
        for written in (out.decode(), err.decode()):
            assert not ACTS.search(written), (words, ACTS.search(written), written)
            assert "Traceback" not in written, (words, written)
        if "--json" in words and code in (None, 0):
            for line in out.splitlines():
                json.loads(line)


def test_json_keeps_what_a_terminal_would_act_on() -> None:
    text = json.dumps({"name": PAYLOAD}, ensure_ascii=False)
    assert not ACTS.search(escaped(text)) and json.loads(escaped(text)) == {"name": PAYLOAD}


def test_tabs_and_emoji_signs_stay() -> None:
    assert inert("a\tb\n❤️ 中文\u200d\ufeff\U000e0041") == "a\tb\n❤️ 中文"
