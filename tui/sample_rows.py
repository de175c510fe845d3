"""Answers of the model in words."""

import math
from collections.abc import Sequence
from textwrap import wrap

from launcher.format import number
from launcher.run.samples import Sample
from tui.drawing.rows import Row

ORDERS = ("as dumped", "best first", "worst first", "longest first")


def ordered(samples: Sequence[Sample], order: str) -> list[int]:
    """The places of the samples in one of ORDERS; those without a score come last."""
    places = list(range(len(samples)))
    if order == "longest first":
        places.sort(key=lambda place: -len(samples[place].answer))
    elif order != "as dumped":
        sign = -1 if order == "best first" else 1
        scores = {place: sign * sample.score for place, sample in enumerate(samples)}
        places.sort(key=lambda place: math.inf if math.isnan(scores[place]) else scores[place])
    return places


def matching(samples: Sequence[Sample], places: Sequence[int], word: str) -> list[int]:
    """The places whose prompt, answer or ground truth contains `word`, capital or small."""
    word = word.lower()
    return [place for place in places if any(word in text.lower() for text in samples[place][:3])]


def sample_row(sample: Sample) -> Row:
    """`  1.0  answer`, on one line."""
    answer = " ".join(sample.answer[:400].split())
    return [
        ("  ", "text"),
        (f"{_score(sample):>7}  ", "title"),
        (answer or "(none)", "text" if answer else "dim"),
    ]


def sample_page(sample: Sample, columns: int) -> list[Row]:
    """Prompt, answer and ground truth, wrapped."""
    figures = [f"score {_score(sample)}", f"{len(sample.answer):,} characters", *sample.parts]
    rows: list[Row] = [[(" " + " · ".join(figures), "dim")]]
    for title, text in (("Answer", sample.answer), ("Ground truth", sample.truth), ("Prompt", sample.prompt)):
        rows.append([(f" {title}", "title")])
        for line in (text or "(none)").splitlines():
            rows += [[(f"   {part}", "text")] for part in wrap(line, max(columns - 4, 8)) or [""]]
    return rows


def about(samples: Sequence[Sample]) -> str:
    """`64 answers, mean score 0.42, 12 different`: few different answers are a sign of their own."""
    scores = [sample.score for sample in samples if math.isfinite(sample.score)]
    words = [f"{len(samples):,} answers"]
    if scores:
        words.append(f"mean score {number(sum(scores) / len(scores))}")
    words.append(f"{len({sample.answer for sample in samples}):,} different")
    return ", ".join(words)


def _score(sample: Sample) -> str:
    return "no score" if math.isnan(sample.score) else number(sample.score)
