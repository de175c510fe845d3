"""The disk of a run's checkpoints: what is on it, and how many more it has room for."""

from pathlib import Path

from tables import tabled

from launcher.core.format import GIB
from launcher.record.layout import RunDir
from launcher.record.machine import DiskSpace, MachineSample, Saved
from launcher.runs.supervise.disk import LowDisk
from launcher.runs.watch.checkpoints import CheckpointDisk, checkpoint_sizes, checkpoint_words, disk_metrics, to_come


def save(run: RunDir, step: int, size: int, complete: bool = True) -> None:
    """What veRL writes for a step: folders, then the tracker file."""
    actor = run.checkpoints / f"global_step_{step}" / "actor"
    actor.mkdir(parents=True)
    (actor / "model.pt").write_bytes(b"x" * size)
    if complete:
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text(str(step))


def test_the_disk_and_the_checkpoints_of_an_attempt_are_measured(tmp_path: Path) -> None:
    run, empty = RunDir(tmp_path), MachineSample(1.0)
    disk = CheckpointDisk(run, begun=10)
    found = disk.put_into(empty)
    assert found.disk is not None and 0 < found.disk.free <= found.disk.total and found.room is None
    save(run, 10, 8192)
    assert disk.put_into(empty).saved == Saved(0, 8192), "the one that the attempt began with"
    save(run, 20, 4096)
    save(run, 30, 9, complete=False)
    found = disk.put_into(empty)
    assert found.saved == Saved(1, 4096) and found.disk is not None and found.room == found.disk.free // 4096
    assert MachineSample.from_json(found.to_json()) == found
    assert MachineSample.from_json({"t": 1.0}).room is None, "a sample of an older ppo-tui"
    assert checkpoint_words(checkpoint_sizes(run)) == "10 (8 KiB), 20 (4 KiB)"
    assert checkpoint_words({10: GIB, 20: GIB}) == "10, 20 (1.0 GiB each)" and checkpoint_words({}) == "none"


def test_a_disk_with_little_room_is_noted_once() -> None:
    low = LowDisk()
    noted = [low.note(DiskSpace("/d", int(free * GIB), 99 * GIB)) for free in (3, 0.9, 0.5, 1.5, 0.9, 2.1, 0.8)]
    assert [bool(each) for each in noted] == [False, True, False, False, False, False, True]
    assert noted[1] and noted[1].startswith("922 MiB free in /d: a full disk ends the driver")


def test_room_counts_whole_checkpoints() -> None:
    sample = MachineSample(1.0, disk=DiskSpace("/", 11 * GIB, 99 * GIB), saved=Saved(1, 5 * GIB))
    assert sample.room == 2


@tabled
def test_checkpoints_to_come_are_those_that_take_space(
    step: int, total: int, every: int, kept: int | None, count: int, more: int
) -> None:
    keys = {"trainer.save_freq": every, "trainer.max_actor_ckpt_to_keep": kept}
    assert to_come(keys, step, total, count) == more
    critic = {**keys, "critic.enable": True, "trainer.max_critic_ckpt_to_keep": 1}
    assert to_come(critic, step, total, count) == more
    assert to_come({**critic, "trainer.max_critic_ckpt_to_keep": None}, step, total, count) >= more
    sample = MachineSample(1.0, disk=DiskSpace("/", GIB, 9 * GIB), saved=Saved(count, GIB))
    lacks = disk_metrics(sample, keys, step, total)["machine/checkpoints_lacking"]
    assert lacks == max(more - 1, 0) and disk_metrics(sample, keys, step, None) == {"machine/free_disk_gb": 1.0}
