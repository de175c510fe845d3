"""The package that runs in veRL's interpreter: what is in it, and what it imports."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from launcher import inside
from launcher.inside.ppo_tui_inside import SUPPORTED

ROOT = Path(__file__).parents[2]
PACKAGE = inside.FOLDER / inside.PACKAGE
FILES = sorted(PACKAGE.rglob("*.py"))


def test_its_folder_holds_one_package() -> None:
    found = {path.name for path in inside.FOLDER.iterdir()} - {"__pycache__"}
    assert found == {"__init__.py", inside.PACKAGE}, "the folder is on the path of veRL's interpreter"


def _imports(path: Path) -> Iterator[str]:
    """Top-level modules that a file imports; "." for its own package."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                place = path.parents[node.level - 1]
                assert place.is_relative_to(PACKAGE), f"{path.name} imports from above the package"
            yield "." if node.level else str(node.module).partition(".")[0]


def _required_by_verl() -> set[str]:
    """Modules of veRL and of the distributions that it needs on the CPU, with torch's own."""
    todo, seen = ["verl", "torch", "peft"], set[str]()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        wanted = [Requirement(line) for line in requires]
        todo += [each.name for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})]
    tops = metadata.packages_distributions()
    return {top for top, owners in tops.items() if any(re.sub(r"[-_.]+", "-", one).lower() in seen for one in owners)}


@pytest.mark.skipif(not metadata.packages_distributions().get("verl"), reason="needs veRL: pip install ppo-tui[cpu]")
def test_it_imports_what_verl_requires_and_nothing_of_ours() -> None:
    allowed = {".", "flash_attn", *sys.stdlib_module_names, *_required_by_verl()}  # flash_attn is tried
    assert {f"{path.name}: {name}" for path in FILES for name in _imports(path) if name not in allowed} == set()


def test_files_that_run_alone_import_nothing_of_the_package() -> None:
    alone = [PACKAGE / "setup_worker.py", PACKAGE / "probes" / "cluster.py", *inside.BY_PATH.glob("*.py")]
    assert [path.name for path in alone if "." in _imports(path)] == []


def test_modules_beside_rays_worker_have_no_name_of_the_standard_library() -> None:
    """Python puts the folder of `setup_worker.py` first on the path of a worker."""
    assert {path.stem for path in PACKAGE.glob("*.py")} & sys.stdlib_module_names == set()


def test_the_supported_verl_is_defined_once() -> None:
    defined = re.compile(r"^SUPPORTED\b.*=", re.M)
    places = [path for path in (ROOT / "launcher").rglob("*.py") if defined.search(path.read_text())]
    assert places == [PACKAGE / "__init__.py"]
    pinned = [ROOT / "pyproject.toml", ROOT / "launcher" / "verl" / "requirements-cpu.txt"]
    for path in pinned:
        assert set(re.findall(r"\bverl(?:\[\w+\])?==([\w.]+)", path.read_text())) == {SUPPORTED}, path
