"""Metrics of a step's responses: `responses/...` of `StepRecord.data`.

Shares of solved prompts use every response. Text metrics use at most SAMPLED responses per step, and only start and end
of long ones.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import combinations
from math import hypot, inf, isfinite, nan, sqrt
from statistics import fmean
from typing import Any, NamedTuple
from zlib import crc32

PREFIX = "responses/"
SAMPLED = 128  # responses per step whose text is read: to the same prompts, as far as available
_END = 1000  # characters of the beginning, and of the end
_LONG_PROMPT = 4000  # characters that are compared
_REMEMBERED = 50_000  # prompts
_GRADES = 8  # maximum number of different scores with which a response is right or wrong
_ALIKE = 0.8  # shared part of two near-equal responses
_COPIED = 0.5  # part of a response that is in its prompt
_SHORT = 8  # 4-grams: shorter responses do not count as copies
_LEAST = 8  # minimum number of comparisons
_COMPARED = 8  # responses per prompt whose lengths and scores are compared

_PIECE = re.compile(r"[\u3040-\u9fff]|\w{1,8}|[^\w\s]")  # words, or parts of long ones
_ANSWER = re.compile(r"####([^\n]*)|\\boxed\{([^}]*)|<answer>(.*?)(?:</answer>|$)", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_TURN = re.compile(r"<\|\w+\|>|</s>|^(?:user|assistant|system|human)\b:?\s*$", re.MULTILINE | re.IGNORECASE)
_EQUAL = 1e-6  # deviation of scores that do not differ
_RIGHT = 1.0  # the score of a right response, in veRL's own reward functions: a lower one may be a part of it
_FEW_WORDS, _MANY_WORDS = 1, 5  # words besides the common start and end of all prompts
_SOLVED, _MISSED, _LAST, _TWICE = 1, 2, 4, 8  # bits per prompt: ever, ever, when last seen; seen repeatedly

Row = Mapping[str, Any]


class _Text(NamedTuple):
    """The pieces of a text and their 4-grams."""

    pieces: frozenset[str]
    grams: frozenset[tuple[str, ...]]
    repeated: float  # share of its 4-grams that are repeats

    @classmethod
    def of(cls, text: str) -> "_Text":
        text = text if len(text) <= 2 * _END else f"{text[:_END]} {text[-_END:]}"
        pieces = _PIECE.findall(text.lower())
        grams = frozenset(zip(pieces, pieces[1:], pieces[2:], pieces[3:], strict=False)) or frozenset([tuple(pieces)])
        return cls(frozenset(pieces), grams, 1 - len(grams) / max(len(pieces) - 3, 1))


class ResponseFigures:
    """Computes response metrics of a run, step by step. Remembers a limited number of prompts."""

    def __init__(self) -> None:
        self._low, self._high = inf, -inf  # scores so far
        self._prompts: dict[int, int] = {}
        self._kinds = Counter[int]()  # prompts that were seen more than once, by their bits

    def of(self, rows: Sequence[Row]) -> dict[str, float]:
        """The metrics of one step's rows of veRL's rollout dump, without those whose columns are missing."""
        rows = [row for row in rows if isinstance(row.get("output"), str)]
        rights = self._rights(rows)
        solved = self._solved(rows, rights)
        parts = (_groups(rows, rights), _lengths(rows, rights), solved, _audit(rows), _texts(rows), _prompts(rows))
        return {PREFIX + name: value for part in parts for name, value in part.items()}

    def _rights(self, rows: Sequence[Row]) -> list[bool | None]:
        """Whether each response is right: by veRL's accuracy, or by a score with few values.

        Until a score is clearly that of a right response, a high one may only be the best so far.
        """
        scores = [_number(row.get("score")) for row in rows]
        finite = [score for score in scores if isfinite(score)]
        self._low, self._high = min([self._low, *finite]), max([self._high, *finite])
        middle = (self._low + self._high) / 2 if self._high > self._low else 0.0
        graded = len(set(finite)) <= _GRADES
        rights: list[bool | None] = []
        for row, score in zip(rows, scores, strict=True):
            accuracy = _number(row.get("acc"))
            if isfinite(accuracy):
                rights.append(accuracy > 0.5)
            else:
                known = graded and isfinite(score) and (score <= middle or self._high >= _RIGHT)
                rights.append(score > middle if known else None)
        return rights

    def _solved(self, rows: Sequence[Row], rights: Sequence[bool | None]) -> dict[str, float]:
        """Shares of repeated prompts never or always solved, and of this step's prompts that were forgotten."""
        now: dict[int, bool] = {}
        for row, right in zip(rows, rights, strict=True):
            if right is not None:
                prompt = crc32(_prompt(row).encode(errors="replace"))
                now[prompt] = now.get(prompt, False) or right
        again = forgotten = 0
        for prompt, solved in now.items():
            before = self._prompts.get(prompt)
            if before is None and len(self._prompts) >= _REMEMBERED:
                continue
            after = (before or 0) & ~_LAST | (_SOLVED | _LAST if solved else _MISSED)
            if before is not None:
                after |= _TWICE
                again += 1
                forgotten += bool(before & _LAST) and not solved
                self._kinds[before & (_SOLVED | _MISSED)] -= bool(before & _TWICE)
                self._kinds[after & (_SOLVED | _MISSED)] += 1
            self._prompts[prompt] = after
        if not again:
            return {}
        known = self._kinds.total()
        never, always = self._kinds[_MISSED] / known, self._kinds[_SOLVED] / known
        return {"never_solved": never, "always_solved": always, "forgotten": forgotten / again}


def _audit(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of `audit` or `acc`, which the reward function returns with the score and veRL ignores."""
    for name in ("audit", "acc"):
        values = [value for row in rows if isfinite(value := _number(row.get(name)))]
        if values and isfinite(mean := sum(values) / len(values)):
            return {"audit": mean}
    return {}


def _groups(rows: Sequence[Row], rights: Sequence[bool | None]) -> dict[str, float]:
    """Among prompts with several responses, the shares with equal scores, all right and all wrong."""
    members: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        members[_group(row)].append(place)
    groups = [places for places in members.values() if len(places) > 1]
    if not groups:
        return {}
    unvaried = [places for places in groups if len({_number(rows[place].get("score")) for place in places}) == 1]
    shares = {"unvaried_groups": len(unvaried) / len(groups), **_advantages(rows, groups)}
    shares |= {"longer_pays": _longer_pays(rows, groups)}
    if all(right is not None for right in rights):
        right = sum(all(rights[place] is True for place in places) for places in unvaried)
        wrong = sum(all(rights[place] is False for place in places) for places in unvaried)
        shares |= {"all_right_groups": right / len(groups), "all_wrong_groups": wrong / len(groups)}
    return shares


def _advantages(rows: Sequence[Row], groups: Sequence[Sequence[int]]) -> dict[str, float]:
    """The highest and lowest advantage computed from the scores: distance from the group mean in standard deviations.
    Groups without different finite scores are excluded.
    """
    ends = list[float]()
    for places in groups:
        scores = [_number(rows[place].get("score")) for place in places]
        mean = fmean(scores)
        deviation = hypot(*(score - mean for score in scores)) / sqrt(len(scores) - 1)
        if _EQUAL < deviation < inf:  # not nan
            ends += [(max(scores) - mean) / deviation, (min(scores) - mean) / deviation]
    return {"advantage_high": max(ends), "advantage_low": min(ends)} if ends else {}


def _longer_pays(rows: Sequence[Row], groups: Iterable[Sequence[int]]) -> float:
    """Among response pairs of one prompt, the share whose longer one scores higher minus the opposite share."""
    signs = list[int]()
    for places in groups:
        found = [(len(rows[place]["output"]), _number(rows[place].get("score"))) for place in places[:_COMPARED]]
        for (length, score), (other, less) in combinations(sorted(found), 2):
            signs += [(score > less) - (score < less)] if length != other else []
    return -fmean(signs) if signs else 0.0


def _prompts(rows: Sequence[Row]) -> dict[str, float]:
    """The share of the most frequent prompt, if repeated; the share of one-word prompts among longer ones, without
    their common start and end.
    """
    groups = {_group(row): _prompt(row) for row in rows}
    most = max(Counter(groups.values()).values(), default=0)
    repeated = {"repeated_prompt": most / len(groups) if most > 1 else 0.0}
    prompts = sorted({prompt[:_LONG_PROMPT] for prompt in groups.values()})[:SAMPLED]
    if len(prompts) < _LEAST:
        return repeated
    start = _same_start(prompts)
    end = _same_start([prompt[start:][::-1] for prompt in prompts])
    words = [len(prompt[start : len(prompt) - end].split()) for prompt in prompts]
    few = sum(count <= _FEW_WORDS for count in words) / len(words)
    return {**repeated, "one_word_prompts": few if max(words) >= _MANY_WORDS else 0.0}


def _same_start(texts: Sequence[str]) -> int:
    """Length in characters of the common start of all texts, up to its last space."""
    least, most = min(texts), max(texts)
    shared = next((place for place, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    return least.rfind(" ", 0, shared) + 1


def _lengths(rows: Sequence[Row], rights: Sequence[bool | None]) -> dict[str, float]:
    means = {}
    for name, kind in (("length_right", True), ("length_wrong", False)):
        lengths = [len(row["output"]) for row, right in zip(rows, rights, strict=True) if right is kind]
        if lengths:
            means[name] = fmean(lengths)
    return means


def _texts(rows: Sequence[Row]) -> dict[str, float]:
    """Text metrics of a sample of responses: those to the prompts with the smallest hashes."""
    by_prompt: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_prompt[_prompt(row)].append(row)
    prompts = sorted(by_prompt, key=lambda text: crc32(text.encode(errors="replace")))
    sampled, texts, copied = list[Row](), list[list[_Text]](), 0
    for prompt in prompts:
        if len(sampled) >= SAMPLED:
            break
        members = by_prompt[prompt][: SAMPLED - len(sampled)]
        question, responses = _Text.of(prompt).grams, [_Text.of(row["output"]) for row in members]
        grams = [response.grams for response in responses if len(response.grams) >= _SHORT]
        copied += sum(len(own & question) > _COPIED * len(own) for own in grams)
        sampled += members
        texts.append(responses)
    if not sampled:
        return {}
    flat = [text for responses in texts for text in responses]
    metrics = {
        "near_equal": _largest_cluster([text.grams for text in flat]) / len(flat),
        "repetition": fmean(text.repeated for text in flat),
        "prompt_copied": copied / len(flat),
        "past_turn": fmean(bool(_TURN.search(row["output"].rstrip())) for row in sampled),
    }
    truths = [(row["output"], str(row["gts"]).strip()) for row in sampled if row.get("gts") not in (None, "")]
    if truths:
        metrics["equal_truths"] = Counter(truth for _, truth in truths).most_common(1)[0][1] / len(truths)
        metrics["format_only"] = fmean(_format_only(_field(response), truth) for response, truth in truths)
        if all(_NUMBER.fullmatch(truth) for _, truth in truths):
            metrics["true_answers"] = fmean(_gives(response[-_END:], truth) for response, truth in truths)
    return metrics | _dependence(texts)


def _largest_cluster(texts: Iterable[frozenset[tuple[str, ...]]]) -> int:
    """Size of the largest set of texts that share most 4-grams with its first text.

    Compares texts that share one of their four 4-grams with the smallest hashes (MinHash, Broder 1997).
    """
    leaders: list[frozenset[tuple[str, ...]]] = []
    sizes: list[int] = []
    known: dict[int, int] = {}
    for grams in texts:
        smallest = nsmallest(4, map(hash, grams))
        for place in {known[value] for value in smallest if value in known}:
            if _shared(grams, leaders[place]) >= _ALIKE:
                sizes[place] += 1
                break
        else:
            leaders.append(grams)
            sizes.append(1)
            for value in smallest:
                known.setdefault(value, len(leaders) - 1)
    return max(sizes)


def _dependence(texts: Sequence[Sequence[_Text]]) -> dict[str, float]:
    """How much closer a response is to another response of its prompt than to one of the next prompt.

    1: always closer; 0: equally close, so that responses ignore their prompt (template collapse). A cheap substitute
    for the mutual information of arXiv 2604.06268.
    """
    several = [group for group in texts if len(group) > 1]
    nearer = []
    for group, others in zip(several, several[1:] + several[:1], strict=True):
        for place, text in enumerate(group):
            own = _shared(text.pieces, group[(place + 1) % len(group)].pieces)
            other = _shared(text.pieces, others[place % len(others)].pieces)
            nearer.append((own > other) - (own < other))
    return {"prompt_dependence": fmean(nearer)} if len(several) > 1 and len(nearer) >= _LEAST else {}


def _shared(one: frozenset[Any], other: frozenset[Any]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common) if one or other else 1.0


def _field(response: str) -> str | None:
    """The text of an answer's last field."""
    fields = [match[match.lastindex or 0] for match in _ANSWER.finditer(response[-_END:])]
    return fields[-1] if fields else None


def _format_only(field: str | None, truth: str) -> bool:
    """Whether the answer's field has no digit (no letter or digit, if the truth is not a number)."""
    answers = str.isdigit if any(map(str.isdigit, truth)) else str.isalnum
    return field is not None and not any(map(answers, field))


def _gives(response: str, truth: str) -> bool:
    """Whether the last number of the answer field (without one, of the response) is the truth."""
    field = _field(response)
    numbers = _NUMBER.findall(response if field is None else field)
    return bool(numbers) and numbers[-1].replace(",", "") == truth.replace(",", "")


def _prompt(row: Row) -> str:
    text = row.get("input")
    return text if isinstance(text, str) else ""


def _group(row: Row) -> str:
    """The group of a response: the prompt part of veRL's id `{prompt}_{response}_{output}`, or the prompt itself."""
    uid = row.get("uid")
    parts = uid.rsplit("_", 2) if isinstance(uid, str) else []
    return parts[0] if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit() else _prompt(row)


def _number(value: Any) -> float:
    try:
        return float(value) if isinstance(value, (int, float)) else nan
    except OverflowError:
        return nan
