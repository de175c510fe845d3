"""`ppo-tui doctor`: what is installed, what is missing, how to get it; this machine without a preset."""

import os

import typer

from launcher.cli.output import Json, put, put_json, put_table

GPU_PACKAGES = ("vllm", "flash-attn", "flashinfer-python", "trl")
"""Shown as missing where there is a GPU."""


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(doctor)


def doctor(json: Json = False) -> None:
    """Check this machine and its packages. Exits with 1 if something would stop every run."""
    from launcher.check import hardware, login, software
    from launcher.check.finding import in_order
    from launcher.check.machine import here
    from launcher.cli.checking import finding_lines, verdict
    from launcher.verl import env as verl_env

    python, machine = verl_env.interpreter(None), here()
    packages = software.check_packages(python, software.usual(machine))
    found = in_order([*hardware.of_machine(machine, python), *login.of_login(os.environ), *packages])
    ok = not any(finding.level == "error" for finding in found)
    if json:
        put_json({"ok": ok, "findings": [each.as_json() for each in found], "packages": _packages(python)})
    else:
        for line in finding_lines(found):
            put(line)
        put_table(_table(python, gpu=bool(machine.gpus)))
        put(verdict(found))
    if not ok:
        raise typer.Exit(1)


def _packages(python: str) -> dict[str, str]:
    from launcher.core.errors import UserError
    from launcher.verl import env as verl_env

    try:
        return verl_env.probe(python).packages
    except UserError:
        return {}


def _table(python: str, *, gpu: bool) -> list[tuple[str, str, str]]:
    """What is installed with veRL and what this veRL requires; empty without a veRL."""
    from launcher.check.software import wanted
    from launcher.verl import env as verl_env

    have = _packages(python)
    if "verl" not in have:
        return []
    ranges = wanted(verl_env.probe(python), "vllm" if gpu else "")
    rows = [
        (name, have.get(name, "-"), ranges.get(name, ""))
        for name in verl_env.PACKAGES
        if name in have or name in ranges or (gpu and name in GPU_PACKAGES)
    ]
    return [("PACKAGE", "INSTALLED", f"VERL {have['verl']} REQUIRES"), *rows]
