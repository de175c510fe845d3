"""Tries a reward function; a script for veRL's interpreter, in a process that may be killed.

Request on stdin: {"file", "name", "calls", "kwargs", "enough"}; a call is {"data_source", "solution_str",
"ground_truth", "extra_info"}. Reply: {"scores": [number], "extra": [name], "seconds", "is_async"} or {"error":
{"stage", "type", "text", "line"}}; `stage` is load, find, call or value. After `enough` seconds no further call starts,
so that there are fewer scores.

As in veRL's reward workers, there is one event loop, and a plain function runs in another thread, where for example
`signal.alarm` does not work.
"""

import asyncio
import functools
import inspect
import time
import traceback
from typing import Any

from . import Request, answer, load_file


def reply(request: Request) -> Request:
    path = request["file"]
    stage = "load"
    try:
        module = load_file(path)
        stage = "find"
        function = getattr(module, request["name"], None)
        if not callable(function):
            own = {name for name, each in vars(module).items() if inspect.isfunction(each)}
            names = sorted(name for name in own if vars(module)[name].__module__ == module.__name__)
            return {"error": {"stage": "find", "type": "", "text": "", "line": None, "names": names}}
        stage = "call"
        return asyncio.run(scored(function, request))
    except BaseException as error:
        return {
            "error": {
                "stage": stage,
                "type": type(error).__name__,
                "text": said(error, path).partition("\n")[0][:300],
                "line": line_of(error, path),
            }
        }


async def scored(function: Any, request: Request) -> Request:
    """The reply for a callable function."""
    is_async = inspect.iscoroutinefunction(function)
    loop, kwargs = asyncio.get_running_loop(), request.get("kwargs", {})
    scores: list[float | None] = []
    extra, odd = set[str](), dict[str, str]()
    begin, seconds = time.perf_counter(), 0.0
    for call in request["calls"]:
        ready = functools.partial(function, **{**call, **kwargs})  # as `verl/trainer/ppo/reward.py: _call_with_kwargs`
        result = await ready() if is_async else await loop.run_in_executor(None, ready)
        score, problem = value(result)
        if problem:
            return {"error": {"stage": "value", "type": "", "text": problem, "line": None}}
        if isinstance(result, dict):
            extra |= {str(name) for name in result if name != "score"}
            odd |= {str(name): f"'{name}' as a {type(each).__name__}" for name, each in result.items() if is_odd(each)}
        scores.append(score)
        seconds = time.perf_counter() - begin
        if seconds > request.get("enough", float("inf")):
            break
    return {"scores": scores, "extra": sorted(extra), "seconds": seconds, "is_async": is_async, "odd": [*odd.values()]}


def is_odd(value: Any) -> bool:
    """Whether veRL cannot average it: `verl/trainer/ppo/metric_utils.py: process_validation_metrics`."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return False
    try:
        import numpy
    except ImportError:
        return False
    try:
        float(numpy.mean([value]))
    except (TypeError, ValueError):
        return True
    return False


def value(result: Any) -> tuple[float | None, str | None]:
    """The score as a number, and what is wrong with it."""
    if isinstance(result, dict):
        if "score" not in result:
            return None, f"a dict without 'score'; its keys: {', '.join(map(str, result)) or 'none'}"
        result = result["score"]
    kind = getattr(result, "dtype", None)
    if not isinstance(result, float) and str(kind) in ("float16", "float32", "bool"):  # numpy types
        return None, f"a numpy.{kind}, which torch cannot store: return float(...) of it"
    if isinstance(result, bool) or hasattr(result, "item"):
        result = float(result)
    if not isinstance(result, (int, float)):
        return None, f"{type(result).__name__} instead of a number"
    if result != result or result in (float("inf"), float("-inf")):
        return None, f"{result}, which is not a finite number"
    return float(result), None


def said(error: BaseException, path: str) -> str:
    """The message of an error; for a syntax error in the file, also the code line."""
    if isinstance(error, SyntaxError) and error.filename == path and error.text:
        return f"{error.msg}: {error.text.strip()}"
    return str(error)


def line_of(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


if __name__ == "__main__":
    answer(reply)
