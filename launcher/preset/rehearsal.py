"""Turns a preset into its rehearsal: a run on the CPU with a small model, few prompts and two steps."""

from collections.abc import Mapping

from launcher.core.errors import UserError
from launcher.core.tables import tables_of
from launcher.preset.effective import OTHER_ENGINES
from launcher.preset.files import LoadedPreset, load, restore
from launcher.preset.schema import FIELDS, value_of
from launcher.preset.settle import configuration, configured
from launcher.verl import hydra
from launcher.verl.config import ACTOR, CRITIC, PROMPT, REF, REWARD_MODEL, SYNC_STEP

_TABLES = tables_of(__file__)
STEPS: int = _TABLES["course"]["values"]["trainer.steps"]
_UNHEARD = ("health", "sweep")  # no alert leaves the machine
_OLDER = tuple(f"{block}_micro_batch_size" for block in (f"{ACTOR}.ppo", f"{CRITIC}.ppo", f"{REF}.log_prob"))
_GPUS = "CUDA_VISIBLE_DEVICES"
UNTRIED = "not tested: GPUs, GPU memory, the rollout engine, weights of a larger model, batch sizes"


def models(loaded: LoadedPreset) -> list[str]:
    """The distinct models that a preset trains. Raises UserError for a preset that cannot be rehearsed on a CPU."""
    config = configured(loaded)
    for engine in (config.text("model_engine"), config.text(f"{ACTOR}.strategy")):
        if engine in OTHER_ENGINES:
            raise UserError(f"the CPU platform runs only FSDP, not {engine}")
    if config.flag(f"{REWARD_MODEL}.enable"):
        raise UserError("the CPU platform has no engine for a reward model")
    if config.flag("distillation.enabled"):
        raise UserError("the CPU platform has no engine for the teacher of a distillation")
    named = [loaded.preset.model.path, loaded.preset.critic.path if config.has_critic else None]
    return list(dict.fromkeys(filter(None, named)))


def rehearsed(loaded: LoadedPreset, small: Mapping[str, str], cpus: int) -> LoadedPreset:
    """The rehearsal of a preset on `cpus` CPUs; `small`: a small model for each of `models`. Raises UserError."""
    snapshot = {name: value for name, value in loaded.snapshot().items() if name not in _UNHEARD}
    config = configuration(snapshot)
    settings = {
        **_on_the_cpu(cpus),
        **{name: value for name, value in _changes("plain").items() if config.is_set(FIELDS[name].key)},
        **{name: least for name, least in _TABLES["least"].items() if (config.number(FIELDS[name].key) or 0) > least},
        **_changes("course"),
        **{key: 1 for key in _OLDER if config.is_set(key)},
    }
    room = (config.whole(PROMPT) or 0) + _TABLES["least"]["data.max_response_length"]
    tokens = _TABLES["tokens"]["fields"]
    settings |= {name: room for name in tokens if (config.number(FIELDS[name].key) or 0) > room}
    if config.is_separate:  # a batch is several updates
        settings |= {**_TABLES["separate"], "data.train_batch_size": config.whole(SYNC_STEP) or 1}
    for name, path in (("model.path", loaded.preset.model.path), ("critic.path", loaded.preset.critic.path)):
        if path and small.get(path, path) != path:
            settings |= {name: small[path], "model.lora_adapter_path": None, "model.hf_config_path": None}
    raw = "env."  # variables are text as it stands
    words = [f"{name}={value if name.startswith(raw) else hydra.quote(value)}" for name, value in settings.items()]
    return restore(f"{loaded.name}-rehearsal", snapshot, words)


def _changes(table: str) -> Mapping[str, object]:
    return {**_TABLES[table]["values"], **dict.fromkeys(_TABLES[table]["unset"])}


def _on_the_cpu(cpus: int) -> Mapping[str, object]:
    """toy-cpu's device settings, and invalid GPU indices, which hide all GPUs."""
    toy = load("toy-cpu")
    found: dict[str, object] = {}
    for name, groups in _TABLES["toy"].items():
        value = value_of(toy.preset, FIELDS[name])
        found |= {name: value, **{f"{group}.{name.partition('.')[2]}": value for group in groups}}
    found |= {f"env.{name}": value for name, value in toy.preset.env.items() if name != "HF_HUB_OFFLINE"}
    found |= {"env.OMP_NUM_THREADS": max(1, min(8, cpus // 2)), f"env.{_GPUS}": "90,91"}
    return found | toy.preset.overrides
