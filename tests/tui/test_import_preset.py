"""A preset made of a pasted command or a script, from the list."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import message, until
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Static, TextArea

from launcher.preset.files import load, users
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ChooseScreen, ConfirmScreen
from tui.kit.dialogs.paste import PasteScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.runs.screen import RunsScreen

HOME = (80, 24)
COMMAND = """python3 -m verl.trainer.main_ppo \\
  data.train_batch_size=32 actor_rollout_ref.actor.optim.lr=2e-6 \\
  trainer.n_gpus_per_node=1 actor_rollout_ref.rollout.tensor_model_parallel_size=1
"""


async def asked(pilot: Pilot[Any], text: str) -> None:
    """Opens the question and pastes a text into it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
    await pilot.press("i")
    await until(pilot, lambda: isinstance(pilot.app.screen, PasteScreen))
    area = pilot.app.screen.query_one(TextArea)
    area.insert(text)
    await until(pilot, lambda: area.text == text)


async def test_a_pasted_command_becomes_a_preset_and_is_opened(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, COMMAND)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        assert load("imported").preset.actor.lr == 2e-6
        assert load("imported").preset.data.train_batch_size == 32


async def test_a_script_is_named_by_its_path(make: SimpleNamespace, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text(COMMAND)
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, f"{tmp_path}/mine.sh")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen) and pilot.app.screen.is_mounted)
        assert "mine" in users()


@pytest.mark.parametrize(("key", "seed"), [("j", 7), ("s", None)])
async def test_a_command_is_joined_over_its_comment(
    make: SimpleNamespace, home: Path, tmp_path: Path, key: str, seed: int | None
) -> None:
    names = [f"+a.very_long_name_of_a_setting_{number}=1" for number in range(17)]
    below = " \\\n  ".join(["data.seed=7", *names])
    (tmp_path / "mine.sh").write_text(f"{COMMAND.rstrip()} \\\n  # algorithm=ppo \\\n  {below}\n")
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, f"{tmp_path}/mine.sh")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        said = str(pilot.app.screen.query_one("#details Static", Static).render())
        assert "data.seed=7" in said and all(each in said for each in names)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen) and pilot.app.screen.is_mounted)
        assert load("mine").preset.data.seed == seed


async def test_what_would_train_differently_is_asked_about(make: SimpleNamespace, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text(f"{COMMAND.rstrip()} data.seed=$SEED trainer.nnodes=$(nproc)\n")
    async with make.app().run_test(size=HOME) as pilot:
        for key, made in (("n", False), ("y", True)):
            await asked(pilot, f"{tmp_path}/mine.sh SEED=7")
            await pilot.press("f2")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            shown = " ".join(str(each.content) for each in pilot.app.screen.query(Static))
            assert "trainer.nnodes is known only when the script runs: $(nproc)" in shown and "SEED" not in shown
            await pilot.press(key)
            if made:
                await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
                await pilot.press("enter")
                await until(pilot, lambda: "mine" in users())
            else:
                await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        assert load("mine").preset.data.seed == 7


async def test_what_is_no_command_is_refused_and_kept(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, "pip install verl")
        await pilot.press("f2")
        said = pilot.app.screen.query_one("#wrong", Static)
        await until(pilot, lambda: "no veRL overrides" in str(said.content))
        assert pilot.app.screen.query_one(TextArea).text == "pip install verl"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        assert not users()


async def test_a_path_that_leads_nowhere_is_named(make: SimpleNamespace, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.sh").write_text(COMMAND)
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, f"{tmp_path}/mime.sh")
        await pilot.press("f2")
        said = pilot.app.screen.query_one("#wrong", Static)
        await until(pilot, lambda: "mime.sh; did you mean 'mine.sh'?" in str(said.content))


async def test_a_refusal_stays_until_the_text_is_another(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, "pip install verl")
        screen, said = pilot.app.screen, pilot.app.screen.query_one("#wrong", Static)
        area = screen.query_one(TextArea)
        await pilot.press("f2")
        screen.post_message(TextArea.Changed(area))  # that of the paste, late
        await pilot.pause()
        assert "no veRL overrides" in str(said.content)
        area.insert("x")
        await until(pilot, lambda: not str(said.content))


async def test_going_on_waits_for_what_was_typed_before(make: SimpleNamespace, home: Path) -> None:
    """A slow line may bring a paste and the key behind it at once."""
    async with make.app().run_test(size=HOME) as pilot:
        await asked(pilot, "")
        assert isinstance(pilot.app.screen, PasteScreen)
        pilot.app.post_message(Paste(COMMAND))
        pilot.app.simulate_key("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))


async def test_the_smallest_terminal_can_ask(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=(20, 5)) as pilot:
        await asked(pilot, COMMAND)


THREAD = """### My run dies

I don't see why. My command:

```bash
export HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345
python3 -m verl.trainer.main_ppo data.train_batch_size=48 trainer.n_gpus_per_node=1 \\
  actor_rollout_ref.rollout.temprature=0.7
```

vllm==0.8.2

```
Error executing job with overrides: ['data.train_batch_size=48', 'trainer.n_gpus_per_node=1']
Traceback (most recent call last):
  File "/x/verl/trainer/main_ppo.py", line 96, in run_ppo
ModuleNotFoundError: No module named 'flash_attn'
hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345
```
"""


async def explained(pilot: Pilot[Any], text: str = THREAD) -> str:
    """Pastes the thread, or the path of a file with it, and returns the words of the dialog about it."""
    await asked(pilot, text)
    await pilot.press("f2")
    await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
    return " ".join(str(each.content) for each in pilot.app.screen.query(Static))


async def test_a_pasted_thread_is_explained_and_its_command_imported(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        shown = await explained(pilot)
        line = THREAD[: THREAD.index("ModuleNotFound")].count("\n") + 1
        assert "flash-attn-missing" in shown and f"line {line}:" in shown and "vllm 0.8.2 in the text" in shown
        assert "hf_AbC" not in shown
        await pilot.press("p")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        assert load("imported").preset.data.train_batch_size == 48
        await until(pilot, lambda: "temperature" in message(pilot.app))
    assert "hf_AbC" not in "".join(path.read_text() for path in home.rglob("*.yaml"))


async def test_the_log_of_a_pasted_thread_becomes_a_run(make: SimpleNamespace, home: Path) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        await explained(pilot)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(pilot.app.screen, PasteScreen))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("r")
        await until(pilot, lambda: any(home.rglob("console.log")))
        log = next(home.rglob("console.log"))
        await until(pilot, lambda: "flash_attn" in log.read_text())
        assert "hf_AbC" not in log.read_text()


@pytest.mark.parametrize("name", ["thread.md", "mail.txt", "thread"])
async def test_the_path_of_a_thread_is_explained_like_its_text(
    make: SimpleNamespace, home: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(THREAD)
    async with make.app().run_test(size=HOME) as pilot:
        shown = await explained(pilot, str(tmp_path / name))
        assert "flash-attn-missing" in shown and "vllm 0.8.2 in the text" in shown
