"""What the rows of the data files mean for a run: scores, lengths, batches."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from launcher.check.config.agents import ENABLED, LOOP, LOOPS, SINGLE, TOOLS, WITH_TOOLS, known_loops
from launcher.check.config.schedules import schedules
from launcher.check.finding import Finding, of_config, of_data, of_model
from launcher.check.subject import Subject
from launcher.core.format import counted
from launcher.core.text import clean, did_you_mean, nearest, perhaps
from launcher.record.json import Record

_FEW = 8  # rows
REWARD = "reward.custom_reward_function.path"


@dataclass(frozen=True)
class Rows(Record):
    """The reply of `ppo_tui_inside.probes.read_rows` about a file, or in `failed`, `missing` or `problem` why not.

    Of the `measured` rows, `unshaped` have no list of messages, `untrue` no ground truth, `null` an empty one,
    `unlike` (such as `unlike_one`) one that veRL's scorer never finds, `unmapped` an extra_info that is not a mapping.
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
    """Of the measured rows, those with the most frequent prompt."""
    examples: tuple[dict[str, Any], ...] = ()
    lengths: dict[str, int] = field(default_factory=dict)
    """Tokens of prompts, with the number of prompts."""
    cut: int = 0
    """Prompts with a message that the chat template leaves out or cuts, such as `cut_one`."""
    cut_one: str = ""
    template_problem: str | None = None

    @property
    def why(self) -> str | None:
        """Why the file could not be read."""
        return self.problem or self.failed or (self.missing and f"the package {self.missing} is missing")


Found = list[Rows]
"""The replies, one per file."""

SOURCES = (
    "openai/gsm8k",
    "lighteval/MATH",
    "DigitalLearningGmbH/MATH-lighteval",
    "HuggingFaceH4/MATH-500",
    "math_dapo",
    "math",
    "math_dapo_reasoning",
    "numina_aops_forum",
    "numina_synthetic_math",
    "numina_amc_aime",
    "numina_synthetic_amc",
    "numina_cn_k12",
    "numina_olympiads",
    "codecontests",
    "apps",
    "codeforces",
    "taco",
    "hiyouga/geometry3k",
    "searchR1_nq",
    "searchR1_triviaqa",
    "searchR1_popqa",
    "searchR1_hotpotqa",
    "searchR1_2wikimultihopqa",
    "searchR1_musique",
    "searchR1_bamboogle",
)
"""Data sources that veRL 0.9.1 scores by itself; also all that begin with `aime`."""


def known_source(source: str) -> bool:
    """Whether veRL scores this data source without a custom function."""
    return source in SOURCES or source.startswith("aime")


def scored_by_verl(subject: Subject) -> bool:
    """Whether veRL's own functions give the scores."""
    return not subject.get(REWARD) and subject.get("reward.reward_model.enable") is not True


def sources(subject: Subject, train: Found, val: Found) -> Iterator[Finding]:
    """P31: what gives the score. A run fails when no row of a batch has one."""
    if not scored_by_verl(subject):
        return
    unknown: list[str] = []
    parts, lost_all = [], False
    for kind, found, used in (("training", train, True), ("validation", val, validates(subject))):
        counts = Counter[str]()
        for each in found:
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
    named = {source.rpartition("/")[2].lower(): source for source in SOURCES}
    near = named.get(unknown[0].lower()) or nearest(unknown[0], SOURCES)
    finding = of_data.error if lost_all else of_data.warning
    message = (
        f"veRL has no reward function for data_source {names}{perhaps(near)}: {' and '.join(parts)} cannot be scored"
    )
    fix = "set reward.path to a Python file with compute_score, or use rows with a data_source that veRL recognizes"
    yield finding("P31", message, fix, (REWARD,))


def alike(key: str, found: Found) -> Iterator[Finding]:
    """DATA-4: the files of a list have columns of the same types; datasets joins them otherwise not at all."""
    first: dict[str, tuple[str, str]] = {}
    for each in found:
        for name, kind in each.types.items():
            known, file = first.setdefault(name, (kind, each.file))
            if known != kind:
                message = (
                    f"{each.file} has {clean(name)} as {clean(kind)}, and {file} as {clean(known)}: veRL cannot "
                    "join them"
                )
                yield of_data.error("DATA-4", message, "write both with the same type", (key,))
                return


def loops(subject: Subject, key: str, found: Found) -> Iterator[Finding]:
    """AGENT-1: the agent loops that the column agent_name names are veRL's, or those of the configuration file.

    veRL: `verl/experimental/agent_loop/agent_loop.py: AgentLoopWorker._run_agent_loop`.
    """
    path, (known, own) = subject.get(LOOPS), known_loops(subject)
    named = sorted({name for each in found for name in each.agents})
    strange = [name for name in named if name not in (*known, *own)]
    registered = (path and not own) or subject.get("actor_rollout_ref.model.external_lib")
    if not strange or not known or registered or not subject.at_least("0.7.0"):
        return
    message = (
        f"the column agent_name has '{clean(strange[0])}', and veRL has no agent loop of that name"
        f"{did_you_mean(strange[0], [*known, *own])}: no responses are generated for these rows"
    )
    fix = f"use one of {', '.join([*known, *own])}, or register it in {LOOPS}"
    yield of_data.error("AGENT-1", message, fix, (key, LOOPS))


def agents(subject: Subject, train: Found) -> Iterator[Finding]:
    """AGENT-5: tools are only called where a column of the data, or the default, names the agent loop for it."""
    given = [key for key in (*TOOLS, ENABLED) if subject.get(key)]
    named = all("agent_name" in each.columns for each in train)
    if not given or named or subject.get(LOOP) != SINGLE or not subject.at_least("0.7.0"):
        return
    message = (
        f"tools are never called: the data have no column agent_name, {LOOP} is {SINGLE}, and {given[0]} alone "
        "changes nothing"
    )
    fix = f"set rollout.agent_loop to {WITH_TOOLS}"
    yield of_data.warning("AGENT-5", message, fix, (LOOP, *given), {"rollout.agent_loop": WITH_TOOLS})


def validates(subject: Subject) -> bool:
    """Whether the run validates at all."""
    every = subject.get("trainer.test_freq", -1)
    return bool(subject.get("trainer.val_before_train", True)) or (isinstance(every, int) and every > 0)


def truths(subject: Subject, key: str, file: str, found: Rows) -> Iterator[Finding]:
    """REWARD-6: ground truths that veRL's own functions never match; an error when no row to train on has another one.

    veRL: `verl/utils/reward_score/gsm8k.py: compute_score`.
    """
    none = found.null + found.unlike == found.measured
    report = of_data.error if none and key == "data.train_files" else of_data.warning
    if not scored_by_verl(subject):
        return
    if found.null:
        message = (
            f"{file}: reward_model.ground_truth is null in {found.null} of {found.measured} rows, so they "
            "always score 0"
        )
        fix = "write the right answer there, or set reward.path to your own reward function"
        yield report("REWARD-6", message, fix, (key,))
    if found.unlike:
        message = (
            f"{file}: in {found.unlike} of {found.measured} rows, the ground truth is like "
            f"'{clean(found.unlike_one)}', which veRL's function for openai/gsm8k never matches: it compares the "
            "text of the number after ####"
        )
        fix = "write the bare number as text, such as '1234', without commas and units"
        yield report("REWARD-6", message, fix, (key,))


def prompts(subject: Subject, found: Found) -> Iterator[Finding]:
    """DATA-5 and DATA-6: prompts that are all alike, and those of which the chat template leaves something out."""
    measured, cut = sum(each.measured for each in found), sum(each.cut for each in found)
    alike = max((each.alike for each in found), default=0)
    if measured >= _FEW and 2 * alike > measured:
        message = f"{alike} of {measured} training prompts are the same: a batch consists of copies of one prompt"
        yield of_data.warning("DATA-5", message, "check how the file was made", ("data.train_files",))
    if cut:
        one = clean(next(each.cut_one for each in found if each.cut))
        message = f"the chat template cuts or leaves out a message of {cut} of {measured} training prompts: {one!r}"
        fix = "set actor_rollout_ref.model.custom_chat_template to a template that prints every message"
        yield of_data.warning("DATA-6", message, fix, ("actor_rollout_ref.model.custom_chat_template",))


def lengths(subject: Subject, found: Found, tokenizer: bool) -> Iterator[Finding]:
    """How many prompts are longer than data.max_prompt_length; `tokenizer`: whether there is one here."""
    limit = subject.get("data.max_prompt_length", 512)
    problem = next((each.template_problem for each in found if each.template_problem is not None), None)
    if problem is not None:
        message = f"the chat template cannot be applied to the prompts: {clean(problem)}"
        fix = "use an -Instruct model, or set actor_rollout_ref.model.custom_chat_template"
        yield of_model.error("P27", message, fix, ("actor_rollout_ref.model.path",))
        return
    if found and not tokenizer and any(each.measured > each.unshaped for each in found):
        message = "prompt lengths were not measured: the model's tokenizer is not on this machine"
        fix = "download the model first to measure them"
        yield of_data.info("DATA-3", message, fix, ("actor_rollout_ref.model.path",))
    total, long, longest = _measured(found, limit)
    if not long:
        return
    rows = sum(each.rows for each in found)
    batch, dropped = subject.get("data.train_batch_size", 1024), drops(subject)
    fate = "will be dropped" if dropped else "will lose their beginning, with only a warning from veRL"
    enough = long * 2 <= total and rows * (total - long) // total >= batch
    fix, change = f"set data.max_prompt_length to {longest}", None if enough else {"data.max_prompt_length": longest}
    if enough and not dropped:
        fix, change = f"{fix}, or set data.filter_overlong_prompts to true", {"data.filter_overlong_prompts": True}
    message = (
        f"{100 * long / total:.3g} % of the training prompts are longer than {limit} tokens and {fate}; the longest "
        f"has {longest}"
    )
    finding = of_data.warning if long * 100 >= total else of_data.info
    if dropped and long == total:
        finding = of_data.error
    yield finding("DATA-2", message, fix, ("data.max_prompt_length", "data.filter_overlong_prompts"), change)


def validation(subject: Subject, found: Found) -> Iterator[Finding]:
    """A validation set of which nothing is left cannot even be opened."""
    limit = subject.get("data.max_prompt_length", 512)
    total, long, longest = _measured(found, limit)
    if drops(subject) and total and long == total:
        message = (
            f"all validation prompts are longer than {limit} tokens and will be dropped; veRL cannot load an empty set"
        )
        fix = f"set data.max_prompt_length to {longest}"
        change = {"data.max_prompt_length": longest}
        yield of_data.error("DATA-2", message, fix, ("data.val_files", "data.max_prompt_length"), change)


def drops(subject: Subject) -> bool:
    """Whether over-long prompts are dropped."""
    return subject.get("data.filter_overlong_prompts") is True


def _measured(found: Found, limit: object) -> tuple[int, int, int]:
    """Prompts that were measured, those that are longer than the limit, and the longest."""
    counts = [(int(length), count) for each in found for length, count in each.lengths.items()]
    if not isinstance(limit, int):
        return 0, 0, 0
    long = sum(count for length, count in counts if length > limit)
    return sum(count for _, count in counts), long, max((length for length, _ in counts), default=0)


def batches(subject: Subject, found: Found) -> Iterator[Finding]:
    """P6, P7, P34b: rows against batch size and steps; the learning rates of a run whose steps the rows decide."""
    rows, batch = sum(each.rows for each in found), subject.get("data.train_batch_size", 1024)
    limit = subject.get("data.train_max_samples", -1)
    if not isinstance(batch, int) or batch < 1:
        return
    if isinstance(limit, int) and 0 < limit < rows:
        rows = limit
    usable = _usable(subject, found, rows)
    keys = ("data.train_batch_size", "data.train_files")
    if usable < batch:
        short = f" (about {usable} of them short enough)" if usable < rows else ""
        message = (
            f"{counted(rows, 'training row')}{short} cannot fill a batch of {batch}: veRL divides by 0 after loading "
            "all models"
        )
        fix = (
            f"set data.train_batch_size (and the mini-batch) to {_power(usable)} or less"
            if usable
            else "use another training file"
        )
        yield of_config.error("P6", message, fix, keys)
        return
    unused = usable % batch
    if unused * 10 > usable:
        message = f"batches of {batch} leave {unused} of {usable} training rows unused in each epoch"
        yield of_config.info("P7", message, "use a smaller data.train_batch_size", keys)
    steps, epochs = subject.get("trainer.total_training_steps"), subject.get("trainer.total_epochs", 30)
    if isinstance(steps, int) and isinstance(epochs, int) and steps > usable // batch * epochs:
        wanted = -(-steps // (usable // batch))
        message = (
            f"trainer.steps is {steps}, but {counted(epochs, 'epoch')} of {counted(usable // batch, 'step')} would "
            f"end after {usable // batch * epochs}, without a last validation or checkpoint"
        )
        fix = f"set trainer.epochs to {wanted}"
        change = {"trainer.epochs": wanted}
        yield of_config.warning("P34b", message, fix, ("trainer.total_training_steps", "trainer.total_epochs"), change)
    elif steps is None:
        yield from schedules(subject, usable)


def _usable(subject: Subject, found: Found, rows: int) -> int:
    """Rows that are left when over-long prompts are dropped; estimated where only a sample was measured."""
    total, long, _ = _measured(found, subject.get("data.max_prompt_length", 512))
    return rows * (total - long) // total if drops(subject) and total else rows


def _power(rows: int) -> int:
    """The largest power of two that is not above `rows`."""
    return 1 << (rows.bit_length() - 1)
