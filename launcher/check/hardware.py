"""GPUs and their driver, disk, shared memory and limits; `fitting` checks the preset's memory."""

import contextlib
import errno
import os
import resource
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.check import hub
from launcher.check.finding import Finding, Level, Words, found, setting
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import open_folders, read_only
from launcher.core.format import GIB, amount, gib
from launcher.core.tables import tables_of
from launcher.estimate.memory import estimate
from launcher.machine.capacity import Machine
from launcher.machine.sampler import Sampler
from launcher.preset.flow import flow, rows_of
from launcher.preset.settle import shown_name
from launcher.verl import env as verl_env
from launcher.verl.config import CRITIC_PATH, ENGINE, MODEL_PATH, ROLLOUT

SHM = Path("/dev/shm")
FILES_WANTED, FILES_NEEDED = 65_536, 4_096
_MANY = 10  # checkpoints of a run with unknown steps and no limit
PROCESSES = 4_096  # and threads: each of Ray's workers has dozens
SOCKET_PATH = 107  # bytes of a unix socket's path
SOCKET = "/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store"


def checks(subject: Subject) -> Iterable[Finding]:
    """The findings about the machine for this preset."""
    if subject.machine.assumed:
        return
    if not subject.on_cpu and not subject.loaded.preset.cluster.submit:
        yield from gpus(subject.machine, subject.gpus)
        yield from driver(subject.python)
    yield from checkpoints(subject)
    yield from limits(subject.gpus > 1)
    yield from ray_folder(subject.env)
    if not subject.joins_cluster:
        yield from folders(subject.env, written(subject))


def of_machine(machine: Machine, python: str) -> Iterator[Finding]:
    """The findings about the machine without a preset."""
    if machine.gpus:
        cards = ", ".join(f"{gpu.name} {gib(gpu.total)} GiB" for gpu in machine.gpus)
        nvml = _nvml()
        words = f"; driver {nvml[0]}, CUDA {_dotted(nvml[1])}" if nvml else ""
        yield found("HW-0", cards=cards + words)
        yield from gpus(machine, len(machine.gpus))
        yield from driver(python)
    else:
        sampler = Sampler()
        sampler.close()
        yield found("HW-1", reason=sampler.reason or "NVML finds none")
    yield from disk(paths.runs_dir(), 50 * GIB, "a run with checkpoints of a 0.5B model")
    if machine.host_available < 16 * GIB and machine.gpus:
        yield found("HW-6", free=gib(machine.host_available))
    yield from limits(len(machine.gpus) > 1)
    yield from ray_folder(os.environ)
    yield from (found("HW-11", folder=each.place, what=each.what, command=each.hint) for each in open_folders())


def gpus(machine: Machine, wanted: int) -> Iterator[Finding]:
    """Checks for other users of the requested GPUs."""
    for index, gpu in enumerate(machine.gpus[:wanted]):
        if gpu.used * 20 > gpu.total or gpu.others:
            holders = ", ".join(gpu.others) or "processes that are not visible from here"
            yield found("HW-2", index=index, name=gpu.name, used=gib(gpu.used), total=gib(gpu.total), holders=holders)


def driver(python: str) -> Iterator[Finding]:
    """Checks the driver's CUDA against torch's, and for GPUs older than bf16."""
    found = _nvml()
    if found is not None:
        cuda = None
        with contextlib.suppress(UserError):
            cuda = verl_env.probe(python).cuda
        yield from check_driver(cuda, *found)


def _nvml() -> tuple[str, int, list[tuple[int, int]]] | None:
    """Driver version, its CUDA (13000 is 13.0), the compute capability of each GPU."""
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
        yield found("HW-3", cuda=cuda, driver=driver, reaches=reaches, major=number // 1000)
    for index, power in enumerate(powers):
        if tuple(power) < (8, 0):
            yield found("HW-4", index=index, major=power[0], minor=power[1])


def _dotted(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def checkpoints(subject: Subject) -> Iterator[Finding]:
    """Checks the room for checkpoints that are on disk at one time, including the best ones."""
    every = subject.get("trainer.save_freq", -1)
    estimated = estimate(subject)
    if not isinstance(every, int) or every < 1 or estimated is None:
        return
    models = [model for model in (estimated.plan.actor, estimated.plan.critic) if model]
    one = sum(model.parameters * model.element + 8 * model.trainable for model in models)
    most, best = subject.most_checkpoints, subject.loaded.preset.trainer.keep_best or 0
    saves = flow(subject, rows_of(subject.get("data.train_files"))).checkpoints
    at_once = min(filter(None, (saves, most and most + best)), default=None)
    free = _free(paths.runs_dir())
    if free is None or free >= (at_once or _MANY) * one:
        return
    room = free // one - best
    fewer = replace(setting(dict.fromkeys(map(shown_name, subject.keeps), room)), alternative=True)
    keeps = f"all {at_once or 'of them'} are kept" if most is None else f"{at_once} are on the disk at a time"
    words: Words = {"one": amount(one), "keeps": keeps, "free": amount(free), "folder": paths.runs_dir()}
    level: Level = "error" if free < one else "warning"
    short = found("HW-5.checkpoints", **words, level=level, keys=["trainer.save_freq", *subject.keeps])
    yield replace(short, fixes=(*short.fixes, fewer)) if room > 1 else short


def disk(folder: Path, wanted: int, what: str) -> Iterator[Finding]:
    """Checks free space in the folder of runs."""
    free = _free(folder)
    if free is not None and free < wanted:
        yield found("HW-5.disk", free=amount(free), folder=folder, what=what, wanted=amount(wanted))


def limits(several: bool) -> Iterator[Finding]:
    """Checks shared memory and the limits of this login."""
    shm = _free(SHM)
    if shm is None or shm < GIB:
        have = "is missing" if shm is None else f"has {amount(shm)} free"
        yield found("HW-7", have=have, level="error" if several else "warning")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_NEEDED:
        most = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
        allowed = "" if most > soft else "; an administrator must allow it"
        yield found("HW-8.files", soft=soft, wanted=FILES_WANTED, most=most, allowed=allowed)
    started = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.geteuid() and started != resource.RLIM_INFINITY and started < PROCESSES:  # does not apply to root
        yield found("HW-8.processes", limit=started, wanted=PROCESSES)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if several and locked != resource.RLIM_INFINITY and locked < GIB:
        yield found("HW-8.memory", limit=locked // 1024)


def ray_folder(env: Mapping[str, str]) -> Iterator[Finding]:
    """Checks Ray's session folder: the length of its socket paths, and its disk."""
    name, sessions = _place("ray", env)
    length = len(f"{sessions}{SOCKET}".encode())
    if length > SOCKET_PATH:
        yield found("HW-9.path", name=name, folder=sessions.parent, length=length)
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(_existing(sessions))
        if usage.free * 20 < usage.total:
            yield found("HW-9.full", folder=sessions.parent, free=amount(usage.free))


def written(subject: Subject) -> Iterator[str]:
    """The kinds of folders.toml that a run writes to: datasets by veRL's class, files compiled by Triton and vLLM."""
    named = "compilation_config" in subject.names_below(f"{ROLLOUT}.engine_kwargs.vllm")  # may disable it
    compiles = subject.text(ENGINE) == "vllm" and not (subject.on_cpu or subject.flag(f"{ROLLOUT}.enforce_eager"))
    models = {str(subject.get(key) or subject.get(MODEL_PATH)) for key in (MODEL_PATH, CRITIC_PATH)}
    used = {
        "ray": True,
        "data": not subject.get("data.custom_cls.path"),
        "hub": any(hub.fetched(name, subject.env) for name in models),
        "kernels": not subject.on_cpu,
        "engine": compiles and not named,
    }
    return (kind for kind, is_used in used.items() if is_used)


def folders(env: Mapping[str, str], kinds: Iterable[str]) -> Iterator[Finding]:
    """HW-10: checks that a run can write to these folders, and to the folder of runs."""
    places = {kind: _place(kind, env) for kind in kinds}
    places["runs"] = "PPO_TUI_HOME" if "PPO_TUI_HOME" in os.environ else "HOME", paths.runs_dir()
    for kind, (variable, folder) in places.items():
        try:
            if not read_only():
                tempfile.TemporaryFile(dir=_existing(folder)).close()
            elif not os.access(_existing(folder), os.W_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            yield found(f"HW-10.{kind}", folder=folder, variable=variable, reason=error.strerror)


def _place(kind: str, env: Mapping[str, str]) -> tuple[str, Path]:
    """The variable for a folder that a run writes to, and that folder, by folders.toml."""
    below: Mapping[str, str] = tables_of(__file__, "folders.toml")[kind]
    variable = next((name for name in below if env.get(name)), next(iter(below)))
    return variable, Path(env.get(variable) or "/tmp", below[variable]).expanduser()


def _free(folder: Path) -> int | None:
    """Free bytes for this user in a folder or its future place."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(_existing(folder)).free
    return None


def _existing(folder: Path) -> Path:
    return next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
