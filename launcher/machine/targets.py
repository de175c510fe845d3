"""Targets of `alerts:` in config.yaml for messages about runs. As a process: sends the events on stdin.

A target is the URL of a service supported by Apprise, or `sendmail:ADDRESS` for mail through the local sendmail. URLs
contain secrets: they stay in config.yaml, and no error repeats them.
"""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from typing import Any

from launcher.core.errors import UserError
from launcher.core.paths import own_command
from launcher.core.secrets import redact
from launcher.core.text import clean
from launcher.record.levels import Level
from launcher.settings import read_alerts

MAIL = "sendmail:"
_SENDMAIL = 20.0  # seconds
_TITLE, _BODY = 120, 2000  # characters
_VARIABLE = re.compile(r"\$\{([^}]*)\}")  # a variable without a value


def command(names: Sequence[str]) -> list[str]:
    """The process that sends to these targets a JSON list of events from its stdin."""
    return own_command("launcher.machine.targets", *names)


def service(target: str) -> str:
    """The service of a target, without its secrets: `sendmail`, `ntfy`."""
    return target.partition(":")[0].rstrip("s") if not target.startswith(MAIL) else MAIL[:-1]


def send(name: str, target: str, title: str, body: str) -> None:
    """Sends one message. Raises UserError if the target does not accept it."""
    try:
        if target.startswith(MAIL):
            _mail(_expanded(target[len(MAIL) :]), title, body)
        else:
            _notify(_expanded(target), title, body)
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.hint) from None


def message(events: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Title and text for the events of one run, which are objects for `health.on_alert`, oldest first."""
    first, worst = events[0], max(events, key=_weight)
    lines = [_line(event) for event in events]
    where = f"ppo-tui attach {first['run']}"
    kind = worst["kind"]
    headline = worst["state"] if kind == "exit" else "hang" if kind == "stall" else f"{worst['to']} {worst['rule']}"
    title = f"{headline} · {first['name']}"
    return redact(clean(title))[:_TITLE], redact("\n".join(map(clean, lines)))[:_BODY] + f"\n{where}"


def _weight(event: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """Its rank: a cause before the flags that follow from it."""
    level = Level[event["to"]].value if event["kind"] == "health" else 0
    return event["kind"] == "exit", not event.get("cause"), level


def _line(event: Mapping[str, Any]) -> str:
    if event["kind"] == "exit":
        flags = f", {event['verdict']}" if event.get("verdict") else ""
        return f"{event['state']} at {_place(event)}{flags}" + (f": {event['error']}" if event["error"] else "")
    if event["kind"] == "stall":
        return f"{event['stage']}: {event['title']}"
    cause = f" (from {event['cause']})" if event.get("cause") else ""
    fix = f"; fix: {event['fix']}" if event.get("fix") else ""
    lead = f": {event['lead']}" if event.get("lead") else ""
    return f"{_place(event)}: {event['rule']} {event['to']}{cause}{lead}: {event['message']}{fix}"


def _place(event: Mapping[str, Any]) -> str:
    return f"step {event['step']}" if event.get("line") is None else f"logged line {event['line']}"


def _mail(address: str, title: str, body: str) -> None:
    program = shutil.which("sendmail") or "/usr/sbin/sendmail"
    mail = EmailMessage()
    mail["To"], mail["Subject"] = address, title
    mail.set_content(body)
    try:
        done = subprocess.run(
            [program, "-t", "-i"], input=mail.as_bytes(), capture_output=True, timeout=_SENDMAIL, check=False
        )
    except FileNotFoundError:
        raise UserError("there is no sendmail on this machine", "use a mailto:// URL, which needs no program") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"sendmail took more than {_SENDMAIL:.0f} s") from None
    if done.returncode:
        raise UserError(f"sendmail failed with exit code {done.returncode}")


def _notify(url: str, title: str, body: str) -> None:
    try:
        import apprise
    except ModuleNotFoundError:
        raise UserError("the package apprise is not installed", "run pip install 'ppo-tui[alerts]'") from None
    # what it logs of a failure has parts of the address
    logging.getLogger(apprise.logger.name).setLevel(logging.CRITICAL)
    service = apprise.Apprise()
    if not service.add(url):
        hint = "see https://github.com/caronc/apprise/wiki for the addresses"
        raise UserError("not an address that Apprise supports", hint)
    if not service.notify(title=title, body=body):
        raise UserError("the service did not accept the message", "check its address in config.yaml and the network")


def _expanded(target: str) -> str:
    """The target with the values of its variables."""
    found = os.path.expandvars(target)
    if missing := _VARIABLE.search(found):
        raise UserError(f"the variable {missing[1]} is not set", f"export {missing[1]} before ppo-tui starts")
    return found


def main(names: Sequence[str]) -> int:
    """Sends the events on stdin to the targets; returns 1, with a line on stderr, if a target does not accept them."""
    title, body = message(json.load(sys.stdin))
    failed = False
    targets = read_alerts()
    for name in names:
        try:
            if name not in targets:
                raise UserError(f"{name}: no longer a target in config.yaml")
            send(name, targets[name], title, body)
        except UserError as error:
            failed = True
            print(error.message, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
