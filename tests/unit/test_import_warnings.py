"""What the import of a script reports beside the preset."""

import json
from pathlib import Path

import pytest
from commands import call
from tables import tabled

RUN = "python3 -m verl.trainer.main_ppo data.train_files=/t data.val_files=/v actor_rollout_ref.model.path=m/m"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path / "run.sh"


def test_the_json_of_an_import_has_the_line_ends_of_windows_and_every_warning(script: Path) -> None:
    script.write_bytes(f"{RUN} \\\r\n  data.n_samples=8 \\\r\n  trainer.stage=2\r\n".encode())
    found = json.loads(call(["preset", "import", str(script), "--name", "one", "--json"])[0])
    text = call(["preset", "import", str(script), "--name", "two"])[1].decode()
    assert [each["keys"] for each in found["findings"]] == [["data.n_samples"], ["trainer.stage"]]
    assert "CR LF" in found["notes"][0] and all(note in text for note in found["notes"])
    assert text.count("warning:") == len(found["findings"])
    script.write_bytes(f"{RUN}\n".encode())
    assert "CR LF" not in call(["preset", "import", str(script), "--name", "three"])[1].decode()


@tabled
def test_a_script_that_exits_is_asked_for_what_it_lacks(script: Path, test: str, asked: str) -> None:
    script.write_text(f"{test}\n{RUN}\n")
    error = call(["preset", "import", str(script)])[1].decode()
    assert "exits before it starts veRL" in error and f"hint: pass {asked} after the script name" in error
