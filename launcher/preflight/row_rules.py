"""What the rows of the data files mean for a run: scores, lengths, batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from launcher.preflight.finding import Finding
from launcher.preflight.subject import Subject
from launcher.text import clean, did_you_mean

REWARD = "reward.custom_reward_function.path"

Found = list[dict[str, Any]]
"""What read_rows says, one for each file."""

SOURCES = (
    "openai/gsm8k", "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500",
    "math_dapo", "math", "math_dapo_reasoning", "numina_aops_forum", "numina_synthetic_math",
    "numina_amc_aime", "numina_synthetic_amc", "numina_cn_k12", "numina_olympiads", "codecontests", "apps",
    "codeforces", "taco", "hiyouga/geometry3k", "searchR1_nq", "searchR1_triviaqa", "searchR1_popqa",
    "searchR1_hotpotqa", "searchR1_2wikimultihopqa", "searchR1_musique", "searchR1_bamboogle",
)  # fmt: skip
"""Data sources that veRL 0.9.1 scores by itself; also all that begin with `aime`."""


def known_source(source: str) -> bool:
    """Whether veRL scores this data source without a function of one's own."""
    return source in SOURCES or source.startswith("aime")


def sources(subject: Subject, found: Found) -> Iterator[Finding]:
    """P31: who gives the score."""
    if subject.value(REWARD) or subject.value("reward.reward_model.enable") is True:
        return
    counts: dict[str, int] = {}
    for each in found:
        for source, count in each["sources"].items():
            counts[source] = counts.get(source, 0) + count
    unknown = [source for source in counts if not known_source(source)]
    if not unknown:
        return
    lost = sum(counts[source] for source in unknown)
    names = ", ".join(repr(clean(source)) for source in unknown[:3]) + (" ..." if len(unknown) > 3 else "")
    yield Finding(
        "P31", "data", "error" if lost == sum(counts.values()) else "warning", (REWARD,),
        f"veRL has no reward function for data_source {names}{did_you_mean(unknown[0], SOURCES)}: {lost} of "
        f"{sum(counts.values())} rows cannot be scored",
        "give reward.path, a Python file with compute_score, or rows with a data_source that veRL knows",
    )  # fmt: skip


def lengths(subject: Subject, found: Found) -> Iterator[Finding]:
    """How many prompts are longer than data.max_prompt_length."""
    limit = subject.value("data.max_prompt_length", 512)
    total = long = longest = 0
    for each in found:
        if "template_problem" in each:
            yield Finding(
                "P27", "model", "error", ("actor_rollout_ref.model.path",),
                f"the chat template cannot be applied to the prompts: {clean(each['template_problem'])}",
                "use an -Instruct model, or give actor_rollout_ref.model.custom_chat_template",
            )  # fmt: skip
            return
        for length, count in each.get("lengths", {}).items():
            total += count
            long += count * (int(length) > limit)
            longest = max(longest, int(length))
    if found and not total:
        yield Finding(
            "DATA-3", "data", "info", ("actor_rollout_ref.model.path",),
            "the lengths of the prompts were not measured: the model's tokenizer is not here",
            "download the model first to know them",
        )  # fmt: skip
    if not isinstance(limit, int) or not long:
        return
    dropped = subject.value("data.filter_overlong_prompts") is True
    fate = "will be dropped" if dropped else "lose their beginning, which veRL only warns of"
    nothing_left = dropped and long == total
    yield Finding(
        "DATA-2", "data", "error" if nothing_left else "warning" if long * 100 >= total else "info",
        ("data.max_prompt_length", "data.filter_overlong_prompts"),
        f"{100 * long / total:.3g} % of the training prompts are longer than {limit} tokens and {fate}; "
        f"the longest has {longest}",
        f"set data.max_prompt_length to {longest}"
        + ("" if dropped else ", or data.filter_overlong_prompts to true"),
        None if dropped else {"data.filter_overlong_prompts": True},
    )  # fmt: skip


def batches(subject: Subject, found: Found) -> Iterator[Finding]:
    """P6, P7, P34b: rows against batch size and steps."""
    rows, batch = sum(each["rows"] for each in found), subject.value("data.train_batch_size", 1024)
    limit = subject.value("data.train_max_samples", -1)
    if not isinstance(batch, int) or batch < 1:
        return
    if isinstance(limit, int) and 0 < limit < rows:
        rows = limit
    usable = _usable(subject, found, rows)
    keys = ("data.train_batch_size", "data.train_files")
    if usable < batch:
        short = f", of which about {usable} are short enough" if usable < rows else ""
        yield Finding(
            "P6", "config", "error", keys,
            f"{rows} training rows{short} make no batch of {batch}: veRL loads all models, then divides by 0",
            f"set data.train_batch_size (and the mini-batch) to {_power(usable)} or less"
            if usable else "name another training file",
        )  # fmt: skip
        return
    unused = usable % batch
    if unused * 10 > usable:
        yield Finding(
            "P7", "config", "info", keys,
            f"{unused} of {usable} training rows are left over by batches of {batch} in each epoch",
            "a smaller data.train_batch_size leaves fewer",
        )  # fmt: skip
    steps, epochs = subject.value("trainer.total_training_steps"), subject.value("trainer.total_epochs", 30)
    if isinstance(steps, int) and isinstance(epochs, int) and steps > usable // batch * epochs:
        wanted = -(-steps // (usable // batch))
        yield Finding(
            "P34b", "config", "warning", ("trainer.total_training_steps", "trainer.total_epochs"),
            f"{steps} steps are asked for, and {epochs} epochs of {usable // batch} steps end after "
            f"{usable // batch * epochs}: without a last validation or checkpoint",
            f"set trainer.epochs to {wanted}", {"trainer.epochs": wanted},
        )  # fmt: skip


def _usable(subject: Subject, found: Found, rows: int) -> int:
    """Rows that are left when over-long prompts are dropped; estimated where only a sample was measured."""
    limit = subject.value("data.max_prompt_length", 512)
    measured = [(int(length), count) for each in found for length, count in each.get("lengths", {}).items()]
    total = sum(count for _, count in measured)
    if subject.value("data.filter_overlong_prompts") is not True or not total or not isinstance(limit, int):
        return rows
    return int(rows * sum(count for length, count in measured if length <= limit) // total)


def _power(rows: int) -> int:
    """The largest power of two that is not above `rows`."""
    return 1 << (rows.bit_length() - 1)
