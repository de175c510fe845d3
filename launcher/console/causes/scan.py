"""One pass over a console log: everything in it that could explain how the run ended, in bounded memory."""

import functools
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.console.causes import CATALOGUE, Cause
from launcher.console.causes.frames import Folders, Owner
from launcher.console.causes.sighting import Quote, Sighting, regex
from launcher.console.lines import Line
from launcher.console.marks import SAMPLE

WRITERS = 4096  # log sources that are followed at once
NEAR = 80  # lines of one source after which an exception no longer belongs to the frames before it
KEPT = 200  # exceptions kept of the driver's last words
CACHED = 1024
LONGEST = 1000  # characters of a line that are looked at and quoted

# What vLLM, Ray, torch and Python's logging put before their text.
_DECORATION = re.compile(
    r"(?:\[[^\[\]]{1,80}\]:? ?|\(raylet\) |(?:ERROR|WARNING|CRITICAL|INFO)[: ](?:[\d:,. /-]{4,30}[: ])?"
    r"|\d{4}-\d\d-\d\d[ T][\d:,.]+ +|[\w.]+\.(?:cc|cpp|py):\d+(?:: | -- |\] ?))*"
)
_DECORATED = frozenset("[(EWCI0123456789")
_FRAME = re.compile(r' +File "([^"]+)", line \d+, in (\S+)')
_METHOD = re.compile(r"ray::(\S+?)\(\) \(")
_RAISED = re.compile(r"((?:[A-Za-z_]\w*\.)*)([A-Z]\w*)(?:: |:$|\(|$)")
_ERROR_NAME = re.compile(r"Error|Exception|Interrupt|Exit|StopIteration")
_REPEATED = re.compile(r" \[repeated (\d{1,9})x across cluster\].*$")
_STEP = re.compile(r"step:(\d+) - ")
_MARK = re.compile(
    r"(?P<overrides>Error executing job with overrides)"
    r"|(?P<hydra>Set the environment variable HYDRA_FULL_ERROR)"
    r"|(?P<traceback>Traceback \(most recent call last\))"
    r"|(?P<chained>The above exception was the direct cause)"
    r"|(?P<ignored>Exception ignored in)|(?P<target>Error in call to target )|(?P<key>full_key: )"
    r"|(?P<launch>All configuration checks passed|ray init kwargs: |Started a local Ray instance)"
    r"|(?P<repetition>Status message: Job entrypoint command failed)|(?P<dump>\{'actor_rollout_ref')"
    r"|(?P<data>dataset len: |Using dataset class)|(?P<groups>worker group kwargs: )"
    r"|(?P<created>create worker group )"
    r"|(?P<ready>all initialize finished)|(?P<total>Total training steps: (\d{1,12}))"
    r"|(?P<bar>Training Progress: +\d+%\|[^|]*\| *(\d{1,12})/(\d{1,12}))"
    r"|(?P<final>\(?[\"']?Final validation metrics: )|(?P<saved>(?:Saving checkpoint to"
    r"|local_global_step_folder:) (\S+))"
    r"|(?P<prompt>Error in _run_prompt)|(?P<signal>\*\*\* SIG(TERM|INT) received)"
    r"|(?P<nan>WARN: .*grad_norm is not finite)"
)


@dataclass
class Writer:
    """One process that writes to the log, and the traceback it is printing."""

    context: deque[str]
    near: int = -NEAR  # its last line that belongs to a traceback
    code: str = ""
    method: Quote | None = None
    frame: Quote | None = None  # the one that tells most, so far
    owner: Owner = Owner.LIBRARY
    sample: int = 0  # printing an answer, until this line at most
    skip: bool = False  # the traceback that follows was ignored by Python itself

    def begin(self, method: Quote | None) -> None:
        """Frames follow, of this process or of the remote call that it waited for."""
        self.code, self.method, self.frame, self.owner = "", method, None, Owner.LIBRARY


class Scan:
    """What a log tells about its run; feed it every line once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Cause, ...]] = {}  # what the text of an exception matches
        self._restart()

    def _restart(self) -> None:
        self.step: int | None = None
        self.total: int | None = None
        self.failed_prompts = 0
        self.ready = False
        self.marks: dict[str, Quote] = {}
        """The first line of each mark; of step, bar, saved and last the last one."""
        self.fatal: int | None = None  # the line from which on the run is certainly over
        self.block: list[Sighting] = []  # the driver's last words
        self.chained = False  # they contain a "direct cause": the first exception is the root
        self.seen: dict[str, tuple[Cause, Sighting]] = {}  # each cause's first sighting elsewhere
        self.strangers: list[Sighting] = []  # the first exceptions elsewhere that no entry knows
        self._open = False
        self._repeated = False
        self._dumping = False  # the configuration is being printed
        self._writers: dict[tuple[str, int], Writer] = {}
        self._folders = Folders()
        self.processes: dict[int, str] = {}
        """Who wrote to the log, by pid."""

    def read(self, lines: Iterable[Line]) -> None:
        for line in lines:
            if self._repeated:  # `ray job` shows the last lines once more
                return
            if line.text:
                self.feed(line)

    def feed(self, line: Line) -> None:
        text = line.text
        if line.pid not in self.processes and len(self.processes) < WRITERS:
            self.processes[line.pid] = line.source
        writer = self._writers.get((line.source, line.pid))
        if writer is not None and writer.sample:
            ended = text.startswith("[score]") or (not line.source and text.startswith("Error executing job"))
            if line.number <= writer.sample and not ended:
                return
            writer.sample = 0
        if text.startswith(("[prompt]", "[response]")):
            self._writer(line).sample = line.number + SAMPLE
            return
        if text[0] in _DECORATED:
            text = text[_decorated(text) :]
            if not text:
                return
        if text[0] == " ":
            if writer is not None and line.number - writer.near < NEAR:
                self._frame(writer, line.number, text)
            elif self._dumping:
                self._dumped(line)
            return
        if text.startswith("step:"):
            self._step(line, text)
            return
        self.marks["last"] = _quote(line)
        mark = _MARK.match(text)
        if mark is not None:
            self._mark(mark, line, text)
            return
        near = writer is not None and line.number - writer.near < NEAR
        if "ray::" in text and (method := _METHOD.search(text)):
            writer = self._writer(line)
            writer.near = line.number
            writer.context.append(method[1])
            writer.begin(_quote(line))
            if text.startswith(("ray::", "ray.exceptions.RayTaskError")) or "creation task" in text:
                return
        if near and _is_exception(text):
            self._raised(line, text)
        elif any_line().match(text):
            causes = tuple(cause for cause in CATALOGUE if cause.line and regex(cause.line).match(text))
            self._add(self._sighting(line, text, causes, raised=False))

    def _writer(self, line: Line) -> Writer:
        writer = self._writers.get((line.source, line.pid))
        if writer is None:
            if len(self._writers) >= WRITERS:
                self._writers.clear()
            writer = self._writers[line.source, line.pid] = Writer(deque(maxlen=64))
        return writer

    def _frame(self, writer: Writer, number: int, text: str) -> None:
        writer.near = number
        frame = _FRAME.match(text)
        if frame is None:
            if text.strip(" ^~"):
                writer.code = text.strip()[:300]
            return
        path, function = frame.groups()
        inside = path.rpartition("-packages/")[2]
        writer.context.append(f"{inside}:{function}")
        writer.code = ""
        owner = self._folders.owner(path)
        if owner >= writer.owner:
            writer.frame, writer.owner = Quote(number, text.strip()), owner

    def _step(self, line: Line, text: str) -> None:
        found = _STEP.match(text)
        if found is None or (line.source and not line.source.startswith(("TaskRunner", "worker"))):
            return
        self.step = int(found[1][:12])
        self._alive("step", line)

    def _alive(self, mark: str, line: Line) -> None:
        self.ready = True
        self.marks[mark] = _quote(line)
        if self.fatal is None and self._open:  # the driver's traceback was not the end
            self._open = False
            self.block.clear()

    def _mark(self, mark: re.Match[str], line: Line, text: str) -> None:
        name = mark.lastgroup or ""
        driver = not line.source
        if name in ("overrides", "hydra", "launch", "signal", "repetition") and not driver:
            return
        self.marks.setdefault(name, _quote(line))
        if name in ("traceback", "target", "overrides"):
            self._begin(name, line)
        elif name == "hydra":
            self.fatal = self.fatal or (self.block[0].quote.line if self.block else line.number)
            self._open = False
        elif name == "launch" and (self.fatal or "signal" in self.marks):
            self._restart()  # another attempt was appended to the same log
        elif name == "dump":
            self._dumping = True
            self._dumped(line)
        elif name == "repetition":
            self._repeated = True
        elif name == "chained" and driver:
            self.chained = True
        elif name == "ignored":
            self._writer(line).skip = True
        elif name == "key" and driver and self.block and line.number - self.block[-1].quote.line < 5:
            self.block[-1].full_key = _quote(line)
            self.block[-1].around += f"\n{text}"
        elif name == "ready":
            self.ready = True
        elif name == "total":
            self.total = int(mark["total"].rpartition(" ")[2])
        elif name == "bar":
            self._alive("bar", line)
        elif name == "saved":
            self.marks["saved"] = Quote(line.number, mark["saved"].rpartition(" ")[2])
        elif name == "prompt":
            repeated = _REPEATED.search(text)
            self.failed_prompts += int(repeated[1]) if repeated else 1

    def _dumped(self, line: Line) -> None:
        if line.text.endswith("}"):  # every line of the printed configuration but the last ends otherwise
            self._dumping = False
            self.marks["dumped"] = _quote(line)

    def _begin(self, name: str, line: Line) -> None:
        """A traceback, or the line before one, of whichever process."""
        writer = self._writer(line)
        writer.near = line.number
        writer.context.clear()
        writer.begin(None)
        if name == "target":
            writer.context.append("Error in call to target")
        skip, writer.skip = writer.skip and name == "traceback", False
        if line.source:
            return
        if skip:
            writer.near = -NEAR
        elif name == "overrides":
            self.fatal, self._open, self.chained = line.number, True, False
            self.block.clear()
        elif self.fatal is None and name == "traceback":
            self._open, self.chained = True, False
            self.block.clear()

    def _raised(self, line: Line, text: str) -> None:
        text = _REPEATED.sub("", text[:LONGEST]) if "[repeated " in text else text[:LONGEST]
        causes = self._known.get(text)
        if causes is None:
            causes = tuple(cause for cause in CATALOGUE if cause.raised and regex(cause.raised).search(text))
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[text] = causes
        self._add(self._sighting(line, text, causes, raised=True))

    def _sighting(self, line: Line, text: str, causes: tuple[Cause, ...], raised: bool) -> Sighting:
        writer = self._writers.get((line.source, line.pid))
        around = [f"from {line.source or 'driver'} {'stepping' if self.ready else 'starting'}"]
        found = Sighting(_quote(line), text, line.source, "", None, None, Owner.LIBRARY, causes, raised)
        if writer is not None and raised:
            around += [*writer.context, writer.code]
            found.method, found.frame, found.owner = writer.method, writer.frame, writer.owner
        found.around = "\n".join(around)
        return found

    def _add(self, sighting: Sighting) -> None:
        deadly = not sighting.raised and any(cause.fatal for cause in sighting.causes)
        if not sighting.source and (deadly or self._open):
            if deadly and self.fatal is None:
                self.fatal, self._open = sighting.quote.line, True
            if len(self.block) < KEPT:
                self.block.append(sighting)
            return
        explained = False
        for cause in sighting.causes:
            if sighting.shows(cause):
                explained = True
                self.seen.setdefault(cause.id, (cause, sighting))
        if not explained and len(self.strangers) < 16:
            self.strangers.append(sighting)


def _quote(line: Line) -> Quote:
    return Quote(line.number, line.text[:LONGEST])


def _decorated(text: str) -> int:
    match = _DECORATION.match(text)
    return match.end() if match else 0


def _is_exception(text: str) -> bool:
    match = _RAISED.match(text)
    return match is not None and bool(_ERROR_NAME.search(match[2]) or match[1])


@functools.cache
def any_line() -> re.Pattern[str]:
    """Any `line` of the catalogue."""
    every = "|".join(f"(?:{cause.line})" for cause in CATALOGUE if cause.line)
    return re.compile(re.sub(r"\(\?P<\w+>", "(?:", every))
