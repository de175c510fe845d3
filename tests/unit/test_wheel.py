"""The wheel as a stranger gets it: made from the sdist, installed beside what the core requires and nothing else."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tables import tabled
from terminal import Terminal
from waiting import PATIENCE, wait_until

from launcher.cli.parsing import examples

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("launcher", "tui", "presets")
MODULE = "ppo_tui.py"
DECOY = "raise RuntimeError('a folder of the user hides ours')\n"
GENERATED = shutil.ignore_patterns("__pycache__")
NAMED = {"howto/frameworks", "reference/metrics"}  # in hints of errors
LOG = ROOT / "tests" / "data" / "logs" / "cpu-toy.log.gz"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist that is built from this checkout; no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=GENERATED)
    for name in ("pyproject.toml", "README.md", "LICENSE", MODULE):
        shutil.copy(ROOT / name, folder / "tree")
    _build("sdist", folder / "tree", folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    _build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)
    (path,) = folder.glob("*.whl")
    return path


def _build(kind: str, tree: Path, into: Path) -> None:
    script = f"from setuptools import build_meta; build_meta.build_{kind}({str(into)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=tree, check=True, timeout=PATIENCE, capture_output=True)


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel and links to what it requires: no torch, no veRL."""
    environment = tmp_path_factory.mktemp("core")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=PATIENCE)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True, timeout=PATIENCE)
    (packages,) = environment.glob("lib/python*/site-packages")
    for distribution in _required("ppo-tui"):
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(distribution.locate_file(top)))
    return environment / "bin"


def _required(*roots: str) -> list[metadata.Distribution]:
    """All distributions that these need, without extras."""
    found: dict[str, metadata.Distribution] = {}
    todo = list(roots)
    while todo:
        for line in metadata.requires(todo.pop()) or []:
            wanted = Requirement(line)
            if wanted.name not in found and (not wanted.marker or wanted.marker.evaluate({"extra": ""})):
                found[wanted.name] = metadata.distribution(wanted.name)
                todo.append(wanted.name)
    return list(found.values())


@pytest.fixture
def stranger(core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`ppo-tui` of that environment, called from an unrelated folder with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    for name in ("PYTHONPATH", "PPO_TUI_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return core / "ppo-tui"


def call(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False
    )


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if ".dist-info/" not in name}
    files = {path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()}
    assert inside == {MODULE, *(str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts)}


def test_the_core_answers_without_torch_and_verl(stranger: Path) -> None:
    assert call(stranger.with_name("python"), "-c", "import torch").returncode == 1
    assert "Usage: ppo-tui" in call(stranger, "--help").stdout
    assert "toy-cpu" in call(stranger, "preset", "list").stdout
    done = call(stranger, "preset", "list", "--recipes")
    assert done.returncode == 0 and "dapo" in done.stdout, done.stderr


def test_the_documentation_that_help_and_errors_name_can_be_printed(stranger: Path) -> None:
    pages = {row["page"] for rows in examples().values() for row in rows.values()} | NAMED
    script = f"from launcher.topics import text_of\nfor page in {pages}: print(text_of(page))"
    done = call(stranger.with_name("python"), "-c", script)
    assert done.returncode == 0 and done.stdout.count("(guide)") == len(pages), done.stderr
    assert "howto/pitfalls (guide)" in call(stranger, "help", "howto/pitfalls").stdout


@pytest.mark.nightly("pyproject.toml", "launcher/verl/env.py", "launcher/cli/", every=2)
@pytest.mark.parametrize("words", [("doctor",), ("run", "toy-cpu")])
def test_who_lacks_verl_is_told_the_file_that_installs_it(stranger: Path, words: tuple[str, ...]) -> None:
    done = call(stranger, *words)
    command, _, file = (done.stdout + done.stderr).partition(" -m pip install -r ")
    path = Path(file.split("`")[0].split("'")[0])
    assert command.endswith(("/python", f"/python3.{sys.version_info.minor}")), command
    assert path.is_relative_to(stranger.parents[1]) and "torch==" in path.read_text(), done.stdout + done.stderr


@tabled
def test_the_screen_opens(words: tuple[str, ...], shown: tuple[str, ...], stranger: Path) -> None:
    terminal = Terminal([str(stranger), *words], os.environ)
    try:
        terminal.wait_for(lambda text: all(part in text for part in shown))
        terminal.send("q")
        terminal.process.wait(PATIENCE)
    finally:
        terminal.close()
    assert terminal.process.returncode == 0


@pytest.mark.nightly("pyproject.toml", "launcher/metrics/frameworks", every=2)
@pytest.mark.parametrize("log", ["slime-collapse.log.gz", "prime-rl-collapse.jsonl.gz"])
def test_the_log_of_another_framework_has_its_verdict(log: str, stranger: Path) -> None:
    done = call(stranger, "health", ROOT / "tests" / "data" / "frameworks" / log)
    assert done.returncode == 0 and done.stdout.startswith("CRITICAL"), done.stdout + done.stderr


@pytest.mark.nightly("pyproject.toml")
def test_a_stranger_downloads_at_most_30_megabytes(wheel: Path, tmp_path: Path) -> None:
    """With all that it requires, as pip chooses it now: this needs a package index."""
    done = call(sys.executable, "-m", "pip", "download", "-q", "-d", tmp_path, wheel)
    assert done.returncode == 0, done.stderr
    files = list(tmp_path.iterdir())
    assert len(files) > 10 and sum(file.stat().st_size for file in files) <= 30e6, files


@pytest.fixture
def decoys(stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Modules that raise and are named like ours and what we require, on PYTHONPATH and where the user stands."""
    folder = tmp_path / "mine"
    for place in (folder, tmp_path):
        for name in PACKAGES:
            (place / name).mkdir(parents=True)
            (place / name / "__init__.py").write_text(DECOY)
        for name in ("orjson", "typer"):
            (place / f"{name}.py").write_text(DECOY)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def test_a_users_modules_hide_none_of_ours(stranger: Path, decoys: Path) -> None:
    assert call(stranger.with_name("python"), "-c", "import tui").returncode == 1, "the decoys work"
    for command in ([stranger], [stranger.with_name("python"), "-m", "ppo_tui"]):
        done = call(*command, "preset", "list")
        assert done.returncode == 0 and "toy-cpu" in done.stdout, done.stderr


def test_our_own_processes_ignore_a_users_modules_too(stranger: Path, decoys: Path) -> None:
    """A supervisor, and the player that stands in for veRL."""
    done = call(stranger, "demo", LOG, "--speed", "1000000", "--detach")
    assert done.returncode == 0, done.stderr
    (run,) = (decoys.parent / "home" / "runs").iterdir()
    wait_until(lambda: '"finished"' in call(stranger, "status", run.name, "--json").stdout, every=1.0)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another interpreter, which has the packages of this one without ppo-tui."""
    verl = find_spec("verl")
    if verl is None:
        pytest.skip("needs veRL: pip install ppo-tui[cpu]")
    environment = tmp_path_factory.mktemp("verl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=PATIENCE)
    (packages,) = environment.glob("lib/python*/site-packages")
    # .pth files there, such as that of an editable ppo-tui, are not read
    (packages / "others.pth").write_text(f"{Path(str(verl.origin)).parents[1]}\n")
    return environment / "bin" / "python"


SEEN = """
import importlib.util, json, sys
import launcher, tui, verl, ppo_tui_inside.plugin
print(json.dumps({
    "mine": [launcher.mine, tui.mine],
    "ours": [name for name in ("launcher.core", "tui.app", "ppo_tui") if importlib.util.find_spec(name)],
    "plugin": ppo_tui_inside.plugin.__file__,
    "path": sys.path,
}))
"""
REWARD = """
import launcher, tui

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(launcher.mine and tui.mine and ground_truth in solution_str)
"""


@pytest.mark.nightly("pyproject.toml", "ppo_tui.py", "launcher/inside/", "launcher/core/paths.py")
def test_verl_gets_our_plugin_and_the_users_modules(stranger, other, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    for name in ("launcher", "tui"):
        (mine / name).mkdir(parents=True)
        (mine / name / "__init__.py").write_text("mine = True\n")
    (mine / "score.py").write_text(REWARD)
    monkeypatch.setenv("PYTHONPATH", str(mine))
    monkeypatch.setenv("PPO_TUI_PYTHON", str(other))
    words = shlex.split(call(stranger, "preset", "show", "--command", "toy-cpu").stdout)
    given = dict(word.split("=", 1) for word in words[: words.index(str(other))] if "=" in word)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    done = call(other, "-c", SEEN)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["mine"] == [True, True] and seen["ours"] == []
    (inside,) = stranger.parents[1].glob("lib/python*/site-packages/launcher/inside")
    assert Path(seen["plugin"]) == inside / "ppo_tui_inside" / "plugin" / "__init__.py"
    assert [path for path in seen["path"] if Path(path).is_relative_to(stranger.parents[1])] == [str(inside)]
    monkeypatch.setenv("PYTHONPATH", str(mine))
    done = call(stranger, "check", "--reward", str(mine / "score.py"))
    assert done.returncode == 0, done.stdout + done.stderr
