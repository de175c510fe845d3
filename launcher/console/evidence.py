"""Collects all possible explanations of a run's end in one pass over its console log, in bounded memory."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from launcher.console.causes import Cause, Level, catalogue
from launcher.console.error_line import Candidate, ErrorLine
from launcher.console.excerpt import parts
from launcher.console.forms import FormReader
from launcher.console.lines import Writer, clean_text, is_bar
from launcher.console.marks import PLAIN, is_warning
from launcher.console.run_facts import RunFacts
from launcher.console.scanner import Marked, Scanner
from launcher.console.tracebacks import Folders, Quote, Traceback, is_exception, remote_method
from launcher.core.secrets import redact
from launcher.metrics.frameworks import Framework
from launcher.record.attempt import MachineEnd
from launcher.record.numbering import STEPS, Numbering

WRITERS, KEPT, CACHED = 4096, 200, 1024  # processes followed at a time, errors kept of the driver's end, texts
_CHAIN = 3  # exceptions, each raised while the one before was handled
LONGEST = 1000  # characters of a line that are read and quoted
MESSAGE_LINES = 8  # further lines of an exception's message that are read

# The heads of lines of Ray's C++, torch and Python's logging, which have no marks.
_LOG_HEAD = re.compile(
    rb"(?:\[[^\[\]]{1,80}\]:? ?|\(raylet\) |(?:ERROR|WARNING|CRITICAL|INFO)[: ](?:[\d:,. /-]{4,30}[: ])?"
    rb"|\d{4}-\d\d-\d\d[ T][\d:,.]+[ \t]+|[IWEF]\d{4} [\d:.]{8,18} +\d+ [\w./-]+:\d+\] +"
    rb"|[\w.]+\.(?:cc|cpp|h|py):\d+(?:: | -- |\] ?))*"
)
_ERROR_HEAD = re.compile(rb"\bERROR\b|CRITICAL|FATAL|\[E\d{3,4} |\A[EF]\d{4} | [EF] \d")
_LOG_HEAD_STARTS = b"[(EWCIF0123456789"
_REPEATED = re.compile(r" \[repeated (\d{1,9})x across cluster\].*$")
_ADDRESS = re.compile(rb", ip=([^()\s]{1,60})\)")
_regex = functools.cache(re.compile)


class Evidence:
    """The evidence in one log; call `read` once."""

    def __init__(self, framework: Framework | None = None) -> None:
        """`framework`: the log's, if not veRL."""
        self.framework = framework
        self._form = FormReader(framework) if framework is not None and framework.lines else None
        self._catalogue = tuple(cause for cause in catalogue() if framework is None or not cause.of_verl)
        self.left_out = 0
        """Unread bytes of a large log."""
        self.machine: MachineEnd | None = None
        """The state of the machine at the end."""
        self._scanner = Scanner(metrics=False)
        self._known: dict[str, tuple[Cause, ...]] = {}  # the entries that the text of an exception matches
        self._restart()

    def _restart(self) -> None:
        self.step: int | None = None
        self.total: int | None = None
        self.progress: tuple[int, int] | None = None
        """Completed steps and the total, from the progress bar."""
        self.saved: str | None = None
        """The folder of the last checkpoint."""
        self.resumed: int | None = None
        """The checkpoint's step from which training continued."""
        self.only_validates = False
        self.failed_prompts = 0
        self.ready = False
        self.end: int | None = None
        """The first line that proves the end of the run."""
        self.final_errors: list[ErrorLine] = []
        """The errors of the driver since its last traceback."""
        self.chained = False
        """Whether the final errors contain a "direct cause", which makes the first exception the root."""
        self.died: ErrorLine | None = None
        """The exception that ended an earlier program of the log."""
        self.errors: dict[str, Candidate] = {}
        """Cause id -> its first line elsewhere since the last step; otherwise its first line."""
        self.unknown_errors: list[ErrorLine] = []
        """The first exceptions elsewhere without an entry."""
        self.facts = RunFacts()
        """Settings, versions and decisive lines."""
        self.processes: dict[int, str] = {}
        """Writers of the log, by pid."""
        self.nodes: dict[int, str] = {}
        """Their addresses, as far as logged."""
        self._lines: dict[str, Marked] = {}
        self._ending = self._repeated = False  # a traceback, no sign of life since; lines that repeat
        self._tracebacks: dict[Writer, Traceback] = {}
        self._messages: dict[Writer, _Message] = {}
        self._raised: dict[Writer, list[ErrorLine]] = {}
        """The last exception of a process, after the exceptions that it was handling."""
        self._folders = Folders()

    @property
    def over(self) -> bool:
        """Whether another framework printed the end of its training."""
        return self._form is not None and self._form.over

    @property
    def numbering(self) -> Numbering:
        """How its lines count steps."""
        return STEPS if self._form is None or self._form.counted is None else self._form.counted.numbering

    def quote(self, mark: str) -> Quote | None:
        """The first line with a mark; for "step" and "progress" the last one; "last" is the last line."""
        line = self._lines.get(mark)
        return None if line is None else _quote(line)

    def read(self, chunks: Iterable[bytes]) -> None:
        """Reads a log; over 24 MB, only the parts selected by `launcher.console.excerpt`."""
        for part in parts(chunks):
            if part.read:
                self._read(self._scanner.feed(part.data))
            else:
                self.left_out += len(part.data)
                self._scanner.skip(part.data)
        self._read(self._scanner.close())
        if self._form is not None and (steps := self._form.close()):
            self.step = steps[-1].step

    def _read(self, lines: list[Marked]) -> None:
        for line in lines:
            if self._repeated:  # `ray job` repeats the last lines
                return
            self._take(line)

    def _take(self, line: Marked) -> None:
        raw, start = line.piece[2], line.match.start("text")
        source, pid = line.writer
        if self._take_config_or_step(line) or (line.mark is PLAIN and is_bar(raw)):
            return
        self.facts.keep(line.piece[0], raw, start)
        message = self._messages.pop(line.writer, None) if self._messages else None
        if pid not in self.processes and len(self.processes) < WRITERS:
            self._add_process(pid, source, raw[:start])
        if line.mark is not PLAIN and raw[start] != ord(" ") and self._take_mark(line):
            self._lines["last"] = line
            return
        start, logged = _after_head(raw, line.match.end("prefix"), start)
        text = clean_text(raw, start)
        if not text:
            return
        traceback = self._tracebacks.get(line.writer)
        inside = traceback is not None and traceback.includes(line.piece[0])
        if message is not None and self._continue(message, line, text) and text[0] in " \t":
            return
        if text[0] == " ":
            if not inside and source and text.startswith('  File "'):  # without the line that begins a traceback
                self._begin_traceback(line)
                traceback, inside = self._traceback(line), True
            if text.lstrip()[:1] in ("|", "│"):  # in a group of exceptions, or in a box
                self.facts.add_named(line.piece[0], text, source)
            elif traceback is not None and inside:
                traceback.add_indented(line.piece[0], text, self._folders)
            return
        self._lines["last"] = line
        self.facts.add_line(line.piece[0], text, logged, source, warns=is_warning(line.match))
        if (method := remote_method(text)) is not None:
            self._traceback(line).add_remote_call(_quote(line), method)
            if text.startswith(("ray::", "ray.exceptions.RayTaskError")) or "creation task" in text:
                return
        if inside and is_exception(text):
            self._add_exception(line, text)
        elif _any_line().match(text):
            causes = tuple(cause for cause in self._catalogue if cause.line and _regex(cause.line).match(text))
            self._add(self._error(line, text, causes))

    def _take_config_or_step(self, line: Marked) -> bool:
        """Whether the line has the configuration or a step's metrics; a run that logs them continues."""
        if line.config is not None:
            self._lines["config_ends"] = line
            self.only_validates = line.config.get("trainer.val_only") is True
            self.facts.add_config(line.config)
            return True
        if line.step is not None:
            self.step = line.step.step
            self.facts.add_step(line.piece[2])
        elif self._form is not None and (found := self._form.find(line.piece)) is not None:
            before, steps = self.over, self._form.take(found, line.piece)
            self.step, self.total = (steps[-1].step if steps else self.step), found.total or self.total
            if before and self.over:  # an evaluation after the training
                return True
        else:
            return False
        self._alive("step", line)
        return True

    def _add_process(self, pid: int, source: str, head: bytes) -> None:
        self.processes[pid] = source
        if (node := _ADDRESS.search(head)) is not None:
            self.nodes[pid] = node[1].decode(errors="replace")

    def _take_mark(self, line: Marked) -> bool:
        """Handles a line by its mark; returns whether the mark is the whole line."""
        match, driver = line.match, not line.writer.source
        match line.mark.name:
            case "traceback" | "engine_traceback" as name:
                self._begin_traceback(line)
                return name == "traceback"  # the line of an engine may also show a cause
            case "config_call":
                self._begin_traceback(line, "Error in call to target")
            case "job_error" | "hydra_end" | "ray_start" | "ray_started" | "task_runner" | "job_repeats" as name:
                if driver:
                    self._take_driver_mark(name, line)
            case "traceback_chained":
                self.chained = self.chained or driver
            case "traceback_handled":
                self._traceback(line).handled = True
            case "traceback_ignored":
                self._traceback(line).ignored = True
            case "config_key":
                last = self.final_errors[-1] if driver and self.final_errors else None
                if last is not None and line.piece[0] - last.quote.line < 5:
                    last.config_key = _quote(line)
                    last.context += f"\n{line.line.text}"
            case "progress":
                self.progress = int(match["done"]), int(match["of"])
                self._alive("progress", line)
            case "ready":
                self.ready = True
            case "resumed":
                self.resumed = int(match["at"])
            case "total":
                self.total = int(match["total"])
            case "save":
                self.saved = match["folder"].decode(errors="replace") if match["folder"] else self.saved
            case "prompt_error":
                self._first(line)
                repeated = _REPEATED.search(line.line.text)
                self.failed_prompts += int(repeated[1]) if repeated else 1
            case "signal" if match["signal"] in (b"TERM", b"INT"):
                if driver:
                    self._first(line)
            case "dataset" | "worker_groups" | "group_created" | "final" | "nan" | "validated_first" | "closed":
                self._first(line)
            case "validate" | "validation_generated" | "rollout_count" as name:
                self._lines[name] = line
            case name:
                return name == "config_begins"
        return True

    def _take_driver_mark(self, name: str, line: Marked) -> None:
        number = line.piece[0]
        if name == "job_error":
            self.facts.add_command(line.line.text)
            self._begin_traceback(line)
            self.end = number
            self._begin_ending()
        elif name == "hydra_end":
            self.end = self.end or (self.final_errors[0].quote.line if self.final_errors else number)
            self._ending = False
        elif name == "job_repeats":
            self._repeated = True
        elif self.end or "signal" in self._lines:
            self._restart()  # another attempt was appended to the same log

    def _first(self, line: Marked) -> None:
        self._lines.setdefault(line.mark.name, line)

    def _alive(self, mark: str, line: Marked) -> None:
        self.facts.clear()
        for name in ("closed", "validate", "validation_generated", "rollout_count"):
            self._lines.pop(name, None)
        self.died = None
        self.ready = True
        self._lines[mark] = line
        if self.end is None and self._ending:  # the driver's traceback was not the end
            self._ending = False
            self.final_errors.clear()

    def _traceback(self, line: Marked) -> Traceback:
        traceback = self._tracebacks.get(line.writer)
        if traceback is None:
            if len(self._tracebacks) >= WRITERS:
                self._tracebacks.clear()
            traceback = self._tracebacks[line.writer] = Traceback()
        return traceback

    def _begin_traceback(self, line: Marked, *calls: str) -> None:
        """Starts a traceback of any process, here or in the next line."""
        traceback = self._traceback(line)
        traceback.begin(line.piece[0], *calls)
        ignored, traceback.ignored = traceback.ignored, False
        if not traceback.handled:
            self._raised.pop(line.writer, None)
        traceback.handled = False
        if line.writer.source or line.mark.name != "traceback":
            return
        if ignored:
            traceback.end()
        elif self.end is None and not (self._ending and line.writer.pid):  # a further rank explains the same end
            self._begin_ending()

    def _begin_ending(self) -> None:
        ended = (error for error in self.final_errors if error.raised and error.program)
        self.died = self.died or next(ended, None)
        self._ending, self.chained = True, False
        self.final_errors.clear()

    def _add_exception(self, line: Marked, text: str) -> None:
        text = _REPEATED.sub("", text[:LONGEST]) if "[repeated " in text else text[:LONGEST]
        error = self._error(line, text, self._matching(text))
        error.raised = True
        if (traceback := self._tracebacks.get(line.writer)) is not None and traceback.explains(line.piece[0]):
            head = f"{error.context} in {traceback.owner.name.lower()} code"
            error.context = "\n".join([head, *traceback.calls, traceback.code])
            error.remote_call, error.frame, error.owner = traceback.remote_call, traceback.frame, traceback.owner
            error.calls, error.codes = tuple(traceback.calls), dict(traceback.codes)
            traceback.raised = line.piece[0]
            earlier = self._raised.pop(line.writer, [])
            for other in earlier:  # equal calls led to it
                other.context += "\n" + "\n".join(traceback.calls)
            if len(self._raised) < WRITERS:
                self._raised[line.writer] = [*earlier, error][-_CHAIN:]
        self._add(error)
        clear = any(cause.level is Level.ROOT and error.fits(cause) for cause in error.causes)
        if not clear and len(self._messages) < WRITERS:
            self._messages[line.writer] = _Message(error)

    def _matching(self, text: str) -> tuple[Cause, ...]:
        """Entries whose `raised` matches an exception's text."""
        causes = self._known.get(text)
        if causes is None:
            causes = tuple(cause for cause in self._catalogue if cause.raised and _regex(cause.raised).search(text))
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[text] = causes
        return causes

    def _continue(self, message: "_Message", line: Marked, text: str) -> bool:
        """Whether a line continues the message of the previous exception, which may then match an entry."""
        if text.startswith('  File "') or remote_method(text) is not None or is_exception(text):
            return False
        error, text = message.error, text.strip()[:LONGEST]
        whole = f"{error.message} {text}"[: 2 * LONGEST]
        causes = tuple(cause for cause in self._matching(whole) if cause not in error.causes)
        belongs = line.line.text[:1].isspace() or error.message.endswith(":")
        if causes or (belongs and error.told is None and not text.startswith("For further")):
            error.told, error.message = _quote(line), redact(whole)
        if causes:
            error.causes += causes
            self.unknown_errors = [other for other in self.unknown_errors if other is not error]
            if error not in self.final_errors:
                self._add(error)
        elif message.room > 1:
            self._messages[line.writer] = message._replace(room=message.room - 1)
        return True

    def _error(self, line: Marked, text: str, causes: tuple[Cause, ...]) -> ErrorLine:
        source = line.writer.source
        context = f"from {source or 'driver'} {'stepping' if self.ready else 'starting'}{self.facts.device}"
        return ErrorLine(_quote(line), redact(text), source, causes, raised=False, context=context)

    def _add(self, error: ErrorLine) -> None:
        fatal = not error.raised and any(cause.fatal for cause in error.causes)
        if not error.source and (fatal or self._ending):
            if fatal and self.end is None:
                self.end, self._ending = error.quote.line, True
            if len(self.final_errors) < KEPT:
                self.final_errors.append(error)
            return
        fitting = [cause for cause in error.causes if error.fits(cause)]
        for cause in fitting:
            known = self.errors.get(cause.id)
            if known is None or self.survived(known[1]):
                self.errors[cause.id] = cause, error
        if not fitting and len(self.unknown_errors) < 16:
            self.unknown_errors.append(error)

    def survived(self, error: ErrorLine) -> bool:
        """Whether a step was completed after this error."""
        step = self._lines.get("step")
        return step is not None and error.quote.line < step.piece[0]


class _Message(NamedTuple):
    """An exception whose message may continue, and its maximum number of further lines."""

    error: ErrorLine
    room: int = MESSAGE_LINES


def _after_head(raw: bytes, begin: int, start: int) -> tuple[int, bool]:
    """Start of a line's text after the heads of loggers, and whether one is an error's."""
    head = _LOG_HEAD.match(raw, start) if raw[start : start + 1] in _LOG_HEAD_STARTS else None
    end = start if head is None else head.end()
    return end, _ERROR_HEAD.search(raw[begin:end]) is not None


def _quote(line: Marked) -> Quote:
    pid = line.writer.pid
    rank = f"[rank{-1 - pid}]: " if pid < 0 else ""
    return Quote(line.piece[0], rank + line.line.text[:LONGEST])


@functools.cache
def _any_line() -> re.Pattern[str]:
    """All `line` patterns of the catalog as one."""
    every = "|".join(f"(?:{cause.line})" for cause in catalogue() if cause.line)
    return re.compile(re.sub(r"\(\?P<\w+>", "(?:", every))
