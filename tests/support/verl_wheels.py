"""The configuration trees of published veRL versions, composed by Hydra from their wheels.

pip downloads wheels once into ppo-tui's test cache; this repository has only the names and defaults in
`launcher/verl/verl_keys.json.gz`, written by `python tests/support/verl_wheels.py`.
"""

import fcntl
import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from waiting import PATIENCE

VERSIONS = ("0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
CACHE = Path("~/.cache/ppo-tui-tests/verl-wheels").expanduser()
BUNDLE = Path(__file__).parents[2] / "launcher" / "verl" / "verl_keys.json.gz"

# One process composes for many runs, and veRL's 40 files only once: that takes longer than all overrides.
COMPOSE = """
import json, sys
import yaml
yaml.SafeLoader = yaml.CSafeLoader  # what OmegaConf reads files with; a fifth of the time goes to reading in Python
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
root, name, resolve, runs = json.load(sys.stdin)
with initialize_config_dir(config_dir=root, version_base=None):
    ConfigStore.instance().store(name="all_files", node=compose(config_name=name))
    for overrides in runs:
        config = compose(config_name="all_files", overrides=overrides)
        print(json.dumps(OmegaConf.to_container(config, resolve=resolve)))
assert "verl" not in sys.modules
"""


def config_folder(version: str) -> Path | None:
    """The folder of a version's configuration files; None if its wheel is not available."""
    folder = CACHE / version
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be at it
        if not (folder / "verl").is_dir() and not _download(version, folder):
            return None
    return folder / "verl" / "trainer" / "config"


def _download(version: str, folder: Path) -> bool:
    words = ["pip", "download", "-q", "--no-deps", f"verl=={version}", "-d", str(folder)]
    try:
        subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, timeout=PATIENCE)
    except (subprocess.SubprocessError, OSError):
        return False
    with tempfile.TemporaryDirectory(dir=folder) as unpacked, zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        names = [name for name in wheel.namelist() if name.startswith("verl/trainer/config/")]
        wheel.extractall(unpacked, names)
        (Path(unpacked) / "verl").rename(folder / "verl")  # whole, or not at all
    return True


def compose(folder: Path, runs: list[list[str]], *, resolve: bool = True, name: str = "ppo_trainer") -> list[dict]:
    """The configuration `name` for each list of overrides. Raises AssertionError with Hydra's message."""
    done = subprocess.run(
        [sys.executable, "-c", COMPOSE],
        input=json.dumps([str(folder), name, resolve, runs]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def leaves(tree: dict, path: str = "") -> dict:
    """Dotted key -> value of all leaves in a tree; empty mappings are values."""
    found = {}
    for name, value in tree.items():
        key = f"{path}.{name}" if path else name
        found.update(leaves(value, key) if isinstance(value, dict) and value else {key: value})
    return found


def bundle() -> dict:
    """The keys of FSDP ("dp") and of Megatron."""
    return {"schema": 1, "versions": VERSIONS, "dp": spans("ppo_trainer"), "megatron": spans("ppo_megatron_trainer")}


def spans(name: str) -> dict:
    """Every key of a configuration with the versions in which it has a default: [[first, last, default], ...]."""
    keys: dict[str, list] = {}
    for number, version in enumerate(VERSIONS):
        folder = config_folder(version)
        assert folder is not None, f"no wheel of veRL {version}"
        for key, default in leaves(compose(folder, [[]], resolve=False, name=name)[0]).items():
            known = keys.setdefault(key, [])
            if known and known[-1][1] == number - 1 and known[-1][2] == default:
                known[-1][1] = number
            else:
                known.append([number, number, default])
    return dict(sorted(keys.items()))


if __name__ == "__main__":
    text = json.dumps(bundle(), separators=(",", ":")).encode()
    BUNDLE.write_bytes(gzip.compress(text, mtime=0))
    print(f"{BUNDLE}: {BUNDLE.stat().st_size} bytes")
