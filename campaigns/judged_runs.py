"""The runs of tests/gpu/judged.py: tables for a reader who judges them, and then their place in the bank.

    judged_runs.py tables RESULTS [ID ...]  the metrics of each run under a neutral id, without its name or settings
    judged_runs.py answers RESULTS ID STEP  some answers of one step
    judged_runs.py add RESULTS FOLDER HALF  adds the runs with five steps or more to FOLDER, as tests/data/bank has them
    judged_runs.py fixes RESULTS            first lines, fix and rewards of each run of tests/gpu/proof.toml, whose run
                                            directories are in PPO_TUI_HOME; it changes those, so give it a copy

RESULTS is the folder `results/judged` of a campaign. The verdicts go into FOLDER/verdicts.toml, a table for each id,
and are committed before bench/health_judged.py runs the rules:

    [3f2a]
    verdict = "harmed"  # healthy, harmed, meaningless, or faulty-harmless
    step = 12           # the first step at which a careful person would have stopped it; none if healthy
    why = "reward 0.4 to 0.1 in six steps while the KL doubles each step"
"""

import gzip
import hashlib
import json
import math
import re
import shutil
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from launcher.compare.trial_verdicts import trials_of
from launcher.core.paths import runs_dir
from launcher.core.tables import read_tables
from launcher.metrics.records import parse_object, read_metrics, trains
from launcher.metrics.responses import ResponseFigures
from launcher.record.info import Origin, RunInfo

LEAST_STEPS, VOCABULARY, TOY = 5, 49152, 296  # tokens of the tokenizers
SHOWN, LONGEST = 6, 400  # answers of a step, characters of one
NUMBER, MARK = re.compile(r"-?\d+"), re.compile(r"####\s*-?\d+\s*$")


def neutral(name: str) -> str:
    """The neutral name of a run before it is judged."""
    return hashlib.sha256(name.removesuffix("-again").encode()).hexdigest()[:4]


@dataclass(frozen=True)
class Judged:
    """One completed run."""

    folder: Path

    @property
    def id(self) -> str:
        return neutral(self.folder.name)

    @cached_property
    def about(self) -> dict[str, Any]:
        """Its row in judged.py with the command."""
        found: dict[str, Any] = json.loads((self.folder / "command.json").read_text())
        return found

    @cached_property
    def config(self) -> dict[str, Any]:
        """The veRL keys of its command, without paths of the host."""
        words = [word.lstrip("+").partition("=") for word in self.about["argv"] if "=" in word]
        return {key: _value(text) for key, _, text in words if "/" not in text}

    @cached_property
    def answers(self) -> dict[int, list[dict[str, Any]]]:
        """veRL's dump per step."""
        found = defaultdict[int, list[dict[str, Any]]](list)
        path = self.folder / "answers.jsonl.gz"
        for line in gzip.decompress(path.read_bytes()).splitlines() if path.exists() else ():
            if (row := parse_object(line)) is not None and "step" in row:
                found[row["step"]].append(row)
        return found

    @cached_property
    def steps(self) -> list[tuple[int, float, dict[str, float]]]:
        """Number, seconds from the first step, and metrics of each step, with ppo-tui's own."""
        found, t, figures = list[tuple[int, float, dict[str, float]]](), 0.0, ResponseFigures()
        for line in (self.folder / "metrics.jsonl").read_bytes().splitlines():
            record = parse_object(line)
            data = read_metrics(record and record.get("data"))
            if record is None or not trains(data):
                continue
            t += data.get("timing_s/step", 0.0)
            said = figures.of(self.answers.get(record["step"], ()))
            found.append((record["step"], t, data | said))
        return found

    def right(self, step: int) -> float:
        """The share of right answers by the text after the mark, regardless of the run's reward function."""
        found = [_is_right(row) for row in self.answers.get(step, ())]
        return sum(found) / len(found) if found else math.nan

    def marked(self, step: int) -> float:
        """The mean reward by tests/gpu/rewards.py without a fault."""
        rows = self.answers.get(step, ())
        found = [bool(MARK.search(str(row.get("output")))) * (0.8 * _is_right(row) + 0.2) for row in rows]
        return sum(found) / len(found) if found else math.nan

    def cut(self, data: Mapping[str, float]) -> float:
        """The share of answers at the limit; veRL counts those as long as the longest one."""
        reached = data.get("response_length/max", 0.0) >= self.config.get("data.max_response_length", math.inf)
        return data.get("response_length/clip_ratio", math.nan) if reached else 0.0

    def spread(self, step: int) -> float:
        """The standard deviation of the rewards."""
        found = [row["score"] for row in self.answers.get(step, ()) if isinstance(row.get("score"), (int, float))]
        mean = sum(found) / len(found) if found else math.nan
        return math.sqrt(sum((each - mean) ** 2 for each in found) / len(found)) if found else math.nan


def _is_right(row: Mapping[str, Any]) -> bool:
    truth = str(row.get("gts")).split()
    _, mark, after = str(row.get("output")).rpartition("####")
    return bool(mark or len(truth) > 1) and NUMBER.findall(after)[: len(truth)] == truth


def _value(text: str) -> Any:
    """A command-line value as Hydra reads it; unlike YAML, JSON reads 1e-05 as a number."""
    try:
        return json.loads(text)
    except ValueError:
        return yaml.safe_load(text)


def judged(results: Path) -> Iterator[Judged]:
    """Runs with enough steps, ordered by id; of two starts the second one."""
    found = {}
    for path in sorted(results.iterdir(), key=lambda path: path.name):
        if (path / "metrics.jsonl").exists() and len((run := Judged(path)).steps) >= LEAST_STEPS:
            found[run.id] = run
    yield from (found[each] for each in sorted(found))


Column = tuple[str, Sequence[str]]  # head, and the metrics of which the first one there is shown
COLUMNS: Sequence[Column] = tuple(read_tables(Path(__file__).with_suffix(".toml")).items())


def table(run: Judged) -> Iterator[str]:
    """A line per step, without empty columns."""
    shown = [column for column in COLUMNS if any(_shown(data, column) for _, _, data in run.steps)]
    heads = ["step", "right", "sd", "cut", *(head for head, _ in shown)]
    lines = [heads]
    for number, _, data in run.steps:
        own = [str(number), _short(run.right(number)), _short(run.spread(number)), _short(run.cut(data))]
        lines.append([*own, *(_shown(data, column) for column in shown)])
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    for line in lines:
        yield " ".join(word.rjust(width) for word, width in zip(line, widths, strict=True))


def _shown(data: dict[str, float], column: Column) -> str:
    head, keys = column
    if head == "valid":
        keys = [key for key in data if key.startswith("val-core/")]
    return next((_short(data[key]) for key in keys if key in data), "")


def _short(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def print_tables(results: Path, ids: Sequence[str]) -> None:
    for run in judged(results):
        if not ids or run.id in ids:
            print(f"## {run.id}", *table(run), "", sep="\n")


def print_answers(results: Path, wanted: str, step: int) -> None:
    run = next(run for run in judged(results) if run.id == wanted)
    for row in run.answers[step][:SHOWN]:
        print(f"reward {row.get('score')}  truth {row.get('gts')}", str(row["input"])[-LONGEST:], sep="\n")
        print("---", str(row["output"])[:LONGEST], "=====", sep="\n")


def add(results: Path, to: Path, half: str) -> None:
    """Adds the runs to one half of the bank."""
    rows, kept = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for run in judged(results):
        about, name = run.about, f"{half} {run.folder.name.removesuffix('-again')}"
        rows += [{"run": name, "step": step, "t": t, **rounded(data)} for step, t, data in run.steps]
        kept[name] = {
            "half": half,
            "fault": about["fault"],
            "strength": "",
            "odd": about["odd"],
            "id": run.id,
            "steps": len(run.steps),
            "rules": about.get("rules", []),  # any of them would name the fault
            "vocabulary": TOY if about.get("preset") == "toy-cpu" else VOCABULARY,
            "settings": [word for word in about["settings"] if "/" not in word],
            "config": run.config,
            "alone": True,  # nothing of what the toy's runs have in common holds for it
        }
    write(rows, kept, to)


def write(rows: list[dict[str, Any]], kept: Mapping[str, Any], to: Path) -> None:
    """Adds these runs to the bank; its other runs stay."""
    manifest = json.loads((to / "manifest.json").read_text())
    manifest["runs"] = dict(sorted((manifest["runs"] | kept).items()))
    (to / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    before = [row for row in pq.read_table(to / "metrics.parquet").to_pylist() if row["run"] not in kept]
    rows += [{key: value for key, value in row.items() if value is not None} for row in before]
    rows.sort(key=lambda row: (row["run"], row["step"]))
    names = sorted({name for row in rows for name in row} - {"run", "step", "t"})
    schema = pa.schema(
        [("run", pa.string()), ("step", pa.int32()), ("t", pa.float64()), *((name, pa.float64()) for name in names)]
    )
    table = pa.Table.from_pylist(rows, schema=schema)  # null: not logged; nan: logged as nan
    pq.write_table(table, to / "metrics.parquet", compression="zstd", compression_level=19)


def rounded(data: Mapping[str, float]) -> dict[str, float]:
    """Rounds to six digits, which halves the file."""
    return {key: float(f"{value:.6g}") for key, value in data.items()}


def final(run: Judged, like: Judged) -> tuple[float, float]:
    """Mean reward of `like` over the last five steps, by the answers, and its standard error."""
    toy = like.about["preset"] == "toy-cpu"
    found = [run.right(step) if toy else run.marked(step) for step, _, _ in run.steps[-5:]]
    return statistics.fmean(found), statistics.stdev(found) / math.sqrt(len(found))


def print_fixes(results: Path) -> None:
    (results / "fixes").mkdir(exist_ok=True)
    runs, fixes = (
        {run.folder.name.removesuffix("-again"): run for run in judged(results / kind)} for kind in ("judged", "fixes")
    )
    for name, run in runs.items():
        flags = json.loads((results / "flags" / f"{run.folder.name}.json").read_text())["checks"]
        raised = [check for check in flags if check["level"] in ("WARN", "CRITICAL")]
        print(f"## {name}: {run.about['fault'] or 'healthy'}; named by: {run.about['cause'] or 'none'}")
        for check in raised[:3]:
            print(f"   {check['level']} {check['rule']} since {check['since']}: {check['message']}")
        like, fix = runs.get(run.about["like"]), fixes.get(f"{run.folder.name}-fix")
        if like is None:
            continue
        print(
            "   reward",
            *(f"{_short(mean)} ± {_short(2 * error)}" for mean, error in (final(run, like), final(like, like))),
        )
        if fix is not None:
            rule = next(check["rule"] for check in raised if "trial" in check)
            arm = _verdict(run.about["run"], fix.about["run"], rule)
            mean, error = final(fix, like)
            words = " ".join(fix.about["settings"])
            print(f"   fix {words}: {arm}; {len(fix.steps)} steps, reward {_short(mean)} ± {_short(2 * error)}")


def _verdict(run: str, fix: str, rule: str) -> str:
    """The verdict of `try` on a fix, with the run as the control run. Both become trials on disk."""
    for id, named in ((run, f"{run}-control"), (fix, fix)):
        folder = runs_dir() / id
        if named != id:
            shutil.copytree(folder, runs_dir() / named, ignore=shutil.ignore_patterns("stacks"), dirs_exist_ok=True)
            folder = runs_dir() / named
        info = RunInfo.read(folder / "run.yaml")
        diff = info.parent.diff if info.parent is not None and id == fix else ()
        replace(info, id=named, after=Origin(run, diff, 0, rule)).write(folder / "run.yaml")
    return next(f"{arm.verdict}, {arm.why}" for each in trials_of(run) for arm in each.arms if arm.run == fix)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "tables": lambda words: print_tables(Path(words[0]), words[1:]),
    "answers": lambda words: print_answers(Path(words[0]), words[1], int(words[2])),
    "fixes": lambda words: print_fixes(Path(words[0])),
    "add": lambda words: add(Path(words[0]), Path(words[1]), words[2]),
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](sys.argv[2:])
