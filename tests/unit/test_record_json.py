"""Everything that stands in a run directory as JSON: what is written is what is read, whatever else is there."""

import dataclasses
import functools
import importlib
import os
import tempfile
import typing
from pathlib import Path
from pkgutil import iter_modules
from types import NoneType, UnionType
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import launcher.record
from launcher.check import cluster_view, loading, reward, row_rules
from launcher.record import check, events, fix
from launcher.record.attempt import Exit
from launcher.record.check import Bound, Check
from launcher.record.events import Event, LevelChange, read_events
from launcher.record.info import RunInfo
from launcher.record.json import Record
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import MachineSample
from launcher.record.process import ProcessId
from launcher.record.state import RunState, current
from launcher.runs.act import rehearse
from launcher.runs.watch import proposals, startup

OF_RECORD = [
    importlib.import_module(f"launcher.record.{name}") for _, name, _ in iter_modules(launcher.record.__path__)
]
MODULES = (*OF_RECORD, cluster_view, loading, proposals, rehearse, reward, row_rules, startup)
RECORDS = sorted(
    {
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Record)
    }
    - {Record},
    key=lambda kind: kind.__name__,
)
KINDS = [kind for kind in vars(events).values() if hasattr(kind, "kind")]
each_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.just("\n"), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | TEXTS | st.sampled_from([str(level) for level in Level]),
    lambda deeper: st.lists(deeper, max_size=2) | st.dictionaries(TEXTS, deeper, max_size=2),
    max_leaves=4,
)


@functools.cache
def hints(record: Any) -> dict[str, Any]:
    """The types of a record's fields, by what JSON calls them."""
    types = typing.get_type_hints(record)
    if not dataclasses.is_dataclass(record):
        return types
    return {field.metadata.get("key", field.name): types[field.name] for field in dataclasses.fields(record)}


def required(record: Any) -> list[str]:
    missing = dataclasses.MISSING
    fields = [f for f in dataclasses.fields(record) if f.default is missing and f.default_factory is missing]
    return [field.metadata.get("key", field.name) for field in fields]


@functools.cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """What a field of this type may hold."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return st.one_of([values(each) for each in arguments])
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXTS, values(arguments[1]), max_size=2)
    if hint in RECORDS or hasattr(hint, "_fields"):
        types = typing.get_type_hints(hint)
        names = [f.name for f in dataclasses.fields(hint)] if hint in RECORDS else types
        return st.fixed_dictionaries({name: values(types[name]) for name in names}).map(lambda found: hint(**found))
    known = {str: TEXTS, int: NUMBERS, float: FLOATS, bool: st.booleans(), NoneType: st.none(), Any: JSON, object: JSON}
    return st.sampled_from(Level) if hint is Level else known[hint]


@functools.cache
def nearly(hint: Any) -> st.SearchStrategy[Any]:
    """JSON for a field of this type: right, or wrong somewhere."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return st.one_of([JSON, *(nearly(each) for each in arguments)])
    if origin is tuple:
        return JSON | st.lists(nearly(arguments[0]), max_size=2)
    if origin is dict:
        return JSON | st.dictionaries(TEXTS, nearly(arguments[1]), max_size=2)
    if hint in RECORDS or hasattr(hint, "_fields"):
        keys = {key: nearly(each) for key, each in hints(hint).items()}
        return JSON | st.fixed_dictionaries({}, optional=keys)
    return JSON if hint in (Any, NoneType) else JSON | values(hint).map(lambda x: str(x) if hint is Level else x)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the declared type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object):
        return True
    if origin in (typing.Union, UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is tuple:
        return type(value) is tuple and all(fits(each, arguments[0]) for each in value)
    if origin is dict:
        return type(value) is dict and all(type(key) is str and fits(value[key], arguments[1]) for key in value)
    if hint in RECORDS or hasattr(hint, "_fields"):
        types = typing.get_type_hints(hint)
        names = [f.name for f in dataclasses.fields(hint)] if hint in RECORDS else list(types)
        return type(value) is hint and all(fits(getattr(value, name), types[name]) for name in names)
    return type(value) is hint


def everything(record: Record) -> dict[str, Any]:
    """All fields, also those that two records may differ in and still be equal."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}  # type: ignore[arg-type]


def through_disk(record: Record) -> Any:
    return orjson.loads(orjson.dumps(record.to_json()))


def plain(hint: Any) -> Any:
    """One JSON value for a field of this type, the same each time."""
    if hint in RECORDS:
        types = hints(hint)
        return {key: plain(types[key]) for key in required(hint)}
    if typing.get_origin(hint) is dict:
        return {}
    if typing.get_origin(hint) is tuple:
        return [plain(typing.get_args(hint)[0])]
    members = typing.get_args(hint) or (hint,)
    return {str: "x", int: 1, float: 1.0, Level: "WARN"}[members[0]]


def test_no_record_is_left_out() -> None:
    def below(kind: type) -> set[str]:
        return {kind.__name__} | {name for each in kind.__subclasses__() for name in below(each)}

    assert below(Record) - {"Record"} == {kind.__name__ for kind in RECORDS} and len(RECORDS) > 20


@pytest.mark.nightly("launcher/record/", "launcher/metrics/records.py", every=4)
@pytest.mark.slow
@each_record
@settings(max_examples=15, deadline=None)
@given(data=st.data(), more=JSON)
def test_what_is_written_is_read_also_by_another_version(record: type[Record], data: st.DataObject, more: Any) -> None:
    made = data.draw(values(record))
    for value in (through_disk(made), {"of_a_later_version": more, **through_disk(made)}):
        found = record.from_json(value)
        assert everything(found) == everything(made) and fits(found, record)


@pytest.mark.nightly("launcher/record/", "launcher/metrics/records.py", every=4)
@pytest.mark.slow
@each_record
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_wild_values_under_the_right_keys_are_left_out_or_refused(record: type[Record], data: st.DataObject) -> None:
    keys = {key: nearly(hint) for key, hint in hints(record).items()}
    must = {key: keys.pop(key) for key in required(record)}
    value = data.draw(st.fixed_dictionaries(must, optional=keys))
    try:
        assert fits(record.from_json(value), record)
    except ValueError:
        assert must


@pytest.mark.nightly("launcher/record/", "launcher/metrics/records.py", every=4)
@pytest.mark.slow
@each_record
@settings(max_examples=15, deadline=None)
@given(data=st.data(), wild=JSON)
def test_a_wild_value_changes_no_other_field(record: type[Record], data: st.DataObject, wild: Any) -> None:
    value = through_disk(data.draw(values(record)))
    key = data.draw(st.sampled_from(list(hints(record))))
    try:
        found = through_disk(record.from_json(value | {key: wild}))
    except ValueError:
        assert key in required(record)
    else:
        same = {key, "figure"} if (record, key) == (check.Bound, "metric") else {key}  # under its old name too
        same |= {"key", "text"} if record is fix.Fix else set()  # which follow from the others
        assert {k: v for k, v in found.items() if k not in same} == {k: v for k, v in value.items() if k not in same}


@each_record
@pytest.mark.parametrize("value", [None, True, 7, "x", [], [["rule", "KL-1"]]])
def test_what_is_no_object_is_refused(record: type[Record], value: Any) -> None:
    with pytest.raises(ValueError, match=f"{record.__name__}: not a JSON object"):
        record.from_json(value)


@pytest.mark.parametrize(
    ("record", "key"),
    [(record, key) for record in RECORDS for key in required(record) if hints(record)[key] is not Any],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_what_a_record_cannot_do_without_is_named(record: type[Record], key: str) -> None:
    value = plain(record)
    assert record.from_json(value)
    wrong = "x" if value[key] == {} else {"no": "such"}
    for broken in ({k: v for k, v in value.items() if k != key}, value | {key: wrong}):
        with pytest.raises(ValueError, match=f"{record.__name__}: '{key}' is missing or invalid"):
            record.from_json(broken)


def test_the_rest_of_a_record_takes_its_defaults() -> None:
    assert RunState.from_json({"state": "running", "step": "7", "eta": True, "flags": None}) == RunState("running")
    assert Exit.from_json({"code": 0, "t": 5}) == Exit(0, t=5.0) and type(Exit.from_json({"t": 5}).t) is float
    assert Exit.from_json({"t": 10**400, "code": True}) == Exit()  # larger than any float


def test_a_damaged_item_hides_no_other() -> None:
    rows = [Check("KL-1", level=Level.WARN).to_json(), {"level": "OK"}, 7, {"rule": "KL-4", "level": "LOUD"}]
    found = RunState.from_json({"state": "running", "checks": rows}).checks
    assert found == (Check("KL-1", level=Level.WARN), Check("KL-4"))
    bounds = [{"level": "WARN", "side": ">", "value": 1}, {"level": "WARN", "side": ">"}, {"level": "?"}, [], None]
    assert Check.from_json({"rule": "KL-1", "bounds": bounds}).bounds == (Bound(Level.WARN, ">", 1.0),)


# Files


@settings(max_examples=40, deadline=None)
@given(data=st.data(), t=st.integers(0, 10**12).map(lambda ms: ms / 1000))
def test_an_event_is_a_line_that_is_read_again(data: st.DataObject, t: float) -> None:
    event = Event(t, data.draw(st.one_of([values(kind) for kind in KINDS])))
    line = event.to_line()
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert Event.from_line(line) == event
    assert orjson.loads(line)["kind"] == event.what.kind


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.fixed_dictionaries({"kind": TEXTS, "t": JSON}).map(orjson.dumps))
@example(b'{"t":1' + 400 * b"0" + b',"kind":"note","text":"x"}')
@example(b'{"t":NaN,"kind":"note"}')
@example(b'{"t":1,"kind":"of a later version"}')
@example(b'{"t":1,"kind":["note"]}')
def test_a_line_that_is_no_event_is_none(line: bytes) -> None:
    assert Event.from_line(line) is None


def test_damaged_lines_hide_no_event(tmp_path: Path) -> None:
    change = Event(2.0, LevelChange(7, "KL-1", Level.OK, Level.WARN, "m"))
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"cut\n\xff\n[]\n' + change.to_line() + b'{"t":3,"kind":"health","rule":"KL-1"}\n' + b'{"t":')
    assert list(read_events(path)) == [change]
    assert list(read_events(tmp_path / "missing")) == []


def test_a_change_says_from_and_to_as_people_do() -> None:
    line = Event(1.23456, LevelChange(7, "KL-1", Level.N_A, Level.WARN, "m")).to_line()
    change = {"step": 7, "rule": "KL-1", "from": "N-A", "to": "WARN", "message": "m"}
    assert orjson.loads(line) == {"schema": 1, "t": 1.235, "kind": "health", **change}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(value=nearly(RunState), here=st.booleans())
@example(value={"state": "running", "supervisor": {"pid": -1}, "heartbeat": -1e308}, here=True)
@example(value={"state": "running", "attempt": -1, "supervisor": {"pid": 2**62}, "driver": {"pid": 2**62}}, here=True)
def test_any_state_json_can_be_shown(value: Any, here: bool) -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    if here and isinstance(value, dict):  # processes of this machine, since its last start
        for name in ("supervisor", "driver"):
            value |= {name: {**value[name], "boot": me.boot}} if isinstance(value.get(name), dict) else {}
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir(Path(folder))
        run.state.write_bytes(orjson.dumps(value))
        assert fits(current(run), RunState)


@settings(max_examples=15, deadline=None)
@given(values(RunInfo))
def test_run_yaml_is_read_as_it_was_written(made: RunInfo) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.yaml"
        made.write(path)
        found = RunInfo.read(path)
    assert everything(found) == everything(made)


def test_a_sample_of_an_unknown_device_is_no_sample() -> None:
    gpus = [{"used": 1}, {"index": 0}, {"index": "0:1"}, {"index": 1.5}, {"index": True}]
    found = MachineSample.from_json({"t": 1, "gpus": gpus})
    assert [gpu.index for gpu in found.gpus] == [0, "0:1"]


def test_a_renamed_field_is_read_and_written_under_its_old_name_too() -> None:
    bound = check.Bound(Level.WARN, ">", 1.0, metric="lowest of 5 steps")
    written = bound.to_json()
    assert written["metric"] == written["figure"] == "lowest of 5 steps"
    del written["metric"]
    assert check.Bound.from_json(written) == bound
    assert "figure" not in check.Bound(Level.WARN, ">", 1.0).to_json()


def test_rows_of_data_keep_all_their_values() -> None:
    rows = ({"right": True, "level": 1, "tags": None},)
    assert row_rules.Rows.from_json({"examples": [*rows]}).examples == rows
