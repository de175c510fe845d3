"""Random keys, bursts, pastes and clicks on every page and dialog, over recorded runs in a separate home.

Nothing is started: the interpreter for the screen's processes is a script that ends at once.
"""

import json
import os
import random
import shutil
import string
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import orjson
from every_screen import MAKERS, ROADS, walk
from pilots import picture, until
from textual.events import Key, MouseDown, MouseUp, Paste
from whole_run import whole_run

from launcher.cli.screen import ScreenRequest
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.state import stored
from launcher.runs.act.import_logs import import_logs
from launcher.runs.act.queue_runner import add
from launcher.runs.act.start import Plan
from launcher.verl import env as verl_env
from tui import app as app_module
from tui.app import PpoTui
from tui.kit.keys import KEYS

LOGS = Path(__file__).parents[1] / "data" / "logs"
SIZES = ((20, 5), (80, 24), (160, 48))
PAGES = (*ROADS, *MAKERS)
NAMED = ("enter", "escape", "tab", "shift+tab", "backspace", "delete", "up", "down", "left", "right", "home", "end")
OTHERS = ("pageup", "pagedown", "f2", "space", "ctrl+u", "ctrl+d", "ctrl+r", "ctrl+p", "ctrl+c", "ctrl+a", "f1")
OURS = sorted({key for bindings in KEYS.values() for each in bindings for key in each.key.split(",")} - {"ctrl+z"})
SIGNS = {"slash": "/", "colon": ":", "question_mark": "?", "number_sign": "#", "minus": "-", "plus": "+", "space": " "}
SIGNS |= {"percent_sign": "%", "exclamation_mark": "!", "comma": ",", "full_stop": ".", "ampersand": "&"}
SIGNS |= {"asterisk": "*", "left_square_bracket": "[", "right_square_bracket": "]", "equals_sign": "="}
COMMAND = "python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=32 actor_rollout_ref.actor.optim.lr=2e-6\n"
HOSTILE = ("", "\x1b[31m\x00\x07", "[bold", "漢字\u202e\n\n\n", "x" * 5000, "~nobody/x.sh", "a=b", "0", "/", "'")
SILENT: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
_STUB = """#!/bin/sh
case "$*" in
  *launcher.runs.supervise*) cp "{here}/failed.json" "$3/state.json";;
  -c*importlib.metadata*) cat "{here}/probe.json";;
  *) exit 1;;
esac
"""


@contextmanager
def harmless(folder: Path, probe: dict[str, Any] | None = None) -> Iterator[Path]:
    """A home with recorded runs for copying. The environment has no other home, no network, and no Python to start."""
    home, stub = folder / "home", folder / "python"
    home.mkdir()
    kept, python, here = dict(os.environ), sys.executable, Path.cwd()
    ask = [python, "-c", verl_env._PROBE.replace("{partners}", repr(verl_env.PARTNERS)), *verl_env.PACKAGES]
    facts = probe or json.loads(subprocess.run(ask, capture_output=True, check=True).stdout)
    (folder / "probe.json").write_text(json.dumps(facts))
    stub.write_text(_STUB.format(here=folder))
    stub.chmod(0o755)
    away = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    homes = {name: str(home) for name in ("HOME", "PPO_TUI_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    os.environ.update(away | homes | {"HF_HUB_OFFLINE": "1", "PPO_TUI_PYTHON": str(stub), "EDITOR": "true"})
    sleeper = subprocess.Popen(["sleep", "86400"], start_new_session=True, **SILENT)
    try:
        sys.executable = str(stub)
        os.chdir(home)
        _record(folder, home, sleeper.pid)
        yield home
    finally:
        sys.executable = python
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)
        sleeper.kill()
        sleeper.wait()


def _record(folder: Path, home: Path, pid: int) -> None:
    """Imported logs, an ended run, a live one with samples of two steps, a preset, a script, an entry of the queue."""
    import_logs([str(LOGS / f"{name}.log.gz") for name in ("fail-oom", "kl-blowup", "cpu-toy")])
    whole_run(home, "0ld111", "older", failed=False)
    run = whole_run(home, failed=False)
    ended, process = stored(run), ProcessId.of(pid)
    assert ended is not None
    replace(ended, state="failed", error="ended by the test", supervisor=process).write(folder / "failed.json")
    live = {"state": "running", "exit": None, "supervisor": process, "driver": process, "cause": None}
    replace(ended, **live).write(run.state)
    run.attempt(1).exit.unlink()
    answer = {"input": "1+1=", "output": "3", "gts": "2", "score": 0.0, "step": 6}
    (run.rollouts / "6.jsonl").write_bytes(orjson.dumps(answer) + b"\n")
    (home / "presets").mkdir()
    (home / "presets" / "mine.yaml").write_text("extends: toy-cpu\nactor:\n  lr: 2.0e-4\n")
    (home / "run.sh").write_text(COMMAND)
    add(Plan.of("mine"))


@dataclass
class Report:
    """The actions of a fuzz, and its failures, each with the keys that lead to it."""

    presses: int = 0
    quits: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)  # rounds that began on another page than meant


class Watched(PpoTui):
    """Records that it was left on purpose."""

    CSS_PATH: ClassVar[Any] = [Path(app_module.__file__).parent / str(path) for path in PpoTui.CSS_PATH or ()]
    left = False

    async def action_quit(self) -> None:
        self.left = True
        await super().action_quit()


async def fuzz(
    template: Path,
    folder: Path,
    presses: int,
    seed: int,
    report: Report,
    *,
    most: int = 100,
    only: str = "",
    first: int = 0,
) -> None:
    """Presses keys in rounds of `most`, from round `first` on.

    Each round is on another page, at another size, in a fresh copy of the home.
    """
    home, number, end = folder / "copy", first, report.presses + presses
    while report.presses < end:
        random_ = random.Random(f"{seed} {number}")
        page = only or PAGES[number % len(PAGES)]
        size = SIZES[(number // len(PAGES) + number) % len(SIZES)]
        shutil.rmtree(home, ignore_errors=True)  # a thread of the last round may still write there
        home = folder / f"copy{number}"
        shutil.copytree(template, home, symlinks=True)
        os.chdir(home)
        done: list[str] = []
        try:
            await _round(home, page, size, random_, min(most, end - report.presses), report, done)
        except (Exception, SystemExit) as error:
            report.wrong.append(f"{number} {page} {size}: {type(error).__name__}: {error}: {' '.join(done)}")
            print(f"seed {seed} {report.wrong[-1][:2000]}\n{traceback.format_exc(-6)}", flush=True)
        number += 1
        if number % 20 == 0:
            print(f"{report.presses} presses, {report.quits} quits, {len(report.wrong)} failures", flush=True)


async def _round(
    home: Path, page: str, size: tuple[int, int], random_: random.Random, presses: int, report: Report, done: list[str]
) -> None:
    os.environ["PPO_TUI_HOME"] = os.environ["HOME"] = str(home)
    app = Watched(ScreenRequest(run=str(RunDir(home / "runs" / "7f3a1c-toy-cpu").path)))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: getattr(app.screen, "reader", None) is not None)
        try:
            await walk(pilot, page, looks=100)
        except AssertionError:
            report.astray.append(f"{page} {size}: {type(app.screen).__name__}")
        begun = report.presses
        while report.presses - begun < presses and not app.left:
            names = _act(app, random_)
            done.extend(names)
            report.presses += len(names)
            if random_.random() < 0.8:
                await pilot.pause(random_.choice((0, 0, 0.02, 0.1)))
            report.seen[type(app.screen).__name__] += 1
            assert app._exception is None, f"it failed: {app._exception!r}"
            assert app.left or app.is_running, f"it ended on {type(app.screen).__name__}"
            assert len(app.screen_stack) > 1, "no page is left"
        if not app.left:
            await until(pilot, lambda: any(line.strip() for line in picture(app)))  # a page may be opening
        report.quits += app.left


def _act(app: PpoTui, random_: random.Random) -> list[str]:
    """A random action of a person, a cat or a slow line; returns its keys, which are all sent before the first is
    handled.
    """
    chance = random_.random()
    if chance < 0.08:
        home = Path.cwd()
        text = random_.choice((COMMAND, str(home / "run.sh"), str(LOGS / "nan.log.gz"), *HOSTILE))
        app.post_message(Paste(text))
        return [f"paste:{text[:12]!r}"]
    if chance < 0.14:
        return _click(app, random_)
    if chance < 0.4:
        names = [_key(app, random_)] * random_.randint(2, 5)
    elif chance < 0.6:
        names = [_key(app, random_) for _ in range(random_.randint(2, 6))]
    else:
        names = [_key(app, random_)]
    for name in names:
        character = SIGNS.get(name) or (name if len(name) == 1 else None)
        app.post_message(Key(name, character))
    return names


def _key(app: PpoTui, random_: random.Random) -> str:
    chance = random_.random()
    if (
        chance < 0.45
        and app.screen.is_mounted
        and (here := [key for key in app.screen.active_bindings if key not in ("ctrl+q", "ctrl+z")])
    ):
        return random_.choice(here)
    if chance < 0.65:
        return random_.choice(OURS)
    if chance < 0.85:
        return random_.choice(NAMED)
    return random_.choice((*OTHERS, *string.ascii_letters, *string.digits))


def _click(app: PpoTui, random_: random.Random) -> list[str]:
    x, y = random_.randrange(app.size.width), random_.randrange(app.size.height)
    for kind in (MouseDown, MouseUp):
        app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
    return [f"click:{x},{y}"]
