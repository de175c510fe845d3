"""Reading veRL's dumps of prompts and answers."""

import json
import math
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launcher.run import samples
from launcher.run.directory import RunDir
from launcher.run.samples import Dump, dumps, read

DATA = Path(__file__).parent.parent / "data" / "samples"  # of our own toy task
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)
KEYS = st.sampled_from(["input", "output", "gts", "score", "step", "uid", "acc", "pred"])


def test_a_dump_of_training_and_one_of_the_validation() -> None:
    found, cut = read(Dump("rollout", 1, DATA / "rollout" / "1.jsonl"))
    assert len(found) == 12 and not cut
    assert found[0] == (
        'user\nWhat is 5 + 5? Give the answer after "####".\nassistant', "#### 4", "10", 0.0, ()
    )  # fmt: skip
    assert found[2].score == 1.0
    found, _ = read(Dump("validation", 10, DATA / "validation" / "10.jsonl"))
    assert found[0].parts == ("acc 0.0",)


def test_dumps_are_listed_by_kind_and_step(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert dumps(run) == []
    for folder, name in (
        ("rollout", "10"),
        ("rollout", "9"),
        ("validation", "0"),
        ("rollout", "x"),
        ("rollout", "²"),
    ):
        path = tmp_path / "samples" / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{name}.jsonl").write_text("")
    assert [dump[:2] for dump in dumps(run)] == [("rollout", 9), ("rollout", 10), ("validation", 0)]


def test_what_an_answer_can_do_to_a_terminal_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(
        json.dumps({"output": "a\x1b]0;owned\x07b\u202e\x9b2J", "acc\x1b[2J": "\x1bc"}) + "\n{half a line"
    )
    (sample,), _ = read(Dump("rollout", 1, tmp_path / "1.jsonl"))
    assert (sample.answer, sample.truth, sample.parts) == ("ab", "", ("acc ",))
    assert math.isnan(sample.score)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
    assert len(found[0].answer) == 1 << 16
