"""GROUP-1 and TEXT-1: what ppo-tui counted in the responses (`launcher.metrics.responses`).

Their limits are not calibrated on failing runs: but for groups that are all wrong, nothing is more than a NOTICE.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.core.format import number
from launcher.health import keys
from launcher.health.clauses import SHARE, Clause, Rung, ladder
from launcher.health.frame import Frame
from launcher.health.rules.base import Rule, Setup, warming
from launcher.health.series import median
from launcher.health.state import Reading
from launcher.record.levels import Level

_RECENT = 5  # steps that a share is the median of


class UnvariedGroups(Rule):
    """Groups whose responses all score the same: an advantage that compares them is 0.

    Where nearly all are wrong, there is no signal; where nearly all are right, there is nothing left to learn.
    """

    id = "GROUP-1"
    needs = (keys.UNVARIED,)
    also = (keys.ALL_RIGHT, keys.ALL_WRONG)

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._last: deque[float] = deque(maxlen=_RECENT)
        self._wrong: deque[float] = deque(maxlen=_RECENT)

    def not_applicable(self) -> str | None:
        return "this estimator has no groups" if self.config.group_based is False else None

    def rate(self, frame: Frame, x: float) -> Reading:
        self._last.append(x)
        if len(self._last) < _RECENT:
            return warming(_RECENT - len(self._last))
        share = median(self._last)
        message = f"{number(100 * share)} % of groups have equal rewards"
        right, wrong = frame.get(keys.ALL_RIGHT), frame.get(keys.ALL_WRONG)
        self._wrong.append(wrong or 0.0)
        if right is not None and wrong is not None:
            message += f" (now {number(100 * right)} % all right, {number(100 * wrong)} % all wrong)"
        lost = median(self._wrong)
        return self.compare(
            message,
            lambda limits: [
                Clause(share, ladder(limits, "share", ">"), f"median of {_RECENT}", keys.UNVARIED, SHARE),
                Clause(lost, ladder(limits, "wrong", ">"), f"all wrong, median of {_RECENT}", keys.ALL_WRONG, SHARE),
            ],
        )


_TEXTS = (  # name of the limit, what the share is of, the key
    ("alike", "of responses are nearly the same text", keys.NEAR_EQUAL),
    ("copied", "of responses repeat their prompt", keys.COPIED),
    ("repeated", "of 4-grams in a response are repeats", keys.REPEATED),
    ("format", "of responses have an empty answer field", keys.FORMAT_ONLY),
)


class ResponseTexts(Rule):
    """Responses that are all alike, copy the prompt, repeat themselves, or show the format without an answer."""

    id = "TEXT-1"
    needs = (tuple(key for _, _, found in _TEXTS for key in found),)
    also = (*(found for _, _, found in _TEXTS), keys.DEPENDENCE)

    def judge(self, frame: Frame) -> Reading | None:
        shares = {name: x for name, _, found in _TEXTS if (x := frame.get(found)) is not None}
        if not shares:
            return None
        truths = frame.get(keys.EQUAL_TRUTHS) or 0.0
        reading = self.compare("", lambda limits: self._clauses(limits, shares, truths))
        flagged = [clause.level > Level.OK for clause in reading.raising]
        said = [
            f"{number(100 * x)} % {words}"
            for (x, words), bad in zip(
                ((shares[name], words) for name, words, _ in _TEXTS if name in shares), flagged, strict=True
            )
            if bad or not any(flagged)
        ]
        return replace(reading, message=", ".join(said))

    @staticmethod
    def _clauses(limits: Mapping[str, float], shares: Mapping[str, float], truths: float) -> Sequence[Clause]:
        found = []
        for name, _, key in _TEXTS:
            if name in shares:
                rungs = ladder(limits, name, ">")
                if name == "alike":  # answers may be alike where the expected ones are
                    rungs = [Rung(level, side, max(value, truths + value / 2)) for level, side, value in rungs]
                found.append(Clause(shares[name], rungs, metric=key, span=SHARE))
        return found
