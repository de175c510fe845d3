"""The health rules on consoles of other people's runs, which stay outside of this repository.

    .venv/bin/python bench/health_public.py FOLDER

FOLDER has the logs and judgement.jsonl, a line for each: {"file": "owner__repo/run.log", "verdict": "healthy",
"broken_from": null}. The verdict, `healthy`, `broken` or `unclear`, comes from a person who read the metrics and not
our rules; `broken_from` is the first step at which they see a problem. Speed and memory are left out, because the
machine is unknown.
"""

import argparse
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from health_bank import OF_THE_HOST, per_thousand, table

from launcher.health import keys
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import resolve
from launcher.runs.watch.steps import steps


@dataclass(frozen=True)
class PublicRun:
    """A log, its verdict, the number of its training steps, and each rise to WARN or above."""

    file: str
    verdict: str
    broken_from: int | None
    steps: int
    alarms: list[LevelChange]

    @property
    def told(self) -> str:
        return ", ".join(f"{change.rule} {change.after.name} {change.step}" for change in self.alarms) or "–"


def read(folder: Path) -> list[PublicRun]:
    found = []
    for line in (folder / "judgement.jsonl").read_text().splitlines():
        said = json.loads(line)
        source = resolve(str(folder / said["file"]))
        result = judged(source, [])
        alarms = [
            each for each in result.changes if each.rose and each.after >= Level.WARN and each.rule not in OF_THE_HOST
        ]
        trained = sum(any(map(keys.is_training, record.data)) for _, record in steps(source))
        found.append(PublicRun(said["file"], said["verdict"], said.get("broken_from"), trained, alarms))
    return found


def false_alarms(healthy: list[PublicRun]) -> list[str]:
    steps = sum(run.steps for run in healthy)
    counts = Counter((change.rule, change.after) for run in healthy for change in run.alarms)
    rows = []
    for level in (Level.CRITICAL, Level.WARN):
        rules = {rule: count for (rule, at), count in sorted(counts.items()) if at == level}
        count = sum(rules.values())
        said = ", ".join(f"{rule} ×{times}" for rule, times in rules.items()) or "–"
        rows.append((level.name, count, per_thousand(count, steps), said))
    return table((f"{len(healthy)} healthy runs, {steps} steps", "alarms", "per 1,000 steps", "rules"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluates the health rules on consoles of other people's runs.")
    parser.add_argument("folder", type=Path, help="the logs and judgement.jsonl")
    runs = read(parser.parse_args().folder)
    by_repository = defaultdict[str, list[PublicRun]](list)
    for run in runs:
        by_repository[run.file.split("/")[0].replace("__", "/")].append(run)
    rows = [
        (name, len(members), sum(run.steps for run in members), Counter(run.verdict for run in members)["broken"])
        for name, members in sorted(by_repository.items())
    ]
    print("\n".join(table(("repository", "runs", "steps", "broken"), rows)))
    print("\n".join(false_alarms([run for run in runs if run.verdict == "healthy"])))
    for verdict in ("broken", "unclear", "healthy"):
        members = [(run.file, run.steps, run.broken_from or "", run.told) for run in runs if run.verdict == verdict]
        print("\n".join(table((verdict, "steps", "from", "alarms"), members)))


if __name__ == "__main__":
    main()
