"""Logs of unknown forms are described, and read with names of the user's."""

import re
from pathlib import Path

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.metrics.frameworks import described, of_names, user_table
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.log import newest, resolve
from launcher.runs.watch.steps import steps


@tabled
def test_an_unknown_form_is_described(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)

    with pytest.raises(UserError) as raised:
        resolve(str(path))

    assert words in raised.value.message
    assert "--names" in raised.value.hint


@pytest.mark.parametrize(
    ("ours", "hint"), [("critic/scroe/mean", "critic/score/mean"), ("critic/score", "critic/score/mean"), ("x{", "")]
)
def test_a_table_of_the_user_names_metrics_of_verl(ours: str, hint: str, tmp_path: Path) -> None:
    names = tmp_path / "names.toml"
    names.write_text(f'[[metrics]]\ntheirs = ["ret"]\nours = "{ours}"\n')

    with pytest.raises(UserError, match=re.escape(f"'{ours}' is not a metric")) as raised:
        user_table(names)

    assert ("did you mean" in raised.value.hint) == bool(hint) and hint in raised.value.hint


_LINES = r"""
[[lines]]
hint = "] iter "
match = '^\[(?:trainer|x)\] iter (?P<step>\d+) (?P<body>.*)'
pair = '(?P<name>\w+)=(?P<value>[-+.\de]+)'
"""


@tabled
def test_a_table_of_the_user_names_unknown_metrics(file: str, text: str, lines: str, tmp_path: Path) -> None:
    names, log = tmp_path / "names.toml", tmp_path / file
    names.write_text('[[metrics]]\ntheirs = ["ret"]\nours = "critic/score/mean"\nscale = 10\n' + lines)
    log.write_text(text)

    run = import_logs([str(log)], names=user_table(names))[0]

    assert [(record.step, record.data["critic/score/mean"]) for _, record in steps(run)] == [(1, 3.0), (2, 4.0)]
    log.write_text("[trainer] iteration 1: other=0.3, more=4 5\n")
    with pytest.raises(UserError, match=r"with a name of --names; line 1 has numbers"):
        resolve(str(log), described(user_table(names)))


@tabled
def test_a_wrong_table_is_an_error_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)

    with pytest.raises(UserError, match=words):
        user_table(path)


@pytest.mark.parametrize("log", ["cpu-toy", "grpo", "learning", "sglang"])
def test_names_of_verl_are_not_those_of_ROLL(log: str) -> None:
    names = {name for _, record in steps(newest(f"tests/data/logs/{log}.log.gz")) for name in record.data}
    old = {
        "actor/entropy_loss",
        "actor/pg_loss",
        "actor/lr",
        "critic/score/mean",
        "critic/score/max",
        "critic/score/min",
    }

    for seen in (names, names - {"actor/ppo_kl", "timing_s/step", "perf/throughput"}, old):
        found = of_names(seen)
        assert found is not None and found.own
