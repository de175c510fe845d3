"""What all tests share."""

import fcntl
import gc
import inspect
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from nightly import changed, due
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from waiting import PATIENCE

# No test is timed, neither by a deadline nor by how long an example takes to make: a busy machine is not a defect.
# Examples are the same each time, so that what fails is the change; `--hypothesis-profile=search` looks for new ones.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("test", _UNTIMED, derandomize=True, max_examples=40)
settings.register_profile("check", _UNTIMED, derandomize=True, max_examples=15)
settings.register_profile("search", _UNTIMED, max_examples=2000, print_blob=True)
settings.load_profile("test")

# Starting a program, importing torch or drawing a whole screen takes a second of CPU; everything else a hundredth.
_SLOW_FIXTURES = {"ppo_tui", "verl", "terminals", "tmux", "snap_compare"}
_TURNS = ("e2e", "xdist_group", "slow")
# Ray gives its workers niceness 15: beside the tests of the other workers, a toy run would make no progress
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nightly", choices=["all", "changed"], default="all", help="tests marked nightly: those of changed inputs?"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what `make check` leaves to `make test`; single tests are marked where they stand.

    With `--nightly changed`, tests marked nightly are left out where none of their inputs changed. They run in the
    order of _TURNS: where the quick ones come last, no worker waits for another at the end.
    """
    for item in items:
        assert isinstance(item, pytest.Function)
        if inspect.iscoroutinefunction(item.function) or _SLOW_FIXTURES & set(item.fixturenames):
            item.add_marker("slow")
    if config.getoption("nightly") == "changed":
        cases = Counter[str]()
        kept = [item for item in items if _is_due(item, cases)]
        config.hook.pytest_deselected(items=list({*items} - {*kept}))
        items[:] = kept
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in _TURNS])


def _is_due(item: pytest.Item, cases: Counter[str]) -> bool:
    """Whether a test runs where only some are asked for; `cases` counts those of each function."""
    mark, function = item.get_closest_marker("nightly"), item.nodeid.partition("[")[0]
    cases[function] += 1
    if mark is None or cases[function] % mark.kwargs.get("every", 1) == 1:
        return True
    return due((*mark.args, function.partition("::")[0]), changed())


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder of all workers of this session."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_home_of_the_users(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[None]:
    """Neither runs, settings, presets nor caches of whoever runs the tests; one cache for all workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PPO_TUI_HOME", raising=False)
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        patch.setenv("XDG_CACHE_HOME", str(shared))
        yield


@dataclass(frozen=True)
class ToyBuild:
    """The cache that the toy task was built in, and the lines of each process that asked for it."""

    cache: Path
    lines: list[list[str]]


@pytest.fixture(scope="session")
def toy_build(shared: Path) -> ToyBuild:
    """The toy task, built once for all tests of all workers that need it; two processes ask at the same time."""
    home, told = shared / "toy", shared / "toy.json"
    with (shared / "toy.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            patch.setenv("PPO_TUI_HOME", str(home))
            asked = [sys.executable, "-c", "from launcher.data import toy; print(toy.ensure(progress=print))"]
            both = [subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) for _ in range(2)]
            told.write_text(json.dumps([process.communicate(timeout=PATIENCE)[0].splitlines() for process in both]))
    return ToyBuild(home / "cache", json.loads(told.read_text()))


def pytest_configure() -> None:
    """A shell lets its background processes ignore SIGINT, and what they start does, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Stylesheet._parse_rules = _parsed_once(Stylesheet._parse_rules)  # type: ignore[method-assign]


def _parsed_once(parse: Callable[..., list[RuleSet]]) -> Callable[..., list[RuleSet]]:
    """Textual parses each style sheet again in each application, which is a twelfth of the screens' time."""
    known: dict[object, list[RuleSet]] = {}

    def parsed(sheet: Stylesheet, *given: Any, **named: Any) -> list[RuleSet]:
        key = given, *named.items(), *sheet._variables.items()
        return known[key] if key in known else known.setdefault(key, parse(sheet, *given, **named))

    return parsed


def pytest_collection_finish() -> None:
    """What is there by now stays: going through it again and again would be a fifth of the screens' time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
