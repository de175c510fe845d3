"""Reads the lines of a console log, each with its mark: one pass for reader and diagnosis.

Most lines of a long log are irrelevant. The scanner finds the others by a few searches over many lines at once; only
these are cut, matched and decoded.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from launcher.console.config_dump import ConfigCollector
from launcher.console.forms import FormLine, FormReader
from launcher.console.lines import LONGEST, Block, Line, Piece, PieceSplitter, Writer, clean_line, clean_text, writer_of
from launcher.console.marks import PLAIN, SAMPLE_LINES, STEP_HINT, Mark, mark_at_start, marks_inside
from launcher.console.steps import Step, complete_step, read_step

_WRITERS = 4096  # writers of samples that are followed at a time
_CUT = (LONGEST, 4096)  # lengths of lines that may have been cut: by this program, by wandb's output.log
_FORM, _NOBODY, _EMPTY = Mark("form", ()), Writer("", 0), mark_at_start(b"")[1]
_ENOUGH = 300  # bytes of a step line, with a few of its metrics


class Marked(NamedTuple):
    """A line with its mark; `mark` and `match` are from `mark_at_start`, or the mark is inside the line.

    `step`: metrics of a step line, whatever precedes them. `config`: the resolved configuration by veRL key, if the
    line ends its dump. `form`: the content of another framework's line.
    """

    piece: Piece
    writer: Writer
    mark: Mark
    match: re.Match[bytes]
    step: Step | None = None
    config: dict[str, Any] | None = None
    form: FormLine | None = None

    @property
    def line(self) -> Line:
        return clean_line(self.piece)


class Scanner:
    """Reads a log in chunks of any size, which do not affect the lines.

    Omits the configuration dump except its first and last line, and the samples (prompt and response), as a model that
    writes code writes errors. A step line in two halves is repeated whole.
    """

    def __init__(
        self,
        places: Callable[[bytes], list[int]] | None = None,
        form: FormReader | None = None,
        *,
        metrics: bool = True,
    ) -> None:
        """`places` finds the lines to read, as the functions of `launcher.console.marks` do [default: all lines].

        `form` finds the lines of another framework. Without `metrics` only the beginning of a step line is read.
        """
        self._places, self._form, self._metrics = places, form, metrics
        self._first = True
        self._pieces = PieceSplitter()
        self._config: ConfigCollector | None = None
        self._samples: dict[Writer, int] = {}  # writers that print a sample, with its maximum last line
        self._begun: tuple[Marked, str] | None = None  # a step line, with its text, whose rest may follow

    def feed(self, data: bytes) -> list[Marked]:
        """The lines completed by `data`."""
        if self._places is None:
            return self._scan(self._pieces.feed(data))
        before, block, after = self._pieces.split(data)
        return self._scan(chain(before, self._select(block, self._places(block.data)), after))

    def skip(self, data: bytes) -> None:
        """Skips whole lines, which are only counted."""
        self._pieces.skip(data)
        self._config, self._begun = None, None

    def close(self) -> list[Marked]:
        """A last line without a newline."""
        return self._scan(self._pieces.close(), cut=True)

    def _select(self, block: Block, places: list[int]) -> Iterator[Piece | Marked]:
        """The lines at these places, and lines that earlier ones require; `_scan` handles each at once."""
        size, ahead = len(block.data), iter(places)
        place = next(ahead, size)
        while block.at < size:
            while place < block.at:
                place = next(ahead, size)
            if not self._first and self._config is None:
                wanted = self._next_of_step(block, place)
                if wanted == size:
                    return
                block.go_to(wanted)
                if self._form is not None and (parts := self._form.parts(block.data, block.at)):
                    yield Marked(block.take_to(parts[1]), _NOBODY, _FORM, _EMPTY, form=parts[0])
                    continue
            pieces = block.take()
            self._first = self._first and not pieces
            yield from pieces

    def _next_of_step(self, block: Block, place: int) -> int:
        """After a possibly truncated step line: the writer's next line if before `place`; otherwise `place`."""
        if self._begun is None:
            return place
        pid = self._begun[0].writer.pid
        found = block.data.find(b"pid=%d" % pid, block.at, place) if pid > 0 else block.at
        return found if found >= 0 else place

    def _scan(self, pieces: Iterable[Piece | Marked], *, cut: bool = False) -> list[Marked]:
        lines: list[Marked] = []
        for piece in pieces:
            if isinstance(piece, Marked):
                lines.append(piece)
                continue
            if self._form is not None and (form := self._form.find(piece)) is not None:
                lines.append(Marked(piece, _NOBODY, _FORM, _EMPTY, form=form))
                continue
            if self._config is None or not self._config.add(piece[2]):
                line = self._recognize(piece, cut)
            elif piece[2].endswith(b"}"):
                line = self._end_config(piece)
            else:
                continue
            if line is not None:
                lines.append(line)
        _look_inside(lines)
        return lines

    def _recognize(self, piece: Piece, cut: bool) -> Marked | None:
        raw = piece[2]
        mark, match = mark_at_start(raw)
        name = mark.name
        line = Marked(piece, writer_of(match[1], piece[3]), mark, match)
        if self._begun is not None and line.writer == self._begun[0].writer and (whole := self._complete(piece)):
            return whole
        if name == "step" or (not name and STEP_HINT in raw):
            step = self._step(line, cut)
            if step is not None:
                return step
        if name == "sample_begins":
            if len(self._samples) >= _WRITERS:
                self._samples.clear()
            self._samples[line.writer] = piece[0] + SAMPLE_LINES
            return None
        if self._samples and piece[0] <= self._samples.get(line.writer, 0):
            if name != "sample_ends" and (name != "job_error" or line.writer.source):
                return None
            del self._samples[line.writer]
        if name == "config_begins":
            self._config = ConfigCollector(raw[: match.start("text")])
            self._config.add(raw)
            if raw.endswith(b"}"):
                return self._end_config(piece) or line
        return line

    def _end_config(self, piece: Piece) -> Marked | None:
        """The line with the configuration; None while the dump is incomplete."""
        assert self._config is not None
        config = self._config.read()
        if config is not None or self._config.failed:
            self._config = None
        if config is None:
            return None
        mark, match = mark_at_start(piece[2])
        return Marked(piece, writer_of(match[1], piece[3]), mark, match, config=config)

    def _step(self, line: Marked, cut: bool) -> Marked | None:
        """The line with its metrics, if it is a step line."""
        raw, start = line.piece[2], line.match.start("text")
        if not self._metrics and (step := read_step(clean_text(raw[:_ENOUGH], start), cut=True)):
            return self._take_step(line._replace(step=step))
        text = clean_text(raw, start)
        step = read_step(text, cut=cut or len(raw) in _CUT)
        if step is None:
            return None
        whole = self._take_step(line._replace(step=step))
        if line.mark is not PLAIN:  # it starts its line, so another line may continue it
            self._begun = whole, text
        return whole

    def _complete(self, rest: Piece) -> Marked | None:
        """The step line joined from two console lines, if `rest` is its second half."""
        assert self._begun is not None
        line, text = self._begun
        self._begun = None
        if line.step is None or (line.step.sound and b"- " not in rest[2]):
            return None
        step = complete_step(text, clean_line(rest).text)
        return self._take_step(line._replace(step=step)) if step else None

    def _take_step(self, line: Marked) -> Marked:
        self._config = None  # a dump without its end by now stays incomplete
        self._samples.clear()
        return line


def _look_inside(lines: list[Marked]) -> None:
    """Adds the marks that are not at the start of their lines."""
    plain = [index for index, line in enumerate(lines) if line.mark is PLAIN and line.step is None]
    for index, mark in zip(plain, marks_inside([lines[index].piece[2] for index in plain]), strict=True):
        if mark is not PLAIN:
            lines[index] = lines[index]._replace(mark=mark)
