"""The way of a batch, against veRL's own formulas and the tutorials' numbers."""

import operator
from pathlib import Path
from typing import Any

import pytest
from drafted import of_draft
from tables import tabled

from launcher.preset import effective
from launcher.preset.choices import allowed, choices, divisors, files, step
from launcher.preset.field_values import where_of
from launcher.preset.files import load
from launcher.preset.flow import flow, rows_of
from launcher.preset.schema import FIELDS


@tabled
def test_the_way_of_a_batch(preset, rows, settings, expected):
    if preset:
        config = effective.of_draft(load(preset, [f"{name}={value}" for name, value in settings.items()]).layer)
    else:
        config = of_draft({where_of(name): value for name, value in settings.items()})
    found = flow(config, rows)
    assert {name: operator.attrgetter(name)(found) for name in expected} == expected


def test_rows_are_read_from_the_end_of_the_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, count in (("a", 3), ("b", 4)):
        parquet.write_table(pyarrow.table({"x": list(range(count))}), tmp_path / f"{name}.parquet")
    assert rows_of([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]) == 7
    assert rows_of(str(tmp_path / "none.parquet")) is None and rows_of(None) is None
    (tmp_path / "bad.parquet").write_text("no")
    assert rows_of(str(tmp_path / "bad.parquet")) is None


BATCH = {"data.train_batch_size": 128, "actor.ppo_mini_batch_size": 64, "rollout.n": 2, "trainer.gpus": 4}


def walk(name: str, value: Any, *ups: bool, **more: Any) -> list[Any]:
    config = of_draft({where_of(key): each for key, each in {**BATCH, **more}.items()})
    found = []
    for up in ups:
        value = step(FIELDS[name], value, up, config)
        found.append(value)
    return found


@tabled
def test_values_step_on_their_scale(name: str, value: Any, ups: list[Any], downs: list[Any]) -> None:
    assert walk(name, value, *[True] * len(ups)) == ups
    assert walk(name, value, *[False] * len(downs)) == downs


def test_batches_are_offered_what_divides_them() -> None:
    config = of_draft({where_of(key): value for key, value in BATCH.items()})
    assert allowed("ref.log_prob_micro_batch_size_per_gpu", config) == [1, 2, 4, 8, 16, 32, 64]
    odd = of_draft({("data", "train_batch_size"): 3, ("trainer", "gpus"): 2})
    assert allowed("rollout.log_prob_micro_batch_size_per_gpu", odd) == []
    assert divisors(12) == [1, 2, 3, 4, 6, 12] and divisors(0) == []


def test_what_verl_will_see_follows_as_in_verl() -> None:
    config = of_draft({("actor", "ppo_mini_batch_size"): 32, ("model", "path"): "m", ("algorithm",): "ppo"})
    assert config.get("critic.ppo_mini_batch_size") == 32
    assert config.get("critic.model.path") == "m" and config.get("algorithm.adv_estimator") == "gae"
    assert config.get("trainer.total_epochs") == 30 and config.get("no.such.key") is None


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
