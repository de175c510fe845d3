"""Files of unknown names show a table to complete; logs without a step are no errors; logs are compared."""

import json
import lzma
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import commands
import pytest
from tables import tabled

from launcher.metrics.frameworks import described, user_table
from launcher.record.layout import all_runs
from launcher.runs.watch.log import Log, resolve
from launcher.runs.watch.steps import steps
from launcher.runs.watch.unnamed import Unnamed

pytestmark = pytest.mark.usefixtures("home")


def call(*words: str) -> tuple[object, str, str]:
    """Exit code, stdout, stderr."""
    out, err, code = commands.call(words)
    return code or 0, out.decode(), err.decode()


_ROWS = [(1, 0.31, 0.004), (2, 0.33, 0.005), (3, 0.35, 0.006)]
UNNAMED = {
    "c.csv": "time/iterations,train/return,train/kl\n" + "".join(f"{a},{b},{c}\n" for a, b, c in _ROWS),
    "j.jsonl": "".join(f'{{"n": {a}, "train/return": {b}, "train/kl": {c}}}\n' for a, b, c in _ROWS),
    "t.tsv": "update\ttrain/return\ttrain/kl\n" + "".join(f"{a}\t{b}\t{c}\n" for a, b, c in _ROWS),
    "x.log": "begin\n" + "".join(f"[trainer] iter {a} train/return={b} train/kl={c}\n" for a, b, c in _ROWS),
    "y.log": "".join(f"12:01:0{a} INFO | Update: {a} | train/return: {b} | train/kl: {c}\n" for a, b, c in _ROWS),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_unknown_names_have_a_table_that_is_read_back(name: str, tmp_path: Path) -> None:
    path, names = tmp_path / name, tmp_path / "names.toml"
    path.write_text(UNNAMED[name])
    code, table, error = call("health", str(path))
    assert code == 2 and "--names FILE" in error
    assert '# {theirs = ["train/kl"], ours = "actor/kl_loss"},  # 0.004 to 0.006' in table
    row = '# {theirs = ["train/return"], ours = ""}'
    assert row in table
    names.write_text(table)
    assert call("health", str(path), "--names", str(names))[0] == 2  # nothing is chosen yet

    chosen = table.replace(row, row[2:].replace('""', '"critic/score/mean"'))
    names.write_text(chosen.replace('# {theirs = ["train/kl', '{theirs = ["train/kl'))

    log = resolve(str(path), described(user_table(names)))
    found = [(each.step, each.data["critic/score/mean"], each.data["actor/kl_loss"]) for _, each in steps(log)]
    assert found == _ROWS
    assert [call(command, str(path), "--names", str(names))[0] for command in ("health", "metrics")] == [0, 0]
    assert "has no times of a step" in call("time", str(path), "--names", str(names))[2]


def test_a_tracker_of_unknown_names_has_a_table(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for step in (10, 20, 30):
        log.add(step, 1.0, {"custom/return": 0.5 + step, "custom/kl": 0.1})

    with pytest.raises(Unnamed) as raised:
        log.translate(None)

    names = tmp_path / "names.toml"
    names.write_text(raised.value.table.replace('# {theirs = ["custom/kl"]', '{theirs = ["custom/kl"]'))
    log.translate(described(user_table(names)))
    assert {step: record.data["actor/kl_loss"] for step, record in log.tracked.items()} == {10: 0.1, 20: 0.1, 30: 0.1}


@tabled
def test_no_option_is_advised_that_a_command_lacks(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)

    assert "--names" not in call("diagnose", str(path))[2]


@tabled
def test_a_log_without_a_step_is_no_error(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)

    for command in ("health", "metrics", "time"):
        code, shown, _ = call(command, str(path))
        assert code == 0 and words in shown
        code, shown, _ = call(command, str(path), "--json")
        assert code == 0 and list(json.loads(shown))[:2] in (["step", "lines"], ["cause", "title"])


def test_logs_are_compared_without_runs_of_them() -> None:
    log = "tests/data/logs/{}.log.gz"

    code, shown, _ = call("compare", log.format("kl-blowup"), log.format("learning"), "--plain")

    assert code == 0 and "kl-blowup.log.gz  learning.log.gz" in shown
    assert not all_runs()


def _cut(kind: str, folder: Path) -> Path:
    """A tracker's file of a real run of TRL (Trackio: veRL) before its first step."""
    if kind == "trackio":
        path = folder / "runs.db"
        path.write_bytes(lzma.decompress(Path("tests/data/trackers/trackio.db.xz").read_bytes()))
        with closing(sqlite3.connect(path)) as base:
            base.execute("DELETE FROM metrics")
            base.commit()
        return path
    with tarfile.open("tests/data/frameworks/trl.tar.xz") as packed:
        name = next(each for each in packed.getnames() if each.startswith("healthy/") and kind in each)
        packed.extract(name, folder, filter="data")
    path = folder / name
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"train/loss") - 40])
    return path


@pytest.mark.parametrize(
    ("kind", "title"), [("trackio", "veRL"), ("tfevents", "TRL"), (".wandb", "TRL")], ids=["trackio", "tb", "wandb"]
)
def test_a_tracker_of_a_known_framework_without_a_step_is_no_error(kind: str, title: str, tmp_path: Path) -> None:
    path = _cut(kind, tmp_path)

    for place in (path, path.parent):
        for command in ("health", "metrics", "time"):
            code, shown, error = call(command, str(place))
            assert (code, shown) == (0, f"{title}: no step yet, 0 lines read\n"), error
            assert call(command, str(place), "--json")[:2] == (0, '{"step":null,"lines":0}\n')
        assert call("import", str(place))[0] == 2


def test_an_empty_tracker_of_an_unknown_program_is_an_error(tmp_path: Path) -> None:
    path = _cut("trackio", tmp_path)
    with closing(sqlite3.connect(path)) as base:
        base.execute('UPDATE configs SET config = \'{"learning_rate": 0.1, "gamma": 1, "beta": 2}\'')
        base.commit()

    code, shown, error = call("health", str(path))

    assert (code, shown) == (2, "") and "has no metrics" in error


@tabled
def test_a_log_whose_steps_no_rule_judges_is_not_silent(text: str, words: str, metric: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)

    assert (call("health", str(path))[:2], call("health", str(path), "--json")[0]) == ((0, f"{words}\n"), 0)
    assert metric in call("metrics", str(path))[1]


def test_a_null_of_llama_factory_is_a_missing_metric(tmp_path: Path) -> None:
    row = {"current_steps": 10, "total_steps": 20, "loss": 0.5, "reward": None, "learning_rate": 1e-05, "epoch": 0.5}
    path = tmp_path / "trainer_log.jsonl"
    path.write_text(
        f"{json.dumps(row)}\n{json.dumps(row | {'current_steps': 20, 'loss': None, 'learning_rate': None})}\n"
    )

    log = resolve(str(path))

    assert [(each.step, "critic/score/mean" in each.data, "actor/lr" in each.data) for each in log.steps()] == [  # type: ignore[union-attr]
        (10, False, True),
        (20, False, False),
    ]


def test_a_line_with_two_steps_of_prime_rl_has_the_values_of_the_first(tmp_path: Path) -> None:
    line = "'16:43:08 SUCCESS Step {} | Time: 5.2s | Reward: {} | Seq. Length: 142.7 tokens/sample | Async Level: 1'"
    path = tmp_path / "x.log"
    path.write_text(f"{line.format(5, 0.35)}, '16:43:08    INFO Starting', {line.format(6, 0.38)}\n")

    log = resolve(str(path))

    assert [(each.step, each.data["critic/score/mean"]) for each in log.steps()] == [(5, 0.35)]  # type: ignore[union-attr]
