"""Commands that print facts about runs and logs."""

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.diagnosing import Ask, CaseFile, put_case, put_without_step
from launcher.cli.output import (
    Every,
    Json,
    Keys,
    Names,
    Run,
    Source,
    Yes,
    find,
    put,
    put_json,
    put_problems,
    put_result,
    put_table,
    resolved,
    say,
    shown_progress,
)
from launcher.core.errors import UserError
from launcher.core.format import SHORT_ID, counted, duration, number, remaining
from launcher.record import layout as directory
from launcher.record import queued
from launcher.record.check import Check
from launcher.record.control import refuse_later
from launcher.record.events import LevelChange
from launcher.record.json import SCHEMA
from launcher.record.layout import RunDir
from launcher.record.levels import OK
from launcher.record.note import RunNote, read_note
from launcher.record.process import processes_of_runs
from launcher.record.state import RunState, current
from launcher.runs.watch.check_words import coverage, phase_word, sentence, shown, state_word

if TYPE_CHECKING:
    from launcher.runs.judge.run_checklist import Judged
    from launcher.runs.watch.log import Log

_OTHERS = 4  # metrics that are shown of a step without main ones
Config = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="KEY=VALUE", help="Setting missing from a log, such as gpu_total_gb; repeatable."),
]


def list_runs(
    hosts: Annotated[bool, typer.Option("--hosts", help="List the runs of hosts and clusters in config.yaml.")] = False,
    json: Json = False,
) -> None:
    """List the runs of this machine, newest first."""
    if hosts:
        _list_hosts(json)
        return
    from launcher.metrics.records import jsonable
    from launcher.runs.supervise.spawn import adopt, wake_queue
    from launcher.runs.watch.history import elapsed
    from launcher.runs.watch.run_settings import asked_words, title, titles
    from launcher.runs.watch.steps import best_and_last

    rows = [("RUN", "STATE", "VERDICT", "STEP", "BEST", "TIME")]
    directory.require_readable()
    states = [(run, current(run, checks=False)) for run in directory.all_runs()]
    states = [(run, current(run, checks=False)) for run, _ in states] if adopt(states) else states
    wake_queue()
    named = {} if json else titles([run for run, _ in states])
    for run, state in states:
        (best, last), took = best_and_last(run, state), elapsed(run, state, now=state.updated)
        if json:
            results = {"best_score": best, "last_score": last, "duration": took}
            put_json(_headline(run, state) | results | jsonable({k: v for k, v in results.items() if v is not None}))
            continue
        word, verdict = _word(state), shown(state.state, state.verdict)
        rows.append((named[run.id], word, verdict, state.shown.at, number(best), duration(took)))
    if json:
        return
    rows[1:1] = [(title(e.id, asked_words(e.settings)), e.word, "–", "–/–", "–", "–") for e in queued.entries()]
    if len(rows) == 1:
        say("no runs yet; start one with 'ppo-tui run toy-cpu'")
    else:
        put_table(rows)
    _say_leftovers(states)


def _say_leftovers(states: Sequence[tuple[RunDir, RunState]]) -> None:
    """Prints the first queue entry and run refused because of their owner, and processes of ended runs."""
    from launcher.runs.supervise.spawn import not_taken_over

    lost = [each for run, state in states if (each := not_taken_over(run, state)) is not None]
    for refusal in (*queued.refused()[:1], *lost[:1]):
        say(str(refusal))
    over = {run.id for run, state in states if state.over}
    if left := [pid for pid, run_id in processes_of_runs() if run_id in over]:
        say(f"processes of ended runs that are still alive: {len(left)}; 'ppo-tui clean' ends them")


def _list_hosts(json: bool) -> None:
    from launcher.machine.hosts import runs_elsewhere
    from launcher.runs.act.attach_job import jobs_of
    from launcher.settings import read_clusters

    rows = [("HOST", "RUN", "STATE", "VERDICT", "STEP")]
    for host in chain(runs_elsewhere(), map(jobs_of, read_clusters())):
        if json:
            put_json({"host": host.host, "away": host.away, "runs": list(host.runs)})
        elif host.away is not None:
            rows.append((host.host, "–", "away", "", ""))
            say(f"{host.host}: {host.away}")
        elif not host.runs:
            rows.append((host.host, "–", "no runs", "", ""))
        for run in () if json else host.runs:
            step = run.get("step")
            state, verdict, outcome = (run.get(name) for name in ("state", "verdict", "outcome"))
            words = state_word(state or "–", outcome), shown(state or "", verdict)
            rows.append((host.host, str(run.get("run")), *words, "–" if step is None else str(step)))
    if not json and len(rows) == 1:
        say("no hosts: name them under 'hosts:' or 'clusters:' in config.yaml")
    elif not json:
        put_table(rows)


def _headline(run: RunDir, state: RunState) -> dict[str, object]:
    names = ("state", "outcome", "created", "attempt", "phase", "step", "total", "eta", "verdict", "flags", "error")
    line: dict[str, object] = {"run": run.id, "name": run.read_name(), "dir": str(run.path)}
    line |= state.numbering.json({name: getattr(state.shown, name) for name in names})
    noted = read_note(run.note)
    line |= {"note": noted.text, "tags": list(noted.tags)} if str(noted) else {}
    line |= {"damaged": list(state.damaged)} if state.damaged else {}
    return line | _takeover(run, state)


def _takeover(run: RunDir, state: RunState) -> dict[str, str]:
    """The command that starts a missing supervisor; only a writing command starts one itself."""
    from launcher.runs.supervise.spawn import orphaned

    return {"takeover": f"ppo-tui status {run.id}"} if orphaned(run, state) else {}


def status(
    run: Run,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Note to set with --note; #words are tags; '' removes it.")
    ] = None,
    note: Annotated[bool, typer.Option("--note", help="Set the note of the run to TEXT, or print the note.")] = False,
    json: Json = False,
) -> None:
    """Print the status of a run, or its note."""
    if note:
        _note(find(run), text, json)
        return
    if text is not None:
        raise UserError("status takes one run", f"to set a note: 'ppo-tui status {run} --note TEXT'")
    from launcher.metrics.frameworks import described
    from launcher.runs.supervise.spawn import kept, not_taken_over
    from launcher.runs.watch.checkpoints import checkpoint_sizes, checkpoint_words
    from launcher.runs.watch.history import log_end
    from launcher.runs.watch.problems import problems
    from launcher.runs.watch.run_settings import lineage
    from launcher.runs.watch.startup import stage_lines, startup_of

    target = find(run)
    state = kept(target)
    if (refusal := not_taken_over(target, state)) is not None:
        say(str(refusal))
    info = target.read_info()
    parent, start, saved = info.parent, startup_of(target, state), checkpoint_sizes(target)
    if json:
        forked = {"parent": {"run": parent.run, "step": parent.step}} if parent else {}
        starting = {"startup": start.to_json()} if start else {}
        judged = {"checks": state.numbering.json(_with_trials(target, state.shown.checks))}
        kept_on_disk = {"checkpoints": [{"step": step, "bytes": taken} for step, taken in saved.items()]}
        head = {"schema": SCHEMA, "name": info.name, **state.numbering.json(state.shown.to_json()), **judged}
        put_json({**head, **forked, **starting, **kept_on_disk, **_takeover(target, state)})
        return
    put(f"run      {target.id}")
    if info.preset_name:
        put(f"preset   {info.preset_name}")
    unknown = " (exit code unknown)" if state.state == "finished" and state.exit and state.exit.code is None else ""
    put(f"state    {_word(state)}{unknown}" + _phase(state))
    if came := lineage(info.after):
        put(f"origin   {came}")
    if state.state == "lost" and not state.error:
        put(f"         {_why_lost(state)}")
    if state.state == "ended":
        more = "" if state.error else f"; 'ppo-tui diagnose {target.id[:SHORT_ID]}' shows its last lines"
        put(f"         {log_end(state)}{more}")
    if minutes := state.silent_minutes:
        put(f"         no update from the supervisor for {minutes} min; the values below may be outdated")
    for damaged in state.damaged:
        put(f"damaged  {damaged}")
    if state.later:
        put(f"         {state.later}: this ppo-tui can only show it")
    if state.error and state.state != "ended":
        put(f"error    {state.error}")
    if state.stall and state.standstill is None:
        put(f"hang     {state.stall}")
    for index, line in enumerate(stage_lines(start, on_cpu=info.on_cpu) if start else ()):
        put(f"{'' if index else 'start':<9}{line}")
    if state.step is not None:
        unit = "step" if state.numbering.every == 1 else "line"
        pace = f", {state.step_seconds:.1f} s per {unit}" if state.step_seconds else ""
        left = f", {remaining(state.eta, state.done)}" if state.live and state.numbering.every else ""
        put(f"step     {state.shown.progress}{pace}{left}")
    if (framework := described(info.framework)) is not None:
        put(f"log      {coverage(framework, state.checks)}")
    put(f"verdict  {shown(state.state, state.verdict)}")
    put_problems(problems(target, state, state.heartbeat), len("verdict  "))
    for index, tracked in enumerate(state.trackers):
        put(f"{'' if index else 'tracker':<9}{tracked.words}")
    if saved:
        put(f"saved    {checkpoint_words(saved)}")
    put(f"folder   {target.path}")


def _why_lost(state: RunState) -> str:
    if state.elsewhere is not None:
        ends = "its driver may still run there" if state.driver_alive else "it has ended"
        return f"of another container or machine, {ends}: {state.elsewhere.words}"
    ends = "the driver is still running; 'ppo-tui stop' ends it" if state.driver_alive else "the driver has exited too"
    return f"the supervisor has exited; {ends}"


def _note(run: RunDir, text: str | None, json: bool) -> None:
    if text is not None:
        refuse_later(run)
        RunNote.parse(text).write(run.note)
    noted = read_note(run.note)
    put_result(str(noted), {"run": run.id, "note": noted.text, "tags": list(noted.tags)}, json)


def _word(state: RunState) -> str:
    """The state (for an imported run, how it ended), and whether files are damaged."""
    word = state_word(state.state, state.outcome)
    return f"{word}, damaged" if state.damaged else word


def _phase(state: RunState) -> str:
    """`, rollout for 12s, usually 31s`, as last written by the supervisor."""
    if not state.phase or not state.phase_since or state.state not in ("starting", "running"):
        return ""
    usual = f", usually {duration(state.phase_usual)}" if state.phase_usual else ""
    return f", {phase_word(state.phase)} for {duration((state.heartbeat or 0) - state.phase_since)}{usual}"


def metrics(source: Source, key: Keys = None, names: Names = None, every: Every = None, json: Json = False) -> None:
    """Print the metrics of every step of a run or a log."""
    from launcher.export.formats import require_known
    from launcher.metrics.records import jsonable
    from launcher.runs.watch.steps import numbering_of, steps

    origin = resolved(source, names, every=every)
    if put_without_step(origin, json):
        return
    read, numbering = steps(origin), numbering_of(origin)
    if key and (rows := list(read)):
        read = iter(rows)
        name = origin.id if isinstance(origin, RunDir) else origin.path.name
        require_known(key, {each for _, record in rows for each in record.data}, name, source)
    for attempt, record in read:
        step = numbering.step(record.step)
        data = record.data if not key else {name: record.data[name] for name in key if name in record.data}
        if json:
            put_json(numbering.json({"step": step}) | {"attempt": attempt, **jsonable(data)}, flush=False)
        else:
            found = key or _shown(data) or sorted(data)[:_OTHERS]
            shown = [f"  {name} {number(data[name])}" for name in found if name in data]
            if shown:
                put(f"{'' if numbering.every else 'line '}{step:>6}{''.join(shown)}")
    sys.stdout.flush()


def _shown(data: Mapping[str, float]) -> list[str]:
    """The main metrics of a step, validation metrics last."""
    from launcher.health.keys import TRAINING_LOSS, is_validation_score
    from launcher.metrics import names

    groups = (names.SCORE, names.KL + names.PPO_KL, names.ENTROPY, names.THROUGHPUT, TRAINING_LOSS)
    first = [next((name for name in group if name in data), "") for group in groups]
    return [*filter(None, first), *sorted(filter(is_validation_score, data))]


def health(
    source: Source,
    config: Config = None,
    names: Names = None,
    every: Every = None,
    whole: Annotated[bool, typer.Option("--all", help="Print all rules, not only those with a flag.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Also print each change of a rule's level.")] = False,
    case: CaseFile = False,
    ask: Ask = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Judge the health of a run or a log. Prints the verdict, then the rules that flag it."""
    from launcher.runs.judge.run_checklist import judged

    origin = resolved(source, names, every=every)
    if case or ask:
        put_case(origin, config or [], health=True, ask=ask, yes=yes, json=json)
        return
    result = judged(origin, config or [], shown_progress())
    checks, unit = result.checks, result.numbering.unit
    if put_without_step(origin, json, judged=any(check.level >= OK for check in checks)):
        return
    up = [check for check in checks if check.on]
    if json:
        _put_judged(origin, result, checks)
        return
    state = current(origin) if isinstance(origin, RunDir) else None  # a requested stop is not a failure
    put(sentence(result.checklist, state.outcome or state.state if state else None))
    _put_flags(origin, checks, unit)
    others = [check for check in checks if not check.on]
    if whole:
        put_table([(check.level.words, check.rule, f"{check.name}: {check.message}") for check in others])
    else:
        kind = "other rule" if up else "rule"
        say(f"{counted(len(others), kind)}: --all lists them, --events what happened")
    _put_changes(result.changes if events else (), unit)


def _put_judged(origin: "RunDir | Log", result: "Judged", checks: Sequence[Check]) -> None:
    """Prints the changes, then the verdict with all rules, as JSON."""
    for change in result.changes:
        put_json(result.numbering.json(change.to_json()))
    rules = {check.rule: str(check.level) for check in checks}
    rows = result.numbering.json(_with_trials(origin, checks))
    put_json({"verdict": str(result.checklist.verdict), "rules": rules, "checks": rows})


def _put_changes(changes: Sequence[LevelChange], unit: str) -> None:
    for change in changes:
        levels = f"{change.before.words} -> {change.after.words}"
        put(f"{unit} {change.step}: {change.rule} {levels}: {change.message}")


def _put_flags(origin: "RunDir | Log", checks: Sequence[Check], unit: str) -> None:
    """Prints the share of rules that apply to another framework's log, then the active flags."""
    from launcher.metrics.frameworks import described
    from launcher.runs.watch.parent import Parent
    from launcher.runs.watch.problems import fixed_flag, flag

    parent = Parent(origin) if isinstance(origin, RunDir) else None
    framework = origin.framework if not isinstance(origin, RunDir) else described(origin.read_info().framework)
    if framework is not None:
        put(coverage(framework, checks))
    put_problems(fixed_flag(parent, check) if parent else flag(check, None, unit=unit) for check in checks if check.on)


def _with_trials(origin: "RunDir | Log", checks: Sequence[Check]) -> list[Mapping[str, object]]:
    """The checks as JSON; an active flag has the first trial of `try`."""
    from launcher.runs.watch.parent import Parent
    from launcher.runs.watch.proposals import first_proposal

    parent = Parent(origin) if isinstance(origin, RunDir) else None
    first = [first_proposal(parent, check.rule) if parent and check.on else None for check in checks]
    pairs = zip(checks, first, strict=True)
    return [check.to_json() | ({"trial": trial.to_json()} if trial else {}) for check, trial in pairs]
