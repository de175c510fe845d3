"""Reading veRL's dumps of prompts and answers."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.record.layout import RunDir
from launcher.runs.watch import responses as samples
from launcher.runs.watch.responses import Dump, dumps, prompt_of, read, responses_to, stamp

DATA = Path(__file__).parent.parent / "data" / "samples"  # of our own toy task
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)
KEYS = st.sampled_from(["input", "output", "gts", "score", "step", "uid", "acc", "pred"])


def test_a_dump_of_training_and_one_of_the_validation() -> None:
    found, cut = read(Dump("rollout", 1, DATA / "rollout" / "1.jsonl"))
    assert len(found) == 12 and not cut
    assert found[0] == ('user\nWhat is 5 + 5? Give the answer after "####".\nassistant', "#### 4", "10", 0.0, ())
    assert found[2].score == 1.0
    found, _ = read(Dump("validation", 10, DATA / "validation" / "10.jsonl"))
    assert found[0].parts == ("acc 0.0",)


def test_dumps_are_listed_by_kind_and_step(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert dumps(run) == []
    for folder, name in (("rollout", "10"), ("rollout", "9"), ("validation", "0"), ("rollout", "x"), ("rollout", "²")):
        path = tmp_path / "samples" / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.jsonl").write_text("")
    assert [dump[:2] for dump in dumps(run)] == [("rollout", 9), ("rollout", 10), ("validation", 0)]


def test_what_an_answer_can_do_to_a_terminal_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(
        json.dumps({"output": "a\x1b]0;owned\x07b\u202e\x9b2J", "acc\x1b[2J": "\x1bc"}) + "\n{half a line"
    )
    (sample,), _ = read(Dump("rollout", 1, tmp_path / "1.jsonl"))
    assert (sample.response, sample.truth, sample.parts) == ("ab", "", ("acc ",))
    assert math.isnan(sample.score)


@pytest.mark.slow
@given(st.lists(st.dictionaries(KEYS, JSON)), st.binary(max_size=30))
def test_any_file_is_read(tmp_path: Path, rows: list[dict[str, object]], rest: bytes) -> None:
    path = tmp_path / "1.jsonl"
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode() + rest.replace(b"{", b""))
    found, _ = read(Dump("rollout", 1, path))
    assert len(found) == sum("output" in row for row in rows)


def test_a_huge_file_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    row = json.dumps({"output": "y" * 200_000, "score": 1}).encode() + b"\n"
    path.write_bytes(row * (samples.LARGEST // len(row) + 5))
    found, cut = read(Dump("rollout", 1, path))
    assert cut and len(found) == samples.LARGEST // len(row)
    beginning = "y" * (1 << 16)
    assert found[0].response == f"{beginning} … (200,000 characters in total)"


def write(path: Path, rows: list[dict[str, object]], *, escaped: bool = False) -> Dump:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=escaped) + "\n" for row in rows), "utf-8")
    return Dump("rollout", int(path.stem), path)


def test_the_answers_to_one_prompt_are_found_in_other_dumps(tmp_path: Path) -> None:
    prompt, near = 'user\nWhat is "5 \\ 3"? 漢\n', 'user\nWhat is "5 \\ 3"? 漢\n and more'
    rows = [
        {"input": near, "output": "no", "score": 0.0},
        {"input": prompt, "output": f'as "input": {prompt}', "score": 0.5},
        {"input": prompt, "output": "twice", "score": 1.0},
    ]
    for escaped in (False, True):  # veRL wrote ASCII once
        first = write(tmp_path / "1.jsonl", rows, escaped=escaped)
        later = write(tmp_path / "2.jsonl", [{"output": "?"}, *reversed(rows)], escaped=escaped)
        wanted = prompt_of(first, 1)
        assert wanted is not None and wanted == prompt_of(later, 1)
        assert [sample.score for sample in responses_to(wanted, first)] == [0.5, 1.0]
        assert [sample.score for sample in responses_to(wanted, later)] == [1.0, 0.5]
        assert prompt_of(later, 0) is None and prompt_of(first, 9) is None


@given(st.lists(st.text(max_size=6), min_size=1, max_size=8), st.booleans())
def test_a_prompt_finds_itself_whatever_it_says(tmp_path: Path, prompts: list[str], escaped: bool) -> None:
    clean = [prompt.encode("utf-8", "replace").decode() for prompt in prompts]
    dump = write(tmp_path / "1.jsonl", [{"input": p, "output": str(n)} for n, p in enumerate(clean)], escaped=escaped)
    for place, prompt in enumerate(clean):
        wanted = prompt_of(dump, place)
        assert wanted is not None
        answers = [sample.response for sample in responses_to(wanted, dump)]
        assert answers == [str(n) for n, other in enumerate(clean) if other == prompt]


def test_a_new_dump_changes_the_stamp(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    before = stamp(run)
    write(run.rollouts / "1.jsonl", [])
    assert before == (0, 0) and stamp(run) != before and stamp(run) == stamp(run)
