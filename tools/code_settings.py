"""Writes launcher/verl/code_settings.json.gz: the code of veRL that each setting enables, in 0.5.0 to 0.9.1.

`python tools/code_settings.py` reads the published wheels. A function, call or import is bound to a setting if every
place that reaches it is in a branch on this setting, or if it is registered under the setting's value.
"""

import ast
import gzip
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables
from launcher.verl.defaults import bundled, leaf, leaves, published

TARGET = Path(__file__).parents[1] / "launcher" / "verl" / "code_settings.json.gz"
ENGINES = ("vllm", "sglang", "trtllm", "hf")
STRATEGIES = ("megatron", "fsdp", "veomni", "automodel", "torchtitan", "mindspeed")
WORDS = read_tables(Path(__file__).with_suffix(".toml"))
GENERIC, FOREIGN, REGISTERS = set(WORDS["generic"]), set(WORDS["foreign"]), WORDS["registers"]
ENDS = (ast.Return, ast.Raise, ast.Continue)
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)")
_REQUIRES = re.compile(r"^Requires-Dist: ([\w-]+)(?:\[[\w,-]*\])? *\(?([<>=!~][^;)\s]*)", re.MULTILINE)
Gate = str  # KEY=VALUE, KEY (any value but none, 0 or False) or KEY= (none of them)


def known_defaults() -> dict[str, Any]:
    """All keys of FSDP and Megatron in any version, with their newest defaults."""
    trees = [bundled(version, engine) for version in published() for engine in ("megatron", "dp")]
    return {key: leaf(tree, key)[1] for tree in trees for key in leaves(tree)}


def keys_by_leaf() -> Mapping[str, list[str]]:
    """The keys by last name, the actor's first."""
    found: dict[str, set[str]] = defaultdict(set)
    for key in DEFAULTS:
        if ".profile" not in key and "profiler" not in key and not key.startswith("distillation"):
            found[key.rpartition(".")[2]].add(key)
    return {leaf: sorted(keys, key=lambda key: (".actor." not in key, key)) for leaf, keys in found.items()}


DEFAULTS = known_defaults()
LEAVES = keys_by_leaf()


def key_of(names: list[str]) -> str | None:
    """The key for a chain of names: `self.config.actor.use_kl_loss`; None if ambiguous."""
    if not names or FOREIGN.intersection(names):
        return None
    above = [name.removesuffix("_config").removesuffix("_cfg") for name in names[:-1]]
    above = [name for name in above if name not in ("self", "config", "cfg", "_config")]
    keys = LEAVES.get(names[-1], [])
    named = [key for key in keys if above and above[-1] in key.split(".")[:-1]]
    if not named and (names[-1] in GENERIC or "_" not in names[-1]):
        return None
    close = [key for key in named if key.split(".")[-2:-1] == above[-1:]]
    shown = [followed(key) for key in close or named or keys]
    return max(shown, key=lambda key: (".model." in key, shown.count(key), "actor" in key, -len(key)), default=None)


def followed(key: str) -> str:
    """The deciding key: if a key's default refers to another key, that key."""
    other = _REFERENCE.match(str(DEFAULTS[key]))
    return other[1] if other and other[1] in DEFAULTS else key


def holds_by_itself(gate: Gate) -> bool:
    """Whether a setting is off by default, as most are."""
    key, given, value = gate.partition("=")
    return bool(given and not value) and DEFAULTS[key] in (None, False, 0, "", [], {})


@dataclass
class Use:
    """A place that names a function, a class or a module."""

    path: str
    function: str
    gates: frozenset[Gate]


@dataclass
class Code:
    """The content of one version."""

    files: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Path -> its top-level functions and classes."""
    defined: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Name -> `path:name` of its definitions."""
    uses: dict[str, list[Use]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, dict[str, list[frozenset[Gate]]]] = field(default_factory=lambda: defaultdict(dict))
    registered: dict[str, frozenset[Gate]] = field(default_factory=dict)
    owner: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """`path:method` -> `path:class` of all classes with it."""


class Reader(ast.NodeVisitor):
    """Reads one file, with the settings of the current branch."""

    def __init__(self, path: str, code: Code) -> None:
        self.path, self.code = path, code
        self.gates: frozenset[Gate] = frozenset()
        self.function = self.owner = ""
        self.known: dict[str, str] = {}  # local names -> key

    def key(self, node: ast.AST) -> str | None:
        names: list[str] = []
        if isinstance(node, ast.Call):
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            words += [k.value.value for k in node.keywords if k.arg == "key" and isinstance(k.value, ast.Constant)]
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("bool", "str", "int") and node.args:
                return self.key(node.args[0])
            if not words or called not in ("get", "getattr", "select", "get_non_tensor_data"):
                return None
            base = node.func.value if called == "get" and isinstance(node.func, ast.Attribute) else node.args[:1]
            names = [*self.names(base[0] if isinstance(base, list) and base else base), *words[0].split(".")]
        elif isinstance(node, ast.Name):
            if node.id in self.known:
                return self.known[node.id]
            names = [node.id]
        else:
            names = self.names(node)
        return key_of(names)

    def names(self, node: Any) -> list[str]:
        names: list[str] = []
        while isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute):
                names.insert(0, node.attr)
            elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                names.insert(0, node.slice.value)
            else:
                return []
            node = node.value
        return [node.id, *names] if isinstance(node, ast.Name) else names

    def asked(self, test: ast.expr, *, positive: bool = True) -> frozenset[Gate]:
        """The settings that hold if this test is true, or false."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.asked(test.operand, positive=not positive)
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == positive:
                return frozenset().union(*(self.asked(each, positive=positive) for each in test.values))
            return frozenset()
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            key, other, op = self.key(test.left), test.comparators[0], test.ops[0]
            if key is None:
                return frozenset()
            values = _words(other)
            equal = isinstance(op, ast.Eq | ast.In) == positive and isinstance(
                op, ast.Eq | ast.In | ast.NotEq | ast.NotIn
            )
            if values and equal:
                return frozenset({f"{key}={'|'.join(values)}"})
            nothing = isinstance(other, ast.Constant) and other.value in (None, 0, False)
            if nothing and isinstance(op, ast.Is | ast.Eq | ast.LtE):
                return frozenset({f"{key}=" if positive else key})
            if nothing and isinstance(op, ast.IsNot | ast.NotEq | ast.Gt):
                return frozenset({key if positive else f"{key}="})
            return frozenset()
        key = self.key(test)
        return frozenset() if key is None else frozenset({key if positive else f"{key}="})

    def block(self, body: Iterable[ast.stmt]) -> None:
        before = self.gates
        for statement in body:
            self.visit(statement)
            if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ENDS):
                self.gates = self.gates | self.asked(statement.test, positive=False)
        self.gates = before

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        self.visit(node.test)
        for body, positive in ((node.body, True), (node.orelse, False)):
            before = self.gates
            self.gates = before | self.asked(node.test, positive=positive)
            self.block(body) if isinstance(body, list) else self.visit(body)
            self.gates = before

    visit_IfExp = visit_If

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and (key := self.key(node.value)) is not None:
                self.known[target.id] = key
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Any) -> None:
        place = f"{self.path}:{node.name}"
        self.code.defined[node.name].add(place)
        outer = self.function, self.known, self.gates, self.owner
        if isinstance(node, ast.ClassDef):
            self.owner = place
        elif self.owner:
            self.code.owner[place].add(self.owner)
        elif not self.function:
            self.code.files[self.path].append(place)
        if isinstance(node, ast.ClassDef) and not self.function:
            self.code.files[self.path].append(place)
        for decorator in node.decorator_list:
            self.register(decorator, place)
        if not isinstance(node, ast.ClassDef):
            self.function, self.known, self.gates = node.name, {}, frozenset()
        self.block(node.body)
        self.function, self.known, self.gates, self.owner = outer

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def register(self, node: ast.expr, place: str) -> None:
        if not isinstance(node, ast.Call):
            return
        name = next(iter(self.names(node.func)), "")
        if name.startswith("register") and name not in REGISTERS:
            name = next((each for each in REGISTERS if f"/{each}" in self.path), "")
        named = [each.value for each in node.keywords if each.arg in ("backend", "names")]
        values = [word for each in (*node.args[:1], *named) for word in _words(each)]
        if name in REGISTERS and values:
            self.code.registered[place] = frozenset({f"{REGISTERS[name]}={'|'.join(values)}"})

    def visit_Name(self, node: ast.Name) -> None:
        self.use(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.use(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name and self.function:
            self.code.calls[f"{self.path}:{self.function}"].setdefault(name, []).append(self.gates)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = getattr(node, "module", None) or ""
        for alias in node.names:
            if self.function and not module.startswith("verl"):
                self.use("import " + ".".join((module or alias.name).split(".")[:2]))
            elif not module.startswith("verl"):
                self.uses_at_top(module or alias.name)
            elif self.gates or self.function:
                self.use(alias.name)

    visit_ImportFrom = visit_Import

    def uses_at_top(self, module: str) -> None:
        self.code.uses["import " + ".".join(module.split(".")[:2])].append(Use(self.path, "", frozenset({"top"})))

    def use(self, name: str) -> None:
        self.code.uses[name].append(Use(self.path, self.function or self.owner.partition(":")[2], self.gates))


def _words(node: ast.expr) -> list[str]:
    """The texts of a constant or a list, or the last name of an enumeration's member."""
    if isinstance(node, ast.Constant):
        return [str(node.value)] if isinstance(node.value, str | bool) else []
    if isinstance(node, ast.Attribute):
        return [node.attr.lower()] if node.attr.isupper() else []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [word for each in node.elts for word in _words(each)]
    return []


def solve(code: Code) -> dict[str, frozenset[Gate]]:
    """The settings of each function, class, module and foreign package."""
    found = dict(code.registered)
    alone = {name for name, places in code.defined.items() if len({each.partition(":")[0] for each in places}) == 1}
    for _ in range(6):
        before = dict(found)
        for name, uses in code.uses.items():
            places = {place for place in code.defined.get(name, ()) if place not in code.owner or name in alone}
            if not places and not name.startswith("import "):
                continue
            each = [
                use.gates | found.get(f"{use.path}:{use.function}", found.get(use.path, frozenset())) for use in uses
            ]
            common = frozenset.intersection(*each)
            for place in places or {name}:
                found[place] = found.get(place, frozenset()) | common
        for method, owners in code.owner.items():
            shared = frozenset.intersection(*(found.get(owner, frozenset()) for owner in owners))
            found[method] = found.get(method, frozenset()) | shared
        for path, tops in code.files.items():
            found[path] = frozenset.intersection(*(found.get(top, frozenset()) for top in tops))
        if found == before:
            break
    for path in code.files:
        place = path.split("/")
        engine = next((each for each in ENGINES if f"{each}_rollout" in place), None)
        strategy = next((each for each in STRATEGIES if place[:4] == ["verl", "workers", "engine", each]), None)
        gate = f"actor_rollout_ref.rollout.name={engine}" if engine else f"actor_rollout_ref.actor.strategy={strategy}"
        if (engine or strategy) and not found.get(path):
            found[path] = frozenset({gate})
    return {place: gates for place, gates in found.items() if gates - {"top"}}


def read(sources: Mapping[str, str]) -> Code:
    code = Code()
    for path, text in sources.items():
        reader = Reader(path, code)
        reader.block(ast.parse(text).body)
    return code


def table(sources: Mapping[str, str]) -> dict[str, Any]:
    """`places`: path, `path:function` or `import NAME` -> settings; `calls`: `path:function` -> call -> settings."""
    code = read(sources)
    places = solve(code)
    calls: dict[str, dict[str, frozenset[Gate]]] = defaultdict(dict)
    for place, called in code.calls.items():
        for name, gates in called.items():
            own = frozenset.intersection(*gates) - places.get(place, frozenset())
            if own:
                calls[place][name] = own
    return {"places": places, "calls": calls}


def wheel_of(version: str) -> tuple[dict[str, str], dict[str, str]]:
    """The Python files of a published wheel, and its required package ranges, including extras."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["pip", "download", "-q", "--no-deps", f"verl=={version}", "-d", folder]
        subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            texts = {
                name: wheel.read(name).decode() for name in wheel.namelist() if name.endswith((".py", "/METADATA"))
            }
    metadata = next(text for name, text in texts.items() if name.endswith("/METADATA"))
    ranges = {name: range for name, range in _REQUIRES.findall(metadata) if range}
    code = (name for name in texts if name.startswith("verl/") and name.endswith(".py") and "/config/" not in name)
    return {name: texts[name] for name in code}, ranges


def merged(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The tables of all versions (newest last) as one: each place has the settings of the newest version with it."""
    settings: dict[Gate, int] = {}

    def numbers(gates: Iterable[Gate]) -> list[int]:
        said = sorted(gate for gate in gates if gate != "top" and not holds_by_itself(gate))
        return [settings.setdefault(gate, len(settings)) for gate in said]

    places: dict[str, list[int]] = {}
    calls: dict[str, dict[str, list[int]]] = {}
    for each in tables:
        places |= {place: numbers(gates) for place, gates in each["places"].items()}
        calls |= {
            place: {name: found for name, gates in called.items() if (found := numbers(gates))}
            for place, called in each["calls"].items()
        }
    places = {
        place: found
        for place, found in sorted(places.items())
        if found and (":" not in place or places.get(place.partition(":")[0]) != found)
    }
    return {"settings": list(settings), "places": places, "calls": {k: v for k, v in sorted(calls.items()) if v}}


def main(versions: list[str]) -> None:
    wheels = {version: wheel_of(version) for version in versions}
    whole = merged(table(sources) for sources, _ in wheels.values())
    requires = {version: ranges for version, (_, ranges) in wheels.items()}
    text = json.dumps({"schema": 1, "requires": requires, **whole}, separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(text, mtime=0))
    print(f"{TARGET}: {len(text):,} bytes, {TARGET.stat().st_size:,} packed; {len(whole['settings'])} settings")


if __name__ == "__main__":
    main(published())
