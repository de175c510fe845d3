"""What the layout promises beside its layers (`make lint`): a start without what it does not need, small files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.core.tables import read_tables
from tui.routes import RUN_PAGES

ROOT = Path(__file__).parents[2]
LAUNCHER = sorted((ROOT / "launcher").rglob("*.py"))
TUI = sorted((ROOT / "tui").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CORE = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in LAUNCHER
    if not {"plugin", "by_path"} & {*path.parts} and path.name != "__main__.py"  # these run inside veRL
]
HEAVY = ("textual", "rich", "tui", "torch", "transformers", "ray", "numpy", "pandas", "pyarrow", "verl")
# What some commands and pages need, and neither 'status' nor the dashboard.
LATE = tuple((ROOT / "tests/data/late_imports.txt").read_text().split())


@pytest.mark.slow
def test_importing_the_core_loads_neither_the_screen_nor_anything_heavy() -> None:
    script = f"""
import importlib, sys
for name in {CORE!r}:
    importlib.import_module(name)
    loaded = [top for top in {HEAVY!r} if top in sys.modules]
    assert not loaded, f"importing {{name}} loads {{loaded}}"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("module", ["launcher.cli.main", "tui.app", "tui.pages.dashboard.screen"])
def test_a_command_and_the_first_frame_wait_for_nothing_that_they_do_not_show(module: str) -> None:
    script = f"import sys, {module}; print([name for name in sys.modules if name.startswith({LATE!r})])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in [*LAUNCHER, *TUI, *TESTS]}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


def test_each_page_of_a_run_that_a_key_or_a_screen_opens_is_in_the_routes() -> None:
    sources = [*TUI, ROOT / "tui/kit/keys.toml"]
    opened = {name for path in sources for name in re.findall(r"\bshow\([\"'](\w+)[\"']", path.read_text())}
    assert opened == set(RUN_PAGES)


def test_launcher_init_is_empty() -> None:
    """Every process of ppo-tui imports it first."""
    assert (ROOT / "launcher" / "__init__.py").read_text() == ""


def test_the_wheel_has_the_data_files() -> None:
    tables = read_tables(ROOT / "pyproject.toml")
    patterns = tables["tool"]["setuptools"]["package-data"]["launcher"]
    packed = {path for pattern in patterns for path in (ROOT / "launcher").glob(pattern)}
    assert packed >= {path for path in (ROOT / "launcher").rglob("*") if path.suffix not in (".py", ".pyc", "")}


def test_no_two_classes_of_the_product_have_one_name() -> None:
    """For the words that stood for four things each."""
    words = ("Facts", "Plan", "Reading", "Entry")
    found = [name for path in [*LAUNCHER, *TUI] for name in re.findall(r"^class (\w+)\b", path.read_text(), re.M)]
    assert [name for name in words if found.count(name) > 1] == []
