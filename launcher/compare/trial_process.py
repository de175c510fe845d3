"""Carries out trials in a separate process, so that they are judged even if the terminal or command ends.

Its output is trials.log of the run. An interruption ends the trials.
"""

import json
import signal
import sys

from launcher.compare.trial_runs import carry_out, plan
from launcher.core.errors import UserError
from launcher.record.layout import find


def main(run: str, options: str, force: str) -> int:
    """Repeats the plan given to `start_apart`, and carries it out. Returns the exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that does not wait ignores it for us
    try:
        carry_out(plan(find(run), **json.loads(options)), _tell, force=force == "force")
    except UserError as error:
        _tell(f"error: {error.message}")
        if error.hint:
            _tell(f"hint: {error.hint}")
        return error.exit_code
    except KeyboardInterrupt:
        _tell("interrupted: the trials were ended")
        return 130
    return 0


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
