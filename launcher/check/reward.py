"""Tries a reward function on real rows before the run, in a separate process with a time limit.

veRL loads it after the models and does not stop when it fails: it drops prompts whose score raises an exception, and a
run fails only when none is left.
"""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

from launcher.check import data, worker
from launcher.check.config.reward import MANAGER
from launcher.check.finding import Finding, Words, found
from launcher.check.row_rules import REWARD, validates
from launcher.check.subject import Subject
from launcher.core.format import duration, number
from launcher.core.text import clean, did_you_mean
from launcher.record.json import Record
from launcher.verl.config import BATCH, N

NAME = "reward.custom_reward_function.name"
KWARGS = "reward.custom_reward_function.reward_kwargs"
DEFAULT_NAME = "compute_score"
SIGNATURE = "compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)"
TIMEOUT = 120.0  # seconds; importing torch and veRL takes 40 on a slow disk or a busy machine
ENOUGH = 10.0  # seconds after which no further call is begun
SLOW = 10.0  # seconds that the scores of one step may take
MADE_UP: list[dict[str, object]] = [
    {
        "data_source": "openai/gsm8k",
        "reward_model": {"ground_truth": str(a + b)},
        "extra_info": {
            "split": "train",
            "index": a,
            "answer": f"{a} + {b} = {a + b}\n#### {a + b}",
            "question": f"What is {a} + {b}?",
        },
    }
    for a, b in ((2, 5), (17, 25), (104, 6))
]
"""Rows for a function without data."""


@dataclass(frozen=True)
class Failure(Record):
    """Where the function failed: `stage` is find, load, call or value; `names`: the functions in the file."""

    stage: str = "call"
    type: str = ""
    text: str = ""
    line: int | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored(Record):
    """The reply of `ppo_tui_inside.probes.score_rows`: scores, the function's error, or the reason without one."""

    failed: str | None = None
    timeout: bool = False
    error: Failure | None = None
    scores: tuple[float, ...] = ()
    extra: tuple[str, ...] = ()
    seconds: float = 0.0
    is_async: bool = False
    odd: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """The result. `scores` are in the order of `calls`; `seconds`: time per call."""

    findings: tuple[Finding, ...]
    calls: tuple[Mapping[str, Any], ...] = ()
    scores: tuple[float, ...] = ()
    extra: tuple[str, ...] = ()
    seconds: float = 0.0
    is_async: bool = False
    odd: tuple[str, ...] = ()  # results besides the score that cannot be averaged
    kinds: tuple[str, ...] = ()  # the response of each call, a key of `_responses` or `_degenerate`

    @property
    def ok(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)


def checks(subject: Subject) -> Iterable[Finding]:
    """The preset's own reward function, if any, on eight training rows."""
    path = subject.get(REWARD)
    if not path:
        return
    rows: Sequence[dict[str, object]] = ()
    for file in data.files(subject, data.FILES["train"])[:1]:
        if Path(file).is_file():
            rows = data.look(subject, file, measured=True).examples
    name, kwargs = str(subject.get(NAME) or DEFAULT_NAME), subject.below(KWARGS)
    env = subject.loaded.preset.env
    trial = try_out(subject.python, str(path), name, rows or MADE_UP, kwargs=kwargs, env=env)
    yield from trial.findings
    yield from _filtered(subject, trial, name)
    yield from _managed(subject, trial, name)
    workers = subject.get("reward.num_workers", 8)
    prompts, n = subject.get(BATCH, 0), subject.get(N, 1)
    if trial.ok and all(isinstance(each, int) for each in (prompts, n, workers)):
        each_step = trial.seconds * prompts * n / max(1, workers)
        if each_step > SLOW and not trial.is_async:
            yield found(
                "REWARD-4", milliseconds=number(trial.seconds * 1000), each_step=duration(each_step), workers=workers
            )


def _filtered(subject: Subject, trial: Trial, name: str) -> Iterable[Finding]:
    """REWARD-7: the reward function returns the metric of the group filter.

    veRL: `verl/trainer/ppo/v1/replay_buffer.py: _dapo_filtered_keys`; the reward managers add acc to a plain number.
    """
    key = "algorithm.filter_groups.metric"
    metric, sampler = subject.text(key), subject.get("trainer.v1.sampler.custom_sampler.path")
    filters = subject.get("algorithm.filter_groups.enable") is True and subject.is_v1 and sampler is None
    returned = ("score", *trial.extra) if trial.extra else ("acc",)
    if not filters or not trial.ok or metric in (None, "reward", "overlong", "overlong_reward", *returned):
        return
    yield found("REWARD-7", metric=metric, name=name, returned=returned)


def _managed(subject: Subject, trial: Trial, name: str) -> Iterable[Finding]:
    """P30: whether veRL can use the function and its results besides the score.

    veRL: `verl/experimental/reward_loop/reward_manager/remote.py: RemoteRewardManager`,
    `verl/trainer/ppo/metric_utils.py: process_validation_metrics`.
    """
    if trial.is_async and subject.get(MANAGER) == "remote":
        yield found("P30.async", name=name)
    if trial.odd and validates(subject):
        yield found("P30.odd", name=name, odd=trial.odd[0])


def try_out(
    python: str,
    file: str,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    kwargs: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    degenerate: bool = False,
) -> Trial:
    """Calls the function as veRL does, with a right, a wrong and an empty response to each row.

    With `degenerate`, also with responses of a model that maximizes the reward without solving the task.
    """
    file = file.removeprefix("file://")
    named = file.startswith("pkg://")
    if not named and Path(file).is_dir():
        return _failed("folder", file=file)
    if not named and not Path(file).is_file():
        folder = Path(file).parent
        hint = did_you_mean(Path(file).name, [each.name for each in folder.glob("*.py")])
        return _failed("missing", file=file, hint=hint)
    if not named and not file.endswith(tuple(all_suffixes())):
        return _failed("not-python", file=file)
    kinds, calls = [], []
    for row in rows:
        source, truth = row.get("data_source") or "", (row.get("reward_model") or {}).get("ground_truth")
        info = row.get("extra_info")
        extra = {**(info if isinstance(info, Mapping) else {}), "num_turns": 2, "rollout_reward_scores": {}}
        responses = _responses(truth, extra) | (_degenerate(truth, _question(row)) if degenerate else {})
        for kind, response in responses.items():
            kinds.append(kind)
            call = {"data_source": source, "solution_str": response, "ground_truth": truth, "extra_info": extra}
            calls.append(call)
    enough = min(ENOUGH, timeout / 3)
    request = {"file": file, "name": name, "calls": calls, "kwargs": dict(kwargs or {}), "enough": enough}
    reply = Scored.from_json(worker.ask(python, "score_rows", request, timeout=timeout, env=env))
    if reply.failed is not None:
        late = ": veRL would hang" if reply.timeout else ""
        return _failed("stuck", file=Path(file).name, why=clean(reply.failed), late=late)
    if reply.error is not None:
        return _failure(Path(file), name, reply.error)
    count = len(reply.scores)  # for a slow function, only the first calls
    scored = list(zip(kinds, reply.scores, strict=False))
    return Trial(
        (*_suspicious(Path(file), name, reply.scores), *_paid_for_nothing(Path(file), name, scored)),
        tuple(calls[:count]),
        reply.scores,
        reply.extra,
        reply.seconds / max(1, count),
        reply.is_async,
        reply.odd,
        tuple(kinds[:count]),
    )


PLAIN = ("right", "wrong", "empty")
"""The kinds of responses tried on each row."""


def _responses(truth: Any, extra: Mapping[str, Any]) -> dict[str, str]:
    """Possible responses of a model; the right one has all usual answer formats at once."""
    worked = extra.get("answer") or ""
    right = f"<think>\n{worked}\n</think>\n<answer>{truth}</answer>\nIt is \\boxed{{{truth}}}.\n#### {truth}"
    return {"right": right, "wrong": "I do not know.\n#### 123456789", "empty": ""}


EARNS_NOTHING = ("empty", "format alone", "digits", "prompt copied")
"""Responses without an answer."""


def _degenerate(truth: Any, question: str) -> dict[str, str]:
    """Responses of a collapsed or reward-hacking model; the last two have the right answer."""
    return {
        "format alone": "<think>\n\n</think>\n<answer></answer>\nIt is \\boxed{}.\n####",
        "digits": " ".join(map(str, range(1000))),
        "prompt copied": question,
        "answer repeated": f"#### {truth}\n" * 200,
        "very long": f"{'Let me check that again. ' * 4000}\n#### {truth}",
    }


def _question(row: Mapping[str, Any]) -> str:
    """The question of a row: its last message, or `question` in extra_info."""
    prompt = row.get("prompt")
    if isinstance(prompt, Sequence) and not isinstance(prompt, str) and prompt and isinstance(prompt[-1], Mapping):
        return str(prompt[-1].get("content") or "")
    info = row.get("extra_info")
    return str((info.get("question") if isinstance(info, Mapping) else None) or prompt or "")


def mean_of(kind: str, scored: Iterable[tuple[str, float]]) -> float:
    """The mean score of one kind of response; nan for an unscored kind."""
    found = [score for each, score in scored if each == kind]
    return sum(found) / len(found) if found else math.nan


def _paid_for_nothing(file: Path, name: str, scored: Sequence[tuple[str, float]]) -> Iterable[Finding]:
    right, wrong = mean_of("right", scored), mean_of("wrong", scored)
    for kind in EARNS_NOTHING:
        earned = mean_of(kind, scored)
        if right > max(wrong, 0) and earned >= right / 2:
            yield found("REWARD-8", name=name, file=file.name, earned=number(earned), kind=kind, right=number(right))
            return


def _suspicious(file: Path, name: str, scores: tuple[float, ...]) -> Iterable[Finding]:
    low, high = min(scores), max(scores)
    if low == high and len(scores) >= len(PLAIN):
        yield found("REWARD-3", name=name, file=file.name, low=number(low))
    elif max(abs(low), abs(high)) > 100:
        yield found("REWARD-5", name=name, file=file.name, low=number(low), high=number(high))


def _failure(file: Path, name: str, error: Failure) -> Trial:
    """The failure in one sentence."""
    where = f"{file.name}, line {error.line}" if error.line else file.name
    what = clean(": ".join(part for part in (error.type, error.text) if part))
    words: Words = {"name": name, "file": file.name, "where": where, "what": what, "signature": SIGNATURE}
    if error.stage == "find":
        names = error.names
        near = did_you_mean(name, names) or (f"; it defines {', '.join(names)}" if names else "; it defines none")
        variant = "no-function" if not names else "other-function" if len(names) == 1 else "other-functions"
        return _failed(variant, **words, near=near, other=names[0] if names else "")
    if error.stage == "value":
        return _failed("value", **words)
    if error.stage == "load":
        wrong = "syntax" if error.type in ("SyntaxError", "IndentationError", "TabError") else "load"
        wrong = "import" if error.type in ("ImportError", "ModuleNotFoundError") else wrong
        return _failed(wrong, **words, path=shlex.quote(str(file)), line=f" in line {error.line}" if error.line else "")
    if "signal only works in main thread" in what:
        return _failed("signal", **words)
    return _failed("arguments" if error.type == "TypeError" and "argument" in what else "raises", **words)


def _failed(variant: str, **words: Any) -> Trial:
    return Trial((found(f"P30.{variant}", **words),))
