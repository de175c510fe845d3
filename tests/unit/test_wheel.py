"""The wheel as a stranger gets it: made from the sdist, installed beside what the core requires and nothing else."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from terminal import Terminal
from waiting import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("launcher", "tui", "presets")
GENERATED = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist that is built from this checkout; no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=GENERATED)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
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
    assert inside == {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}


def test_the_core_answers_without_torch_and_verl(stranger: Path) -> None:
    assert call(stranger.with_name("python"), "-c", "import torch").returncode == 1
    assert "Usage: ppo-tui" in call(stranger, "--help").stdout
    assert "toy-cpu" in call(stranger, "presets").stdout
    done = call(stranger, "recipes")
    assert done.returncode == 0 and "dapo" in done.stdout, done.stderr


@pytest.mark.parametrize("words", [("doctor",), ("run", "toy-cpu")])
def test_who_lacks_verl_is_told_the_file_that_installs_it(stranger: Path, words: tuple[str, ...]) -> None:
    done = call(stranger, *words)
    command, _, file = (done.stdout + done.stderr).partition(" -m pip install -r ")
    path = Path(file.split("`")[0].split("'")[0])
    assert command.endswith(("/python", f"/python3.{sys.version_info.minor}")), command
    assert path.is_relative_to(stranger.parents[1]) and "torch==" in path.read_text(), done.stdout + done.stderr


def test_the_screen_opens(stranger: Path) -> None:
    terminal = Terminal([str(stranger)], os.environ)
    try:
        terminal.wait_for(lambda text: "toy-cpu" in text and "Start a new run" in text)
        terminal.send("q")
        terminal.process.wait(PATIENCE)
    finally:
        terminal.close()
    assert terminal.process.returncode == 0
