"""Runs of tests/gpu/judged.py on their way home: the reader's tables, the bank, and the rules beside the verdicts."""

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
ROW = {"fault": "", "odd": "rewards of 100", "settings": ["actor.lr=1e-5", "data.train=/kit/a.parquet"]}
ARGV = [
    "python",
    "-m",
    "verl",
    "algorithm.adv_estimator=grpo",
    "+actor_rollout_ref.actor.optim.lr=1e-05",
    "a.path=/kit/b",
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three runs: a healthy one, one whose reward falls and whose KL grows, and one that took two steps."""
    folder = tmp_path / "judged"
    for name, steps in (("calm", 12), ("broken", 12), ("short", 2)):
        run = folder / name
        run.mkdir(parents=True)
        (run / "command.json").write_text(json.dumps({"name": name, "argv": ARGV, **ROW}))
        lines, answers = [], []
        for step in range(1, steps + 1):
            worse = name == "broken" and step > 6
            reward = 0.01 if worse else 0.5 + 0.01 * (step % 3)
            kl = 3.0 * (step - 6) if worse else 0.01
            data = {"critic/score/mean": reward, "actor/kl_loss": kl, "actor/lr": 1e-5, "timing_s/step": 8.0}
            lines.append(json.dumps({"step": step, "data": data}))
            answers += [
                json.dumps({"step": step, "input": f"{n} + 1", "output": f"#### {n}", "gts": "1", "score": reward})
                for n in range(4)
            ]
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        (run / "answers.jsonl.gz").write_bytes(gzip.compress("\n".join(answers).encode()))
    return folder


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"config": {}, "runs": {}}')
    empty = pa.schema([("run", pa.string()), ("step", pa.int32()), ("t", pa.float64())])
    pq.write_table(pa.Table.from_pylist([], schema=empty), folder / "metrics.parquet")
    return folder


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("judged_runs")


def test_tables_name_neither_the_run_nor_its_settings(
    home: Any, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.print_tables(results, ())
    said = capsys.readouterr().out
    assert said.count("## ") == 2 and "calm" not in said and "1e-05" in said and "grpo" not in said
    lines = said.split("## " + home.neutral("broken"))[1].splitlines()
    assert lines[1].split()[:5] == ["step", "right", "sd", "cut", "reward"]
    assert lines[8].split()[:5] == ["7", "0.25", "0", "0", "0.01"]


def test_the_rules_stand_beside_the_verdicts(
    home: Any, results: Path, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.add(results, bank, "judged")
    about = json.loads((bank / "manifest.json").read_text())["runs"]
    assert sorted(about) == ["judged broken", "judged calm"]
    assert about["judged calm"]["settings"] == ["actor.lr=1e-5"]
    assert about["judged calm"]["config"] == {
        "algorithm.adv_estimator": "grpo",
        "actor_rollout_ref.actor.optim.lr": 1e-5,
    }
    verdicts = bank / "verdicts.toml"
    broken, calm = home.neutral("broken"), home.neutral("calm")
    verdicts.write_text(f'["{broken}"]\nverdict = "harmed"\nstep = 8\n["{calm}"]\nverdict = "healthy"\n')

    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    rates, beside = importlib.import_module("health_bank"), importlib.import_module("health_judged")
    monkeypatch.setattr(rates, "BANK", bank)
    monkeypatch.setattr(beside, "BANK", bank)
    rates._manifest.cache_clear()
    try:
        found = beside.judgements()
        said = "\n".join([*beside.of_healthy(found), *beside.of_harmful(found), *beside.each_run(found)])
    finally:
        rates._manifest.cache_clear()
    assert "1 runs that the reader found healthy, 12 steps" in said
    assert "| found at WARN or worse | 1 of 1 " in said
    assert "| broken | healthy: rewards of 100 | 12 | harmed from step 8 | step " in said
