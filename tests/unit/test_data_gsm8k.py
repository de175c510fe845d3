"""GSM8K from files: veRL's schema, ground truths, and what a user is told when a file is not right.

The questions are made up here, in GSM8K's form.
"""

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.data import gsm8k

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: pip install ppo-tui[cpu]"
)


def item(answer: str, question: str = "Two boxes hold 6 pens each. How many pens?") -> str:
    return json.dumps({"question": question, "answer": answer})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of one plain and one compressed split."""
    folder = tmp_path / "original"
    folder.mkdir()
    lines = [item("6 * 2 = <<6*2=12>>12\n#### 12"), item("It is much.\n#### 1,250"), item("#### -3.5")]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    with gzip.open(folder / "test.jsonl.gz", "wt") as file:
        file.write(item("#### 7") + "\n")
    return folder


@needs_pyarrow
def test_rows_are_what_verl_reads(source: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    assert gsm8k.write(source, tmp_path / "new" / "data") == {"train": 3, "test": 1}
    rows = pyarrow.parquet.read_table(tmp_path / "new" / "data" / "train.parquet").to_pylist()
    assert rows[1] == {
        "data_source": "openai/gsm8k",
        "prompt": [
            {
                "role": "user",
                "content": "Two boxes hold 6 pens each. How many pens? "
                'Let\'s think step by step and output the final answer after "####".',
            }
        ],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "1250"},
        "extra_info": {
            "split": "train",
            "index": 1,
            "answer": "It is much.\n#### 1,250",
            "question": "Two boxes hold 6 pens each. How many pens?",
        },
    }
    assert [row["reward_model"]["ground_truth"] for row in rows] == ["12", "1250", "-3.5"]
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2]


@pytest.mark.slow
@needs_pyarrow
def test_verls_own_reward_accepts_every_ground_truth(source: Path) -> None:
    scorer = pytest.importorskip("verl.utils.reward_score.gsm8k")
    for row in gsm8k.rows(((str(source), json.loads(item(f"#### {n}"))) for n in ("12", "1,250", "-3")), "test"):
        truth = row["reward_model"]["ground_truth"]
        assert scorer.compute_score(row["extra_info"]["answer"], truth) == 1.0
        assert scorer.compute_score(f"#### {truth}0", truth) == 0.0


@tabled
@needs_pyarrow
def test_a_wrong_line_is_named_and_nothing_is_written(source, tmp_path, content, complaint):
    (source / "train.jsonl").write_text(item("#### 1") + "\n" + content + "\n")
    with pytest.raises(UserError, match=complaint) as error:
        gsm8k.write(source, tmp_path / "data")
    assert str(source / "train.jsonl") in str(error.value)
    assert not list(tmp_path.rglob("*.parquet"))


@needs_pyarrow
def test_a_damaged_archive_is_named(source: Path, tmp_path: Path) -> None:
    whole = (source / "test.jsonl.gz").read_bytes()
    for damaged in (whole[:-9], b"not an archive"):
        (source / "test.jsonl.gz").write_bytes(damaged)
        with pytest.raises(UserError, match=r"test\.jsonl\.gz, line \d+: not valid JSON lines"):
            gsm8k.write(source, tmp_path / "data")


def test_a_missing_split_is_named_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    (source / "test.jsonl.gz").unlink()
    with pytest.raises(UserError, match=r"neither test\.jsonl nor test\.jsonl\.gz"):
        gsm8k.write(source, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_without_pyarrow_the_extra_is_named(source: Path, tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
sys.modules["pyarrow"] = None  # an import of it fails from here on
from launcher.data import gsm8k
from launcher.core.errors import UserError
try:
    gsm8k.write(Path({str(source)!r}), Path({str(tmp_path / "data")!r}))
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert "pip install pyarrow" in done.stdout
