"""Facts in a log besides a run's errors: settings, versions, decisive lines, repeated errors."""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from launcher.console.lines import clean_text
from launcher.console.tracebacks import Quote
from launcher.core.secrets import redact
from launcher.verl.versions import newest

_KEPT = 64  # settings of a command, versions, different errors
_SETTING = re.compile(r"(?:^|[\s'\"\[])\+{0,2}([a-z_]+(?:\.[\w-]+)+)=((?:\[[^\]]*\]|\{[^}]*\}|[^\s'\",\]])*)")
_OPTION = re.compile(r" --([a-z][a-z-]*-[a-z-]+)[ =]([^\s-]\S*)")
_COMMAND = re.compile(r"main_ppo|(?i:overrides): |-m verl\.|python\S* \S+\.py ")
_PACKAGES = (
    "vllm|sglang|torch|transformers|megatron[-_ ]core|megatron[-_ ]bridge|mbridge|flash[-_]attn|ray|verl|triton|peft"
    "|tensordict|numpy|datasets|vllm[-_]ascend|torch[-_]npu|transformer[-_]engine|liger[-_]kernel|huggingface[-_]hub"
)
_VERSION = re.compile(
    rf"(?i)(?<![\w./-])({_PACKAGES})(?:['\"]?,? (?:api server |is |at )?v(?:ersion)?:?|==| ?[:=] ?v?| v?)"
    r"['\" ]*(\d+\.\d+[\w.+]*)"
)
_DEVICE = re.compile(
    r"(\bHIP (?:error|out of|version|runtime)|\bROCm\b(?! platform is not)|rocm\d|\bgfx\d{3,4}\b|\bMI[23]\d\d\b)"
    r"|\btorch_npu\b|\bvllm[_-]ascend\b|\bHCCL\b|Ascend"
)
_ENGINE = re.compile(r"LLM engine \(v(\d+\.\d[\w.+]*)\)")
# A line that decides: the tool that failed prints it, and Python's exception names only the tool.
_DECIDING = re.compile(
    r"\S*/ld(?:\.\w+)?: |\S+: fatal error: |fatal error: |nvcc (?:fatal|error)|ptxas fatal|error: |\S+:\d+:\d+: error: "
    r"|collect2: error|ImportError: |ModuleNotFoundError: |OSError: |\S*: symbol lookup error"
    r"|E[A-Z]\d{4}: |\[ERROR\] \S+\(\d+|RuntimeError: (?:HIP|CUDA|NPU)"
)
_FAILED = re.compile(
    r"(?i)\W{0,3}(?:error|exception|failed|failure|fatal|could not|cannot|can't|unable to)\b|(?:\S{1,30} ){1,3}failed\b"
    r"|\*\*\* |.{0,40}(?:Segmentation fault|SIGSEGV|SIGABRT|SIGBUS|core dumped|Watchdog caught)"
)
_REWARD = re.compile(rb"critic/score/(?:max|min):(?:np\.float64\()?(-?[0-9.]+(?:e[-+]?[0-9]+)?)")
_METRIC = re.compile(r"(?<![\w/-])([\w/-]{1,80}):(?:np\.float64\()?(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?=\)? - |\)?\s*$)")
_STEPS = 3  # steps from which equal rewards are reported
# An exception in a form that no traceback led to: in a box, behind a head, in a list.
_NAMED = re.compile(r"(?:^|[\s|│:])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: \S|$)")
_START = 5000  # lines
_HEAD, _RECENT = 200, 2000  # lines kept of the start and of the end
_LONGEST = 4000  # bytes of such a line
_TROUBLE = (
    *("rror", "ail", "xception", "atal", "FATAL", "FAIL", "ould not", "annot", "an't", "nable to", "*** ", "/ld"),
    *("ault", "SIG", "dumped", "Watchdog caught", "nvcc", "EI0", "EZ9"),
)
"""Every line that may report an error contains one of these."""
_AGAIN = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
_MANY = 20  # prints of an error that count even if steps followed
_VARYING = re.compile(r"0x[0-9a-f]+|\d+")
_ENGINE_LOAD = re.compile(r"Running: (\d+) reqs?, Waiting: (\d+) reqs?|#running-req: (\d+).*#queue-req: (\d+)")

_RETRY = re.compile(r"\b[Rr]etry(?:ing)? .{0,80}(?:request|connection|https?:|/\w)|\b[Rr]etrying \(Retry\(")


class Logged(NamedTuple):
    """A line that reports an error outside a traceback, and its process."""

    line: int
    text: str
    source: str


class RunFacts:
    """Collected line by line, in bounded memory."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        """veRL key -> value as text, from the printed configuration and command."""
        self.versions: dict[str, str] = {}
        self.deciding: list[Quote] = []
        """The first lines that decide on an error."""
        self.errors: deque[Logged] = deque(maxlen=_KEPT)
        """Lines since the last step that report an error outside a traceback."""
        self.named: Logged | None = None
        """The last line since the last step with an exception in any form."""
        self.device = ""
        """` device amd` or ` device npu`, once a line shows it."""
        self.engine: tuple[Quote, int, int] | None = None
        """The last line of an engine, with running and waiting requests."""
        self.retried: Logged | None = None
        """The last line since the last step in which a client repeats a request, such as to a verifier."""
        self._head: list[tuple[int, bytes, int]] = []
        self._recent: deque[tuple[int, bytes, int]] = deque(maxlen=_RECENT)
        self._repeated: dict[str, tuple[Quote, int]] = {}
        self._measured: list[bytes] = []  # the lines of the first two steps, and of the last
        self._steps = 0  # steps with rewards
        self._rewards: set[float] = set()  # the first two different ones

    @property
    def given(self) -> Mapping[str, str]:
        """The settings under the newest veRL's names and the log's names."""
        return {newest(key): value for key, value in self.settings.items()} | self.settings

    @property
    def kept(self) -> Iterator[Quote]:
        """The log's first and last lines, without process prefixes."""
        for number, raw, start in (*self._head, *self._recent):
            yield Quote(number, clean_text(raw, start))

    def keep(self, number: int, raw: bytes, start: int) -> None:
        """Keeps a line for the clues of rivals.toml."""
        (self._head if len(self._head) < _HEAD else self._recent).append((number, raw[: start + _LONGEST], start))

    @property
    def metrics(self) -> Mapping[str, str]:
        """The metrics of the last step; as `early/NAME`, those of the faster of the first two steps."""
        lines = [dict(_METRIC.findall(line.decode(errors="replace"))) for line in self._measured]
        early = min(lines[:2], key=lambda step: float(step.get("timing_s/step", "inf")), default={})
        return {f"early/{name}": value for name, value in early.items()} | (lines[-1] if lines else {})

    @property
    def only_reward(self) -> float | None:
        """The reward of every response over several steps; None if they differ."""
        return next(iter(self._rewards)) if self._steps >= _STEPS and len(self._rewards) == 1 else None

    @property
    def lasting(self) -> tuple[Quote, int] | None:
        """`repeated`, if it came since the last step, for every response, or many times."""
        found = self.repeated
        counts = self.errors or self.only_reward is not None or (found is not None and found[1] >= _MANY)
        return found if counts else None

    @property
    def repeated(self) -> tuple[Quote, int] | None:
        """The most frequent error: its first line and its count; None without one printed three times."""
        found = max(self._repeated.values(), key=lambda pair: pair[1], default=None)
        return found if found is not None and found[1] >= 3 else None

    def add_config(self, config: Mapping[str, Any]) -> None:
        self.settings = {key: str(value) for key, value in config.items()} | self.settings

    def add_command(self, text: str) -> None:
        """Takes in a line with KEY=VALUE of veRL; later ones replace earlier ones, as in Hydra."""
        for key, value in (*_SETTING.findall(text), *_OPTION.findall(text)):
            if value and (key in self.settings or len(self.settings) < 1000):
                self.settings[key] = value

    def clear(self) -> None:
        """Forgets earlier errors: the run continued."""
        self.errors.clear()
        self.named = self.retried = None

    def add_step(self, raw: bytes) -> None:
        """Takes in a step line, with its minimum and maximum reward."""
        self._measured[2:] = [raw]
        rewards = {float(found) for found in _REWARD.findall(raw)}
        self._steps += bool(rewards)
        if len(self._rewards) < 2:
            self._rewards |= rewards

    def add_line(self, number: int, text: str, logged: bool, source: str, *, warns: bool = False) -> None:
        """`logged`: its head is an error's; `warns`: its head is a warning's, which does not count."""
        if number < _START:
            self._add_start(text)
        if "req" in text and (load := _ENGINE_LOAD.search(text)) is not None:
            running, waiting = (int(each) for each in load.groups() if each is not None)
            self.engine = Quote(number, text[:400]), running, waiting
        if "etry" in text and _RETRY.search(text):
            self.retried = Logged(number, redact(text[:400]), source)
        if not logged and not any(hint in text for hint in _TROUBLE):
            return
        if _DECIDING.match(text) and len(self.deciding) < _KEPT:
            self.deciding.append(Quote(number, redact(text[:1000])))
        if warns:
            return
        if "rror" in text or "xception" in text or "nterrupt" in text:
            self.add_named(number, text, source)
        if logged or _FAILED.match(text):
            self.errors.append(Logged(number, redact(text[:400]), source))
            self._count(Quote(*self.errors[-1][:2]))

    def add_named(self, number: int, text: str, source: str) -> None:
        """Takes in a line with a possible exception."""
        if _NAMED.search(text[:400]):
            self.named = Logged(number, redact(text[:400].strip(" |│")), source)

    def _add_start(self, text: str) -> None:
        """Takes in facts of the log's start: device, command, versions."""
        if not self.device and (device := _DEVICE.search(text)) is not None:
            self.device = " device amd" if device[1] else " device npu"
        if _COMMAND.search(text):
            self.add_command(text)
        if len(self.versions) < _KEPT and ("ersion" in text or "==" in text or "engine (v" in text):
            for name, version in _VERSION.findall(text):
                self.versions.setdefault(re.sub("[_ ]", "-", name.lower()), version.rstrip("."))
            if engine := _ENGINE.search(text):
                self.versions.setdefault("vllm", engine[1])

    def _count(self, line: Quote) -> None:
        kind = _VARYING.sub("", line.text[:160])[:60]
        first, count = self._repeated.get(kind, (line, 0))
        if count or len(self._repeated) < _KEPT:
            more = _AGAIN.search(line.text)
            self._repeated[kind] = first, count + (int(more[1]) if more else 1)
