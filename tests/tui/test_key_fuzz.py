"""A short run of campaigns/fuzz_keys.py: no keys, pastes or clicks end the screen, raise or leave it empty."""

import os
from pathlib import Path

from key_fuzz import PAGES, Report, fuzz, harmless

NOTHING = dict.fromkeys(("verl", "sglang", "cuda", "uncompiled"))
PROBE = {"python": "3.11.0", "packages": {}, "requires": [], **NOTHING}


async def test_no_keys_break_a_page(tmp_path: Path) -> None:
    report, here = Report(), Path.cwd()
    try:
        with harmless(tmp_path, PROBE) as template:
            await fuzz(template, tmp_path, 12 * len(PAGES), seed=7, report=report, most=12)
    finally:
        os.chdir(here)
    assert report.presses >= 12 * len(PAGES) and not report.wrong, report.wrong
