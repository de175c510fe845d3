"""The lock: all that pyproject.toml asks for is pinned, consistently, without CUDA (`.ci/lock` makes it)."""

import ast
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

tomllib = pytest.importorskip("tomllib")  # Python 3.11
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CPU, DEV = ROOT / "launcher/verl/requirements-cpu.txt", ROOT / "requirements-dev.txt"
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
MACHINES = [
    {"python_version": version, "python_full_version": f"{version}.9", **system}
    for version in ("3.10", "3.11", "3.12")
    for system in (LINUX, {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"})
]


def applying(lines: list[str], machine: dict[str, str], extras: tuple[str, ...] = ("",)) -> Iterator[Requirement]:
    for requirement in map(Requirement, lines):
        if not requirement.marker or any(requirement.marker.evaluate({**machine, "extra": name}) for name in extras):
            yield requirement


def pins(machine: dict[str, str], *files: Path) -> dict[str, str]:
    """Package -> the one version that the files install on a machine."""
    lines = [line for file in files for line in file.read_text().splitlines() if line[0] not in "#-"]
    found: dict[str, str] = {}
    for requirement in applying(lines, machine):
        (pin,) = requirement.specifier
        name = canonicalize_name(requirement.name)
        assert pin.operator == "==" and name not in found, requirement
        found[name] = pin.version
    return found


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda machine: f"{machine['python_version']}-{machine['sys_platform']}"
)
def test_all_that_the_project_asks_for_is_pinned_without_cuda(machine: dict[str, str]) -> None:
    for lines, files in ((PROJECT["dependencies"] + EXTRAS["cpu"], (CPU,)), (EXTRAS["dev"], (CPU, DEV))):
        pinned = pins(machine, *files)
        for wanted in applying(lines, machine):
            version = pinned.get(canonicalize_name(wanted.name), "none")
            assert version in wanted.specifier, f"{wanted} is pinned to {version}: run `make lock`"

    pinned = pins(machine, CPU, DEV)
    assert pinned["torch"].endswith("+cpu") == (machine["sys_platform"] == "linux")
    names = {name for name in pinned if name.startswith(("nvidia-", "cuda-", "cupy", "triton", "vllm"))}
    assert names == {"nvidia-ml-py"}


def test_the_lock_is_complete_and_has_nothing_else() -> None:
    """Each installed package finds what it requires among the pins, and each pin is required by something."""
    pinned = pins({}, CPU, DEV)
    todo = list(applying(PROJECT["dependencies"] + EXTRAS["cpu"] + EXTRAS["dev"], {}))
    done: set[tuple[str, frozenset[str]]] = set()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        assert name in pinned and wanted.specifier.contains(pinned[name], prereleases=True), (
            f"{wanted}: run `make lock`"
        )
        if (name, frozenset(wanted.extras)) in done:
            continue
        done.add((name, frozenset(wanted.extras)))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # without veRL, or a tool
            continue
        todo += applying(lines, {}, ("", *wanted.extras))
    assert {name for name, _ in done} >= {name for name in pinned if _is_installed(name)} - {"setuptools"}


def test_what_the_product_imports_is_declared_by_the_name_of_its_distribution() -> None:
    """Without what runs in veRL's interpreter, which has veRL's own dependencies, and `datasets`, which veRL brings."""
    lines = [line for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    known = metadata.packages_distributions()
    ours = {"launcher", "tui", "presets", "ppo_tui", "ppo_tui_inside", "datasets"}
    for path in [*(ROOT / "launcher").rglob("*.py"), *(ROOT / "tui").rglob("*.py")]:
        for name in _imported(path) - ours - sys.stdlib_module_names:
            distributions = {canonicalize_name(each) for each in known.get(name, [name])}
            assert "inside" in path.parts or distributions & declared, f"{path} imports {name}"


def _imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
