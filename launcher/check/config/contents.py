"""Names within keys that veRL does not check: CKPT-1, PROF-1, RAY-1, ENV-1 to ENV-3 and REF-1.

veRL: `verl/utils/checkpoint/checkpoint_manager.py: BaseCheckpointManager`, `verl/utils/profiler/profile.py:
DistProfiler`, `verl/trainer/main_ppo.py: run_ppo`.
"""

import shutil

from launcher.check.config.base import Findings, of_trainer
from launcher.check.facts import known_names
from launcher.check.finding import Level, found
from launcher.check.subject import Subject
from launcher.core.text import clean, did_you_mean
from launcher.verl import defaults, hydra
from launcher.verl.config import ACTOR, CRITIC, ENGINE, RAY, ROLLOUT, TRAINER

WEIGHTS = {"model", "hf_model"}
LEVEL = "VERL_LOGGING_LEVEL"
OF_AMD = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
STORE = 75 * 1024 * 1024  # bytes, Ray's minimum
_KINDS = {bool: "switch", int: "number", float: "number", dict: "mapping", list: "list"}


@of_trainer
def checkpoints(subject: Subject) -> Findings:
    """CKPT-1: a checkpoint has known parts, including the weights; veRL ignores other names."""
    parts = known_names().checkpoint_parts
    saves = isinstance(every := subject.get(f"{TRAINER}.save_freq"), int) and every > 0
    for block in (ACTOR, *([CRITIC] if subject.has_critic else [])):
        for name in ("save_contents", "load_contents"):
            key = f"{block}.checkpoint.{name}"
            value = subject.get(key)
            if not isinstance(value, list) or not subject.is_set(key):
                continue
            strange = [str(each) for each in value if each not in parts]
            lost = name == "save_contents" and not WEIGHTS & {str(each) for each in value}
            if not strange and not (lost and saves):
                continue
            what = f"has '{strange[0]}'{did_you_mean(strange[0], parts)}" if strange else f"is {value}"
            then = "no weights are saved" if lost else f"veRL ignores {'it' if strange else 'the weights'}"
            level: Level = "error" if lost and saves else "warning"
            yield found("CKPT-1", key=key, what=what, then=then, parts=parts, level=level)


def profiler(subject: Subject) -> Findings:
    """PROF-1: veRL supports the profiler's tool; it ignores other names."""
    tools = known_names().profilers
    for key in ("global_profiler.tool", *(each for each in subject.settings if each.endswith(".profiler.tool"))):
        value = subject.text(key)
        if value is not None and value not in tools and subject.is_set(key):
            yield found("PROF-1", key=key, value=value, near=did_you_mean(value, tools), tools=tools)


@of_trainer
def ray_arguments(subject: Subject) -> Findings:
    """RAY-1: keys added to `ray_init` are arguments of `ray.init`."""
    arguments = known_names().ray_arguments
    for key, setting in subject.settings.items():
        block, _, name = key.rpartition(".")
        unknown = block == RAY and name not in arguments and not name.startswith("_")
        if unknown and setting.prefix and setting.source == "override":
            yield found("RAY-1.argument", name=name, near=did_you_mean(name, arguments), key=key)


def ray_values(subject: Subject) -> Findings:
    """RAY-1: the object store has Ray's minimum size, and the program that starts its workers exists.

    Ray: `ray/_private/services.py: determine_plasma_store_config`, `ray/_private/runtime_env/context.py`.
    """
    key = f"{RAY}.object_store_memory"
    size = subject.get(key)
    if isinstance(size, (int, float)) and size < STORE:
        yield found("RAY-1.store", key=key, value=size, least=STORE)
    program = subject.text(key := f"{RAY}.runtime_env.py_executable")
    here = not (subject.joins_cluster or subject.machine.assumed)
    if program and program[0] != "." and here and not shutil.which(program.split()[0], path=subject.env.get("PATH")):
        yield found("RAY-1.program", key=key, value=program)


def ray_environment(subject: Subject) -> Findings:
    """RAY-1: environment variables for Ray's processes are strings; Hydra reads `=1` as a number.

    Ray: `ray/_private/runtime_env/validation.py: parse_and_validate_env_vars`.
    """
    block = f"{RAY}.runtime_env.env_vars"
    for name, value in subject.below(block).items():
        key = f"{block}.{name}"
        if value is None or isinstance(value, str):
            continue
        plain = str(value).lower() if isinstance(value, bool) else str(value)
        yield found("RAY-1.environment", key=key, kind=_KINDS.get(type(value), "value"), plain=plain, name=name)


def log_levels(subject: Subject) -> Findings:
    """ENV-1: VERL_LOGGING_LEVEL is a Python logging level; veRL sets it on import.

    veRL: `verl/trainer/main_ppo.py`, and nearly every other module.
    """
    value = subject.env.get(LEVEL)
    levels = known_names().logging_levels
    if value is not None and value not in levels:
        right = value.upper() if value.upper() in levels else "INFO"
        yield found("ENV-1", value=clean(value), right=right)


def devices(subject: Subject) -> Findings:
    """ENV-2: on NVIDIA GPUs, Ray sets CUDA_VISIBLE_DEVICES per worker; veRL refuses AMD's variables in addition.

    veRL: `single_controller/base/worker.py: Worker._setup_env_cuda_visible_devices`.
    """
    if not subject.on_cpu and subject.machine.gpus:
        yield from (found("ENV-2", name=name) for name in OF_AMD if subject.env.get(name))


def allocator(subject: Subject) -> Findings:
    """ENV-3: the memory pool of vLLM's sleep mode refuses expandable segments.

    vLLM: `device_allocator/cumem.py: CuMemAllocator.__init__`.
    """
    sleeps = subject.text(ENGINE) == "vllm" and subject.get(f"{ROLLOUT}.free_cache_engine") is True
    if sleeps and not subject.on_cpu and "expandable_segments:True" in subject.env.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        yield found("ENV-3")


def references(subject: Subject) -> Findings:
    """REF-1: every key that a value refers to exists."""
    for key, setting in subject.settings.items():
        name = defaults.referred(setting.value) if isinstance(setting.value, str) else None
        if name is None or not hydra.refers(setting.value) or not subject.knows_keys:
            continue
        name = key.rpartition(".")[0] + name if name.startswith(".") else name
        if name not in subject.settings and not defaults.leaf(subject.defaults, name)[0]:
            near = did_you_mean(name, list(defaults.leaves(subject.defaults)))
            yield found("REF-1", key=key, name=name, version=subject.version, near=near)


RULES = (checkpoints, profiler, ray_arguments, ray_values, ray_environment, log_levels, devices, allocator, references)
