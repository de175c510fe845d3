"""The steps of a log without step numbers: right, or said to be unknown."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import commands
import pytest
from tables import tabled

from launcher.machine.targets import message
from launcher.record.events import LevelChange, Note, read_kind
from launcher.record.numbering import Numbering
from launcher.record.state import current
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.log import newest
from launcher.runs.watch.reader import RunReader

pytestmark = pytest.mark.usefixtures("home")
ROW = "{{'loss': '0.1', 'reward': '{reward:.2f}', 'kl': '0.01', 'learning_rate': '1e-05', 'epoch': '{epoch:.4g}'}}\n"


def written(
    path: Path,
    steps: Sequence[int],
    *,
    epochs: float = 1000,
    rate: Sequence[float] | None = None,
    last: int | None = None,
) -> Path:
    """Lines of these steps of a run of TRL, `epochs` of which are an epoch; at its end seconds and steps per second."""
    text = "".join(ROW.format(reward=step % 7 / 10, epoch=step / epochs) for step in steps)
    if rate is not None:
        ended = {"train_runtime": rate[0], "train_steps_per_second": rate[1], "train_loss": 0.1}
        text += f"{ended | {'epoch': float(f'{(last or steps[-1]) / epochs:.4g}')}}\n"
    path.write_text(text)
    return path


@tabled
def test_the_steps_between_two_lines(
    steps: list[int], last: int, epochs: float, rate: list[float] | None, every: int, first: bool, tmp_path: Path
) -> None:
    log = newest(str(written(tmp_path / "x.log", steps, epochs=epochs, rate=rate, last=last)))

    assert log.numbering == Numbering(every, first)
    if every:
        assert [log.numbering.step(record.step) for record in log.steps()] == steps


def test_an_evaluation_between_the_lines_is_no_step(tmp_path: Path) -> None:
    path = written(tmp_path / "x.log", range(10, 101, 10), epochs=200, rate=(48.89, 2.045))
    lines = path.read_text().splitlines(keepends=True)
    judged = "{'eval_reward': '0.5', 'epoch': '0.01'}\n"
    path.write_text("".join(line + judged * (at % 3 == 0) for at, line in enumerate(lines)))

    log = newest(str(path))

    assert log.numbering == Numbering(10)
    assert sorted({record.step for record in log.steps()}) == list(range(1, 11))
    assert [record.step for record in log.steps() if any(key.startswith("val") for key in record.data)] == [1, 4, 7, 10]


def test_a_line_with_its_number_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    row = ROW.format(reward=0.5, epoch=0.3).rstrip()[:-1]
    path.write_text("".join(f"{row}, 'global_step/max_steps': '{step}/176'}}\n" for step in (56, 57)))

    log = newest(str(path))

    assert [record.step for record in log.steps()] == [56, 57] and log.numbering == Numbering()


def test_parts_of_one_run_are_joined_by_what_grows(tmp_path: Path) -> None:
    first = written(tmp_path / "1.log", range(1, 41), rate=(11.76, 3.401))
    second = written(tmp_path / "2.log", range(36, 61), rate=(11.64, 2.148))  # resumed at the checkpoint of step 35
    other = written(tmp_path / "3.log", range(1, 21))

    run, alone = import_logs([str(first), str(second), str(other)])

    reader = RunReader(run.path)
    reader.poll()
    assert list(reader.series.steps) == list(range(1, 61))
    assert reader.state.step == 60 and reader.state.at == "60/–"
    notes = [note.text for each in (run, alone) for note in read_kind(each.events, Note)]
    assert "2.log continues 1.log: epoch 0.036 at its first line, 0.001 to 0.04 before" in notes
    assert any(note.startswith("3.log does not continue 2.log: epoch 0.001") for note in notes)


def test_a_restart_in_the_same_log_continues_where_its_epoch_was(tmp_path: Path) -> None:
    path = written(tmp_path / "x.log", range(1, 46))
    path.write_text(path.read_text() + written(tmp_path / "y.log", range(41, 61)).read_text())

    run = import_logs([str(path)], every=1)[0]

    reader = RunReader(run.path)
    reader.poll()
    assert list(reader.series.steps) == list(range(1, 61))


def test_unknown_steps_are_lines_and_given_ones_are_steps(in_process: Callable[..., Any], tmp_path: Path) -> None:
    log = str(written(tmp_path / "x.log", range(5, 61, 5)))

    row = json.loads(in_process("metrics", log, "--json").stdout.splitlines()[-1])
    assert (row["step"], row["line"]) == (None, 12)
    told = in_process("metrics", log)
    assert told.stdout.splitlines()[-1].startswith("line     12 ") and "--every N" in told.stderr
    row = json.loads(in_process("metrics", log, "--json", "--every", "5").stdout.splitlines()[-1])
    assert row["step"] == 60 and "line" not in row
    checks = json.loads(in_process("health", log, "--json").stdout.splitlines()[-1])["checks"]
    assert all(check["since"] is None for check in checks)
    assert "Its last logged line is 12." in in_process("diagnose", log).stdout
    assert "Its last step is 60." in in_process("diagnose", log, "--every", "5").stdout
    (run,) = import_logs([log])
    assert current(run).at == "line 12" and current(run).eta is None
    (run,) = import_logs([log], every=5)
    assert current(run).shown.at == "60/–"


def test_the_messages_of_a_log_differ_only_in_the_words_for_steps(tmp_path: Path) -> None:
    """Of a log with step numbers, with 10 steps per line, which its last line shows, and with unknown steps."""
    found, numbered = [], "1%|▏| {}/120 [00:01<00:20, 1.00it/s]\r"
    for every, bar, rate in ((1, numbered, None), (10, "", (600.0, 2.0)), (0, "", None)):
        path = written(tmp_path / f"{every}.log", range(1, 121), rate=rate)
        lines = path.read_text().replace(", 'epoch': '", ", 'step_time': '0.543', 'epoch': '").splitlines(keepends=True)
        lines[29] = lines[29].replace("'0.01'", "'nan'")
        lines[90:] = [line.replace("'1e-05'", "'0'") for line in lines[90:]]
        path.write_text("".join(bar.format(at) + line for at, line in enumerate(lines, 1)))
        run = import_logs([str(path)])[0]
        texts = [each.message for each in (*read_kind(run.events, LevelChange), *current(run).checks)]
        unit, factor = ("steps?", every) if every else ("logged lines?", 1)
        steps = re.compile(rf"\b{unit} (\d+)\b(?!\.)|\b(\d+) (?:more )?{unit}\b")
        found.append([steps.sub(lambda step, of=factor: f"{int(step[1] or step[2]) / of:g}", text) for text in texts])
    assert found[0] == found[1] == found[2]
    assert {"learning rate is 0 for 30", "non-finite at 30: actor/kl_loss"} <= {*found[0]}


@pytest.mark.parametrize("logger", [False, True])
def test_the_policy_lines_of_skyrl_are_steps_only_without_its_console_logger(logger: bool, tmp_path: Path) -> None:
    """train() prints them before the logger of the console, if there is one, prints all metrics."""
    at = "(skyrl_entrypoint pid=9) 2026-08-20 03:01:22.123 | INFO     | skyrl.train."
    lines = []
    for step in (41, 42, 43):
        policy = {"final_loss": 0.1, "policy_entropy": step / 100, "policy_lr": 1e-06, "grad_norm": 0.5, "policy_kl": 0}
        lines.append(f"{at}trainer:train:497 - {policy}")
        if logger:
            lines.append(f"{at}utils.tracking:log:189 - Step {step}: ")
            metrics = {f"policy/{name}": value for name, value in policy.items()}
            entries = [f"{name!r}: '{value:.4f}'" for name, value in {**metrics, "trainer/global_step": step}.items()]
            lines += ["{" + entries[0] + ",", *(f" {entry}," for entry in entries[1:-1]), f" {entries[-1]}}}"]
    path = tmp_path / "x.log"
    path.write_text("\n".join(lines) + "\n")

    log = newest(str(path))

    assert log.title == "SkyRL" and log.numbering == Numbering(1 if logger else 0)
    found = [(each.step, each.data["actor/entropy"], each.data["actor/lr"] > 0) for each in log.steps()]
    assert found == [((41 if logger else 1) + at, (41 + at) / 100, not logger) for at in range(3)]


def test_a_log_whose_steps_are_unknown_has_logged_lines_everywhere(tmp_path: Path) -> None:
    """KL-1 rises in logged line 27; nothing calls a line a step, or the time of a step a line."""
    rows = "".join(
        ROW.replace("'0.01'", "'5'" if line > 25 else "'0.01'").format(reward=line % 7 / 10, epoch=0.4 + line / 10)
        for line in range(1, 41)
    ).replace("'epoch'", "'step_time': '0.543', 'epoch'")
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_text(rows)
        import_logs([str(tmp_path / name)])

    def call(*words: str) -> str:
        out, error, code = commands.call(words)
        assert not code, error
        return out.decode()

    assert "since logged line 2" in call("status", "one") and "step 0.543 s" in call("health", "one", "--all")
    assert re.search(r"^step +line 40 +line 40$", call("compare", "one", "two", "--plain"), re.MULTILINE)
    facts = json.loads(call("compare", "one", "two", "--json"))["runs"][0]
    assert (facts["step"], facts["line"]) == (None, 40)
    assert call("time", "one").startswith("logged line 40: 0.543 s")
    case = call("health", "one", "--case")
    assert "logged lines: 1 to 40" in case and not re.search(r"\bstep \d+\b(?!\.)", case)
    for name, text in (("x.csv", "line,attempt,"), ("x.jsonl", '{"line":1,'), ("x.svg", "one, logged lines 1 to 40")):
        call("export", "one", "-o", str(tmp_path / name))
        assert text in (tmp_path / name).read_text()
    call("report", "one", "-o", str(tmp_path / "x.html"))
    assert "after 40 logged lines" in (tmp_path / "x.html").read_text()
    event = {"run": "a", "name": "a", "kind": "exit", "state": "ended", "step": None, "line": 40, "error": ""}
    assert message([event])[1].startswith("ended at logged line 40")


def test_steps_that_are_known_are_exported_and_compared(tmp_path: Path) -> None:
    for name in ("one.log", "two.log"):
        written(tmp_path / name, range(10, 101, 10))
        import_logs([str(tmp_path / name)], every=10)

    assert commands.call(("compare", "one", "two", "--plain"))[0].decode().count(" 100") == 2
    commands.call(("export", "one", "-o", str(tmp_path / "x.csv")))
    rows = (tmp_path / "x.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in rows] == ["step", *map(str, range(10, 101, 10))]
