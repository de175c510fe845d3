"""The metric keys in an installed veRL's sources, without importing it."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

# Where the name is put together elsewhere: what comes in front of a key, and what a leading `{prefix}` stands for.
_FRONT = {
    "trainer/ppo/rollout_corr_helper.py": ("rollout_corr/",),
    "trainer/distillation/losses.py": ("actor/",),
    "workers/utils/losses.py": ("actor/",),
    "workers/engine_workers.py": ("actor/", "critic/"),
    "experimental/agent_loop/agent_loop.py": ("timing_s/",),
    "experimental/fully_async_policy/detach_utils.py": ("fully_async/",),
    "experimental/fully_async_policy/fully_async_rollouter.py": ("fully_async/",),
}
_PREFIX = {
    "trainer/ppo/v1/replay_buffer.py": "training",
    "trainer/ppo/metric_utils.py": "rollout/moe",
    "utils/seqlen_balancing.py": "global_seqlen",
}
_WHOLE = re.compile(  # names that are whole already
    r"(actor|critic|perf|timing_s|timing_per_token_ms|training|rollout_corr|fully_async|dynamic_resource|global_seqlen)/"
)
_RENAMED = {"actor/mfu", "critic/mfu"}  # to perf/mfu/actor and perf/mfu/critic, in the same function
# Not metrics of a training with PPO: paths of an engine's server, supervised training, an embodied policy.
_OTHERS = ("workers/rollout/", "trainer/sft_trainer", "trainer/main_eval", "experimental/vla/", "utils/tracking.py")
_KEY = re.compile(r"[a-z{][\w{}@.-]*(/[\w{}@.()+-]+)+")
_BARE = re.compile(r"[a-z][a-z0-9_{}]*")


def sources() -> Path | None:
    """The package of the installed veRL; None without one."""
    spec = importlib.util.find_spec("verl")
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def keys(package: Path) -> dict[str, str]:
    """Every metric key with its file; `x` for variable parts of a name."""
    found: dict[str, str] = {}
    for file in sorted(package.rglob("*.py")):
        name, text = file.relative_to(package).as_posix(), file.read_text(errors="replace")
        if name.startswith(_OTHERS) or not ("metric" in text or "marked_timer" in text or "timing" in text):
            continue
        for key in _written(ast.parse(text), bare=name in _FRONT):
            for whole in _wholes(key, name):
                found.setdefault(whole.replace("{}", "x"), name)
    return {key: name for key, name in found.items() if key not in _RENAMED}


def _wholes(key: str, file: str) -> list[str]:
    if key.endswith("/{}"):
        return []  # a prefix for keys that stand elsewhere
    if key.startswith("{}/"):
        return [_PREFIX[file] + key[2:]] if file in _PREFIX else []
    if "@" in key:
        return [f"val-core/data/acc/{key.replace('@{}', '@4')}"]
    if _WHOLE.match(key):
        return [key]
    return [front + key for front in _FRONT.get(file, ("",))]


def _written(tree: ast.AST, bare: bool) -> Iterator[str]:
    """Keys of dictionaries and subscripts; those without a slash only if `bare`, and only of metrics."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="marked_timer"), args=[first, *_]):
                if text := _text(first):
                    yield f"timing_s/{text}"
            case ast.Dict():
                yield from (text for key in node.keys if key and _KEY.fullmatch(text := _text(key) or ""))
            case ast.Subscript(value=value, slice=key, ctx=ast.Store()):
                text = _text(key) or ""
                metrics = bare and "metrics" in ast.unparse(value)
                if _KEY.fullmatch(text) or (metrics and _BARE.fullmatch(text)):
                    yield text


def _text(node: ast.AST) -> str | None:
    """A string, with `{}` for the values of an f-string."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
    return None
