"""Text without secrets, user names, home folders, host names and addresses, for strangers."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from launcher.core.secrets import redact
from launcher.core.text import clean

_HOME = re.compile(r"(?<![\w.~-])(?:/[\w.-]+){0,4}?/(?:home|Users)/(?P<user>[^/\s:,;'\"`<>()\[\]{}]+)")
_HOST = re.compile(r"\bhostname: ([\w.-]+), PID: \d")  # veRL's main_ppo.py, TaskRunner.run
_ROOT = re.compile(r"(?<![\w.~/-])/root(?![\w.-])")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(
    rf"(?<![\w.-])(?<!==){_BYTE}(?:\.{_BYTE}){{3}}(?![\w-]|\.\d)"  # not a version: nvidia-cublas-cu12==12.8.4.1
    r"|(?<![\w:.])(?:fe80:|(?:[0-9a-f]{1,4}:){4,7})[0-9a-f:]*[0-9a-f](?![\w:])"
    r"|(?<![\w-])ip-\d+-\d+-\d+-\d+[\w.-]*",
    re.IGNORECASE,
)
_LOCAL = ("0.0.0.0", "127.0.0.1", "localhost")
_WORDS = frozenset(
    ["root", "user", "users", "admin", "ubuntu", "ray", "verl", "data", "model", "train", "test", "runner", "docker"]
) | {"node", "host", "python", "torch", "cuda", "main"}
"""Names that are also words in logs: hidden only in paths."""


class Anonymous:
    """Replaces names of persons and machines. Each host or address has one number throughout."""

    def __init__(self, users: Iterable[str] = (), hosts: Iterable[str] = (), homes: Iterable[str] = ()) -> None:
        self._users: set[str] = set()
        self._hosts: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        for user in (*users, _own_name()):
            self._add_user(user)
        for host in (*hosts, socket.gethostname()):
            self._add_host(host)
        self._homes = sorted({*homes, str(Path.home())} - {"", "/", "/root"}, key=len, reverse=True)
        for home in self._homes:
            self._add_user(Path(home).name)

    def learn(self, texts: Iterable[str]) -> None:
        """Collects users of home folders, and hosts printed by veRL, to replace them everywhere."""
        for text in texts:
            for match in _HOME.finditer(text):
                self._add_user(match["user"])
            for match in _HOST.finditer(text):
                self._add_host(match[1])

    def text(self, text: str) -> str:
        """The text without names and control characters."""
        text = clean(redact(text))
        for home in self._homes:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        text = _EMAIL.sub("<email>", _ROOT.sub("~", _HOME.sub("~", text)))
        for name, shown in self._hosts.items():
            text = _word(name).sub(shown, text)
        for user in sorted(self._users, key=len, reverse=True):
            text = _word(user).sub("<user>", text)
        return _ADDRESS.sub(self._address, text)

    def _add_user(self, name: str) -> None:
        if len(name) > 2 and name.lower() not in _WORDS and not name.isdigit():
            self._users.add(name)

    def _add_host(self, host: str) -> None:
        if len(host) > 2 and host not in _LOCAL and host.lower() not in _WORDS and not host.isdigit():
            shown = f"<host-{len(set(self._hosts.values())) + 1}>"
            short = host.partition(".")[0]
            self._hosts.setdefault(host, shown)
            if len(short) > 2 and not short.isdigit() and short.lower() not in _WORDS:
                self._hosts.setdefault(short, self._hosts[host])

    def _address(self, match: re.Match[str]) -> str:
        if match[0] in _LOCAL:
            return match[0]
        return self._addresses.setdefault(match[0], f"<ip-{len(self._addresses) + 1}>")


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return ""


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE)
