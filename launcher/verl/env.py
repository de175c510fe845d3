"""veRL's interpreter, which may differ from ppo-tui's: veRL pins numpy, ray and torch."""

import contextlib
import functools
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from launcher.core.errors import UserError
from launcher.inside.ppo_tui_inside import SUPPORTED

REQUIREMENTS_CPU = Path(__file__).with_name("requirements-cpu.txt")
CUPY = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
"""Distributions of the package `cupy`."""

_LIBRARIES = ("peft", "datasets", "pyarrow", "numpy", "orjson", "torchdata", "accelerate", "codetiming", "dill")
_LOGGERS = ("wandb", "tensorboard", "mlflow", "swanlab", "clearml", "trackio", "weave", "rl-insight")
_REMOTE = ("s3fs", "gcsfs", "ossfs")
PACKAGES = (
    *("verl", "vllm", "sglang", "torch", "transformers", "ray", "flash-attn", "flashinfer-python", "TransferQueue"),
    *("tensordict", "trl", *_LIBRARIES, "hydra-core", "pandas", "liger-kernel", *CUPY),
    *("nixl", "mooncake-transfer-engine", "nvidia-ml-py", "pynvml", *_LOGGERS),
    *(*_REMOTE, "nvtx", "tensorrt-llm", "torch-memory-saver", "antlr4-python3-runtime"),
)
"""Packages whose versions the checks and `doctor` read, in print order."""
PARTNERS = ("torchvision", "torchaudio", "hydra-core", "omegaconf")
"""Packages that fail at import with other than their required versions of PACKAGES."""

# Reads versions without importing a package, which would take half a minute.
_PROBE = """
import importlib.metadata as m, importlib.util as u, json, os, re, sys, sysconfig
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
found, torch = u.find_spec("verl"), u.find_spec("torch")
cuda = None
if torch and torch.origin:
    try: cuda = re.search(r"^cuda\\b[^=]*= *'([^']+)'", open(
        os.path.join(os.path.dirname(torch.origin), "version.py")).read(), re.M)
    except OSError: pass
def uncompiled(spec):
    if not spec or not spec.origin or os.path.exists(u.cache_from_source(spec.origin)): return None
    own = os.path.dirname(spec.origin)
    return os.path.dirname(own) if sys.dont_write_bytecode or not os.access(own, os.W_OK) else None
def folder(spec): return (list(spec.submodule_search_locations or []) or [None])[0] if spec else None
print(json.dumps({"python": sys.version.split()[0], "packages": {n: version(n) for n in sys.argv[1:]},
  "verl": folder(found), "sglang": folder(u.find_spec("sglang")),
  "requires": (m.requires("verl") or []) if version("verl") else [], "cuda": cuda and cuda[1],
  "uncompiled": uncompiled(torch), "headers": os.path.exists(sysconfig.get_path("include") + "/Python.h"),
  "partners": [(n, r) for n in {partners} if version(n) for r in m.requires(n) or [] if ";" not in r]}))
"""


@dataclass(frozen=True)
class VerlEnv:
    """An interpreter and its installed packages.

    `requires`: requirements of the installed veRL, in the notation of package metadata. `cuda`: CUDA version of torch
    ("13.0"), or None. `sglang_path`: SGLang's folder. `uncompiled`: folder of packages that never get bytecode, so that
    each process compiles them. `headers`: it has Python.h. `partners`: requirements of each of PARTNERS.
    """

    python: str
    python_version: str
    packages: dict[str, str] = field(hash=False)
    verl_path: Path | None
    requires: tuple[str, ...] = ()
    cuda: str | None = None
    sglang_path: Path | None = None
    uncompiled: Path | None = None
    headers: bool = True
    partners: tuple[tuple[str, str], ...] = ()

    @property
    def verl(self) -> str | None:
        """Version of veRL; None if not installed."""
        return self.packages.get("verl")


def interpreter(preset_python: str | None) -> str:
    """The first of PPO_TUI_PYTHON, the preset's `python:` and our own interpreter."""
    return os.environ.get("PPO_TUI_PYTHON") or preset_python or sys.executable


@functools.cache
def probe(python: str) -> VerlEnv:
    """Finds the packages installed for `python` (0.1 s, cached)."""
    path = str(Path(python).expanduser())
    try:
        done = subprocess.run(
            [path, "-c", _PROBE.replace("{partners}", repr(PARTNERS)), *PACKAGES],
            capture_output=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
            cwd="/",  # a folder named verl in the working directory is not an installed one
        )
        answer = orjson.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, orjson.JSONDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UserError(
            f"the interpreter '{python}' cannot be used ({reason})",
            "set PPO_TUI_PYTHON or the preset's 'python' to the Python that has veRL",
        ) from None
    packages = {name: version for name, version in answer["packages"].items() if version}
    verl, sglang, uncompiled = (
        Path(answer[name]) if answer[name] else None for name in ("verl", "sglang", "uncompiled")
    )
    requires, cuda = tuple(answer["requires"]), answer["cuda"]
    partners = tuple((name, text) for name, text in answer["partners"])
    own = (requires, cuda, sglang, uncompiled, answer["headers"], partners)
    return VerlEnv(path, answer["python"], packages, verl, *own)


def of(python: str | None, own: Path | None = None) -> VerlEnv:
    """The environment of a preset's interpreter; `own`: folder of a veRL that shadows the installed one."""
    env = probe(interpreter(python))
    if own is None:
        return env
    version = env.verl or "0"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        version = (own / "version" / "version").read_text("utf-8").strip() or version
    return replace(env, packages=env.packages | {"verl": version}, verl_path=own, requires=())


def require(python: str | None, own: Path | None = None) -> VerlEnv:
    """The environment of a run, as in `of`. Raises UserError without veRL."""
    env = of(python, own)
    if env.verl is None:
        raise UserError(
            f"veRL is not installed for {env.python}",
            f"run `{install_command(env.python, gpu=False)}` for the CPU or `{install_command(env.python, gpu=True)}` "
            "for a GPU, or set PPO_TUI_PYTHON to the Python that has it",
        )
    return env


def install_command(python: str, *, gpu: bool) -> str:
    """The command that installs veRL for an interpreter; the shipped file for the CPU names torch's index."""
    what = f"'verl[vllm]=={SUPPORTED}'" if gpu else f"-r {shlex.quote(str(REQUIREMENTS_CPU))}"
    return f"{shlex.quote(python)} -m pip install {what}"
