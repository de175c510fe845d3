"""Responses of the model in words."""

import math
from collections import Counter
from collections.abc import Sequence

from launcher.core.format import counted, number
from launcher.metrics.scores import part_of
from launcher.runs.watch.responses import Dump, Sample
from tui.kit.drawing.glyphs import ARROW, SPARK
from tui.kit.drawing.rows import Row, fit, fold, paragraph, width
from tui.pages.samples.word_diff import compare, flow, plain

_SCORE, _LENGTH, _TRUTH = 7, 7, 10  # cells of the columns of a response
BACK = "*"  # marks the response that others are compared with
_COURSE = 24  # scores in one line
_FEW = 5  # different scores that are listed one by one
ORDERS = ("in file order", "best first", "worst first", "longest first")


def ordered(samples: Sequence[Sample], order: str) -> list[int]:
    """The places of the samples in one of ORDERS; those without a score come last."""
    places = list(range(len(samples)))
    if order == "longest first":
        places.sort(key=lambda place: -len(samples[place].response))
    elif order != "in file order":
        sign = -1 if order == "best first" else 1
        scores = {place: sign * sample.score for place, sample in enumerate(samples)}
        places.sort(key=lambda place: math.inf if math.isnan(scores[place]) else scores[place])
    return places


def matching(samples: Sequence[Sample], places: Sequence[int], word: str) -> list[int]:
    """The places whose prompt, response or ground truth contains `word`, in upper or lower case."""
    word = word.lower()
    return [place for place in places if any(word in text.lower() for text in samples[place][:3])]


def sample_row(sample: Sample) -> Row:
    """`  1.0     212  42          response`, on one line: score, characters, ground truth, response."""
    response, truth = (" ".join(text[:400].split()) for text in (sample.response, sample.truth))
    row: Row = [
        ("  ", "text"),
        (f"{_score(sample):>{_SCORE}}", "title"),
        (f"{len(sample.response):>{_LENGTH},}", "dim"),
    ]
    row.append(("  ", "text"))
    row += fit([(truth or "–", "text")], _TRUTH)
    return [*row, (" ", "text"), (response or "(none)", "text" if response else "dim")]


def sample_heading(place: str = "  ") -> Row:
    """The heads of the columns of `sample_row`, after the place's."""
    return [(f"{place}{'score':>{_SCORE}}{'chars':>{_LENGTH}}  {'truth':{_TRUTH}} response", "dim")]


def sample_page(sample: Sample, columns: int) -> list[Row]:
    """Prompt, ground truth and response, wrapped, in this order."""
    figures = [_scored(sample), f"{len(sample.response):,} characters", *sample.parts]
    rows: list[Row] = [[(" " + " · ".join(figures), "dim")]]
    for title, text in (("Prompt", sample.prompt), ("Ground truth", sample.truth), ("Response", sample.response)):
        rows.append([(f" {title}", "title")])
        for line in (text or "(none)").splitlines():
            rows += [[(f"   {part}", "text")] for part in fold(line, max(columns - 4, 8))]
    return rows


def response_row(dump: Dump, sample: Sample, *, chosen: bool) -> Row:
    """`  step 60 validation  1.0  response`: one response among others to its prompt."""
    row = sample_row(sample)
    where = f"step {dump.step} {dump.kind}"
    place: Row = [(f"{where:<22}", "live" if chosen else "text")]
    return [row[0], (BACK if chosen else " ", "live"), *place, *row[1:]]


def diff_rows(
    older: tuple[Dump, Sample], newer: tuple[Dump, Sample], *, columns: int, same: bool, alone: bool
) -> list[Row]:
    """The changes between two responses; for the `same` ones, the response. `alone`: there is no other one."""
    (_, sample), (later, response) = older, newer
    if same:
        row: Row = [(f" step {later.step}, {_scored(response)}", "title")]
        none = "No other step used this prompt: training uses it once per epoch, each validation uses it again"
        said = paragraph(none, "dim", columns) if alone else []
        return [*said, row, *flow(plain(response.response), columns)]
    found = compare(sample.response, response.response)
    before, after = (f"step {each.step}, {_scored(of)}" for each, of in (older, newer))
    title: Row = [(f" {before} {ARROW} {after}", "title")]
    row = []
    if not found.gone and not found.new:
        row.append(("   same words", "dim"))
    else:
        row += [("   ", "text"), (f"[-{found.gone} removed-]", "critical"), (" ", "text")]
        row += [(f"{{+{found.new} added+}}", "ok"), (f" {found.kept} kept", "dim")]
    if found.cut:
        row.append((" in the first 4,000 words", "dim"))
    beside = width(title) + width(row) <= columns
    return [*([[*title, *row]] if beside else [title, row]), *flow(found.words, columns)]


def score_row(samples: Sequence[Sample], columns: int) -> Row:
    """How often each score occurs; for many different scores, a histogram from minimum to maximum."""
    scores = sorted(sample.score for sample in samples if math.isfinite(sample.score))
    if not scores:
        return [(" no scores", "dim")]
    row: Row = [(" scores  ", "dim")]
    counts = Counter(scores)
    if len(counts) <= _FEW:
        for score, count in sorted(counts.items()):
            row += [(f"{number(score)} ", "title"), (_bar(count, max(counts.values())), "curve")]
            row.append((f" {100 * count / len(scores):.0f} %  ", "dim"))
    else:
        low, high = scores[0], scores[-1]
        cells = max(min(columns - 50, 40), 8)
        heights = Counter(part_of(score, low, high, cells) for score in scores)
        most = max(heights.values())
        row += [(f"{number(low)} ", "title")]
        row.append(("".join(_bar(heights[cell], most) for cell in range(cells)), "curve"))
        row += [(f" {number(high)}", "title"), (f"  median {number(scores[len(scores) // 2])}", "text")]
    row.append((f"  mean {number(sum(scores) / len(scores))}", "text"))
    if len(scores) < len(samples):
        row.append((f"  {len(samples) - len(scores)} without a score", "dim"))
    return row


def score_course(scores: Sequence[float]) -> Row:
    """The newest scores as one bar each, oldest first: `  score ▁▁▂█ 0 to 1`."""
    shown = [score for score in scores if math.isfinite(score)][-_COURSE:]
    if len(shown) < 2:
        return []
    low, high = min(shown), max(shown)
    half = high / 2 - low / 2 or 1.0
    levels = [int((score / 2 - low / 2) / half * (len(SPARK) - 1)) for score in shown]
    return [
        ("  score ", "dim"),
        ("".join(SPARK[level] for level in levels), "curve"),
        (f" {number(low)} to {number(high)}", "dim"),
    ]


def _bar(count: int, most: int) -> str:
    return SPARK[min(count * len(SPARK) // most, len(SPARK) - 1)] if count else " "


def about(samples: Sequence[Sample]) -> str:
    """`64 responses, 12 distinct`: few distinct responses are a warning sign."""
    return f"{counted(len(samples), 'response')}, {len({sample.response for sample in samples}):,} distinct"


def _scored(sample: Sample) -> str:
    return _score(sample) if math.isnan(sample.score) else f"score {_score(sample)}"


def _score(sample: Sample) -> str:
    return "no score" if math.isnan(sample.score) else number(sample.score)
