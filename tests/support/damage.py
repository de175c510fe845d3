"""Damages the files of a run: flips bytes, and puts values of other types under valid keys."""

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

WILD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**400,
    1e308,
    -1e308,
    1.5,
    "",
    "x",
    "nan",
    "7",
    "\x1b[31m\u202e",
    "\ud7ff" * 300,
    [],
    [1],
    [[]],
    [None, {}],
    {},
    {"a": {"b": 1}},
    {"": None},
)
_JSON = {".json", ".jsonl", ".yaml"}


def damage(path: Path, random_: random.Random) -> str:
    """Changes a file in one place; returns a description."""
    if path.suffix in _JSON and random_.random() < 0.7:
        return _mistype(path, random_)
    raw = bytearray(path.read_bytes())
    at = random_.randrange(len(raw) or 1)
    kind = random_.choice(["flip", "cut", "insert", "double", "zero"])
    if kind == "flip" and raw:
        raw[at] ^= 1 << random_.randrange(8)
    elif kind == "cut":
        del raw[at : at + random_.choice([1, 10, 10_000])]
    elif kind == "insert":
        raw[at:at] = random_.choice([b"\0", b"\n", b"\xff\xfe", b'"', b"{", b"]", b"&a ", b"!!python/x ", b"9" * 400])
    elif kind == "double":
        raw[at:at] = raw[at : at + 50]
    else:
        raw[at : at + 4096] = b"\0" * len(raw[at : at + 4096])
    path.write_bytes(raw)
    return f"{kind} at byte {at}"


def _mistype(path: Path, random_: random.Random) -> str:
    if path.suffix == ".jsonl":
        lines = path.read_bytes().splitlines()
        at = random_.randrange(len(lines))
        said, lines[at] = _edited(orjson.loads(lines[at]), random_)
        path.write_bytes(b"\n".join(lines) + b"\n")
        return f"line {at + 1}: {said}"
    if path.suffix == ".json":
        said, text = _edited(orjson.loads(path.read_bytes()), random_)
        path.write_bytes(text)
        return said
    from ruamel.yaml import YAML

    value = YAML(typ="safe").load(path.read_text())
    place, wild = _replace(value, random_)
    text = io.StringIO()
    YAML().dump(value, text)
    path.write_text(text.getvalue())
    return f"{place} = {str(wild)[:40]!r}"


def _edited(value: Any, random_: random.Random) -> tuple[str, bytes]:
    import json

    place, wild = _replace(value, random_)
    return f"{place} = {str(wild)[:40]!r}", json.dumps(value).encode()


def _replace(value: Any, random_: random.Random) -> tuple[str, Any]:
    places = [place for place in _places(value, ()) if place]
    place, wild = random_.choice(places), random_.choice(WILD)
    node = value
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = wild
    return ".".join(map(str, place)), wild


def _places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*place, key))
