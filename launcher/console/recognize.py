"""Decides whether a text is output of veRL, with or without steps; scripts and letters are not."""

import re
from collections.abc import Callable, Iterable

from launcher.console.causes import catalogue
from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.scanner import Marked, Scanner

# What other programs print, too, or what only stands for a line's form.
_ANYBODYS = {
    *("", "printed_data", "sample_begins", "sample_ends", "step"),  # marks of a step only count with numbers
    *("traceback", "traceback_chained", "traceback_ignored", "exception", "crash", "signal"),
    *("out_of_memory", "cuda_error", "nccl_timeout", "segfault", "core_dump", "disk_full", "write_failed", "preempted"),
}
_TRACES = re.compile(
    rb'File "[^"\n]*[/.](?:verl|ray|vllm|sglang|hydra|omegaconf)/'  # a frame of a traceback
    rb"|main_ppo(?:\.py)?: error: |No module named '?verl\b|HYDRA_FULL_ERROR|hydra\.errors\.|omegaconf\.errors\."
    rb"|ray\.exceptions\.|ray::\w"
    rb"|\A(?:\++|\S*[$#%]) .*python\S* .*-m verl\."  # a command that a shell shows
)
_SCRIPT = re.compile(rb"\A#!|^[^#\n]*\bpython\S* .*(?:-m verl\.|main_ppo)", re.MULTILINE)


def is_verl_output(read: Callable[[], Iterable[bytes]]) -> bool:
    """Whether a log has a mark of veRL, or an error that ends its runs. `read` yields the log from its start."""
    scanner = Scanner(metrics=False)
    if any(any(map(_is_verls, scanner.feed(chunk))) for chunk in read()) or any(map(_is_verls, scanner.close())):
        return True
    return diagnose(read()).cause in {cause.id for cause in catalogue()}


def has_errors(read: Iterable[bytes]) -> bool:
    """Whether a log of any program has an error."""
    return errors_so_far(read) is not None


def is_script(start: bytes) -> bool:
    """Whether a file with this beginning is a shell script that starts veRL, not its output."""
    return _SCRIPT.search(start) is not None


def _is_verls(line: Marked) -> bool:
    if line.step is not None or line.config is not None or line.mark.name not in _ANYBODYS:
        return True
    return bool(line.writer.source) or _TRACES.search(line.piece[2]) is not None
