"""Commands that check a preset before its start, or this machine and its packages."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from launcher.check.finding import GROUPS, LEVELS, Finding, in_order
from launcher.cli.output import Force, Json, Preset, Settings, fail, problem_lines, put, put_json, put_table, say
from launcher.cli.rewards import check_reward
from launcher.core.errors import UserError
from launcher.core.format import counted, gib, range_bar

if TYPE_CHECKING:
    from launcher.check.checks import Report

GPU_PACKAGES = ("vllm", "flash-attn", "flashinfer-python", "trl")
"""Packages reported as missing only on machines with a GPU."""
_BAR = 24  # cells


def check(
    preset: Annotated[str, typer.Argument(help="A preset, as for 'run'; with --reward, a Python file.")],
    settings: Settings = None,
    assume: Annotated[
        str | None, typer.Option(metavar="[4x]8x80", help="Check for [nodes x] GPUs x GiB per GPU, not this machine.")
    ] = None,
    rehearse: Annotated[bool, typer.Option("--rehearse", help="Also run two small steps of veRL on the CPU.")] = False,
    static: Annotated[
        bool, typer.Option("--static", help="Do not run code or open addresses that the preset names.")
    ] = False,
    reward: Annotated[
        bool, typer.Option("--reward", help="Test the reward function in a Python file, not a preset.")
    ] = False,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="With --reward: test it on eight rows.")] = None,
    function: Annotated[str, typer.Option(metavar="NAME", help="With --reward: the function name.")] = "compute_score",
    json: Json = False,
) -> None:
    """Check that a preset or a reward function works. Exits with 1 on errors.

    Checks the configuration, data, model, memory, hardware and software of a preset.
    """
    if reward:
        if settings or assume or rehearse or static:
            raise UserError("--reward takes one file", "use 'ppo-tui check --reward FILE'")
        check_reward(Path(preset), data, function, json=json)
        return
    if static and rehearse:
        raise UserError("--static and --rehearse exclude each other", "leave one of them out")
    from launcher.check.checks import report

    result = report(
        preset, settings or [], assume=assume, static=static, progress=lambda title: say(f"checking: {title}")
    )
    if rehearse:
        result = _with_rehearsal(result, preset, settings or [])
    _put_report(result, json)
    if not result.ok:
        raise typer.Exit(1)


def _put_report(result: Report, json: bool) -> None:
    if json:
        put_json(result.as_json())
    else:
        for line in finding_lines(result.findings):
            put(line)
        put_memory(result.memory)
        if result.skipped:
            put(f"not checked: {', '.join(result.skipped)}")
        put(verdict(result.findings))


def _with_rehearsal(report: Report, preset: str, settings: Sequence[str]) -> Report:
    from launcher.preset.files import load
    from launcher.runs.act.rehearse import rehearse

    try:
        loaded = load(preset, settings)
    except UserError:  # reported in the report
        return report
    rehearsed = rehearse(loaded, say)
    return replace(report, findings=in_order([*report.findings, *([rehearsed] if rehearsed else [])]))


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Prints the errors of the preflight and exits with code 1."""
    from launcher.check.gate import FORCE, Refused

    try:
        yield
    except Refused as refused:
        for line in finding_lines(refused.findings, sys.stderr):
            say(line)
        say(verdict(refused.findings))
        fail("the run was not started", FORCE)
        raise typer.Exit(1) from None


def finding_lines(findings: Sequence[Finding], out: TextIO | None = None) -> list[str]:
    """The findings by group, for the terminal `out` (None: stdout)."""
    lines = []
    for group in GROUPS:
        here = [finding.problem for finding in findings if finding.group == group]
        lines += [group.upper()] if here else []
        lines += problem_lines(here, 2, out=out)
    return lines


def verdict(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 warning: the run would fail`."""
    counts = [(sum(finding.level == level for finding in findings), level) for level in LEVELS[:2]]
    words = ", ".join(counted(count, level) for count, level in counts if count)
    if counts[0][0]:
        return f"{words}: the run would fail"
    return f"{words}: the run can start" if words else "no problems found"


def put_memory(memory: dict[str, Any]) -> None:
    """Prints the GiB needed per phase on a GPU and on the host, and the formula; on a terminal also a bar per phase."""
    if not memory:
        return
    phases, usable = memory["phases"], memory["gpu_total"]
    total = f" of {gib(usable)}" if usable else ""
    most = max([usable or 0, *(phase["gpu_high"] for phase in phases)]) if sys.stdout.isatty() else 0
    put(f"MEMORY in GiB per GPU: certain .. likely ({memory['model']['name']})")
    for phase in phases:
        low, high = phase["gpu"], phase["gpu_high"]
        bar = "  " + "|".join(range_bar(low, high, usable or most, most, _BAR)) if most else ""
        put(f"  {phase['name']:<20} {_range(low, high)}{total}{bar}")
    put(f"  {'host':<20} {_range(memory['host'], memory['host_high'])}")
    for line in memory["formula"]:
        put(f"    {line}")


def _range(low: int, high: int) -> str:
    return f"{gib(low):>6} .. {gib(high):>6}"


def doctor(json: Json = False) -> None:
    """Check this machine and its packages. Exits with 1 if something would stop every run."""
    from launcher.check import hardware, login, software
    from launcher.machine.capacity import here
    from launcher.verl import env as verl_env

    python, machine = verl_env.interpreter(None), here()
    packages = software.check_packages(python, software.usual(machine))
    findings = in_order([*hardware.of_machine(machine, python), *login.of_login(os.environ), *packages])
    ok = not any(finding.level == "error" for finding in findings)
    if json:
        put_json({"ok": ok, "findings": [each.as_json() for each in findings], "packages": _packages(python)})
    else:
        for line in finding_lines(findings):
            put(line)
        put_table(_table(python, gpu=bool(machine.gpus)))
        put(verdict(findings))
    if not ok:
        raise typer.Exit(1)


def _packages(python: str) -> dict[str, str]:
    from launcher.verl import env as verl_env

    try:
        return verl_env.probe(python).packages
    except UserError:
        return {}


def _table(python: str, *, gpu: bool) -> list[tuple[str, str, str]]:
    """Installed packages and this veRL's requirements; empty without veRL."""
    from launcher.check.software import wanted
    from launcher.verl import env as verl_env

    have = _packages(python)
    if "verl" not in have:
        return []
    ranges = wanted(verl_env.probe(python).requires, "vllm" if gpu else "")
    rows = [
        (name, have.get(name, "-"), ranges.get(name, ""))
        for name in verl_env.PACKAGES
        if name in have or name in ranges or (gpu and name in GPU_PACKAGES)
    ]
    return [("PACKAGE", "INSTALLED", f"VERL {have['verl']} REQUIRES"), *rows]


def tune(
    preset: Preset,
    name: Annotated[str | None, typer.Option(help="Name of the new preset [default: PRESET-tuned].")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=6, help="Maximum number of short runs.")] = 6,
    steps: Annotated[int, typer.Option(min=2, max=20, help="Steps of each run.")] = 3,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the fastest memory settings by short runs. Writes a preset.

    Every response is generated to its maximum length. Ctrl-C stops; the same command continues.
    """
    from launcher.preset.draft import target
    from launcher.preset.files import load
    from launcher.runs.act.tune import told
    from launcher.runs.act.tune import tune as probe

    loaded = load(preset)
    path = target(name or f"{loaded.name}-tuned")
    if path.exists():
        raise UserError(f"preset {path.stem} exists already", "choose another name with --name, or delete it")
    with refusals():
        found = probe(loaded, path, say, most=limit, count=steps, force=force)
    if json:
        runs = [
            {
                "run": each.run,
                "tokens_per_second": each.tokens,
                "peak": each.peak and each.peak.used,
                "failed": each.failed,
            }
            for each in found.probes
        ]
        put_json(
            {
                "preset": path.stem,
                "file": str(path),
                "change": dict(found.change),
                "best": found.best.run,
                "probes": runs,
            }
        )
        return
    put(f"{path.stem}: {told(found.best)}")
    put(f"wrote {path}")
