"""What somebody means with a value that is refused."""

from pathlib import Path
from typing import Any

from tables import tabled

from launcher.check.checks import refusals, report
from launcher.check.suggestion import suggested_value
from launcher.core.errors import UserError
from launcher.preset.draft import Draft
from launcher.preset.schema import FIELDS


@tabled
def test_the_nearest_allowed_value(name: str, value: Any, wanted: Any) -> None:
    found = suggested_value(FIELDS[name], value)
    assert found == wanted and type(found) is type(wanted)


@tabled
def test_the_value_that_applies_without_a_wrong_one_is_offered(text: str, says: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    (found,) = report(str(mine)).findings
    assert says in found.fix
    (found,) = refusals(Draft(mine, text, on_disk=None), UserError("refused"))
    assert says in found.fix + found.message


def test_the_value_of_the_preset_is_offered_under_the_name_that_was_typed() -> None:
    (found,) = report("toy-cpu", ["actor_rollout_ref.actor.optim.lr=5"], static=True).findings
    assert found.message == "actor_rollout_ref.actor.optim.lr is 5, which is not allowed"
    assert found.fix == "set actor_rollout_ref.actor.optim.lr to 0.0003, or remove it"
