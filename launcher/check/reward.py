"""Tries a reward function on real rows before the run, in a process of its own and with a time limit.

veRL loads it after the models and does not stop when it fails: prompts whose score raises are dropped, and a run fails
only when none is left.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.check import data, worker
from launcher.check.config.reward import MANAGER
from launcher.check.finding import Finding, of_data
from launcher.check.row_rules import REWARD, validates
from launcher.check.subject import Subject
from launcher.core.format import counted, duration, number
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
MADE_UP: list[dict[str, Any]] = [
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
    """Where the function failed: `stage` is find, load, call or value; `names` are the functions of the file."""

    stage: str = "call"
    type: str = ""
    text: str = ""
    line: int | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored(Record):
    """The reply of `ppo_tui_inside.probes.score_rows`: scores, an error of the function, or why there is no reply."""

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
    """The result. `scores` are those of `calls` in order; `seconds` is the time per call."""

    findings: tuple[Finding, ...]
    calls: tuple[Mapping[str, Any], ...] = ()
    scores: tuple[float, ...] = ()
    extra: tuple[str, ...] = ()
    seconds: float = 0.0
    is_async: bool = False
    odd: tuple[str, ...] = ()  # what is returned beside the score and cannot be averaged
    kinds: tuple[str, ...] = ()  # the response of each call, a key of `_responses` or `_degenerate`

    @property
    def ok(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)


def checks(subject: Subject) -> Iterable[Finding]:
    """The preset's own reward function, if it has one, on eight of its training rows."""
    path = subject.get(REWARD)
    if not path:
        return
    rows: Sequence[dict[str, Any]] = ()
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
            message = (
                f"one score takes {number(trial.seconds * 1000)} ms, all scores of a step {duration(each_step)} with "
                f"{counted(workers, 'worker')}"
            )
            fix = "make the function faster, or increase reward.workers"
            yield of_data.warning("REWARD-4", message, fix, (REWARD, "reward.num_workers"))


def _filtered(subject: Subject, trial: Trial, name: str) -> Iterable[Finding]:
    """REWARD-7: the reward function returns the metric by which groups are filtered.

    veRL: `verl/trainer/ppo/v1/replay_buffer.py: _dapo_filtered_keys`; the reward managers add acc to a plain number.
    """
    key = "algorithm.filter_groups.metric"
    metric, sampler = subject.text(key), subject.get("trainer.v1.sampler.custom_sampler.path")
    filters = subject.get("algorithm.filter_groups.enable") is True and subject.is_v1 and sampler is None
    returned = ("score", *trial.extra) if trial.extra else ("acc",)
    if not filters or not trial.ok or metric in (None, "reward", "overlong", "overlong_reward", *returned):
        return
    message = f"{key} is '{metric}', which {name} does not return: veRL fails when the first groups are finished"
    fix = f"set {key} to one of reward, {', '.join(returned)}"
    yield of_data.error("REWARD-7", message, fix, (key, REWARD), {"filter.metric": "reward"})


def _managed(subject: Subject, trial: Trial, name: str) -> Iterable[Finding]:
    """P30: whether veRL can use the function and its results besides the score.

    veRL: `verl/experimental/reward_loop/reward_manager/remote.py: RemoteRewardManager`,
    `verl/trainer/ppo/metric_utils.py: process_validation_metrics`.
    """
    if trial.is_async and subject.get(MANAGER) == "remote":
        message = f"{name} is asynchronous, and the reward manager remote takes only plain functions: veRL fails"
        fix = "set reward.manager to naive, or define it without async"
        yield of_data.error("P30", message, fix, (REWARD, MANAGER), {"reward.manager": "naive"})
    if trial.odd and validates(subject):
        message = f"{name} returns {trial.odd[0]} with the score, which veRL cannot average: the validation fails"
        fix = "return numbers or text there, each under a name of its own"
        yield of_data.error("P30", message, fix, (REWARD,))


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
        return _failed(f"{file} is a folder", "use the Python file with the function")
    if not named and not Path(file).is_file():
        folder = Path(file).parent
        hint = did_you_mean(Path(file).name, [each.name for each in folder.glob("*.py")])
        message = f"file not found: {file}{hint}: veRL would fail in the first step"
        return _failed(message, "use the path of the Python file, absolute or relative to the preset's folder")
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
        return _failed(f"{Path(file).name}: {clean(reply.failed)}{late}", "make sure that it returns and exits")
    if reply.error is not None:
        return _failure(Path(file), name, reply.error)
    count = len(reply.scores)  # of a slow function, only of the first calls
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
"""Responses to each row."""


def _responses(truth: Any, extra: Mapping[str, Any]) -> dict[str, str]:
    """Responses that a model might give; the right one has every usual form at once."""
    worked = extra.get("answer") or ""
    right = f"<think>\n{worked}\n</think>\n<answer>{truth}</answer>\nIt is \\boxed{{{truth}}}.\n#### {truth}"
    return {"right": right, "wrong": "I do not know.\n#### 123456789", "empty": ""}


EARNS_NOTHING = ("empty", "format alone", "digits", "prompt copied")
"""Responses that have no answer."""


def _degenerate(truth: Any, question: str) -> dict[str, str]:
    """Responses of a model that has collapsed or games its reward; the last two have the right answer."""
    return {
        "format alone": "<think>\n\n</think>\n<answer></answer>\nIt is \\boxed{}.\n####",
        "digits": " ".join(map(str, range(1000))),
        "prompt copied": question,
        "answer repeated": f"#### {truth}\n" * 200,
        "very long": f"{'Let me check that again. ' * 4000}\n#### {truth}",
    }


def _question(row: Mapping[str, Any]) -> str:
    """The question of a row: the last message, or the one in its extra_info."""
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
            message = (
                f"{name} of {file.name} gives {number(earned)} for a response without an answer ({kind}), "
                f"{number(right)} for a right one"
            )
            yield of_data.warning("REWARD-8", message, "give less for the form, or 0 without an answer", (REWARD,))
            return


def _suspicious(file: Path, name: str, scores: tuple[float, ...]) -> Iterable[Finding]:
    low, high = min(scores), max(scores)
    if low == high and len(scores) >= len(PLAIN):
        message = (
            f"{name} of {file.name} returns {number(low)} for every response, right, wrong or empty: nothing can be "
            "learned from it"
        )
        fix = "run `ppo-tui reward test` to see what it expects of a response"
        yield of_data.warning("REWARD-3", message, fix, (REWARD,))
    elif max(abs(low), abs(high)) > 100:
        message = f"{name} of {file.name} returns {number(low)} to {number(high)}: PPO is tuned for about 0 to 1"
        yield of_data.warning("REWARD-5", message, "scale the scores down", (REWARD,))


def _failure(file: Path, name: str, error: Failure) -> Trial:
    """What went wrong in one sentence."""
    where = f"{file.name}, line {error.line}" if error.line else file.name
    what = clean(": ".join(part for part in (error.type, error.text) if part))
    if error.stage == "find":
        names = error.names
        there = f"; it defines {', '.join(names)}" if names else "; it defines none"
        message = f"{file.name} has no function {name!r}{did_you_mean(name, names) or there}"
        fix = f"set reward.function to {names[0]}" if names else f"define one: {SIGNATURE}"
        return _failed(message, fix, (NAME,), {"reward.function": names[0]} if len(names) == 1 else None)
    if error.stage == "load":
        there = f" in line {error.line}" if error.line else ""
        if error.type in ("SyntaxError", "IndentationError", "TabError"):
            fix = f"fix the syntax error{there}"
        elif error.type in ("ImportError", "ModuleNotFoundError"):
            fix = f"fix the import{there}; the file is loaded by its path, on its own"
        else:
            fix = f"fix the error{there}"
        return _failed(f"{where} cannot be loaded: {what}", fix)
    if error.stage == "value":
        return _failed(f"{name} of {file.name} returns {what}", "return a number, or a dict with 'score'")
    message = f"{name} fails at {where}: {what}"
    if "signal only works in main thread" in what:
        return _failed(
            message,
            "remove signal.alarm, for example by disabling math_verify's timeouts: veRL calls the function in a thread",
        )
    if error.type == "TypeError" and "argument" in what:
        return _failed(message, f"define it as {SIGNATURE}; veRL passes keyword arguments")
    return _failed(message, "correct it; veRL silently drops a response if its score fails")


def _failed(
    message: str, fix: str, keys: tuple[str, ...] = (REWARD,), change: Mapping[str, Any] | None = None
) -> Trial:
    return Trial((of_data.error("P30", message, fix, keys, change),))
