"""What people paste: the commands, the log and the versions in it (tests/data/pasted)."""

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_script import SCRIPT
from ruamel.yaml import YAML

from launcher.check.checks import wrong_keys
from launcher.console.diagnose import diagnose
from launcher.core.errors import UserError
from launcher.preset.effective import of_draft
from launcher.preset.files import LoadedPreset, load_text
from launcher.runs.judge.pasted_text import explain
from launcher.scripts import pasted
from launcher.scripts.importer import add_script, from_script
from launcher.scripts.verl_command import Source
from launcher.verl import hydra, versions

DATA = Path(__file__).parents[1] / "data" / "pasted"
HERE = Path("/data/project")
# `learn` is what the rules were written against, `measure` was held back
CASES = [case for half in ("learn", "measure") for case in YAML(typ="safe").load(DATA / f"{half}.yaml")]


def outcome(case: dict[str, Any]) -> list[str]:
    """What of a case is not as expected."""
    wrong: list[str] = []
    said, text, preset = "", "", None
    try:
        path, found = add_script(Source(case["text"], HERE, args=tuple(case.get("args", ()))), "mine")
        text = path.read_text()
        said = "\n".join([*found.notes, *(f"{each.message} {each.fix}" for each in wrong_keys(str(path)))])
        preset = load_text(path, text)
    except UserError as error:
        said = str(error)
    if "refused" in case:
        wrong += [f"imported: {text}"] if preset else []
        wrong += [f"{case['refused']} not in: {said}"] if case["refused"] not in said else []
    elif preset is None:
        return [said]
    if preset is not None:
        wrong += list(differing(case, preset))
    wrong += [f"not said: {part}" for part in case.get("says", ()) if part not in said]
    read = pasted.read(case["text"])
    result = diagnose([read.log.encode()])
    if "cause" in case and result.cause != case["cause"]:
        wrong.append(f"cause {result.cause}: {result.title}")
    wrong += [
        f"{name} {read.versions.get(name)}, not {version}"
        for name, version in case.get("versions", {}).items()
        if read.versions.get(name) != version
    ]
    shown = f"{said}\n{text}\n{read.log}\n{result}"
    return wrong + [f"shown: {secret}" for secret in case.get("never", ()) if secret in shown]


def differing(case: dict[str, Any], loaded: LoadedPreset) -> Any:
    preset = loaded.preset
    config = of_draft(loaded.layer)
    for key, value in case.get("sets", {}).items():
        newest = versions.newest(key)
        held = config.get(newest, preset.overrides.get(newest, preset.overrides.get(f"+{newest}")))
        if held != value and hydra.parse(str(held)) != value and held != [value] and [held] != value:
            yield f"{key} is {held!r}, not {value!r}"
    for key in case.get("absent", ()):
        if config.source(versions.newest(key)) in ("field", "override"):
            yield f"{key} is set"
    for name, value in case.get("env", {}).items():
        if preset.env.get(name) != value:
            yield f"env {name} is {preset.env.get(name)!r}, not {value!r}"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_pasted_text_becomes_what_it_says(case: dict[str, Any]) -> None:
    assert not outcome(case)


SCRIPTS = {
    "tutorial": SCRIPT,
    "short": "export NCCL_DEBUG=INFO\npython -m verl.trainer.main_ppo data.train_batch_size=8 \\\n  trainer.nnodes=2\n",
    "arrays": 'A=(\n data.train_batch_size=8 # x\n\n  trainer.nnodes=2\n)\npython -m verl.trainer.main_ppo "${A[@]}"\n',
    "branches": "B=4\nif [ $B -gt 2 ]; then\n  N=3\nfi\npython -m verl.trainer.main_ppo trainer.nnodes=$N\n",
    "here": "cat <<EOF\nIt starts a run, don't wait for it\nEOF\npython -m verl.trainer.main_ppo trainer.nnodes=7\n",
    "quotes": "python -m verl.trainer.main_ppo trainer.nnodes=2 '+data.text=It is\n  a long text, with \"words\"'\n",
    "plus": "nohup python -m verl.trainer.main_ppo +trainer.x=1 trainer.nnodes=2 > a.log 2>&1 &\n",
}
PROMPTS = (
    "$ ",
    "(verl) $ ",
    "(base) ann@gpu-1:~/verl$ ",
    "root@3f2a:/workspace# ",
    "[ann@n1 verl]$ ",
    "❯ ",
    "a@mac % ",
)
SAID = ("Hi, it doesn't start, and I can't see why:", "Here's what I use", "这是我的脚本", "Thanks a lot for it!", "")


def preset_of(text: str) -> tuple[str, ...]:
    """The preset of a text without its comments."""
    found = from_script(Source(text, HERE), "mine", lossy=True)
    return tuple(line for line in found.text.splitlines() if not line.startswith("#"))


def fenced(script: str, draw: Any) -> str:
    sign = draw(st.sampled_from(["```", "~~~", "````"]))
    before, behind = draw(st.sampled_from(SAID)), draw(st.sampled_from(SAID))
    return f"{before}\n\n{sign}{draw(st.sampled_from(['', 'bash', 'sh', 'shell']))}\n{script}{sign}\n\n{behind}\n"


def quoted(script: str, draw: Any) -> str:
    mark = draw(st.sampled_from(["> ", "> > ", ">"]))
    return "".join(f"{mark}{line}\n" for line in script.rstrip("\n").split("\n"))


def prompted(script: str, draw: Any) -> str:
    """As an interactive shell shows it: a prompt before a command, `> ` before the lines that complete it."""
    prompt, lines, command = draw(st.sampled_from(PROMPTS)), [], ""
    for line in script.rstrip("\n").split("\n"):
        if command and unfinished(command):
            command += f"\n{line}"
            lines.append(f"> {line}")
        else:
            command = line
            lines.append(f"{prompt}{line}" if line else line)
    return "\n".join([*lines, draw(st.sampled_from(["", "bash: it's (broken", "[1] 4242"]))])


def unfinished(command: str) -> bool:
    """What bash says: a backslash at the end, or a syntax error that more text can mend."""
    if command.endswith("\\"):
        return True
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return "unexpected end of file" in done.stderr or "unexpected EOF" in done.stderr or "here-document" in done.stderr


def returns(script: str, draw: Any) -> str:
    return script.replace("\n", "\r\n")


COSTLY = pytest.mark.nightly("launcher/scripts/", "launcher/preset/", "launcher/verl/", "tests/support/own_script.py")


@pytest.mark.slow
@COSTLY
@pytest.mark.parametrize("name", SCRIPTS)
@given(data=st.data())
@settings(max_examples=25)
def test_a_wrapped_script_becomes_the_same_preset(name: str, data: st.DataObject) -> None:
    script = SCRIPTS[name]
    ways = data.draw(st.lists(st.sampled_from([fenced, quoted, returns]), max_size=2, unique=True))
    text = script
    if "#!" not in script and name != "tutorial" and data.draw(st.booleans()):
        text = prompted(text, data.draw) + "\n"
    for way in ways:
        text = way(text, data.draw)
    assert preset_of(text) == preset_of(script), text


@pytest.mark.slow
@COSTLY
@given(st.text(alphabet=st.sampled_from("`'\"$>\\\n #=+-[](){}|&;<ab.:~0“’")), st.sampled_from(sorted(SCRIPTS)))
@settings(max_examples=150)
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    for each in (text, f"{text}\n{SCRIPTS[name]}", f"Error executing job with overrides: [{text}"):
        pasted.read(each)
        with contextlib.suppress(UserError):
            from_script(Source(each, HERE), "mine", lossy=True)


def test_a_log_of_a_public_failure_has_the_same_cause_when_it_is_pasted() -> None:
    for path in sorted((DATA.parent / "failures" / "threads" / "learn").glob("*.log"))[:25]:
        text = path.read_text("utf-8", errors="replace")
        thread = f"It fails, what's wrong here?\n\n```\n{text}\n```\nthanks a lot for any help"
        mail = "\n".join(f"> {line}" for line in text.split("\n"))
        wanted = diagnose([path.read_bytes()]).cause
        assert {diagnose([pasted.read(each).log.encode()]).cause for each in (text, thread, mail)} == {wanted}


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(UserError, match="larger than 4 Mi characters"):
        pasted.read("a" * (pasted.LARGEST + 1))
    with pytest.raises(UserError, match="more than 500,000"):
        from_script(Source("a" * 500_001, HERE), "mine")


def test_a_folder_named_verl_is_not_verl(tmp_path: Path) -> None:
    """Only one with `verl/trainer` is."""
    command = "python -m verl.trainer.main_ppo data.train_batch_size=8"
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "__init__.py").touch()
    found = from_script(Source(command, tmp_path), "mine")
    assert "folder" not in found.text and not any("veRL in" in note for note in found.notes)
    (tmp_path / "verl" / "trainer").mkdir()
    assert f"folder: {tmp_path}" in from_script(Source(command, tmp_path), "mine").text


def test_a_part_of_a_log_with_an_error_of_a_worker_has_its_cause() -> None:
    error = "(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    found = explain(f"It stops, why?\n\n```\n{error}\nTraceback (most recent call last):\n```\n")
    assert found.diagnosis is not None and found.diagnosis.cause == "gpu-oom"
    assert "```" not in found.log
