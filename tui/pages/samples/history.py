"""Responses of other steps to a sample's prompt."""

from collections.abc import Sequence
from typing import NamedTuple

from launcher.record.layout import RunDir
from launcher.runs.watch.responses import Dump, Sample, dumps, prompt_of, responses_to
from tui.kit.drawing.rows import Row, crop
from tui.pages.samples.sample_rows import response_row

_MOST, _FILES = 12, 200  # responses in brief, and the files that are searched for them


class Response(NamedTuple):
    """A response to the prompt; `place`: its index in the dump."""

    dump: Dump
    place: int
    sample: Sample


def newest_first(run: RunDir) -> list[Dump]:
    """The dumps of a run in search order."""
    return sorted(dumps(run), key=lambda dump: (dump.step, dump.kind), reverse=True)


def responses_in(prompt: bytes, found: Sequence[Dump]) -> list[Response]:
    """The responses to a prompt."""
    responses: list[Response] = []
    for dump in found:
        try:
            responses += [Response(dump, place, each) for place, each in enumerate(responses_to(prompt, dump))]
        except OSError:  # removed meanwhile
            continue
    return responses


def history(run: RunDir, dump: Dump, place: int) -> list[Response]:
    """The newest responses to a sample's prompt."""
    try:
        prompt = prompt_of(dump, place)
    except OSError:
        prompt = None
    if prompt is None:
        return []
    found: list[Response] = []
    for each in newest_first(run)[:_FILES]:
        found += responses_in(prompt, [each])
        if len(found) >= _MOST:
            break
    return found[:_MOST]


def history_rows(responses: Sequence[Response] | None, dump: Dump, sample: Sample, columns: int) -> list[Row]:
    """A title and a line per response, with the sample's marked. None: the search continues."""
    if responses is None:
        return [[(" searching other steps for this prompt …", "dim")]]
    if len(responses) < 2:
        return [[(" No other step used this prompt.", "dim")]]
    title: Row = [(" Responses to this prompt", "title"), ("  c compares them word by word", "dim")]
    rows = [
        response_row(each.dump, each.sample, chosen=each.dump == dump and each.sample == sample) for each in responses
    ]
    return [crop(row, columns) for row in (title, *rows)]
