"""The supported frameworks: their rules and differences."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from launcher.health.checklist import Checklist
from launcher.metrics.frameworks import Framework
from launcher.metrics.frameworks import frameworks as tables
from launcher.runs.watch.check_words import coverage

STEPS = 60


def frameworks() -> str:
    """The rules for each framework, its metrics with another meaning, and its trainings without a policy."""
    others = {name: each for name, each in tables().items() if not each.own}
    judged = [
        f"| [{each.title}](https://github.com/{each.repository}) `{each.commit}` | {_of(each)} |"
        for each in others.values()
    ]
    different = [line for each in others.values() for line in _different(each)]
    return "\n".join(
        [
            "| framework, version read | rules that judge a log with all its metrics; what has no rule |",
            "| --- | --- |",
            *judged,
            "",
            "| framework | metric that is not judged | reason |",
            "| --- | --- | --- |",
            *different,
            "",
            "| not reinforcement learning | recognized by | not with |",
            "| --- | --- | --- |",
            *dict.fromkeys(
                f"| {kind.title} | {_code(kind.has)} | {_code(kind.lacks)} |"
                for each in others.values()
                for kind in each.kinds
            ),
        ]
    )


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _of(framework: Framework) -> str:
    """The rules for a run that logs every metric of the table."""
    checklist = Checklist(clock=False)
    keys = {row.ours.format("all") for row in framework.metrics if row.ours}
    for step in range(1, STEPS):
        checklist.step(step, dict.fromkeys(keys, 0.5 + 0.01 * (step % 5)))
    return coverage(replace(framework, title=""), checklist.checks()).removeprefix(": ")


def _different(framework: Framework) -> Iterator[str]:
    """The names that the table does not inherit."""
    base = tables().get(framework.base)
    for row in framework.metrics:
        if row.differs and (base is None or row not in base.metrics):
            yield f"| {framework.title} | `{row.theirs[0]}` | {row.differs} |"
