"""Links of trackers in a console, and the runs of trackers as runs."""

import pytest
from console_logs import TASK

from launcher.health.checklist import Checklist
from launcher.record.state import RunState, TrackedRun
from launcher.runs.judge.monitor import Monitor, Sink

BLUE, PLAIN = "\x1b[34m\x1b[4m", "\x1b[0m"
SWANLAB = "https://swanlab.cn/@chg0901/gsm8k/runs/1dn3f08zozxyjk5mz3xrg"


def seen(text: str) -> tuple[TrackedRun, ...]:
    monitor = Monitor(Sink(), lambda keys: Checklist(config=keys), {}, file_logger=False)
    monitor.feed_console(text.encode(), 1.0)
    monitor.close(1.0)
    return monitor.state(RunState("running"), 1.0).trackers


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "wandb: Run data is saved locally in /x/wandb/run-20261125_1-ab\n"
            "wandb: ⭐️ View project at https://wandb.ai/me/gsm8k\n"
            "wandb: 🚀 View run at https://wandb.ai/me/gsm8k/runs/ab",
            TrackedRun("wandb", "https://wandb.ai/me/gsm8k/runs/ab", "/x/wandb/run-20261125_1-ab"),
        ),
        (
            f"{TASK}wandb: 🚀 View run baseline at: {BLUE}https://user:pw@wandb.me.org/runs/ab?apiKey=12{PLAIN}",
            TrackedRun("wandb", "https://wandb.me.org/runs/ab"),
        ),
        (
            f"{TASK}wandb: Run data is saved locally in /x y/wandb/offline-run-20261125_1-ab",
            TrackedRun(
                "wandb",
                folder="/x y/wandb/offline-run-20261125_1-ab",
                command="wandb sync '/x y/wandb/offline-run-20261125_1-ab'",
            ),
        ),
        (f"swanlab: 🚀 View run at {SWANLAB}", TrackedRun("swanlab", SWANLAB)),
        (f"swanlab: 🚀 View run at \n{SWANLAB}", TrackedRun("swanlab", SWANLAB)),
        (
            "swanlab: Run data will be saved locally in /x/swanlog/run-20260127_183414-aji0\n"
            "swanlab: 🌟 Run `swanlab watch /x/swanlog` to view SwanLab Experiment Dashboard locally",
            TrackedRun(
                "swanlab",
                folder="/x/swanlog/run-20260127_183414-aji0",
                command="swanlab sync /x/swanlog/run-20260127_183414-aji0",
            ),
        ),
        (
            "🏃 View run baseline at: http://localhost:5000/#/experiments/1/runs/9f",
            TrackedRun("mlflow", "http://localhost:5000/#/experiments/1/runs/9f"),
        ),
        (
            "* View dashboard by going to: https://me-gsm8k.hf.space/?write_token=secret",
            TrackedRun("trackio", "https://me-gsm8k.hf.space/"),
        ),
        (
            "* Trackio project initialized: gsm8k\n* Trackio metrics logged to: /home/me/.cache/trackio",
            TrackedRun("trackio", folder="/home/me/.cache/trackio", command="trackio show"),
        ),
        (
            f"{TASK}Saving tensorboard log to tensorboard_log/gsm8k/a.",
            TrackedRun(
                "tensorboard", folder="tensorboard_log/gsm8k/a", command="tensorboard --logdir tensorboard_log/gsm8k/a"
            ),
        ),
    ],
)
def test_what_trackers_print(lines: str, expected: TrackedRun) -> None:
    assert seen(f"{lines}\n") == (expected,)


def test_words_of_a_tracker_are_clean() -> None:
    (found,) = seen("wandb: 🚀 View run at https://wandb.ai/x\x07\u202ey\n")
    assert found.words.isascii() and found.words.isprintable()
