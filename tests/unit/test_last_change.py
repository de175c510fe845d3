"""Which earlier run shows what changed: the same experiment, well, over before this run began, and nearly alike."""

from typing import Any

import pytest
from ended_runs import ran

from launcher.record.attempt import Exit
from launcher.record.events import EventLog, LevelChange
from launcher.record.info import Edit, Origin
from launcher.record.levels import Level
from launcher.record.state import RunState, StateFile
from launcher.runs.watch.history import Onset
from launcher.runs.watch.last_change import last_change
from launcher.runs.watch.parent import Parent

pytestmark = pytest.mark.usefixtures("home")
ONSET = Onset("KL-1", 5, 7, Level.WARN)


NOW = ["actor.lr=0.3", "actor.clip_ratio=5"]


@pytest.mark.parametrize(
    "settings, state, created, undone",
    [
        ([], {}, 1.0, True),
        ([], {"verdict": "NOTICE"}, 1.0, True),
        ([], {"verdict": "WARN"}, 1.0, False),
        ([], {"verdict": "WARM", "step": 10}, 1.0, False),
        ([], {"step": 6}, 1.0, False),
        ([], {"state": "failed", "exit": Exit(code=1, t=101.0)}, 1.0, False),
        ([], {}, 150.0, False),  # side by side
        (["rollout.temperature=0.9"], {}, 1.0, True),
        (["rollout.temperature=0.9", "rollout.n=4"], {}, 1.0, False),
        (["reward.function=zero"], {}, 1.0, False),
        (["model.path=/another"], {}, 1.0, False),
        (["data.train=/another.parquet"], {}, 1.0, False),
        (["algorithm=rloo"], {}, 1.0, False),
        (["data.train_batch_size=32"], {}, 1.0, True),
        (["trainer.steps=99", "trainer.save_every=9", "env.X=1"], {}, 1.0, True),  # not about learning
    ],
)
def test_a_change_is_undone_only_where_the_same_experiment_was_well(
    settings: list[str], state: dict[str, Any], created: float, undone: bool
) -> None:
    earlier = ran(created, settings, **state)
    for after in (None, Origin(earlier.id, (Edit("actor.lr", 3e-4, 0.3),))):
        run = ran(200.0, NOW, after)
        found = last_change(Parent(run), ONSET)
        assert (found is not None) == undone
        if found is not None:
            assert found.words == f"the change since {earlier.id}"
            assert {"actor.lr", "actor.clip_ratio"} <= {edit.key for edit in found.undone}
        StateFile(run).write(RunState("failed"))
    EventLog(earlier.events).add(LevelChange(9, "KL-1", Level.OK, Level.WARN))
    assert last_change(Parent(ran(200.0, NOW)), ONSET) is None, "it had the flag, too"


def test_an_older_run_that_is_alike_comes_before_a_newer_one_that_is_not() -> None:
    alike = ran(1.0, [])
    ran(150.0, ["reward.function=zero"])
    found = last_change(Parent(ran(400.0, NOW)), ONSET)
    assert found is not None and found.words == f"the change since {alike.id}"
