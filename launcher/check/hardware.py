"""The machine itself: GPUs and their driver, disk, shared memory, limits. Nothing here is about the preset's
memory, which has a module of its own."""

import contextlib
import os
import resource
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from launcher.check.finding import Finding, of_hardware
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import GIB, amount, gib
from launcher.estimate.memory import estimate
from launcher.machine.capacity import Machine
from launcher.machine.sampler import Sampler
from launcher.verl import env as verl_env

SHM = Path("/dev/shm")
FILES_WANTED, FILES_NEEDED = 65_536, 4_096
SOCKET_PATH = 107  # bytes of a unix socket's path
SOCKET = "/ray/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store"


def checks(subject: Subject) -> Iterable[Finding]:
    """The machine for this preset."""
    if subject.machine.assumed:
        return
    if not subject.on_cpu and not subject.loaded.preset.cluster.submit:
        yield from gpus(subject.machine, subject.gpus)
        yield from driver(subject.python)
    yield from checkpoints(subject)
    yield from limits(subject.gpus > 1)
    yield from ray_folder(subject.env)


def of_machine(machine: Machine, python: str) -> Iterator[Finding]:
    """The machine without a preset."""
    if machine.gpus:
        cards = ", ".join(f"{gpu.name} {gib(gpu.total)} GiB" for gpu in machine.gpus)
        found = _nvml()
        words = f"; driver {found[0]}, CUDA {_dotted(found[1])}" if found else ""
        yield of_hardware.info("HW-0", cards + words, "")
        yield from gpus(machine, len(machine.gpus))
        yield from driver(python)
    else:
        sampler = Sampler()
        sampler.close()
        yield of_hardware.info(
            "HW-1", f"no GPU: {sampler.reason or 'NVML finds none'}", "use the preset toy-cpu, which runs without one"
        )
    yield from disk(paths.runs_dir(), 50 * GIB, "a run with checkpoints of a 0.5B model")
    if machine.host_available < 16 * GIB and machine.gpus:
        message = (
            f"{gib(machine.host_available)} GiB of host memory available; veRL's processes alone need 10 to 25 GiB"
        )
        yield of_hardware.warning("HW-6", message, "stop other processes, or use fewer workers")
    yield from limits(len(machine.gpus) > 1)
    yield from ray_folder(os.environ)


def gpus(machine: Machine, wanted: int) -> Iterator[Finding]:
    """Other users of the GPUs that the run would use."""
    for index, gpu in enumerate(machine.gpus[:wanted]):
        if gpu.used * 20 > gpu.total or gpu.others:
            holders = ", ".join(gpu.others) or "processes that are not visible from here"
            message = f"GPU {index} ({gpu.name}): {gib(gpu.used)} of {gib(gpu.total)} GiB are in use by {holders}"
            yield of_hardware.warning("HW-2", message, "stop them, or choose other GPUs with CUDA_VISIBLE_DEVICES")


def driver(python: str) -> Iterator[Finding]:
    """The driver's CUDA against the CUDA that torch was built for, and GPUs older than bf16."""
    found = _nvml()
    if found is not None:
        yield from check_driver(_cuda(python), *found)


def _nvml() -> tuple[str, int, list[tuple[int, int]]] | None:
    """Version of the driver, its CUDA (13000 is 13.0), the compute capability of each GPU."""
    with contextlib.suppress(Exception):  # NVML's errors are its own class, made at import
        import pynvml

        pynvml.nvmlInit()
        try:
            version: Any = pynvml.nvmlSystemGetDriverVersion()
            powers = [
                pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(index))
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
            return str(version), int(pynvml.nvmlSystemGetCudaDriverVersion()), powers
        finally:
            pynvml.nvmlShutdown()
    return None


def check_driver(cuda: str | None, driver: str, number: int, powers: Iterable[tuple[int, int]]) -> Iterator[Finding]:
    """`cuda` of torch ("13.0"), `number` of the driver (13000), compute capabilities of the GPUs."""
    reaches = _dotted(number)
    if cuda is not None and int(cuda.partition(".")[0]) > number // 1000:
        message = f"torch was built for CUDA {cuda}, but driver {driver} supports at most {reaches}"
        yield of_hardware.error("HW-3", message, f"install a newer driver, or a torch for CUDA {number // 1000}.x")
    for index, power in enumerate(powers):
        if tuple(power) < (8, 0):
            message = (
                f"GPU {index} has compute capability {power[0]}.{power[1]}: bf16 and flash-attn require 8.0 (Ampere) "
                "or newer"
            )
            yield of_hardware.error("HW-4", message, "use a newer GPU")


def _dotted(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def checkpoints(subject: Subject) -> Iterator[Finding]:
    """Room for the checkpoints that the run keeps, and for one more while it is written."""
    every = subject.get("trainer.save_freq", -1)
    found = estimate(subject)
    if not isinstance(every, int) or every < 1 or found is None:
        return
    models = [model for model in (found.plan.actor, found.plan.critic) if model]
    one = sum(model.parameters * model.element + 8 * model.trainable for model in models)
    kept = subject.get("trainer.max_actor_ckpt_to_keep")
    count = kept + 1 if isinstance(kept, int) else 10
    free = _free(paths.runs_dir())
    if free is None or free > count * one:
        return
    keeps = f"{count - 1} are kept while one more is written" if isinstance(kept, int) else "all of them are kept"
    finding = of_hardware.error if free < one else of_hardware.warning
    message = f"a checkpoint takes {amount(one)}, and {keeps}; {amount(free)} are free in {paths.runs_dir()}"
    fix = "free disk space, set PPO_TUI_HOME to a larger disk, or keep fewer (trainer.max_actor_ckpt_to_keep=1)"
    keys = ("trainer.save_freq", "trainer.max_actor_ckpt_to_keep", "trainer.max_critic_ckpt_to_keep")
    yield finding("HW-5", message, fix, keys)


def disk(folder: Path, wanted: int, what: str) -> Iterator[Finding]:
    """Free space where runs are kept."""
    free = _free(folder)
    if free is not None and free < wanted:
        message = f"{amount(free)} are free in {folder}; {what} needs {amount(wanted)}"
        yield of_hardware.warning("HW-5", message, "free disk space, or set PPO_TUI_HOME to a larger disk")


def limits(several: bool) -> Iterator[Finding]:
    """Shared memory and the limits of this login."""
    shm = _free(SHM)
    if shm is None or shm < GIB:
        have = "is missing" if shm is None else f"has {amount(shm)} free"
        finding = of_hardware.error if several else of_hardware.warning
        message = f"/dev/shm {have}: Ray falls back to /tmp, and GPUs cannot communicate through it"
        yield finding(
            "HW-7", message, "in Docker, use --shm-size=16g; otherwise run `mount -o remount,size=16G /dev/shm`"
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_NEEDED:
        most = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
        fix = f"run `ulimit -n {most}` before the start" + ("" if most > soft else "; an administrator must allow it")
        yield of_hardware.warning(
            "HW-8", f"the limit is {soft} open files (ulimit -n); Ray requires {FILES_WANTED:,}", fix
        )
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if several and locked != resource.RLIM_INFINITY and locked < GIB:
        message = f"the limit is {locked // 1024} KiB of locked memory (ulimit -l); InfiniBand requires no limit"
        yield of_hardware.info("HW-8", message, "with InfiniBand, run `ulimit -l unlimited`")


def ray_folder(env: Any) -> Iterator[Finding]:
    """Ray's session folder: the path of its sockets and its disk."""
    folder = env.get("RAY_TMPDIR") or "/tmp"
    length = len((folder.rstrip("/") + SOCKET).encode())
    if length > SOCKET_PATH:
        message = (
            f"RAY_TMPDIR={folder} makes socket paths of {length} bytes, and the limit is {SOCKET_PATH}: Ray cannot "
            "start"
        )
        yield of_hardware.error("HW-9", message, "set RAY_TMPDIR to /tmp, or another short path")
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(_existing(Path(folder)))
        if usage.free * 20 < usage.total:
            message = f"{folder} is over 95 % full ({amount(usage.free)} free): Ray does not spill objects there"
            yield of_hardware.warning("HW-9", message, "remove /tmp/ray/session_* of ended runs, or set RAY_TMPDIR")


def _cuda(python: str) -> str | None:
    try:
        return verl_env.probe(python).cuda
    except UserError:
        return None


def _free(folder: Path) -> int | None:
    """Free bytes for this user in a folder, or where it would be made."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(_existing(folder)).free
    return None


def _existing(folder: Path) -> Path:
    return next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
