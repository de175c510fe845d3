"""Consequences of the data rows for a run: scores, lengths, batches."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from launcher.check.config.agents import ENABLED, LOOP, LOOPS, SINGLE, TOOLS, known_loops
from launcher.check.config.trainer import schedules
from launcher.check.facts import known_names
from launcher.check.finding import Finding, Level, Words, found
from launcher.check.subject import Subject
from launcher.core.text import clean, did_you_mean, nearest, perhaps
from launcher.record.json import Record
from launcher.verl.config import MODEL_LENGTH

_FEW = 8  # rows
REWARD = "reward.custom_reward_function.path"


@dataclass(frozen=True)
class Rows(Record):
    """The reply of `ppo_tui_inside.probes.read_rows` about a file; otherwise the reason in `failed`, `missing` or
    `problem`.

    Counts among the `measured` rows: `unshaped`: no list of messages. `untrue`: no ground truth. `null`: an empty one.
    `unlike` (such as `unlike_one`): one that veRL's scorer never matches. `unmapped`: extra_info is not a mapping.
    """

    file: str = ""
    failed: str | None = None
    missing: str | None = None
    problem: str | None = None
    rows: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    measured: int = 0
    unshaped: int = 0
    untrue: int = 0
    unmapped: int = 0
    null: int = 0
    unlike: int = 0
    unlike_one: str = ""
    media: str | None = None
    alike: int = 0
    """Number of measured rows with the most frequent prompt."""
    examples: tuple[dict[str, object], ...] = ()
    lengths: dict[str, int] = field(default_factory=dict)
    """Prompt length in tokens -> number of prompts."""
    cut: int = 0
    """Prompts with a message that the chat template omits or truncates, such as `cut_one`."""
    cut_one: str = ""
    printed: int = 0
    """Prompts with a message that the chat template formats as a Python object, such as `printed_one`."""
    printed_one: str = ""
    template_problem: str | None = None

    @property
    def why(self) -> str | None:
        """Why the file is unreadable."""
        return self.problem or self.failed or (self.missing and f"the package {self.missing} is missing")


Found = list[Rows]
"""The replies, one per file."""


def known_source(source: str) -> bool:
    """Whether veRL scores this data source without a custom function."""
    return source in known_names().data_sources or source.startswith("aime")


def scored_by_verl(subject: Subject) -> bool:
    """Whether veRL's own functions compute the scores."""
    return not subject.get(REWARD) and subject.get("reward.reward_model.enable") is not True


def sources(subject: Subject, train: Found, val: Found) -> Iterator[Finding]:
    """P31: the source of the score. A run fails if no row of a batch has one."""
    if not scored_by_verl(subject):
        return
    unknown: list[str] = []
    parts, lost_all = [], False
    for kind, rows, used in (("training", train, True), ("validation", val, validates(subject))):
        counts = Counter[str]()
        for each in rows:
            counts.update(each.sources)
        mine = [source for source in counts if not known_source(source)]
        if mine:
            lost, total = sum(counts[source] for source in mine), counts.total()
            parts.append(f"{lost} of {total} {kind} rows")
            lost_all |= used and lost == total
            unknown += [source for source in mine if source not in unknown]
    if not unknown:
        return
    names = ", ".join(repr(clean(source)) for source in unknown[:3]) + (" ..." if len(unknown) > 3 else "")
    named = {source.rpartition("/")[2].lower(): source for source in known_names().data_sources}
    near = named.get(unknown[0].lower()) or nearest(unknown[0], known_names().data_sources)
    level: Level = "error" if lost_all else "warning"
    yield found("P31", names=names, near=perhaps(near), parts=parts, level=level)


def alike(key: str, rows: Found) -> Iterator[Finding]:
    """DATA-4: a column has one type in all files of a list; the package datasets cannot join others."""
    first: dict[str, tuple[str, str]] = {}
    for each in rows:
        for name, kind in each.types.items():
            known, file = first.setdefault(name, (kind, each.file))
            if known != kind:
                yield found(
                    "DATA-4",
                    file=each.file,
                    name=clean(name),
                    kind=clean(kind),
                    other=file,
                    known=clean(known),
                    key=key,
                )
                return


def loops(subject: Subject, key: str, rows: Found) -> Iterator[Finding]:
    """AGENT-1: the agent loops in the column agent_name are veRL's, or defined in the configuration file.

    veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker._run_agent_loop`.
    """
    path, (known, own) = subject.get(LOOPS), known_loops(subject)
    named = sorted({name for each in rows for name in each.agents})
    strange = [name for name in named if name not in (*known, *own)]
    registered = (path and not own) or subject.get("actor_rollout_ref.model.external_lib")
    if not strange or not known or registered or not subject.at_least("0.7.0"):
        return
    yield found(
        "AGENT-1.column",
        strange=clean(strange[0]),
        near=did_you_mean(strange[0], [*known, *own]),
        names=[*known, *own],
        loops=LOOPS,
        key=key,
    )


def agents(subject: Subject, train: Found) -> Iterator[Finding]:
    """AGENT-5: tools are called only if a data column or the default names the agent loop with tools."""
    given = [key for key in (*TOOLS, ENABLED) if subject.get(key)]
    named = all("agent_name" in each.columns for each in train)
    if not given or named or subject.get(LOOP) != SINGLE or not subject.at_least("0.7.0"):
        return
    yield found("AGENT-5", given=given[0], keys=(LOOP, *given))


def validates(subject: Subject) -> bool:
    """Whether the run has validations."""
    every = subject.get("trainer.test_freq", -1)
    return bool(subject.get("trainer.val_before_train", True)) or (isinstance(every, int) and every > 0)


def truths(subject: Subject, key: str, file: str, rows: Rows) -> Iterator[Finding]:
    """REWARD-6: ground truths that veRL's own functions never match; an error if no training row has another one.

    veRL: `verl/utils/reward_score/gsm8k.py: compute_score`.
    """
    none = rows.null + rows.unlike == rows.measured
    level: Level = "error" if none and key == "data.train_files" else "warning"
    if not scored_by_verl(subject):
        return
    words: Words = {"file": file, "measured": rows.measured, "key": key}
    if rows.null:
        yield found("REWARD-6.null", **words, null=rows.null, level=level)
    if rows.unlike:
        yield found("REWARD-6.unlike", **words, unlike=rows.unlike, one=clean(rows.unlike_one), level=level)


def prompts(subject: Subject, rows: Found) -> Iterator[Finding]:
    """DATA-5, DATA-6: prompts that are all equal; prompts that the chat template truncates or formats as objects."""
    measured, cut = sum(each.measured for each in rows), sum(each.cut for each in rows)
    alike = max((each.alike for each in rows), default=0)
    if 2 * alike > measured and (measured >= _FEW or alike == measured):
        yield found("DATA-5", alike=alike, measured=measured)
    if cut:
        one = clean(next(each.cut_one for each in rows if each.cut))
        yield found("DATA-6.cut", cut=cut, measured=measured, one=one)
    if printed := sum(each.printed for each in rows):
        one = clean(next(each.printed_one for each in rows if each.printed))
        yield found("DATA-6.printed", printed=printed, measured=measured, one=one)


def lengths(subject: Subject, files: Found, tokenizer: bool) -> Iterator[Finding]:
    """The number of prompts over data.max_prompt_length; `tokenizer`: whether one is available."""
    limit = subject.get("data.max_prompt_length", 512)
    problem = next((each.template_problem for each in files if each.template_problem is not None), None)
    if problem is not None:
        yield found("P27.fails", problem=clean(problem))
        return
    if files and not tokenizer and any(each.measured > each.unshaped for each in files):
        yield found("DATA-3")
    total, long, longest = _measured(files, limit)
    yield from _unanswered(subject, files)
    if not long:
        return
    rows = sum(each.rows for each in files)
    batch, dropped = subject.get("data.train_batch_size", 1024), drops(subject)
    fate = "will be dropped" if dropped else "will lose their beginning, with only a warning from veRL"
    enough = long * 2 <= total and rows * (total - long) // total >= batch
    level: Level = "error" if dropped and long == total else "warning" if long * 100 >= total else "info"
    name = "DATA-2.longer" if not enough else "DATA-2.some" if dropped else "DATA-2.drop"
    yield found(name, share=100 * long / total, limit=limit, fate=fate, longest=longest, level=level)


def _unanswered(subject: Subject, files: Found) -> Iterator[Finding]:
    """P18: the engine refuses a prompt that fills its context; a run with only such prompts ends in its first step."""
    room, shortest = subject.whole(MODEL_LENGTH), min((int(each) for file in files for each in file.lengths), default=0)
    if room is not None and shortest >= room and not subject.on_cpu:
        longest = subject.get("data.max_prompt_length", 512) + subject.get("data.max_response_length", 512)
        yield found("P18.none", limit=room, shortest=shortest, longest=longest)


def validation(subject: Subject, rows: Found) -> Iterator[Finding]:
    """The finding about a validation set that is empty after filtering, which veRL cannot open."""
    limit = subject.get("data.max_prompt_length", 512)
    total, long, longest = _measured(rows, limit)
    if drops(subject) and total and long == total:
        yield found("DATA-2.all", limit=limit, longest=longest)


def drops(subject: Subject) -> bool:
    """Whether over-long prompts are dropped."""
    return subject.get("data.filter_overlong_prompts") is True


def _measured(found: Found, limit: object) -> tuple[int, int, int]:
    """The numbers of measured and of over-long prompts, and the longest length."""
    counts = [(int(length), count) for each in found for length, count in each.lengths.items()]
    if not isinstance(limit, int):
        return 0, 0, 0
    long = sum(count for length, count in counts if length > limit)
    return sum(count for _, count in counts), long, max((length for length, _ in counts), default=0)


def batches(subject: Subject, files: Found) -> Iterator[Finding]:
    """P6, P7, P34b: rows against batch size and steps; learning rates of a run whose steps depend on the rows."""
    rows, batch = sum(each.rows for each in files), subject.get("data.train_batch_size", 1024)
    limit = subject.get("data.train_max_samples", -1)
    if not isinstance(batch, int) or batch < 1:
        return
    if isinstance(limit, int) and 0 < limit < rows:
        rows = limit
    total, long, _ = _measured(files, subject.get("data.max_prompt_length", 512))
    # over-long prompts are dropped; estimated where only a sample was measured
    usable = rows * (total - long) // total if drops(subject) and total else rows
    if usable < batch:
        short = f" (about {usable} of them short enough)" if usable < rows else ""
        most = 1 << (usable.bit_length() - 1) if usable else 0  # the largest power of two
        yield found("P6.batches" if usable else "P6.none", rows=rows, short=short, batch=batch, most=most)
        return
    unused = usable % batch
    if unused * 10 > usable:
        yield found("P7", batch=batch, unused=unused, usable=usable)
    steps, epochs = subject.get("trainer.total_training_steps"), subject.get("trainer.total_epochs", 30)
    if isinstance(steps, int) and isinstance(epochs, int) and steps > usable // batch * epochs:
        wanted = -(-steps // (usable // batch))
        yield found(
            "P34b", steps=steps, epochs=epochs, each=usable // batch, last=usable // batch * epochs, wanted=wanted
        )
    elif steps is None:
        yield from schedules(subject, usable)
