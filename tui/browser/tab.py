"""The process behind one browser tab: the same screen, drawn over a pipe."""

import sys

from launcher.cli.screen import ScreenRequest
from launcher.settings import read
from tui.app import PpoTui

WRITE = "--write"


def main(words: list[str]) -> int:
    """Shows the run in `words`, or the list of runs; refuses changes without `--write`."""
    run = next((word for word in words if word != WRITE), None)
    app = PpoTui(ScreenRequest(run, read_only=WRITE not in words, settings=read({})))
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
