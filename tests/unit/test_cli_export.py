"""`ppo-tui export` and `compare` as scripts see them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

LOGS = Path(__file__).parents[1] / "data" / "logs"
NAN = str(LOGS / "nan.log.gz")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_file_is_replaced_when_asked_and_its_name_is_printed(ppo_tui: Command, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("old")
    done = ppo_tui("export", NAN, "--output", "x.csv", "--key", "critic/score/mean", "--overwrite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x.csv\n", "")
    assert (tmp_path / "x.csv").read_text().startswith("step,attempt,critic/score/mean\n1,1,0.14")


def test_jsonl_says_what_metrics_says(ppo_tui: Command, tmp_path: Path) -> None:
    assert ppo_tui("export", NAN, "--output", "x.jsonl").returncode == 0
    printed = ppo_tui("metrics", NAN, "--json").stdout.splitlines()
    written = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == [json.loads(line) for line in printed] != []


def test_runs_stand_side_by_side(ppo_tui: Command) -> None:
    for name in ("kl-blowup", "nan"):
        assert ppo_tui("import", str(LOGS / f"{name}.log.gz")).returncode == 0
    done = ppo_tui("compare", "kl-blowup", "nan")
    assert done.returncode == 0 and done.stderr.count("was made elsewhere") == 2
    table = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert table.keys() >= {"RUN", "state", "verdict", "step", "best score", "last score", "KL", "duration"}
    assert table["step"].split() == ["step", "27/58", "2/58"]

    found = json.loads(ppo_tui("compare", "nan", "kl-blowup", "--json").stdout)
    assert [run["name"] for run in found["runs"]] == ["nan", "kl-blowup"]
    assert "actor.clip_grad" in [each["key"] for each in found["differences"]]
    assert found["runs"][0]["step"] == 2 and found["runs"][1]["verdict"] == "CRITICAL"

    twice = ppo_tui("compare", "nan", "last")
    assert twice.returncode == 2 and "listed twice" in twice.stderr
