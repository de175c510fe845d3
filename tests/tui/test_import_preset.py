"""A preset made of a pasted command or a script, from the list."""

import pytest
from textual.events import Paste
from textual.widgets import TextArea

from launcher.preset.files import load, users

COMMAND = """python3 -m verl.trainer.main_ppo \\
  data.train_batch_size=32 actor_rollout_ref.actor.optim.lr=2e-6 \\
  trainer.n_gpus_per_node=1 actor_rollout_ref.rollout.tensor_model_parallel_size=1
"""


async def asked(user, text):
    """Opens the question and pastes a text into it."""
    await user("RunsScreen", "i", "PasteScreen")
    user.one("TextArea").insert(text)
    await user(lambda: user.one("TextArea").text == text)


def dialog(user):
    return " ".join(str(each.content) for each in user.screen.query("Static"))


def wrong(user):
    return str(user.one("#wrong").content)


async def test_a_pasted_command_and_a_script_become_presets_and_are_opened(make, home, tmp_path):
    (tmp_path / "mine.sh").write_text(COMMAND)
    async with make.open(size=(20, 5)) as user:
        await asked(user, COMMAND)  # the smallest terminal can ask
        await user.resize_terminal(80, 24)
        for text, name in ((COMMAND, "imported"), (f"{tmp_path}/mine.sh", "mine")):
            if name == "mine":
                await asked(user, text)
            await user("f2", "AskScreen", "enter", "EditorScreen")
            found = load(name).preset
            assert found.actor.lr == 2e-6 and found.data.train_batch_size == 32
            await user("escape", "RunsScreen")
        await asked(user, "")
        user.app.post_message(Paste(COMMAND))  # a slow line may bring a paste and the key behind it at once
        user.app.simulate_key("f2")
        await user("AskScreen")


@pytest.mark.parametrize(("key", "seed"), [("j", 7), ("s", None)])
async def test_a_command_is_joined_over_its_comment(make, home, tmp_path, key, seed):
    names = [f"+a.very_long_name_of_a_setting_{number}=1" for number in range(17)]
    below = " \\\n  ".join(["data.seed=7", *names])
    (tmp_path / "mine.sh").write_text(f"{COMMAND.rstrip()} \\\n  # algorithm=ppo \\\n  {below}\n")
    async with make.open() as user:
        await asked(user, f"{tmp_path}/mine.sh")
        await user("f2", "ChooseScreen")
        said = str(user.one("#details Static").render())
        assert "data.seed=7" in said and all(each in said for each in names)
        await user(key, "AskScreen", "enter", "EditorScreen")
        assert load("mine").preset.data.seed == seed


async def test_what_would_train_differently_is_asked_about(make, home, tmp_path):
    (tmp_path / "mine.sh").write_text(f"{COMMAND.rstrip()} data.seed=$SEED trainer.nnodes=$(nproc)\n")
    async with make.open() as user:
        for key, after in (("n", ["RunsScreen"]), ("y", ["AskScreen", "enter", lambda: "mine" in users()])):
            await asked(user, f"{tmp_path}/mine.sh SEED=7")
            await user("f2", "ConfirmScreen")
            assert "trainer.nnodes is known only when the script runs: $(nproc)" in dialog(user)
            assert "SEED" not in dialog(user)
            await user(key, *after)
        assert load("mine").preset.data.seed == 7


async def test_what_is_no_command_is_refused_and_kept_until_the_text_is_another(make, home, tmp_path):
    (tmp_path / "mine.sh").write_text(COMMAND)
    async with make.open() as user:
        await asked(user, "pip install verl")
        screen, area = user.screen, user.one("TextArea")
        await user("f2", lambda: "no veRL overrides" in wrong(user))
        screen.post_message(TextArea.Changed(area))  # that of the paste, late
        await user()
        assert "no veRL overrides" in wrong(user) and area.text == "pip install verl"
        area.insert("x")
        await user(lambda: not wrong(user), "escape", "RunsScreen")
        assert not users()
        await asked(user, f"{tmp_path}/mime.sh")
        await user("f2", lambda: "mime.sh; did you mean 'mine.sh'?" in wrong(user))


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


async def test_a_pasted_thread_is_explained_its_command_imported_and_its_log_a_run(make, home, tmp_path):
    async with make.open() as user:
        for name in ("thread.md", "mail.txt", "thread", ""):
            if name:
                (tmp_path / name).write_text(THREAD)
            await asked(user, str(tmp_path / name) if name else THREAD)
            await user("f2", "ChooseScreen")
            assert "flash-attn-missing" in dialog(user) and "vllm 0.8.2 in the text" in dialog(user)
            if name:
                await user("escape", "escape", "escape")
        line = THREAD[: THREAD.index("ModuleNotFound")].count("\n") + 1
        assert f"line {line}:" in dialog(user) and "hf_AbC" not in dialog(user)
        await user("p", "AskScreen", "enter", "EditorScreen")
        assert load("imported").preset.data.train_batch_size == 48
        await user(lambda: "temperature" in user.message, "escape")
        assert "hf_AbC" not in "".join(path.read_text() for path in home.rglob("*.yaml"))
        await asked(user, THREAD)
        await user("f2", "ChooseScreen", "b", "PasteScreen", "f2", "ChooseScreen", "r")
        await user(lambda: any("flash_attn" in path.read_text() for path in home.rglob("console.log")))
        assert "hf_AbC" not in next(home.rglob("console.log")).read_text()
