"""Random keys, bursts of one key, pasted text and clicks on every page and dialog, at three sizes.

    python campaigns/fuzz_keys.py --presses 20000 --seed 0

The screen may end only by `q` in the list or ctrl+q; no traceback, no empty screen. Errors are printed with
the keys of their round; `--seed` makes the same rounds again, `--page` keeps to one page.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from key_fuzz import PAGES, Report, fuzz, harmless


def main() -> None:
    """Presses all keys; each failure ends one round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--presses", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", choices=PAGES, default="")
    parser.add_argument("--first", type=int, default=0, help="number of the first round, to repeat one that failed")
    asked = parser.parse_args()
    report, begun = Report(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, harmless(Path(folder)) as template:
        asyncio.run(fuzz(template, Path(folder), asked.presses, asked.seed, report, only=asked.page, first=asked.first))
    seconds = time.monotonic() - begun
    print(f"screens: {', '.join(f'{name} {count}' for name, count in report.seen.most_common())}")
    print(f"began on another page: {', '.join(report.astray) or 'none'}")
    print(f"{report.presses} presses, {report.quits} quits, {len(report.wrong)} failures; {seconds:.0f} s")
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
