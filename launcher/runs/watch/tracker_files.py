"""Reads tracker files: run folders of wandb, event files of TensorBoard, and databases."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from launcher.console.config_dump import flatten
from launcher.core.errors import UserError, of_file
from launcher.core.progress import Meter, Progress, unseen
from launcher.core.text import clean
from launcher.metrics.frameworks import Framework, of_settings
from launcher.record.info import mapping_of
from launcher.runs.watch import tracker_databases
from launcher.runs.watch.log import Log, no_metrics
from launcher.runs.watch.tracker_databases import numbers

_WANDB, _EVENTS = "*.wandb", "*tfevents*"
_ARGUMENTS = "args/text_summary"  # the settings, where transformers writes the events
_DEPTHS = ("", "*/", "*/*/")  # veRL: tensorboard_log/PROJECT/EXPERIMENT/
_INSTALL = "run pip install 'ppo-tui[trackers]'"
_LARGEST = 1 << 22  # bytes of a configuration


def is_tracker(path: Path) -> bool:
    """Whether a path is a wandb run, TensorBoard events, or a database of MLflow or Trackio."""
    try:
        return bool(_wandb_folders(path) or _event_files(path) or tracker_databases.files(path))
    except (OSError, ValueError):  # a NUL
        return False


def read(path: Path, names: Framework | None = None, progress: Progress = unseen, *, text: bool = False) -> list[Log]:
    """The runs of a file or folder, oldest first; `names`: a user's table. Raises UserError if nothing can be read.

    `text`: also those without metrics whose settings show their framework.
    """
    found: list[Log] = []
    try:
        folders, events, bases = _wandb_folders(path), _event_files(path), tracker_databases.files(path)
        logs = [log for folder in folders for log in folder.glob(_WANDB)]
        meter = Meter(progress, sum(file.stat().st_size for file in (*logs, *events, *bases)))
        found += (_wandb(folder, meter) for folder in folders)
        found += (_events(file, meter) for file in events)
        for file in bases:
            found += tracker_databases.read(file, meter)
        meter.add(meter.total)  # damaged files end early
    except OSError as error:
        raise of_file(f"cannot read {path}", error) from None
    for each in found if text else ():
        each.framework = None if each.tracked else of_settings(each.config)
    good = [each for each in found if each.tracked or each.console or each.framework]
    if not good:
        raise no_metrics(path, [note for each in found for note in each.notes])
    for each in good:
        each.translate(names)
    return good


def _wandb_folders(path: Path) -> list[Path]:
    """A run's folder, or all run folders in a folder `wandb`; `latest-run` in it links to one of them."""
    if path.suffix == ".wandb" and path.is_file():
        return [path.parent]
    if not path.is_dir():
        return []
    runs = [path, *sorted(path.glob("*run-*"), key=lambda run: run.name.removeprefix("offline-"))]
    return [run for run in runs if any(run.glob(_WANDB)) or (run / "files" / "wandb-summary.json").is_file()]


def _event_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.match(_EVENTS) else []
    found = (file for depth in _DEPTHS for file in path.glob(f"{depth}{_EVENTS}")) if path.is_dir() else ()
    return sorted(file for file in found if file.is_file())


def _wandb(folder: Path, meter: Meter) -> Log:
    """The records of run-ID.wandb; for missing parts, wandb's other local or downloadable files."""
    above = folder.absolute().parent
    found = Log(folder, name=folder.name, folder=above.parent if above.name == "wandb" else above)
    for file in sorted(folder.glob(_WANDB)):
        _read_wandb(file, found, meter)
    files = folder / "files"
    if not found.config:
        document = mapping_of(_text(files / "config.yaml"))
        found.config = flatten({key: _wanted(value) for key, value in document.items() if not key.startswith("_")})
    if not found.tracked:
        with suppress(ValueError):
            summary = json.loads(_text(files / "wandb-summary.json"))
            if isinstance(summary, dict):
                found.add(summary.get("_step"), summary.get("_timestamp"), numbers(summary.items()))
                found.notes.append(f"{folder.name} has no history: only the last values were read")
    output = files / "output.log"
    found.console = output if output.is_file() and output.stat().st_size else None
    return found


def _wanted(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) and "value" in value else value


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace") if file.stat().st_size <= _LARGEST else ""
    except OSError:
        return ""


def _read_wandb(file: Path, into: Log, meter: Meter) -> None:
    try:
        from google.protobuf.message import DecodeError
        from wandb.proto import wandb_internal_pb2
    except ImportError:
        raise UserError(f"{file} requires the package wandb", _INSTALL) from None
    reader: Any = getattr(wandb_internal_pb2, "Record")  # noqa: B009 (its types lack it)
    config: dict[str, Any] = {}
    damaged: list[str] = []
    with file.open("rb") as stream:
        for content in _records(stream, damaged.append, meter):
            try:
                record = reader.FromString(content)
            except DecodeError:
                damaged.append("a record")
                continue
            kind = record.WhichOneof("record_type")
            if kind == "run":
                run = record.run
                into.name = clean(run.display_name) or into.name
                into.started = into.started or run.start_time.seconds + run.start_time.nanos / 1e9 or None
                _update(config, run.config)
            elif kind == "config":
                _update(config, record.config)
            elif kind == "history":
                items = {_key(item): _value(item.value_json) for item in record.history.item}
                step = items.get("_step", record.history.step.num)
                into.add(step, items.get("_timestamp"), numbers(items.items()))
            elif kind == "exit":
                into.exit_code = record.exit.exit_code
    if damaged:
        into.notes.append(f"{file.name} is damaged ({damaged[0]}); only its readable part was read")
    into.config = flatten({key: value for key, value in config.items() if not key.startswith("_")})


def _key(item: Any) -> str:
    return item.key or ".".join(item.nested_key)


def _value(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def _update(config: dict[str, Any], record: Any) -> None:
    """Applies configuration changes; a single changed key is named by its path."""
    for item in record.update:
        *path, last = item.nested_key or [item.key]
        block = config
        for name in path:
            inner = block.get(name)
            block[name] = block = inner if isinstance(inner, dict) else {}
        block[last] = _value(item.value_json)


_BLOCK, _HEAD = 1 << 15, struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4


def _records(stream: IO[bytes], damaged: Callable[[str], None], meter: Meter) -> Iterator[bytes]:
    """The records in wandb's file, a LevelDB log. Skips records after damage in a block.

    The wandb package has the record types but no reader of the log, except the binary `wandb-core`.
    """
    begun: list[bytes] = []
    cut = False
    at = len(stream.read(_HEAD.size))  # ":W&B" and a version
    while block := stream.read(_BLOCK - at % _BLOCK):
        at, place = at + len(block), 0
        meter.add(len(block))
        while place + _HEAD.size <= len(block):
            checksum, size, kind = _HEAD.unpack_from(block, place)
            part = block[place + _HEAD.size : place + _HEAD.size + size]
            if not (checksum or size or kind):
                break  # padding
            if len(part) < size:
                break
            if zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
                damaged(f"at byte {at - len(block) + place}")
                begun, place = [], len(block)
                break
            begun = [part] if kind in (_WHOLE, _FIRST) else [*begun, part]
            if kind in (_WHOLE, _LAST):
                yield b"".join(begun)
                begun = []
            place += _HEAD.size + size
        cut = at % _BLOCK != 0 and place < len(block)
    if begun or cut:
        damaged("its end is missing")


def _events(file: Path, meter: Meter) -> Log:
    """The scalars of an event file, also of TensorFlow 2, by TensorBoard's record reader."""
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError:
        raise UserError(f"{file} requires the package tensorboard", _INSTALL) from None
    folder = file.absolute().parent
    found = Log(file, name=folder.name or "tensorboard", folder=folder)
    size, damaged = 0, False
    for content in RawEventFileLoader(str(file)).Load():
        framed = len(content) + 16  # length and checksums
        size += framed
        meter.add(framed)
        try:
            event = Event.FromString(content)
        except DecodeError:
            damaged = True
            continue
        found.started = found.started or event.wall_time
        data = {}
        for value in event.summary.value:
            if value.HasField("simple_value"):
                data[value.tag] = value.simple_value
            elif value.tag == _ARGUMENTS:
                with suppress(ValueError, TypeError, AttributeError):
                    found.config = flatten(json.loads(make_ndarray(value.tensor).item()))
            elif value.HasField("tensor") and value.metadata.plugin_data.plugin_name in ("scalars", ""):
                with suppress(ValueError, TypeError):  # words, or another size
                    data[value.tag] = float(make_ndarray(value.tensor).item())
        found.add(event.step, event.wall_time, data)
    if damaged or size < file.stat().st_size:
        found.notes.append(f"{file.name} is damaged after byte {size}; only the part before it was read")
    return found
