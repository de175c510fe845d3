"""Proofs about the end of a run from the machine's records: the sender of signal 9, and a full disk."""

import signal
from dataclasses import replace

from launcher.console.causes import Cause, Level, catalogue, cause_of
from launcher.core.format import gib
from launcher.record.attempt import MachineEnd

KILLED = "killed"
_CRASHES = tuple(128 + number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT))
_OOM, _NOT_OOM = "host-oom-killed", "killed-not-oom"


def proven(cause: Cause, machine: MachineEnd | None) -> Cause:
    """The cause with proofs from the records in its meaning.

    A killed or vanished process counts as out of memory only if the kernel counted an OOM kill or, after signal 9,
    memory was full.
    """
    killed = cause.id == KILLED
    if machine is None or not (killed or cause.level is Level.DEATH):
        return cause
    counted = machine.oom_killed
    if (counted and counted[0]) or (killed and machine.memory is not None and machine.memory.short):
        cause = cause_of(_OOM)
    elif killed and counted:
        cause = cause_of(_NOT_OOM)
    return replace(cause, meaning=cause.meaning + _memory(machine))


def _memory(machine: MachineEnd) -> str:
    counted, host = machine.oom_killed, machine.memory
    words = " No counter of the kernel's OOM killer was read."
    if counted is not None:
        rose = f"rose by {counted[0]}" if counted[0] else "did not rise"
        words = f" The kernel's OOM counter ({counted[1]}) {rose} during the run."
    if host is not None and host.used is not None:
        words += f" In the last samples, at most {gib(host.used)} of {gib(host.total)} GiB of host memory were in use."
    return words


def senders(cause: str, machine: MachineEnd | None, *, watched: bool) -> tuple[tuple[str, str], ...]:
    """Possible senders of SIGKILL, with counter-evidence. `watched`: the driver ended under its first supervisor."""
    deaths = {each.id for each in catalogue() if each.level is Level.DEATH}
    if machine is None or cause not in {KILLED, _NOT_OOM, _OOM} | deaths:
        return ()
    counted = machine.oom_killed
    kernel = "possible: no counter was read; see `dmesg | grep -i 'killed process'`"
    if counted is not None:
        kernel = f"likely: {counted[1]} rose by {counted[0]}" if counted[0] else f"excluded: {counted[1]} did not rise"
    oomd = "possible: see `journalctl -u systemd-oomd`"
    if watched:
        oomd = "excluded: it kills whole control groups, but the supervisor in the driver's group is alive"
    return (
        ("kernel's OOM killer", kernel),
        ("memory limit of the cgroup", kernel),
        ("systemd-oomd", oomd),
        ("another program, user or root", "possible: the sender of a signal is not recorded"),
    )


def full_disk(code: int | None, machine: MachineEnd | None) -> Cause | None:
    """The cause of a run that crashed, or ended without an error line, on a full disk, as veRL's CPU toy does."""
    disk = machine.full_disk if machine is not None else None
    if disk is None or ((code or 0) > 128 and code not in _CRASHES):
        return None
    cause, room = cause_of("disk-full-run"), f"{disk.free:,} of {disk.total:,} bytes free"
    return replace(cause, meaning=f"{cause.meaning} {disk.path} had {room}.")
