"""Rivals: consoles that each one leads, and what tells them apart."""

from typing import Any

import pytest
import tomllib
from console_logs import DATA, diagnosis_of

from launcher.console.causes import catalogue
from launcher.console.rivals import symptoms
from launcher.record.attempt import MachineEnd
from launcher.record.machine import HostSample

ROWS: list[dict[str, Any]] = tomllib.loads((DATA / "rivals.toml").read_text("utf-8"))["rows"]
PACKAGES = "/opt/venv/lib/python3.12/site-packages"


def console(row: dict[str, Any]) -> str:
    """A run of veRL whose driver ends with the exception; `frames` are PATH:FUNCTION and the line of code."""
    lines = [f"+ python3 -m verl.trainer.main_ppo trainer.total_epochs=3 {row.get('run', '')}", *row.get("above", ())]
    if row.get("open"):
        return "\n".join(["Total training steps: 435", *lines[1:]])
    lines += ["Error executing job with overrides: ['a=b']", "Traceback (most recent call last):"]
    for frame in row["frames"]:
        place, _, code = frame.partition(" ")
        path, _, function = place.partition(":")
        path = path if path.startswith("/") else f"{PACKAGES}/{path}"
        lines += [f'  File "{path}", line 93, in {function}', f"    {code or 'self.call(batch)'}"]
    return "\n".join([*lines, row["text"]])


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row['cause']}" for number, row in enumerate(ROWS)])
def test_a_rival_leads_on_its_console(row: dict[str, Any]) -> None:
    versions = row.get("versions", {})
    machine = MachineEnd(memory=HostSample(**row.get("host", {})))
    code = None if row.get("open") else 1
    found = diagnosis_of(console(row), exit_code=code, versions=versions, machine=machine)
    assert (found.cause == row["cause"] or row.get("title")) and row.get("title", "") in found.title, found
    leading = found.rivals[0]
    assert leading.supports and not leading.excluded_by and found.fixes
    seen = {each.text for each in leading.supports}
    assert {f"version.{name}={version}" for name, version in versions.items()} <= seen
    shown = [found.title, found.meaning, *(fix.text for fix in found.fixes), *(rival.row[1] for rival in found.rivals)]
    assert not any("{" in text or "…" in text for text in shown), shown


def test_every_rival_leads_somewhere_or_is_an_entry_with_samples() -> None:
    entries = {cause.id for cause in catalogue()}
    led = {row["cause"] for row in ROWS}
    rows = [row for symptom in symptoms() if symptom.message for row in symptom.rivals]
    clues = {row.cause for row in rows if row.needs or row.supports}
    assert sorted(clues - led - entries) == []
    assert not [row.id for row in rows if row.id in entries], "an entry's row has `entry`"


def test_a_message_of_several_processes_excludes_a_faulty_gpu() -> None:
    failed = "RuntimeError: CUDA error: an illegal memory access was encountered"
    row = {"frames": ["verl/workers/actor/dp_actor.py:update_policy"], "text": failed}
    for ranks in (1, 2):
        above = [
            f"(WorkerDict pid={rank}) {line}"
            for rank in range(1, ranks)
            for line in ("Traceback (most recent call last):", '  File "/x/verl/a.py", line 1, in f', f"{failed}")
        ]
        found = {each.cause: each for each in diagnosis_of(console({**row, "above": above})).rivals}
        assert bool(found["gpu-hardware"].excluded_by) is (ranks > 1)


def test_step_lines_with_odd_numbers_and_endless_names_are_read() -> None:
    step = "step:{} - timing_s/step:1.2.3 - timing_s/gen:4 - " + "a" * 200_000
    assert diagnosis_of("\n".join(step.format(number) for number in (1, 2, 3))).cause == "running"
