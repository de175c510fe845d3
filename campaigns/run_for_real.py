"""Runs the configurations of tests/data/preflight/run_for_real.toml on the CPU toy, and asks `check` about them.

PYTHONPATH=tests/support python campaigns/run_for_real.py {run,first,now} [WORD ...]

`run` starts each one that has no `end` yet, for two steps. `first` and `now` write the findings of level error that the
preset alone does not have. All is kept in run_for_real.json; each call prints precision and recall of both.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import corpus_run
from corpus import Case

from launcher.check.checks import report
from launcher.core.errors import UserError
from launcher.core.tables import read_tables

FILE = Path(__file__).parents[1] / "tests" / "data" / "preflight" / "run_for_real.toml"
ANSWERS = FILE.with_suffix(".json")


@functools.cache
def errors(settings: tuple[str, ...]) -> list[str]:
    try:
        found = report("toy-cpu", settings).findings
    except UserError as refused:
        return [f"PRESET {refused}"]
    return [f"{each.id} {each.message}" for each in found if each.level == "error"]


def ended(settings: list[str]) -> dict[str, Any]:
    """How two steps of veRL ended: the exit code, None for a hang, and the last error."""
    code, log = corpus_run.run(Case(on="toy-cpu", set=settings))
    said = [line.strip() for line in log.splitlines() if corpus_run.ERROR.search(line) and "Warning" not in line]
    return {"code": code, "says": said[-1][-300:] if code != 0 and said else ""}


def score(answers: dict[str, dict[str, Any]], which: str) -> str:
    asked = [each for each in answers.values() if "end" in each and which in each]
    dies = [each for each in asked if each["end"]["code"] != 0]
    found = sum(bool(each[which]) for each in dies)
    alarms = sum(bool(each[which]) for each in asked) - found
    runs = len(asked) - len(dies)
    return f"{which}: found {found} of {len(dies)} that die, reported {alarms} of {runs} that run"


def main() -> None:
    what, words = sys.argv[1], sys.argv[2:]
    listed: dict[str, Any] = read_tables(FILE)
    answers: dict[str, dict[str, Any]] = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in listed["files"].items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        for case in sorted(listed["case"], key=lambda case: hashlib.sha256(repr(case["set"]).encode()).digest()):
            name = " ".join(case["set"])
            answer = answers.setdefault(name, {})
            if not all(word in name for word in words) or (what == "run" and "end" in answer):
                continue
            settings = [word.replace("HELD", folder) for word in case["set"]]
            if what == "run":
                answer["end"] = ended(settings)
            else:
                own = errors(())
                answer[what] = [said.replace(folder, "HELD") for said in errors(tuple(settings)) if said not in own]
            print(f"{name}\n    {answer}", flush=True)
            now = json.loads(ANSWERS.read_text("utf-8")) if ANSWERS.exists() else {}
            now[name] = now.get(name, {}) | answer
            ANSWERS.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for which in ("first", "now"):
        print(score(answers, which))


if __name__ == "__main__":
    main()
