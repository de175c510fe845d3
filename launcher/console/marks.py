"""What makes a line of the console interesting, told by its bytes."""

import re

from launcher.console.lines import PREFIX

# Errors have to start a line: veRL prints answers of the model into the same log, and a model that writes
# code writes "Traceback" and "OutOfMemoryError" too.
_TROUBLE = (
    r"(?:\[rank[0-9]+\]: )?(?:Traceback \(most recent call last\):|Error executing job|Error in _run_prompt"
    r"|Exception raised in creation task|\*\*\* SIG[A-Z]+ received|Fatal Python error|\(?Spilled "
    r"|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Died|Exit)(?=[:(]|\s*\Z))"
)

SAMPLE = 400  # lines that one printed sample (prompt and answer) may have

# What starts a line, by name; names of phases mean that the phase has begun. veRL 0.9's trainer ("v1") and
# the older one (0.4-0.8) print different things.
_MARKS = {
    "step": r"step:[0-9]|\[Step [0-9]",
    "progress": r"Training Progress: +[0-9]+%\|[^|]*\| *(?P<done>[0-9]{1,15})/(?P<of>[0-9]{1,15})",
    "count": r"pending: (?P<pending>[0-9]{1,9}), running: (?P<running>[0-9]{1,9}), "
    r"finished: (?P<finished>[0-9]{1,9}), failure: (?P<failed>[0-9]{1,9})",
    "driver": r"ray init kwargs: |Started a local Ray instance|Connecting to existing Ray cluster",
    "ray": r"\[validate_config\] |TaskRunner hostname: ",
    "config-dump": r"\{'actor_rollout_ref': ",  # pprint sorts, so it starts with this key
    "total": r"Total training steps: (?P<total>[0-9]{1,15})",
    "data": r"Using dataset class: |dataset len: |train and validate dataloader |Size of train dataloader",
    "model": r"colocated worker base class |worker group kwargs: |create worker group |critic model engine",
    "engine": r"actor and ref model engine init|reward loop manager init|override_generation_config: "
    r"|Before building \w+ rollout|Initializing a V[0-9] LLM engine",
    "resumed": r"(?:Resuming from .*, s|S)etting global step to (?P<resumed>[0-9]{1,15})",
    "checkpoint-load": r"checkpoint engine manager init|Checkpoint tracker file does not exist"
    r"|Found checkpoint: |Training from scratch|Load from checkpoint |Resuming from ",
    "ready": r"all initialize finished",
    "validate": r"test_gen_batch meta info: ",
    "rollout": r"\(?[\"']Initial validation metrics: ",
    "asleep": r"It took [0-9.]+ seconds to fall asleep",
    "awake": r"It took [0-9.]+ seconds to wake up",
    "save": r"Saving checkpoint to |local_global_step_folder: |\[Rank [0-9]+\] Saved model to ",
    "final": r"\(?[\"']Final validation metrics: ",
    "sample": r"\[(?:prompt|response)\]",
    "sample-end": r"\[score\]",
    "trouble": _TROUBLE,
}
MARK = re.compile("|".join(f"(?P<m{index}>{mark})" for index, mark in enumerate(_MARKS.values())).encode())
_NAMES = {MARK.groupindex[f"m{index}"]: name for index, name in enumerate(_MARKS)}

# What stands before a mark: Ray's prefix, then the head of a log line as veRL, Ray or vLLM write it, blanks.
HEAD = re.compile(
    rb"(?:%b)(?:[A-Z]+:[0-9-]{10} [0-9:,]{12}:|[0-9-]{10} [0-9:,]{12}\t[A-Z]+ \S{1,80} -- "
    rb"|[A-Z]+ ([0-9-]{5} [0-9:]{8}) \[[^\]\n]{1,80}\] )? *" % PREFIX.pattern
)
PID, STAMP = 2, 4  # groups of HEAD: the writer's pid as Ray tells it, vLLM's date and time

# Trouble that may stand anywhere. Every match contains one of the hints, which are quicker to look for.
_INSIDE = re.compile(
    rb"CUDA out of memory\. Tried|CUDA error: |NCCL error|Watchdog caught collective operation timeout"
    rb"|Segmentation fault|core dumped|device-side assert|No space left on device|PytorchStreamWriter failed"
    rb"|killed due to the node running low on memory|grad_norm is not finite|[Pp]reempt(?:ed|ion)"
    rb"|[Oo]bject store\b.{0,200}\b(?:full|spill)|ObjectStoreFull|over [0-9]+% full|Failed to (?:save|load)\b"
)
STEP_HINT = b"step:"  # of a step line behind what another process wrote
HINTS = (
    b"memory. T",
    b"n memory",
    b"UDA error",
    b"CCL error",
    b"Watchdog",
    b"Segmentation f",
    b"core dumped",
    b"-side assert",
    b"space left",
    b"Writer f",
    b"not finite",
    b"reempt",
    b"bject store",
    b"StoreFull",
    b"% full",
    b"Failed to ",
    STEP_HINT,
)


def name_of(mark: "re.Match[bytes]") -> str:
    """The name of a mark that MARK found."""
    return _NAMES[mark.lastindex or 0]


def tells_trouble(raw: bytes) -> bool:
    """Whether a line without a mark reports an error further inside."""
    return _INSIDE.search(raw) is not None
