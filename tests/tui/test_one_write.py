"""Keys that arrive in one write, as over a slow link: every input of every page and dialog gets all of them."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from terminal import Terminal

import tui
from launcher.preset.files import load
from launcher.record.layout import RunDir
from launcher.runs.watch.checkpoints import TRACKER
from tui.entry import main

PPO_TUI = [sys.executable, "-c", f"from {main.__module__} import main; main()"]
SNAPSHOT = load("toy-cpu").snapshot()
MINE = "extends: toy-cpu\ndata:\n  train_batch_size: 64\n"
CLEAR, DOWN, F2, ESC = "\x15", "\x1b[B", "\x1bOQ", "\x1b"
ASKS = ("AskScreen", "Input", "PasteScreen", "Palette", "ask_and_do", "_Area")  # calls that make an input


class Burst(NamedTuple):
    """One write and what comes of it: words on the screen, none of others, or a file of the home with a text.

    `makes` are the functions whose inputs get the keys; `back` are keys that lead back, each in a write of its own.
    """

    keys: str
    makes: tuple[str, ...]
    shows: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    file: str = ""
    holds: str = ""
    back: int = 0


ASK = ("dialogs.ask.compose",)
LIST = (
    Burst(f"an{CLEAR}#fast it learned\r", (*ASK, "run_actions.note_run"), file="note", holds="it learned"),
    Burst(f"ae{CLEAR}HOME/of-list.csv\r", (*ASK, "run_actions.export_run"), file="of-list.csv"),
    Burst(f"ah{CLEAR}HOME/of-list.html\r", (*ASK, "run_actions._written"), file="of-list.html"),
    Burst("/mine\r", ("runs.screen.compose",), ("mine",), ("gsm8k",), back=1),
    Burst(f"/mine\ry{CLEAR}copied\r", ("preset_actions.copy_preset",), file="presets/copied.yaml", back=1),
    Burst(f"/copied\r{F2}{CLEAR}renamed\r", ("preset_actions.rename_preset",), file="presets/renamed.yaml", back=1),
    Burst(
        f"iHOME/script.sh\r{CLEAR}imported\r",
        ("dialogs.paste.compose", "pasting.import_anything", "preset_actions.import_preset"),
        ("Edit imported",),
        file="presets/imported.yaml",
        back=1,
    ),
    Burst(":theme\rdracula\r", ("app.action_command_palette", "app.search_themes"), file="config.yaml"),
)
RUN = (
    Burst("#7\r", (*ASK, "charted._ask_step"), ("step 7 ",)),
    Burst(f"an{CLEAR}it forgot\r", (*ASK, "run_actions.note_run"), file="note", holds="it forgot"),
    Burst(f"ae{CLEAR}HOME/of-run.csv\r", (*ASK, "run_actions.export_run"), file="of-run.csv"),
    Burst(f"ab{CLEAR}HOME/of-run.zip\r", (*ASK, "run_actions._written"), file="of-run.zip"),
    Burst(f"af{CLEAR}99 actor.lr=1\r", ("checkpoints._from_step",), ("Fork ", "99 actor.lr=1"), back=1),
    Burst(f"av{CLEAR}98\r", ("checkpoints._ask_step",), ("Evaluate ", "98"), back=1),
    Burst("m/kl_loss\r", ("metrics.screen.body",), ("actor/kl_loss",), ("actor/entropy",), back=2),
    Burst("l/Saving\r", ("log.screen.body",), ("with 'Saving'",), back=1),
    Burst("l#:2\r", ("log.screen.body",), ("line 2",), back=1),
    Burst("s/7\r", ("samples.screen.body",), ("· /7",), back=2),
)
EDITOR = (
    Burst(f"/train_batch\r\r{CLEAR}512\rw", ("editor.screen.compose",), file="mine", holds="train_batch_size: 512"),
    Burst("\r256\rw", ("value_box.compose",), file="mine", holds="train_batch_size: 256"),
    Burst("\r77", ("value_box.compose",), ("was 256", "77"), back=1),
    Burst("aaenv.WORD\rspoken\rw", ("value_box.compose",), file="mine", holds="WORD: spoken"),
    Burst(f"ar{CLEAR}dapo\rw", ("value_box.compose",), file="mine", holds="recipe: dapo"),
    Burst(f"aw{CLEAR}other\r", ("preset_saving.save_as",), file="presets/other.yaml"),
)
PLACES = {  # words of the command, those that are on the screen when all is read, and what is written then
    "list": ([], "mine", LIST),
    "run": (["attach", "7f3a1c-toy-cpu"], "finished", RUN),
    "editor": (["preset", "edit", "mine"], "train_batch_size", EDITOR),
}


def inputs():
    """The functions of the screen that make an input, as the end of their module and their name."""
    root = Path(tui.__path__[0])
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts[-2:])
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = [each.func for each in ast.walk(function) if isinstance(each, ast.Call)]
                if {getattr(called, "id", "") for called in calls} & set(ASKS):
                    yield f"{module}.{function.name}"


def test_every_input_is_here():
    tested = {made for *_, bursts in PLACES.values() for burst in bursts for made in burst.makes}
    there = set(inputs()) - {"dialogs.ask.ask_and_do"}  # which makes the dialog of those that call it
    missing = [each for each in there if not any(each.endswith(name) for name in tested)]
    assert there and not missing, missing


@pytest.fixture(params=[0, pytest.param(2, marks=pytest.mark.nightly("tui/"))], ids=["idle", "loaded"])
def load(request):
    """Busy loops next to the screen."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(request.param)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.nightly("tui/", every=3)
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("place", PLACES)
def test_no_key_of_one_write_is_lost(make, home, place):
    """Next to a run with a checkpoint, a preset and a script."""
    run = RunDir(make.run(attempts=[make.recorded(20)], state=make.ended("finished"), log=make.log, preset=SNAPSHOT))
    (run.checkpoints / "global_step_20" / "actor").mkdir(parents=True)
    (run.checkpoints / TRACKER).write_text("20")
    make.write_responses(run)
    (home / "presets").mkdir()
    (home / "presets" / "mine.yaml").write_text(MINE)
    (home / "script.sh").write_text("python3 -m verl.trainer.main_ppo \\\n  data.train_batch_size=32\n")
    files = {"note": run.note, "mine": home / "presets" / "mine.yaml"}
    words, first, bursts = PLACES[place]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL_", "SSH_"))}
    screen = Terminal([*PPO_TUI, *words], {**env, "PPO_TUI_HOME": str(home)}, 120, 36)

    def came_true(text):
        """Whether all of a burst has arrived."""
        file = files.get(burst.file, home / burst.file)
        stored = not burst.file or (file.exists() and (not burst.holds or burst.holds in file.read_text()))
        return stored and all(word in text for word in burst.shows) and not any(word in text for word in burst.lacks)

    try:
        screen.wait_for(lambda text: first in text)
        for burst in bursts:
            screen.send(burst.keys.replace("HOME", str(home)))
            screen.wait_for(came_true)
            for _ in range(burst.back):
                before = screen.text()
                screen.send(ESC)
                screen.wait_for(lambda text, before=before: text != before)
    finally:
        screen.close()
