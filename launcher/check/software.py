"""The packages in veRL's environment against this veRL's requirements; each gap with the command that closes it.

The requirements come from the metadata of the installed veRL.
"""

import contextlib
import functools
import http.client
import os
import shlex
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from launcher.check.config.rollout import OPTIONS
from launcher.check.facts import known_names
from launcher.check.finding import Finding, found
from launcher.check.model import TOKENIZER
from launcher.check.subject import Subject
from launcher.core.errors import UserError
from launcher.core.text import clean, without_login
from launcher.inside.ppo_tui_inside import SUPPORTED
from launcher.machine.capacity import Machine
from launcher.verl import env as verl_env
from launcher.verl import versions
from launcher.verl.code_settings import within
from launcher.verl.config import CRITIC_PATH, MODEL_PATH, TRANSFER
from launcher.verl.env import VerlEnv

ATTENTION = "actor_rollout_ref.model.override_config.attn_implementation"
LIGER = "actor_rollout_ref.model.use_liger"
SGLANG_ATTENTION = f"{OPTIONS}.attention_backend"
TRACE = "actor_rollout_ref.rollout.trace.backend"
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
"""Rollout engine -> its package."""
REMOTE = ("data.train_files", "data.val_files", MODEL_PATH, CRITIC_PATH, TOKENIZER)
"""Keys whose paths veRL reads on the run's machine."""
_PATIENCE = 5.0  # seconds for a tracker's answer


@dataclass(frozen=True)
class Use:
    """The software requirements of a run."""

    gpu: bool
    engine: str
    v1: bool
    critic: bool
    attention: str | None
    loggers: tuple[str, ...]
    env: Mapping[str, str]
    online: bool = True  # addresses of trackers may be opened


def checks(subject: Subject) -> Iterable[Finding]:
    """The findings about the software for this preset."""
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
    if use.gpu and use.engine == "sglang":
        yield from _required(subject.python, "SW-2.memory-saver", "torch-memory-saver")
    if use.gpu and not subject.joins_cluster:
        yield from _compiler(subject)
    if subject.get(LIGER) is True:
        yield from _required(subject.python, "SW-2.liger", "liger-kernel")
    yield from _profiler(subject)
    yield from _remote(subject)
    if (backend := subject.text(TRACE) or "") in known_names().software.trace_backends:
        yield from _required(subject.python, "SW-8.trace", backend)


def _compiler(subject: Subject) -> Iterator[Finding]:
    """SW-15: checks for Triton's compiler. Triton: `runtime/build.py: _build`."""
    path = subject.env.get("PATH")
    if not subject.env.get("CC") and not any(shutil.which(name, path=path) for name in ("gcc", "clang", "cc")):
        yield found("SW-15.compiler")
    with contextlib.suppress(UserError):
        if not verl_env.probe(subject.python).headers:
            yield found("SW-15.headers", python=subject.python)


def _profiler(subject: Subject) -> Iterator[Finding]:
    """SW-2: the requirements of the profiler nsys. veRL: `main_ppo.py: run_ppo`; Ray: `runtime_env/nsight.py`."""
    steps = subject.get("global_profiler.steps")
    if subject.on_cpu or not steps or subject.text("global_profiler.tool") != "nsys":
        return
    yield from _required(subject.python, "SW-2.nvtx", "nvtx")
    if not subject.joins_cluster and not shutil.which("nsys", path=subject.env.get("PATH")):
        yield found("SW-2.nsys")


def _remote(subject: Subject) -> Iterator[Finding]:
    """SW-14: remote paths and the programs that read them. veRL: `verl/utils/fs.py: copy_to_local`."""
    values = [(key, subject.get(key)) for key in REMOTE]
    named = [(str(path), key) for key, value in values for path in (value if isinstance(value, list) else [value])]
    for path, key in dict(reversed(named)).items():
        scheme, remote, _ = path.partition("://")
        package = known_names().software.remote.get(scheme)
        if scheme == "hdfs" and not (subject.joins_cluster or shutil.which("hdfs", path=subject.env.get("PATH"))):
            yield found("SW-14.hdfs", key=key, path=clean(path))
        elif package and remote and not key.startswith("data."):
            yield found("SW-14.model", key=key, path=clean(path))
        elif package and remote:
            yield from _required(subject.python, "SW-14.package", package, key=key, path=clean(path))


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
                yield found(
                    "SW-11", name=name, backend=backend, install=_install(env, cuda if name == "cupy" else name)
                )


def _flashinfer(python: str, attention: Any) -> Iterator[Finding]:
    """SW-6: FlashInfer, veRL's attention for SGLang from 0.5.12 on.

    veRL: `verl/workers/rollout/sglang_rollout/async_sglang_server.py: launch_server`.
    """
    with contextlib.suppress(UserError):
        env = verl_env.probe(python)
        chosen = attention or (
            "flashinfer" if versions.number(env.packages.get("sglang", "0")) >= (0, 5, 12) else "fa3"
        )
        if env.cuda and "sglang" in env.packages and chosen == "flashinfer" and "flashinfer-python" not in env.packages:
            yield found("SW-6.sglang", install=_install(env, "flashinfer-python"))


def _required(python: str, name: str, package: str, **words: Any) -> Iterator[Finding]:
    """The finding `name` for a missing package that the value of a key requires."""
    with contextlib.suppress(UserError):
        env = verl_env.probe(python)
        if env.verl and package not in env.packages:
            yield found(name, package=package, install=_install(env, package), **words)


def usual(machine: Machine) -> Use:
    """The requirements of PPO on this machine, without a preset."""
    gpu = bool(machine.gpus)
    return Use(gpu, "vllm" if gpu else "hf", True, True, None if gpu else "eager", (), os.environ)


def check_packages(python: str, use: Use, own: Path | None = None) -> Iterator[Finding]:
    """All findings about packages of the interpreter `python`; `own`: a veRL that replaces the installed one."""
    try:
        env = verl_env.of(python, own)
    except UserError as error:
        yield found(
            "SW-1.interpreter",
            message=error.message,
            fix=error.hint or "set PPO_TUI_PYTHON to the Python that has veRL",
        )
        return
    if env.verl is None:
        install = verl_env.install_command(env.python, gpu=use.gpu)
        yield found("SW-1.verl", python=env.python, install=install)
        return
    shown = ("verl", "torch", "vllm", "sglang", "ray", "transformers")
    packages = [f"{name} {env.packages[name]}" for name in shown if name in env.packages]
    yield found("SW-0", python=env.python, version=env.python_version, packages=packages)
    yield from _requirements(env, use)
    yield from _queue(env, use)
    yield from _engine(env, use)
    yield from _attention(env, use)
    yield from _trackers(env, use)
    yield from _bytecode(env)
    yield from _ours()


def _requirements(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """Checks the requirements in the installed veRL's metadata, with the engine's extra, and of `PARTNERS`."""
    from packaging.requirements import Requirement

    for name, range_ in wanted(env.requires, use.engine if use.gpu else "").items():
        have = env.packages.get(name)
        if have is None and name in known_names().packages:
            yield found("SW-2.package", name=name, verl=env.verl, fix=_install(env, f"{name}{range_}"))
        elif have is not None and not within(have, range_):
            fix = _install(env, f"{name}{range_}")
            yield found("SW-3.verl", name=name, have=have, verl=env.verl, range=range_, fix=fix)
    for other, text in env.partners:
        asked = Requirement(text)
        have, range_ = env.packages.get(asked.name), str(asked.specifier)
        if have is not None and not within(have, range_):
            fix = _install(env, f"{asked.name}{range_}")
            yield found("SW-3.partner", name=asked.name, have=have, other=other, range=range_, fix=fix)


@functools.cache
def wanted(requires: tuple[str, ...], extra: str) -> Mapping[str, str]:
    """Version range per package in veRL's requirements; ranges of the extra replace others."""
    from packaging.requirements import InvalidRequirement, Requirement

    names = {name.lower().replace("_", "-"): name for name in verl_env.PACKAGES}
    extras = ("", extra, "verl-core") if extra else ("",)  # the engines' extras contain that one
    found: dict[str, str] = {}
    for text in requires:
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
    """P4, P5: trainer packages that plain `pip install verl` omits."""
    if use.v1 and "TransferQueue" not in env.packages:
        yield found("P4", verl=env.verl, fix=_install(env, known_names().software.queue))
    if "orjson" not in env.packages and versions.number(env.verl or "") >= (0, 7, 1):
        yield found("P5", fix=_install(env, "orjson"))


def _engine(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """Checks the rollout engine and that torch has CUDA."""
    if not use.gpu:
        return
    torch, package = env.packages.get("torch"), ENGINES.get(use.engine)
    if torch is not None and env.cuda is None:
        yield found("SW-4", torch=torch, fix=_install(env, f"'verl[vllm]=={env.verl}'"))
    if package is None:
        return
    have = env.packages.get(package)
    if have is None:
        yield found(
            "SW-5.missing",
            package=package,
            engine=use.engine,
            fix=_install(env, package if package != use.engine else f"'verl[{package}]=={env.verl}'"),
        )
        return
    if package != "vllm":
        return
    pairs, verl = known_names().software.oldest_vllm, versions.number(env.verl or "")
    oldest = next((vllm for since, vllm in pairs if verl >= versions.number(since)), "0")
    if versions.number(have) < versions.number(oldest):
        yield found("SW-5.old", have=have, verl=env.verl, oldest=oldest, fix=_install(env, f"'verl[vllm]=={env.verl}'"))
    if "flashinfer-python" not in env.packages and use.env.get("VLLM_USE_FLASHINFER_SAMPLER") != "0":
        yield found("SW-6.vllm", have=have, fix=_install(env, "flashinfer-python"))


def _attention(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """Checks flash-attn, which veRL's critic requires regardless of the configuration."""
    if not use.gpu or "flash-attn" in env.packages:
        return
    fallback = env.verl == SUPPORTED
    asks = use.critic or use.attention in (None, "flash_attention_2")
    if not asks:
        return
    install = _install(env, "flash-attn --no-build-isolation")
    yield found("SW-7.replaced" if fallback else "SW-7.missing", verl=env.verl, install=install)


def _trackers(env: VerlEnv, use: Use) -> Iterator[Finding]:
    """Checks the chosen loggers; a missing one ends the run only after its whole start."""
    for name in use.loggers:
        package = name.replace("_", "-")
        if package in known_names().software.trackers and package not in env.packages:
            yield found("SW-8.tracker", name=package, fix=_install(env, package))
        if name in known_names().software.online:
            yield from _online(name, known_names().software.online[name], use)


def _online(name: str, needs: Mapping[str, Any], use: Use) -> Iterator[Finding]:
    """SW-9, SW-12: checks login and network for an online tracker."""
    env, (mode, *modes), (variable, usual) = use.env, needs["mode"], needs["url"]
    if env.get(mode, "").lower() in modes:
        return
    home = Path(env.get("HOME", "/"))
    if "login" in needs and not any(env.get(each) or (home / each).exists() for each in needs["login"]):
        yield found("SW-9", name=name, command=needs["command"], mode=mode, value=modes[0])
        return
    url = without_login(env.get(variable) or usual)
    if use.online and url.startswith(("http://", "https://")) and (why := _unreachable(url)):
        yield found("SW-12", name=name, url=clean(url), why=clean(why), mode=mode, value=modes[0])


def _unreachable(url: str) -> str | None:
    """Why the server or its proxy is unreachable; None if it is reachable."""
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
    torch, mostly one after another.
    """
    if env.uncompiled is not None:
        yield found(
            "SW-13", uncompiled=env.uncompiled, python=shlex.quote(env.python), quoted=shlex.quote(str(env.uncompiled))
        )


def _ours() -> Iterator[Finding]:
    """Checks the packages of ppo-tui itself."""
    try:
        metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        yield found("SW-10.missing")
    try:
        old = metadata.version("pynvml")
    except metadata.PackageNotFoundError:
        return
    yield found("SW-10.old", old=old)


def _install(env: VerlEnv, what: str) -> str:
    quoted = f"'{what}'" if any(sign in what for sign in "<>!") and "'" not in what else what
    return f"run `{env.python} -m pip install {quoted}`"
