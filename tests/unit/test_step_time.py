"""What veRL's own time of a step contains: read from the source of every published version (versions.step_contains)."""

import ast
import importlib.util
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from verl_wheels import CACHE, VERSIONS, config_folder, leaves

from launcher.verl.defaults import bundled
from launcher.verl.versions import step_contains

AROUND = ("testing", "save_checkpoint")
SEPARATE = ("/separation/", "/one_step_off_policy/", "/fully_async_policy/")


def _timers(node: ast.With) -> Iterator[str]:
    for item in node.items:
        call = item.context_expr
        if (
            isinstance(call, ast.Call)
            and getattr(call.func, "id", "") == "marked_timer"
            and isinstance(call.args[0], ast.Constant)
        ):
            yield str(call.args[0].value)


def contained(source: str) -> tuple[set[str], set[str]]:
    """The timers of validation and saving within the timer of the step, and all of them."""
    within, found = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.With):
            names = set(_timers(node))
            found |= names
            if "step" in names:
                within |= {name for each in ast.walk(node) if isinstance(each, ast.With) for name in _timers(each)}
    return within & set(AROUND), found & {*AROUND, "step"}


def trainers(sources: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    """The files of trainers that time a whole step with validation or saving, with what the step contains."""
    for name, source in sources.items():
        within, found = contained(source)
        if len(found) > 1 and "step" in found:
            yield name, within


def expected(version: str, name: str) -> frozenset[str] | None:
    keys = [*leaves(bundled(version))]
    return step_contains([*keys, "rollout.nnodes"] if any(part in name for part in SEPARATE) else keys)


def test_the_installed_version_is_read_as_its_source_has_it() -> None:
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("veRL is not installed")
    folder = Path(spec.submodule_search_locations[0])
    sources = {str(file): file.read_text("utf-8") for file in folder.rglob("*trainer*.py")}
    found = dict(trainers(sources))
    assert any("/v1/" in name for name in found) and any(name.endswith("/ppo/ray_trainer.py") for name in found)
    assert {name: expected("0.9.1", name) for name in found} == found


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_published_version_is_read_as_its_source_has_it(version: str) -> None:
    if config_folder(version) is None:
        pytest.skip(f"the wheel of veRL {version} cannot be downloaded here")
    with zipfile.ZipFile(next((CACHE / version).glob("*.whl"))) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(".py") and "trainer" in name]
        found = dict(trainers({f"/{name}": wheel.read(name).decode() for name in names}))
    assert found
    assert {name: expected(version, name) for name in found} == found


def test_a_configuration_that_nobody_knows_says_nothing() -> None:
    assert step_contains(["actor_rollout_ref.actor.optim.lr"]) is None
