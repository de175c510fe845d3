"""Counts of the scores of a step: of any scores, and as the supervisor writes them."""

import json
import math
from contextlib import nullcontext
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from launcher.metrics.records import StepRecord, float_of
from launcher.metrics.scores import PARTS, ScoreCounts
from launcher.record.layout import RunDir
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.responses import ToldByResponses, counted_scores, dumps

DATA = Path(__file__).parent.parent / "data" / "samples" / "rollout"
SCORES = st.lists(st.floats() | st.integers() | st.booleans() | st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e308, -1e308]))
JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.integers(-1, 9), max_size=PARTS)


def test_the_ends_and_exact_zeros_and_ones_are_apart_from_ten_equal_parts() -> None:
    found = ScoreCounts.of([0, 1, 1, 0.05, 0.1, 0.55, 0.999, math.nan, math.inf, -math.inf])
    assert found == ScoreCounts(0, 1, 1, 2, (1, 1, 0, 0, 0, 1, 0, 0, 0, 1))
    assert ScoreCounts.of([-4, 1, 6]) == ScoreCounts(-4, 6, 0, 1, (1, *[0] * 8, 1))
    assert ScoreCounts.of([0.5] * 3) == ScoreCounts(0.5, 0.5, 0, 0, (3, *[0] * 9))
    assert ScoreCounts.of([-1e308, 1e308]) == ScoreCounts(-1e308, 1e308, 0, 0, (1, *[0] * 8, 1))


@given(SCORES)
def test_each_finite_score_is_counted_once_and_read_back(scores: list[float]) -> None:
    finite = [value for score in scores if math.isfinite(value := float_of(score))]
    found = ScoreCounts.of(map(float_of, scores))
    line = StepRecord(7, 0.0, None, {"a": 1.0}, found).to_line()
    assert (read := StepRecord.from_line(line)) is not None and read.scores == found
    if found is None:
        assert not finite and b"scores" not in line
        return
    assert (found.low, found.high) == (min(finite), max(finite))
    assert (found.zeros, found.ones) == (finite.count(0), finite.count(1))
    assert found.zeros + found.ones + sum(found.parts) == len(finite)


@given(st.dictionaries(st.sampled_from(ScoreCounts.__slots__), JSON) | JSON)
def test_damaged_counts_are_no_counts(raw: object) -> None:
    found = ScoreCounts.read(raw)
    assert found is None or (found.low <= found.high and len(found.parts) == PARTS)
    good = {"low": 0.0, "high": 1.0, "zeros": 1, "ones": 0, "parts": [0] * PARTS}
    assert ScoreCounts.read(good) == ScoreCounts(0, 1, 1, 0, (0,) * PARTS)
    for bad in ({"low": 2.0}, {"high": math.inf}, {"zeros": -1}, {"zeros": 0}, {"ones": True}, {"parts": [0]}):
        assert ScoreCounts.read(good | bad) is None


def test_a_line_of_the_supervisor_has_what_is_counted_from_the_dump(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    attempt = run.add_attempt()
    run.rollouts.mkdir(parents=True)
    for step in (1, 60):
        (run.rollouts / f"{step}.jsonl").write_bytes((DATA / f"{step}.jsonl").read_bytes())
    wild = [True, math.nan, -math.inf, 10**400, None, "1", 0.25, -7]
    (run.rollouts / "61.jsonl").write_text("".join(json.dumps({"output": "", "score": x}) + "\n" for x in wild))
    (run.rollouts / "62.jsonl").write_text(json.dumps({"output": ""}) + "\n")
    told = ToldByResponses(run, attempt, lambda part: nullcontext())
    for step in (1, 60, 61, 62, 63):
        told.add(record := StepRecord(step, 0.0, None, {"actor/pg_loss": 0.1}))
        with attempt.steps.open("ab") as file:
            file.write(record.to_line())
    reader = RunReader(tmp_path)
    reader.poll()
    assert reader.scores == {dump.step: counts for dump in dumps(run) if (counts := counted_scores(dump))}
    assert list(reader.scores) == [1, 60, 61] and reader.scores[61] == ScoreCounts(-7, 1, 0, 1, (1, *[0] * 8, 1))
    attempt = run.add_attempt()
    attempt.steps.write_bytes(StepRecord(60, 0.0, None, {}).to_line())
    reader.poll()
    assert list(reader.scores) == [1, 61], "the repeated step was not counted, and its dump is a newer one"
