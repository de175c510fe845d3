"""What a line of the console means: the one table of the phrases that veRL, Ray and vLLM print.

The reader of a live run, the diagnosis, the replay and the search all look here; a new phrase is added once, in
MARKS when it starts a line, in MARKS_INSIDE when it may stand anywhere. Why a run failed is another question: the
catalogue in `launcher.console.causes` says it. All is matched in bytes, for most lines need no decoding.
"""

import re
from collections.abc import Iterable, Sequence

from launcher.console.lines import PREFIX


class Mark:
    """A kind of line, and the regular expressions of the phrases by which it is known.

    `phase`: the phase (`launcher.console.phases`) that has begun when it is printed. `hints`: the line reports an
    error, and holds one of these bytes, which are quicker to look for.
    """

    def __init__(self, name: str, *phrases: str, phase: str = "", hints: tuple[bytes, ...] = ()) -> None:
        self.name, self.phrases, self.phase, self.hints = name, phrases, phase, hints
        self.trouble = bool(hints)


PLAIN = Mark("", "")
"""The mark of a line that has none."""

# What starts a line; the first that fits. veRL 0.9's trainer ("v1") and the older one (0.4-0.8) print different
# things. Errors have to start a line: veRL prints responses of the model into the same log, and a model that writes
# code writes "Traceback" and "OutOfMemoryError" too. Phrases that begin with a letter are the quickest.
MARKS = (
    Mark("step", r"step:[0-9]", r"\[Step [0-9]"),  # if `launcher.console.steps` finds figures
    Mark(
        "progress", r"Training Progress: +[0-9]+%\|[^|]*\| *(?P<done>[0-9]{1,15})/(?P<of>[0-9]{1,15})", phase="rollout"
    ),
    Mark(
        "rollout_count",
        r"pending: (?P<pending>[0-9]{1,9}), running: (?P<running>[0-9]{1,9}), "
        r"finished: (?P<finished>[0-9]{1,9}), failure: (?P<failed>[0-9]{1,9})",
    ),
    Mark("ray_start", "ray init kwargs: ", "Started a local Ray instance", "Connecting to existing Ray cluster"),
    Mark("task_runner", r"\[validate_config\] ", "TaskRunner hostname: ", phase="ray"),
    Mark("config_begins", r"\{'actor_rollout_ref': ", phase="data"),  # pprint sorts, so it starts with this key
    Mark("total", "Total training steps: (?P<total>[0-9]{1,15})", phase="data"),
    Mark(
        "dataset",
        "Using dataset class: ",
        "dataset len: ",
        "train and validate dataloader ",
        "Size of train dataloader",
        phase="data",
    ),
    Mark("worker_groups", "worker group kwargs: ", phase="model"),
    Mark("group_created", "create worker group ", phase="model"),
    Mark("model", "colocated worker base class ", "critic model engine", phase="model"),
    Mark(
        "engine",
        "actor and ref model engine init",
        "reward loop manager init",
        "override_generation_config: ",
        r"Before building \w+ rollout",
        "Initializing a V[0-9] LLM engine",
        phase="engine",
    ),
    Mark("resumed", "(?:Resuming from .*, s|S)etting global step to (?P<at>[0-9]{1,15})", phase="checkpoint-load"),
    Mark(
        "checkpoint_load",
        "checkpoint engine manager init",
        "Checkpoint tracker file does not exist",
        "Found checkpoint: ",
        "Training from scratch",
        "Load from checkpoint ",
        "Resuming from ",
        phase="checkpoint-load",
    ),
    Mark("ready", "all initialize finished"),
    Mark("validate", "test_gen_batch meta info: ", phase="validate"),
    Mark("validated_first", r"\(?[\"']Initial validation metrics: ", phase="rollout"),
    Mark("asleep", "It took [0-9.]+ seconds to fall asleep"),
    Mark("awake", "It took [0-9.]+ seconds to wake up"),
    Mark(
        "save",
        r"(?:Saving checkpoint to |local_global_step_folder: )(?P<folder>\S*)",
        r"\[Rank [0-9]+\] Saved model to ",
        phase="save",
    ),
    Mark("final", r"\(?[\"']?Final validation metrics: ", phase="final"),
    Mark("sample_begins", r"\[prompt\]", r"\[response\]"),
    Mark("sample_ends", r"\[score\]"),
    Mark("printed_data", r"['\"]"),  # metrics and other dictionaries; no words in them count
    Mark("traceback", r"Traceback \(most recent call last\):", hints=(b"Traceback",)),
    Mark("engine_traceback", r"[A-Z]\w{2,30} hit an exception: Traceback", hints=(b"Traceback",)),  # SGLang
    Mark("job_error", "Error executing job", hints=(b"Error",)),
    Mark("prompt_error", "Error in _run_prompt", hints=(b"Error",)),
    Mark("creation_error", "Exception raised in creation task", hints=(b"Exception",)),
    Mark("signal", r"\*\*\* SIG(?P<signal>[A-Z]+) received", hints=(b"*** SIG",)),
    Mark("crash", "Fatal Python error", hints=(b"Fatal Python",)),
    Mark("spilled", "Spilled ", r"\(Spilled ", hints=(b"Spilled ",)),
    Mark("traceback_chained", "The above exception was the direct cause"),
    Mark("traceback_ignored", "Exception ignored in"),
    Mark("config_call", "Error in call to target "),
    Mark("config_key", "full_key: "),
    Mark("hydra_end", "Set the environment variable HYDRA_FULL_ERROR"),
    Mark("job_repeats", "Status message: Job entrypoint command failed"),  # `ray job` prints the last lines again
    Mark(
        "exception",
        r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?=[:(]|\s*\Z)"
        r"(?:(?<=\wError)|(?<=\wException)|(?<=\wInterrupt)|(?<=\wDied)|(?<=\wExit))",
        hints=(b"Error", b"Exception", b"Interrupt", b"Died", b"Exit"),
    ),
)

# Errors that may stand anywhere in a line without a mark.
MARKS_INSIDE = (
    Mark(
        "out_of_memory",
        r"CUDA out of memory\. Tried",
        "killed due to the node running low on memory",
        hints=(b"memory. T", b"n memory"),
    ),
    Mark("cuda_error", "CUDA error: ", "NCCL error", hints=(b"UDA error", b"CCL error")),
    Mark("nccl_timeout", "Watchdog caught collective operation timeout", hints=(b"Watchdog",)),
    Mark("segfault", "Segmentation fault", hints=(b"Segmentation f",)),
    Mark("core_dump", "core dumped", hints=(b"core dumped",)),
    Mark("cuda_assert", "device-side assert", hints=(b"-side assert",)),
    Mark("disk_full", "No space left on device", hints=(b"space left",)),
    Mark(
        "write_failed", "PytorchStreamWriter failed", r"Failed to (?:save|load)\b", hints=(b"Writer f", b"Failed to ")
    ),
    Mark("nan", "grad_norm is not finite", hints=(b"not finite",)),
    Mark("preempted", "[Pp]reempt(?:ed|ion)", hints=(b"reempt",)),
    Mark(
        "store_full",
        r"[Oo]bject store\b.{0,200}\b(?:full|spill)",
        "ObjectStoreFull",
        "over [0-9]+% full",
        hints=(b"bject store", b"StoreFull", b"% full"),
    ),
)

STEP_HINT = b"step:"  # of a step line behind what another process wrote
SAMPLE_LINES = 400  # that one printed sample (prompt and response) may have
TROUBLE_HINTS = tuple({hint: None for mark in (*MARKS, *MARKS_INSIDE) for hint in mark.hints})
"""Every line that `reports_trouble` holds one of these."""


def _table(marks: Iterable[Mark], before: bytes = b"") -> tuple[re.Pattern[bytes], dict[int | None, Mark]]:
    """Marks as one regular expression, and which mark a match is of: the group that was matched last tells."""
    phrases = [(mark, phrase) for mark in marks for phrase in mark.phrases]
    every = "|".join(f"{phrase}(?P<_{number}>)" for number, (_, phrase) in enumerate(phrases))
    pattern = re.compile(before + b"(?:%b)" % every.encode())
    return pattern, {pattern.groupindex[f"_{number}"]: mark for number, (mark, _) in enumerate(phrases)}


# Ray's prefix, then the head of a log record as veRL, Ray, vLLM or SGLang write it, and torchrun's rank; behind them
# the text.
_START, _AT_START = _table(
    (*MARKS, PLAIN),
    rb"(?P<prefix>%b)(?:[A-Z]+:[0-9-]{10} [0-9:,]{12}:|[0-9-]{10} [0-9:,]{12}\t[A-Z]+ \S{1,80} -- "
    rb"|[A-Z]+ (?P<stamp>[0-9-]{5} [0-9:]{8}) \[[^\]\n]{1,80}\] |\[[0-9-]{10} [0-9:]{8}(?: [A-Z]+[0-9]+){0,4}\] )?"
    rb"(?:\[rank[0-9]+\]: )?(?P<text>) *" % PREFIX.pattern,
)
_INSIDE, _IS_INSIDE = _table(MARKS_INSIDE)
_INSIDE_HINTS = tuple(hint for mark in MARKS_INSIDE for hint in mark.hints)


def mark_at_start(raw: bytes) -> tuple[Mark, re.Match[bytes]]:
    """The mark that starts a line's text, and the match with the groups of its phrase.

    Further groups: `prefix` is Ray's, `stamp` vLLM's date and time, and at the empty `text` the text starts.
    """
    match = _START.match(raw)
    assert match is not None  # it matches nothing as well
    return _AT_START[match.lastindex], match


def marks_inside(lines: Sequence[bytes]) -> list[Mark]:
    """The mark that stands anywhere in each line that has none at its start. Many lines at once are quicker."""
    together = b"\n".join(lines)
    hints = [hint for hint in _INSIDE_HINTS if hint in together]
    if not hints:
        return [PLAIN] * len(lines)
    matches = (_INSIDE.search(raw) if any(map(raw.__contains__, hints)) else None for raw in lines)
    return [_IS_INSIDE[match.lastindex] if match else PLAIN for match in matches]


def reports_trouble(raw: bytes) -> bool:
    """Whether a line reports an error."""
    mark, _ = mark_at_start(raw)
    return (mark if mark.name else marks_inside([raw])[0]).trouble
