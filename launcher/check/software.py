"""What is installed in veRL's environment, against what this veRL requires; each gap with the command that closes it.

Every version of veRL is checked against the requirements of its own package metadata.
"""

import contextlib
import http.client
import os
import shlex
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from launcher.check.config.rollout import OPTIONS
from launcher.check.facts import known_names
from launcher.check.finding import Finding, of_software
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.text import clean, without_login
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.machine.capacity import Machine
from launcher.verl import env as verl_env
from launcher.verl import versions
from launcher.verl.config import TRANSFER
from launcher.verl.env import VerlEnv

ATTENTION = "actor_rollout_ref.model.override_config.attn_implementation"
LIGER = "actor_rollout_ref.model.use_liger"
SGLANG_ATTENTION = f"{OPTIONS}.attention_backend"
TRACE = "actor_rollout_ref.rollout.trace.backend"
ENGINES = ("vllm", "sglang")
_PATIENCE = 5.0  # seconds for a tracker's answer


@dataclass(frozen=True)
class Use:
    """The requirements of a run on the software."""

    gpu: bool
    engine: str
    v1: bool
    critic: bool
    attention: str | None
    loggers: tuple[str, ...]
    env: Mapping[str, str]
    online: bool = True  # addresses of trackers may be opened


def checks(subject: Subject) -> Iterable[Finding]:
    """The software for this preset."""
    if subject.machine.assumed:
        return
    loggers = subject.get("trainer.logger") or []
    use = Use(
        gpu=not subject.on_cpu,
        engine=str(subject.get("actor_rollout_ref.rollout.name", "vllm")),
        v1=subject.is_v1,
        critic=bool(subject.has_critic),
        attention=subject.get(ATTENTION),
        loggers=tuple(loggers if isinstance(loggers, list) else [loggers]),
        env=subject.env,
        online=not subject.static,
    )
    yield from check_packages(subject.python, use, subject.loaded.preset.own_verl)
    if not subject.on_cpu and subject.at_least("0.7.1"):
        yield from _transfer(subject.python, str(subject.get(TRANSFER)))
    if use.gpu and use.engine == "sglang" and subject.at_least("0.8.0"):
        yield from _flashinfer(subject.python, subject.get(SGLANG_ATTENTION))
    if subject.get(LIGER) is True:
        message = "liger-kernel is missing, and model.use_liger requires it"
        yield from _required(subject.python, "SW-2", "liger-kernel", message, "set model.use_liger to false", LIGER)
    if (backend := subject.text(TRACE) or "") in known_names().software.trace_backends:
        message = f"{TRACE} names {backend}, which is not installed"
        yield from _required(subject.python, "SW-8", backend, message, f"remove {TRACE}", TRACE)


def _transfer(python: str, backend: str) -> Iterator[Finding]:
    """SW-11: packages that send weights to engines on other GPUs. veRL creates the sender in every trainer mode.

    veRL: `verl/checkpoint_engine/__init__.py`: an engine without its package is not registered.
    """
    with contextlib.suppress(UserError):
        env = verl_env.probe(python)
        have = {"cupy", *env.packages} if any(name in env.packages for name in verl_env.CUPY) else {*env.packages}
        for name in known_names().software.transfers.get(backend, ()):
            if env.verl and name not in have:
                cuda = f"cupy-cuda{(env.cuda or '12').partition('.')[0]}x"
                fix = f"{_install(env, cuda if name == 'cupy' else name)}, or set rollout.weight_transfer to naive"
                message = f"{name} is missing, and the weight transfer {backend} requires it"
                yield of_software.error("SW-11", message, fix, (TRANSFER,))


def _flashinfer(python: str, attention: Any) -> Iterator[Finding]:
    """SW-6: FlashInfer, which veRL chooses for the attention of SGLang from 0.5.12 on.

    veRL: `verl/workers/rollout/sglang_rollout/async_sglang_server.py: launch_server`.
    """
    with contextlib.suppress(UserError):
        env = verl_env.probe(python)
        chosen = attention or (
            "flashinfer" if versions.number(env.packages.get("sglang", "0")) >= (0, 5, 12) else "fa3"
        )
        if env.cuda and "sglang" in env.packages and chosen == "flashinfer" and "flashinfer-python" not in env.packages:
            message = "flashinfer-python is missing, and SGLang's attention requires it"
            fix = f"{_install(env, 'flashinfer-python')}, or set +{SGLANG_ATTENTION}=triton"
            yield of_software.error("SW-6", message, fix, (SGLANG_ATTENTION,))


def _required(python: str, id: str, package: str, message: str, otherwise: str, key: str) -> Iterator[Finding]:
    """A package that the value of a key requires; `otherwise` is the fix without it."""
    with contextlib.suppress(UserError):
        env = verl_env.probe(python)
        if env.verl and package not in env.packages:
            yield of_software.error(id, message, f"{_install(env, package)}, or {otherwise}", (key,))


def usual(machine: Machine) -> Use:
    """The requirements of PPO on this machine, without a preset."""
    gpu = bool(machine.gpus)
    return Use(gpu, "vllm" if gpu else "hf", True, True, None if gpu else "eager", (), os.environ)


def check_packages(python: str, use: Use, own: Path | None = None) -> Iterator[Finding]:
    """All findings about the packages of the interpreter `python`; `own` is a veRL that replaces the installed one."""
    try:
        env = verl_env.of(python, own)
    except UserError as error:
        yield of_software.error("SW-1", error.message, error.hint or "set PPO_TUI_PYTHON to the Python that has veRL")
        return
    if env.verl is None:
        install = verl_env.install_command(env.python, gpu=use.gpu)
        message = f"veRL is not installed for {env.python}"
        yield of_software.error("SW-1", message, f"run `{install}`, or set PPO_TUI_PYTHON to the Python that has it")
        return
    shown = ("verl", "torch", "vllm", "sglang", "ray", "transformers")
    found = ", ".join(f"{name} {env.packages[name]}" for name in shown if name in env.packages)
    yield of_software.info("SW-0", f"{env.python} (Python {env.python_version}): {found}", "")
    yield from _requirements(env, use)
    yield from _queue(env, use)
    yield from _engine(env, use)
    yield from _attention(env, use)
    yield from _trackers(env, use)
    yield from _bytecode(env)
    yield from _ours()


def _requirements(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """The requirements in the metadata of the installed veRL, with the extra of the engine."""
    for name, range_ in wanted(env, use.engine if use.gpu else "").items():
        have = env.packages.get(name)
        if have is None and name in known_names().packages:
            message = f"{name} is missing: veRL {env.verl} requires it"
            yield of_software.error("SW-2", message, _install(env, f"{name}{range_}"))
        elif have is not None and not _within(have, range_):
            message = f"{name} is {have}; veRL {env.verl} requires {range_}"
            yield of_software.warning("SW-3", message, _install(env, f"{name}{range_}"))


def wanted(env: VerlEnv, extra: str) -> dict[str, str]:
    """Package -> range of versions, as the installed veRL declares them; those of the extra override."""
    from packaging.requirements import InvalidRequirement, Requirement

    names = {name.lower().replace("_", "-"): name for name in verl_env.PACKAGES}
    extras = ("", extra, "verl-core") if extra else ("",)  # the engines' extras contain that one
    found: dict[str, str] = {}
    for text in env.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        marker, name = requirement.marker, names.get(requirement.name.lower().replace("_", "-"))
        if name is None or (marker and not any(marker.evaluate({"extra": each}) for each in extras)):
            continue
        if str(requirement.specifier) or name not in found:
            found[name] = str(requirement.specifier)
    return found


def _queue(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """P4, P5: packages of the trainer that plain `pip install verl` does not bring."""
    if use.v1 and "TransferQueue" not in env.packages:
        message = f"TransferQueue is missing: the trainer of veRL {env.verl} cannot start without it"
        fix = _install(env, known_names().software.queue)
        yield of_software.error("P4", message, fix, ("trainer.use_v1",))
    if "orjson" not in env.packages and versions.number(env.verl or "") >= (0, 7, 1):
        yield of_software.error("P5", "orjson is missing: veRL's file logger requires it", _install(env, "orjson"))


def _engine(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """The rollout engine, and a torch that knows GPUs."""
    if not use.gpu:
        return
    torch, package = env.packages.get("torch"), use.engine if use.engine in ENGINES else None
    if torch is not None and env.cuda is None:
        message = f"torch {torch} was built without CUDA, but the run requires GPUs"
        fix = _install(env, f"'verl[vllm]=={env.verl}'") + " in a separate environment"
        yield of_software.error("SW-4", message, fix, ("trainer.device",))
    if package is None:
        return
    have, key = env.packages.get(package), ("actor_rollout_ref.rollout.name",)
    if have is None:
        message = f"{package} is missing, and rollout.engine is {use.engine}"
        yield of_software.error("SW-5", message, _install(env, f"'verl[{package}]=={env.verl}'"), key)
        return
    if package != "vllm":
        return
    pairs, verl = known_names().software.oldest_vllm, versions.number(env.verl or "")
    oldest = next((vllm for since, vllm in pairs if verl >= versions.number(since)), "0")
    if versions.number(have) < versions.number(oldest):
        message = f"vllm is {have}; veRL {env.verl} requires at least {oldest}"
        yield of_software.error("SW-5", message, _install(env, f"'verl[vllm]=={env.verl}'"), key)
    if "flashinfer-python" not in env.packages and use.env.get("VLLM_USE_FLASHINFER_SAMPLER") != "0":
        message = f"flashinfer is missing: the sampler of vllm {have} may stop the engine at its first token"
        fix = "set VLLM_USE_FLASHINFER_SAMPLER: 0 under env in the preset, or " + _install(env, "flashinfer-python")
        yield of_software.warning("SW-6", message, fix, key)


def _attention(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """flash-attn, which veRL's critic requires regardless of the configuration."""
    if not use.gpu or "flash-attn" in env.packages:
        return
    fallback = env.verl == SUPPORTED
    asks = use.critic or use.attention in (None, "flash_attention_2")
    if not asks:
        return
    finding = of_software.warning if fallback else of_software.error
    message = (
        "flash-attn is missing: ppo-tui loads models with PyTorch's attention instead, which is slower and triples "
        "the memory of an update's logits"
        if fallback
        else f"flash-attn is missing: the critic of veRL {env.verl} cannot be loaded without it"
    )
    fix = (
        _install(env, "flash-attn --no-build-isolation")
        + " (a wheel for your torch saves an hour of building)"
        + ("" if fallback else ", or use algorithm=grpo with model.attention=sdpa")
    )
    yield finding("SW-7", message, fix, (ATTENTION,))


def _trackers(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """The chosen loggers; a missing one ends the run only after the whole start."""
    for name in use.loggers:
        if name in known_names().software.trackers and name not in env.packages:
            message = f"trainer.logger names {name}, which is not installed"
            yield of_software.error("SW-8", message, _install(env, name), ("trainer.logger",))
        if name in known_names().software.online:
            yield from _online(name, known_names().software.online[name], use)


def _online(name: str, needs: Mapping[str, Any], use: Use) -> Iterator[Finding]:
    """SW-9, SW-12: a login and a network for a tracker that is not offline."""
    env, (mode, *modes), (variable, usual) = use.env, needs["mode"], needs["url"]
    if env.get(mode, "").lower() in modes:
        return
    offline = f"set {mode}: {modes[0]} under env in the preset"
    home = Path(env.get("HOME", "/"))
    if "login" in needs and not any(env.get(each) or (home / each).exists() for each in needs["login"]):
        message = f"{name} has no login: the run would fail after the entire start-up"
        yield of_software.error("SW-9", message, f"run `{needs['command']}`, or {offline}", ("trainer.logger",))
        return
    url = without_login(env.get(variable) or usual)
    if use.online and url.startswith(("http://", "https://")) and (why := _unreachable(url)):
        message = f"{name} cannot be reached at {clean(url)} ({clean(why)})"
        yield of_software.warning("SW-12", message, offline, ("trainer.logger",))


def _unreachable(url: str) -> str | None:
    """Why no connection to the server, or to the proxy in front of it, can be made; None where it can."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_PATIENCE).close()
    except urllib.error.HTTPError:
        return None  # it answered
    except (ValueError, http.client.HTTPException):
        return "not a valid URL"
    except OSError as error:
        return str(getattr(error, "reason", error)) or type(error).__name__
    return None


def _bytecode(env: VerlEnv) -> Iterator[Finding]:
    """SW-13: packages without bytecode, as in images with PYTHONDONTWRITEBYTECODE. About ten processes of a run import
    torch, most of them one after another.
    """
    if env.uncompiled is not None:
        message = f"packages in {env.uncompiled} have no bytecode: a start takes up to twice as long"
        fix = f"run `{shlex.quote(env.python)} -m compileall -q -j 0 {shlex.quote(str(env.uncompiled))}`"
        yield of_software.warning("SW-13", message, fix)


def _ours() -> Iterator[Finding]:
    """Packages of ppo-tui itself."""
    try:
        metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        yield of_software.warning("SW-10", "nvidia-ml-py is missing: no GPU metrics", "run `pip install nvidia-ml-py`")
    try:
        old = metadata.version("pynvml")
    except metadata.PackageNotFoundError:
        return
    message = f"the package pynvml {old} is deprecated; nvidia-ml-py provides the module of that name"
    yield of_software.info("SW-10", message, "run `pip uninstall pynvml`")


def _within(version: str, range_: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(range_).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


def _install(env: VerlEnv, what: str) -> str:
    quoted = f"'{what}'" if any(sign in what for sign in "<>!") and "'" not in what else what
    return f"run `{env.python} -m pip install {quoted}`"
