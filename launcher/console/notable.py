"""Lines that tell of trouble: what rule ERR-1 judges and what a diagnosis cites."""

import re

# Patterns that are told to start a line are anchored: veRL prints answers of the model into the same log, and a
# model that writes code prints "Traceback" and "OutOfMemoryError" too.
_TROUBLE = re.compile(
    rb"""
    \A(?:\[rank\d+\]:\ )?(?:
        Traceback\ \(most\ recent\ call\ last\):
      | Error\ executing\ job
      | (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Died|Exit)(?=[:(]|\Z)
      | \*\*\*\ SIG[A-Z]+\ received
      | Fatal\ Python\ error
      | Exception\ raised\ in\ creation\ task
    )
    | CUDA\ out\ of\ memory\.\ Tried | CUDA\ error:\ | NCCL\ error
    | Watchdog\ caught\ collective\ operation\ timeout
    | Segmentation\ fault | core\ dumped | device-side\ assert
    | No\ space\ left\ on\ device | PytorchStreamWriter\ failed
    | killed\ due\ to\ the\ node\ running\ low\ on\ memory
    | grad_norm\ is\ not\ finite | [Pp]reempted | [Pp]reemption
    | [Oo]bject\ store\ (?:is\ |memory\ )?full | ObjectStoreFull | \A\(?Spilled\ | over\ \d+%\ full
    | Failed\ to\ (?:save|load)\b
    | Error\ in\ _run_prompt
    """,
    re.VERBOSE,
)
_HINTS = (
    b"rror", b"ception", b"Traceback", b"emory", b"fault", b"dumped", b"assert", b"space left", b"Writer failed",
    b"atchdog", b"not finite", b"reempt", b"tore ", b"pilled", b"% full", b"ailed to ", b"SIG", b"Interrupt",
    b"Died", b"Exit",
)  # fmt: skip


def is_notable(raw: bytes, start: int) -> bool:
    """Whether the line, whose text starts at byte `start`, tells of an error."""
    if not any(map(raw.__contains__, _HINTS)):
        return False
    return _TROUBLE.search(raw[start:].rstrip()) is not None
