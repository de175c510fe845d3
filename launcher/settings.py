"""The settings in config.yaml: theme, mouse, signs, motion, keys; and the number of runs that the queue starts at once.

Precedence: command line, environment, config.yaml, default.

    theme: color-blind        # dark, light, color-blind, terminal, or a theme of Textual
    mouse: false              # default: on; off over SSH, where people select text with the terminal's mouse
    ascii: false              # ASCII characters alone; default: on at the Linux console and in a C locale
    animations: none          # none, basic, full: motion of lists and dialogs, and blinking cursors
    max_cpu_runs: 1           # maximum number of queued runs without a GPU at once
    max_console_size: 1 GiB   # size of a console.log on disk; larger ones lose their middle
    trace: true               # runs record the work of their processes, for the time page
    keys:
      dashboard.log: o        # an id of `ppo-tui config keys`, and one or more keys
      log.search: slash,ctrl+f

Limits for `ppo-tui clean`:

    keep: 50 runs, 20 GiB of checkpoints

Machines for `ppo-tui list --hosts` (by ssh), each with the path of its ppo-tui if its PATH lacks it:

    hosts:
      me@gpu-box:
      gpu-box-2: /opt/ppo-tui/.venv/bin/ppo-tui

Dashboards of Ray clusters whose jobs are also listed:

    clusters: [head:8265]

The price per GPU hour, for reports:

    gpu_price_per_hour: 2.50 EUR

Named targets of alerts: the URL of a service, in which ${NAME} is a variable, or mail:

    alerts:
      phone: ntfys://ntfy.sh/my-runs
      team: ${TEAM_WEBHOOK}
      mail: sendmail:me@example.org

The assistant for case files (`--ask`, the page of a case), after consent: a command or an endpoint:

    assistant: {command: [claude, -p]}
    assistant: {url: http://127.0.0.1:8000/v1, model: Qwen/Qwen3-32B, key_env: NAME}
"""

import contextlib
import ipaddress
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from launcher.core.errors import UserError, of_file
from launcher.core.files import make_folder, obeyed, write_atomic
from launcher.core.paths import settings_file
from launcher.core.tables import tables_of
from launcher.core.text import clean, near_hint, without_login
from launcher.core.yaml_bounds import mending

CONSOLE_SIZE = 1 << 30  # bytes: the default
OUR_THEMES = ("dark", "light", "color-blind", "terminal")
Animations = Literal["none", "basic", "full"]
ANIMATIONS: tuple[Animations, ...] = get_args(Animations)
_NAMES = (
    *("theme", "mouse", "ascii", "animations", "keys", "trace", "max_cpu_runs", "max_console_size"),
    *("keep", "gpu_price_per_hour", "hosts", "clusters", "alerts", "assistant"),
)
_KEEP = re.compile(r"(?:(\d{1,6}) runs?)?(?:^|, |$)(?:(\d{1,6}(?:\.\d+)?) ?(MiB|GiB|TiB) of checkpoints)?")
_PRICE = re.compile(r"(\d{1,6}(?:\.\d+)?)(?: ?([A-Za-z]{3}))?")
_ADDRESS = re.compile(r"[a-z]+:|\$\{\w+\}")
_SIZE = re.compile(r"(\d{1,6}(?:\.\d+)?) ?(MiB|GiB|TiB)")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_ENVIRONMENT = {
    "theme": "PPO_TUI_THEME",
    "mouse": "PPO_TUI_MOUSE",
    "ascii": "PPO_TUI_ASCII",
    "animations": "TEXTUAL_ANIMATIONS",
}
_THEME = re.compile(r"^theme:[^#\n]*?(?=[ \t]*(?:#|$))", re.MULTILINE)
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Key:
    """The user's `keys:`: the keys of a binding, and their place in config.yaml."""

    keys: str
    place: str


@dataclass(frozen=True)
class Keep:
    """The user's `keep:`: the newest runs, and bytes of all checkpoints; None for no limit."""

    runs: int | None = None
    checkpoints: int | None = None


@dataclass(frozen=True)
class Price:
    """The user's `gpu_price_per_hour:`."""

    amount: float
    currency: str = ""


@dataclass(frozen=True)
class Assistant:
    """The user's `assistant:`: a command, or an endpoint's URL with its model. `key_env` names a variable."""

    command: tuple[str, ...] = ()
    url: str = ""
    model: str = ""
    key_env: str = ""

    @property
    def name(self) -> str:
        """The program, or the model."""
        return Path(self.command[0]).name if self.command else self.model

    @property
    def to(self) -> str:
        """The destination of a text: the command line, or the model and its URL."""
        return shlex.join(self.command) if self.command else f"{self.model} at {self.url}"


@dataclass(frozen=True)
class Settings:
    """Looks and behavior of the screen. `theme_place`: the source of the theme."""

    theme: str | None = None
    theme_place: str = "--theme"
    mouse: bool = True
    ascii: bool = False
    animations: Animations = "none"
    keys: Mapping[str, Key] = field(default_factory=dict)


def read(asked: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """The effective settings. `asked`: the command line, with None for missing options.

    Raises UserError for a value that is not allowed, with file, line and key, or the variable.
    """
    environment = os.environ if environment is None else environment
    values = _given(asked, environment)
    theme, theme_place = values.get("theme", (None, "--theme"))
    if theme is not None and not isinstance(theme, str):
        raise UserError(f"{theme_place}: {clean(repr(theme))} is not a valid theme name")
    return Settings(
        theme=theme,
        theme_place=theme_place,
        mouse=_flag(values, "mouse", default=not over_ssh(environment)),
        ascii=_flag(values, "ascii", default=environment.get("TERM") == "linux" or not _utf8()),
        animations=_animations(values),
        keys=values["keys"][0] if "keys" in values else {},
    )


def in_force(asked: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Every setting as text, with its source. Raises UserError as `read` does."""
    screen, values = read(asked), _given(asked, os.environ)
    defaults = {"trace": True, "max_cpu_runs": 1, "max_console_size": f"{CONSOLE_SIZE >> 30} GiB"}
    found = {**defaults, **{name: value for name, (value, _) in values.items()}}
    found |= {"theme": screen.theme or OUR_THEMES[0], "mouse": screen.mouse, "ascii": screen.ascii}
    found |= {"animations": screen.animations}
    return {name: (_text(found.get(name)), values[name][1] if name in values else "default") for name in _NAMES}


def _text(value: object) -> str:
    """A setting in one line; for a mapping only the names, because the values of `alerts` are secrets."""
    if isinstance(value, (Mapping, list)):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _given(asked: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """The settings with other than default values, each with its source."""
    values = _file(settings_file())
    for name, variable in _ENVIRONMENT.items():
        if environment.get(variable):
            values[name] = (environment[variable], variable)
    return values | {name: (value, f"--{name}") for name, value in asked.items() if value is not None}


def in_environment(asked: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables that give our other processes the settings of `read(asked)`."""
    return {_ENVIRONMENT[name]: str(value).lower() for name, value in asked.items() if value is not None}


def over_ssh(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is at the other end of an ssh connection."""
    return any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"))


def max_cpu_runs() -> int:
    """Maximum number of runs without a GPU that the queue starts at once. Raises UserError as `read` does."""
    value, place = _file(settings_file()).get("max_cpu_runs", (1, ""))
    if type(value) is not int or not 1 <= value <= 64:
        raise UserError(f"{place}: {clean(repr(value))} is not allowed", "use a number from 1 to 64")
    return value


def max_console_size() -> int:
    """Maximum bytes of an attempt's console on disk. Raises UserError as `read` does."""
    value, place = _file(settings_file()).get("max_console_size", (f"{CONSOLE_SIZE >> 30} GiB", ""))
    match = _SIZE.fullmatch(str(value).strip())
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < _UNITS["MiB"]:
        raise UserError(f"{place}: {clean(repr(value))} is not allowed", "use a size such as '500 MiB', at least 1 MiB")
    return size


def trace() -> bool:
    """Whether new runs record spans of their processes. Raises UserError as `read` does."""
    return _flag(_file(settings_file()), "trace", default=True)


def read_keep() -> Keep | None:
    """The runs and checkpoints to keep; None if config.yaml has no limit. Raises UserError."""
    if "keep" not in (values := _file(settings_file())):
        return None
    value, place = values["keep"]
    match = _KEEP.fullmatch(str(value).strip())
    if match is None or not match[0]:
        wrong = clean(repr(value))
        raise UserError(f"{place}: {wrong} is not allowed", "use a text such as '50 runs, 20 GiB of checkpoints'")
    size = int(float(match[2]) * _UNITS[match[3]]) if match[2] else None
    return Keep(int(match[1]) if match[1] else None, size)


def read_price() -> Price | None:
    """The price per GPU hour; None if config.yaml has none. Raises UserError."""
    if "gpu_price_per_hour" not in (values := _file(settings_file())):
        return None
    value, place = values["gpu_price_per_hour"]
    match = _PRICE.fullmatch(str(value).strip())
    if match is None:
        raise UserError(f"{place}: {clean(repr(value))} is not allowed", "use a text such as '2.50 EUR'")
    return Price(float(match[1]), match[2] or "")


def read_hosts() -> dict[str, str | None]:
    """The other machines in config.yaml, each with the path of its ppo-tui, if given. Raises UserError."""
    value, place = _file(settings_file()).get("hosts", (None, ""))
    if isinstance(value, list):
        value = dict.fromkeys(value)
    if not isinstance(value, Mapping) and value is not None:
        raise UserError(f"{place}: not a mapping of hosts to the ppo-tui there")
    return {str(host): None if command is None else str(command) for host, command in (value or {}).items()}


def read_clusters() -> list[str]:
    """The addresses of Ray dashboards in config.yaml. Raises UserError."""
    value, place = _file(settings_file()).get("clusters", (None, ""))
    if not isinstance(value, list) and value is not None:
        raise UserError(f"{place}: not a list of Ray dashboards, such as [head:8265]")
    return [str(address) for address in value or ()]


def read_alerts() -> dict[str, str]:
    """The alert targets in config.yaml, by name. Raises UserError."""
    value, place = _file(settings_file()).get("alerts", (None, ""))
    if value is None:
        return {}
    hint = "write a line such as phone: ntfys://ntfy.sh/my-runs"
    if not isinstance(value, Mapping):
        raise UserError(f"{place}: not a mapping of names to addresses", hint)
    for name, url in value.items():
        if not _ADDRESS.match(str(url)):
            raise UserError(f"{place}: {clean(str(name))}: {clean(str(url))!r} is not an address", hint)
    return {str(name): str(url) for name, url in value.items()}


def read_assistant() -> Assistant:
    """The assistant in config.yaml. Raises UserError, also without one."""
    form = "assistant: {command: [PROGRAM]} or assistant: {url: https://HOST/v1, model: NAME, key_env: VARIABLE}"
    value, place = _file(settings_file()).get("assistant", (None, ""))
    if value is None:
        raise UserError(f"there is no assistant in {settings_file()}", f"add a line: {form}")
    given = dict(value) if isinstance(value, Mapping) else {}
    words = given.pop("command", None)
    command = tuple(words) if isinstance(words, list) else ()
    texts = all(isinstance(each, str) and each for each in (*command, *given.values()))
    needs = {"url", "model"} if words is None else set()
    if not texts or not needs <= given.keys() <= needs | {"key_env"} or not (needs or command):
        raise UserError(f"{place}: not a command, nor a url with its model", form)
    found = Assistant(command, **given)
    address = urlsplit(found.url)
    safe = address.scheme == "https" or (address.scheme == "http" and _loopback(address.hostname))
    if needs and (not safe or "@" in address.netloc):
        hint = "use https without a login in the URL, or a port of this machine: ssh -L 8000:localhost:8000 HOST"
        raise UserError(f"{place}: this url is not safe: {without_login(found.url)}", hint)
    return found


def keep_theme(name: str) -> None:
    """Writes the theme into config.yaml; all other lines stay. Raises UserError, OSError."""
    path = settings_file()
    text = obeyed(path).read_text("utf-8") if path.exists() else ""
    line = f"theme: {name}"
    text, replaced = _THEME.subn(line, text, count=1)
    if not replaced:
        text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    make_folder(path.parent)
    write_atomic(path, text.encode())


def _file(path: Path) -> dict[str, tuple[Any, str]]:
    """The settings of a file, each with its place; empty without a file."""
    if not path.exists():
        return {}
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        text = obeyed(path).read_text(encoding="utf-8")
        content = YAML().load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(
            f"{path}, line {line}: invalid YAML: {clean(str(error.problem))}", mending(text, error)
        ) from None
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise of_file(f"cannot read {path}", error) from None
    if content is None:
        return {}
    if not isinstance(content, CommentedMap):
        raise UserError(f"{path}: not a mapping of settings", f"the settings are {', '.join(_NAMES)}")
    values: dict[str, tuple[Any, str]] = {}
    for written, value in content.items():
        line = f"{path}, line {content.lc.key(written)[0] + 1}"
        name, place = str(written), f"{line}: {clean(str(written))}"
        if name not in _NAMES:
            about = {row: text["about"] for row, text in tables_of(__file__, "reference.toml")["setting"].items()}
            raise UserError(f"{place}: unknown setting", near_hint(name, about, f"use one of {', '.join(about)}"))
        if name != "keys":
            values[name] = (value, place)
        elif value is not None:
            if not isinstance(value, CommentedMap):
                raise UserError(f"{place}: not a mapping of ids to keys", "`ppo-tui config keys` prints the ids")
            lines = {id: f"{path}, line {value.lc.key(id)[0] + 1}: keys: {clean(str(id))}" for id in value}
            values[name] = ({str(id): Key(str(keys), lines[id]) for id, keys in value.items()}, place)
    return values


def _flag(values: Mapping[str, tuple[Any, str]], name: str, *, default: bool) -> bool:
    value, place = values.get(name, (default, ""))
    if isinstance(value, str):
        value = _WORDS.get(value.lower(), value)
    if not isinstance(value, bool):
        raise UserError(f"{place}: {clean(str(value))!r} is not allowed", "use true or false")
    return value


def _loopback(host: str | None) -> bool:
    """Whether a URL's host is this machine."""
    with contextlib.suppress(ValueError):
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    return False


def _utf8() -> bool:
    """Whether the terminal displays UTF-8, by its locale."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def _animations(values: Mapping[str, tuple[Any, str]]) -> Animations:
    value, place = values.get("animations", ("none", ""))
    for known in ANIMATIONS:
        if str(value).lower() == known:
            return known
    raise UserError(f"{place}: {clean(str(value))!r} is not allowed", f"use one of {', '.join(ANIMATIONS)}")
