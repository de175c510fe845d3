"""What a trial reads of its parent."""

import os
from collections import Counter
from pathlib import Path

import pytest
from whole_run import whole_run

from launcher.compare.trial_runs import plan
from launcher.preset import layers


@pytest.mark.parametrize("changes", [[], [["actor.lr=1e-5"], ["data.seed=2", "actor.entropy_coeff=0.01"]]])
def test_planning_a_trial_reads_settings_and_preset_of_its_parent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: list[list[str]]
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run = whole_run(tmp_path)
    for step in (4, 20):
        (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("20")
    lines = run.events.read_text().splitlines(keepends=True)
    run.events.write_text("".join(line for line in lines if '"verb":"resume"' not in line))
    read = Counter[str]()
    text, layer = Path.read_text, layers.from_mapping

    def counted(path: Path, *given: object) -> str:
        read[os.fspath(path.relative_to(tmp_path)) if path.is_relative_to(tmp_path) else ""] += 1
        return text(path, *given)  # type: ignore[arg-type]

    def layered(data: object, *given: object) -> layers.Layer:
        read["preset"] += 1
        return layer(data, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", counted)
    monkeypatch.setattr(layers, "from_mapping", layered)
    planned = plan(run, "KL-1", changes)
    assert planned.step == 4 and len(planned.arms) == 3
    assert (read[f"runs/{run.id}/run.yaml"], read["preset"]) == (1, 1), read
