"""What a field offers."""

from pathlib import Path

import pytest
from drafted import of_draft

from launcher.preset.choices import choices, files

NOTHING = of_draft({})


def offered(name: str, text: str, *, fresh: bool = False, folder: Path = Path("/")) -> list[str]:
    return choices(tuple(name.split(".")), text, fresh=fresh, config=NOTHING, folder=folder)


def test_choices_switches_and_names() -> None:
    assert offered("algorithm", "ppo", fresh=True)[:2] == ["ppo", "grpo"]
    assert offered("algorithm", "gs") == [] and offered("algorithm", "rl") == ["rloo", "rloo_vectorized"]
    assert offered("actor.shuffle", "f") == ["false"]
    assert "gsm8k" in offered("reward.function", "", fresh=True)
    assert "toy-cpu" in offered("extends", "toy")
    assert "Qwen/Qwen2.5-0.5B-Instruct" in offered("model.path", "0.5b")
    assert offered("actor.lr", "1") == [] and offered("env.A", "") == []


def test_files_keep_the_spelling_of_their_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROWS", str(tmp_path / "rows"))
    (tmp_path / "rows" / "deep").mkdir(parents=True)
    for name in ("a.parquet", "b.parquet", ".hidden"):
        (tmp_path / "rows" / name).write_text("")
    assert files("~/ro", Path("/")) == ["~/rows/"]
    assert files("rows/", tmp_path) == ["rows/deep/", "rows/a.parquet", "rows/b.parquet"]
    assert files("$ROWS/b", Path("/")) == ["$ROWS/b.parquet"]
    assert files("rows/.", tmp_path) == ["rows/.hidden"]
    assert files("rows/a.parquet", tmp_path, fresh=True) == ["rows/deep/", "rows/a.parquet", "rows/b.parquet"]
    assert files("nowhere/x", tmp_path) == [] and files("~nobody/", tmp_path) == []
    assert offered("data.train", "rows/a", folder=tmp_path) == ["rows/a.parquet"]
