"""The way of a batch, memory and differences as rows; and what a launch comes to."""

import dataclasses
import socket
import subprocess
import sys

import pytest
from drafted import of_draft
from pilots import words
from textual.geometry import Size
from whole_run import whole_run

from launcher.preset.drafts import open_draft
from launcher.preset.field_values import where_of
from launcher.preset.flow import flow
from tui.kit.drawing.rows import width
from tui.kit.plan_rows import memory_rows
from tui.kit.widgets.lines import CommandText
from tui.pages.editor.plan_rows import difference_rows, flow_rows
from tui.pages.editor.preset_form import Form
from tui.pages.launch.launch_plan import examine, plan, settings_with

GIB = 1 << 30
EIGHT = {"data.train_batch_size": 8, "actor.ppo_mini_batch_size": 8, "rollout.n": 4}
UP = {"trainer.steps": 40, "actor.lr": 1e-6}
COSINE = {"actor.lr_scheduler_type": "cosine", "actor.min_lr_ratio": 0.1}


@pytest.mark.parametrize(
    ("rows", "values", "told"),
    [
        (
            50,
            {"data.train_batch_size": 100, "actor.ppo_mini_batch_size": 64, "trainer.gpus": 3},
            ["28 padding responses", "does not divide evenly across 3 GPUs", "fewer rows than one step requires"],
        ),
        (
            1000,
            {"data.train_batch_size": 100, "trainer.steps": 500, "trainer.epochs": 2},
            ["the epochs end before trainer.steps", "20 steps (2 epochs)"],
        ),
        (None, {"trainer.steps": 40}, ["40 steps (trainer.steps)"]),
        (None, {}, ["the training file cannot be read"]),
        (None, UP | COSINE | {"actor.lr_warmup_steps": 10}, [" lr  up to 1e-6 in 10 steps, then a cosine to 1e-7"]),
        (None, UP | {"actor.lr_warmup_steps": 10}, ["up to 1e-6 in 10 steps, then constant"]),
        (None, UP | {"actor.lr_warmup_steps": 80}, ["up to 1e-6 in 80 steps, but the run ends at 4.9e-7"]),
        (
            None,  # one is told apart from many
            EIGHT | {"actor.ppo_micro_batch_size_per_gpu": 1},
            [
                "8 prompts × 4 responses = 32",
                "1 mini-batch of 8 prompts",
                "32 micro-batches of 1 response on its GPU",
                "= 1 optimizer step per step",
            ],
        ),
    ],
)
def test_the_way_of_a_batch_says_what_would_go_wrong(rows, values, told):
    given = {where_of(name): value for name, value in {"trainer.gpus": 1, **values}.items()}
    text = words(flow_rows(flow(of_draft(given), rows), 78))
    assert all(part in text for part in told), text
    assert ("actor lr" in text) == ("actor.lr_warmup_steps" in values)


def test_the_plan_is_that_of_the_verl_that_runs():
    old, new = (
        words(flow_rows(flow(Form(open_draft("gsm8k-0.5b-h800"), version).config), 78))
        for version in ("0.7.1", "0.8.0")
    )
    assert "8 micro-batches of 4 responses" in old and "same as the actor" in old
    assert "1 micro-batch of up to 32,768 tokens" in new  # of the critic, whatever is set


@pytest.mark.parametrize("columns", [8, 20, 40, 78, 200])
def test_rows_fit(columns):
    phases = [{"name": "update actor", "gpu": 30 * GIB, "gpu_high": 90 * GIB}]
    memory = {"phases": phases, "gpu_total": 24 * GIB, "host": GIB, "host_high": 2 * GIB}
    found = flow(of_draft({("data", "train_batch_size"): 10**6}), 10**9)
    assert all(width(row) <= columns for row in flow_rows(found, columns))
    if columns >= 40:
        assert all(width(row) <= columns for row in memory_rows(memory, "a GPU", columns))
    assert all(width(row) <= columns for row in difference_rows([("a", 1, "b" * 300)], "x", columns)[1:])


@pytest.mark.parametrize(("certain", "high", "role"), [(20, 22, "ok"), (20, 30, "warn"), (30, 40, "critical")])
def test_a_phase_that_does_not_fit_is_marked(certain, high, role):
    phase = {"name": "rollout", "gpu": certain * GIB, "gpu_high": high * GIB}
    assert memory_rows({"phases": [phase], "gpu_total": 24 * GIB}, "", 78)[0][0][1] == role
    assert words(memory_rows(None, "", 78)).rstrip() == " model size unknown"
    assert "host 1.0" in words(memory_rows({"phases": [], "host": GIB, "host_high": GIB}, "", 78)[-1:])
    assert words(difference_rows([], "toy-cpu", 78)).rstrip() == " ● same as toy-cpu"


def test_an_earlier_run_on_this_machine_shows_how_long_it_takes(home):
    run = whole_run(home)
    launch = run.attempt(1).launch
    assert "unknown: first run of this preset here" in str(plan("toy-cpu", []).essentials)
    dataclasses.replace(run.attempt(1).read_launch(), host=socket.gethostname()).write(launch)
    words = " ".join("".join(text for text, _ in row) for row in plan("toy-cpu", []).essentials)
    assert "time about 2m 00s: 0s to start, 60 steps of 2 s; as in run 7f3a" in " ".join(words.split())


def test_a_later_fix_of_the_same_field_replaces_the_earlier_one():
    settings = settings_with(["actor.lr=1e-6", "rollout.n=2"], {"actor.lr": 2e-6, "data.train": ["a", "b"]})
    assert settings == ["rollout.n=2", "actor.lr=2e-06", "data.train=[a,b]"]
    assert settings_with(settings, {"trainer.project": None, "rollout.n": 4})[-2:] == [
        "trainer.project=null",
        "rollout.n=4",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy-cpu", "gsm8k-0.5b-24gb", "gsm8k-grpo-24gb", "math-7b-8gpu"])
def test_shipped_presets_say_what_they_come_to(home, name):
    found = plan(name, [])
    assert len(found.essentials) >= 3 and found.subject is not None
    assert all(len("".join(text for text, _ in row)) < 100 for row in found.essentials[1:])
    assert "verl.trainer.main_ppo" in found.command


def test_without_verl_sw_1_has_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setenv("PPO_TUI_PYTHON", str(tmp_path / "bare/bin/python"))
    launch = plan("toy-cpu", [])
    assert launch.command.startswith("no command: ") and launch.subject is not None
    found = [*launch.findings, *examine(launch.subject, lambda _: None, lambda: False)]
    assert "PRESET" not in {each.id for each in found}
    assert ["pip install -r" in each.fix for each in found if each.id == "SW-1"] == [True]


COMMAND = "env -u RAY_ADDRESS \\\n  python -m verl.trainer.main_ppo \\\n  data.train_files=" + "a-b/" * 30


@pytest.mark.parametrize("columns", [120, 76, 40, 20, 12])
def test_a_command_is_folded_to_any_width(columns):
    shown = CommandText()
    shown.text = COMMAND
    rows = words(shown.draw(columns, 99)).split("\n")
    assert shown.get_content_height(Size(), Size(), columns) == len(rows) and max(map(len, rows)) <= columns
    assert "".join("".join(rows).split()) == "".join(COMMAND.split())
