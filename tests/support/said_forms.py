"""Each form of a message of a health rule, with what its numbers must be (said_checks.py).

A message without a form is an error, so that no new number is left unchecked.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from said_checks import (
    against_past,
    against_usual,
    beside_rewards,
    cut_now,
    drift,
    explained,
    flat,
    kept,
    lasting_best,
    length_ratio,
    mismatch_grown,
    moved,
    non_finite,
    same_scores,
    share,
    times,
    took,
    validated,
    value,
    waited,
)
from said_numbers import ENTROPY, GRADIENT, KL, LENGTH, LOSS, SCORE, Past, Shown

NUMBER = r"-?\d[\d.]*(?:e-?\d+)?[kMG]?"
_HARM = r"(?:numbers are not finite|rewards do not differ|(?:the reward|validation) falls|responses are \w+)"
_ENDING = re.compile(rf"(?:; {_HARM})?(?:, (?:flagged if it persists|but {_HARM}))?$")
_OPENING = re.compile("^(?:clearing|held): ")
COEFFICIENT = ("actor/reward_kl_penalty_coeff", "critic/kl_coeff", "actor/kl_coef")
MISMATCHES = ("probability difference", "correlation", "rollout KL", "chi² of tokens")
_V, _W = f"({NUMBER})", r"\((first steps|50 to 100 steps ago)\)"
FORMS: Sequence[tuple[str, str, Callable[..., bool]]] = (
    ("NUM-1", "all metrics are finite", lambda past: True),
    ("NUM-1", r"non-finite at step (\d+): (.*?)(; all are finite now)?", non_finite),
    ("ERR-1", "no errors in the last steps", lambda past: True),
    ("LR-1", f"learning rate {_V}", value("actor/lr")),
    (
        "LR-1",
        r"learning rate is 0 for (\d+) steps?",
        lambda past, n: int(n) == past.run(lambda data: data.get("actor/lr") == 0),
    ),
    (
        "DECAY-1",
        f"each update removes {_V} % of every weight",
        lambda past, x: Shown.of(x).is_(
            100 * past.value("actor/lr") * past.config["actor_rollout_ref.actor.optim.weight_decay"]
        ),
    ),
    (
        "KL-0",
        f"mean KL of the last 5 steps is {_V}(?:, below 0)?",
        lambda past, x: Shown.of(x).is_(statistics.fmean(past.values(*KL)[-5:])),
    ),
    ("KL-1", f"KL {_V}", value(*KL)),
    ("KL-1", f"KL {_V} vs usual {_V}", against_usual(*KL)),
    ("KL-1", f"KL {_V} vs {_V} {_W}", against_past(*KL)),
    (
        "KL-2",
        rf"each step moves the policy by {_V} \(ppo_kl\)",
        lambda past, x: Shown.of(x).is_(abs(past.value("actor/ppo_kl"))),
    ),
    (
        "KL-3",
        f"KL {_V}(?:, coefficient {_V})?",
        lambda past, x, coefficient: (
            value(*KL)(past, x) and (not coefficient or value(*COEFFICIENT)(past, coefficient))
        ),
    ),
    (
        "KL-3",
        f"KL coefficient {_V}, {_V} times the first one",
        lambda past, x, times: (
            Shown.of(x).is_(past.value(*COEFFICIENT))
            and Shown.of(times).is_(past.value(*COEFFICIENT) / past.values(*COEFFICIENT)[0])
        ),
    ),
    ("MOVE-1", rf"the policy moves(?: \(KL {_V}\))?", lambda past, x: x is None or value(*KL)(past, x)),
    (
        "MOVE-1",
        rf"the policy has not moved for \d+ steps?(?: \(KL {_V}\))?",
        lambda past, x: x is None or value(*KL)(past, x),
    ),
    ("STOP-1", "responses end by themselves", lambda past: True),
    (
        "STOP-1",
        r"no response has ended by itself in (\d+) steps?",
        lambda past, n: int(n) == past.run(lambda data: data["response_length/min"] == data["response_length/max"]),
    ),
    ("ADV-1", "advantages follow the scores", lambda past: True),
    ("KL-4", "KL is not rising", lambda past: True),
    ("KL-4", rf"smoothed KL rose by only {_V} in (\d+) steps?", lambda past, x, n: drift(past, x, n, None)),
    ("KL-4", rf"smoothed KL rose by {_V} in (\d+) steps? while the smoothed reward changed by {_V}", drift),
    ("CLIP-1", f"{_V} % of tokens clipped", share("actor/pg_clipfrac")),
    ("ENT-1", rf"entropy (fell|went) from {_V} to {_V} in (\d+) steps?, medians of 3", moved),
    ("ENT-1", f"entropy stays at {_V}, medians of 3", lambda past, x: Shown.of(x).is_(past.median(3, *ENTROPY))),
    ("ENT-1", f"entropy {_V}, median of 3 steps", lambda past, x: Shown.of(x).is_(past.median(3, *ENTROPY))),
    ("ENT-1", f"smoothed entropy {_V}", lambda past, x: Shown.of(x).is_(past.smooth(*ENTROPY))),
    (
        "ENT-1",
        f"smoothed entropy {_V}, start {_V}",
        lambda past, x, y: Shown.of(x).is_(past.smooth(*ENTROPY)) and Shown.of(y).is_(past.values(*ENTROPY)[0]),
    ),
    ("ENT-2", f"entropy {_V} vs usual {_V}(?:, highest possible {NUMBER})?", against_usual(*ENTROPY)),
    ("ENT-2", f"entropy {_V} vs {_V} {_W}(?:, highest possible {NUMBER})?", against_past(*ENTROPY)),
    (
        "ENT-3",
        f"smoothed entropy is {_V} % of the first steps(?: and the reward does not improve)?",
        lambda past, x: Shown.of(x).is_(100 * past.smooth(*ENTROPY) / statistics.median(past.values(*ENTROPY)[:8])),
    ),
    ("SIG-1", "rewards differ", lambda past: flat(past.steps[-1][1]) is False),
    (
        "SIG-1",
        r"(\d+) of the last (\d+) steps had no learning signal",
        lambda past, n, of: int(n) == sum(flat(data) is True for _, data in past.steps[-int(of) :]),
    ),
    (
        "SIG-1",
        rf"all samples have the same reward \({_V}\) for (\d+) steps?",
        lambda past, x, n: Shown.of(x).is_(past.value("critic/score/max")) and int(n) == past.run(flat),
    ),
    (
        "SIG-1",
        r"all advantages are 0 \(equal rewards within each group\) for (\d+) steps?",
        lambda past, n: int(n) == past.run(flat),
    ),
    ("REW-1", f"smoothed reward {_V}", lambda past, x: Shown.of(x).is_(past.smooth(*SCORE))),
    (
        "REW-1",
        rf"smoothed reward {_V}, lasting best {_V} at step (\d+)",
        lambda past, x, best, step: (
            Shown.of(x).is_(past.smooth(*SCORE))
            and Shown.of(x).low < Shown.of(best).low
            and lasting_best(past, best, step)
        ),
    ),
    (
        "REW-2",
        rf"lasting best reward {_V} at step (\d+), (\d+) steps? ago",
        lambda past, best, step, ago: (
            lasting_best(past, best, step)
            and int(ago) == sum(at > int(step) and any(n in data for n in SCORE) for at, data in past.steps)
        ),
    ),
    (
        "REW-2",
        rf"no new lasting best reward for (\d+) steps? \({_V} at step (\d+)\)",
        lambda past, ago, best, step: lasting_best(past, best, step),
    ),
    (
        "REW-4",
        f"reward {_V} vs usual {_V}, median of 3 steps",
        lambda past, x, usual: Shown.of(x).is_(past.median(3, *SCORE)) and past.called_usual(usual, *SCORE),
    ),
    (
        "LEN-1",
        f"mean response {_V} tokens vs usual {_V}(?:, {NUMBER} {_W})?",
        lambda past, x, usual, when: against_usual(*LENGTH)(past, x, usual),
    ),
    (
        "HACK-1",
        rf"reward {_V} vs usual {_V} \(median of 3\) (?:while length grew|at) {_V}×(?: the (usual|first) length)?",
        length_ratio,
    ),
    (
        "HACK-1",
        f"validation changed by {_V} while the training reward rose by {_V}",
        lambda past, gained, rose: Shown.of(gained).high < Shown.of(rose).high,
    ),
    ("HACK-1", "training reward rises while validation falls", lambda past: True),
    ("VAL-1", rf"validation {_V}, (above the )?best( mean of two)? {_V} \(step (\d+)\)", validated),
    (
        "TRUNC-1",
        rf"{_V} % of responses cut(?: \({NUMBER} % in the first steps\))?",
        lambda past, x: Shown.of(x).is_(100 * cut_now(past)),
    ),
    (
        "TRUNC-1",
        rf"{_V} % of responses cut \(usual {_V} %\)",
        lambda past, x, usual: (
            Shown.of(x).is_(100 * cut_now(past))
            and past.called_usual(usual, "response_length/clip_ratio", of=100, floor=0.0)
        ),
    ),
    (
        "TRUNC-1",
        rf"at this rate half of the responses are cut in \d+ steps? \(now {_V} %\)",
        lambda past, x: Shown.of(x).is_(100 * cut_now(past)),
    ),
    ("ABORT-1", f"{_V} % of responses are empty", share("response/aborted_ratio")),
    (
        "INPUT-1",
        r"prompts of (\d+) to (\d+) tokens",
        lambda past, low, high: (
            (int(low), int(high)) == (past.value("prompt_length/min"), past.value("prompt_length/max"))
        ),
    ),
    ("INPUT-1", f"{_V} % of prompts are at the length limit", share("prompt_length/clip_ratio")),
    (
        "INPUT-1",
        r"all prompts have one length for (\d+) steps?",
        lambda past, n: int(n) == past.run(lambda data: data["prompt_length/min"] == data["prompt_length/max"]),
    ),
    ("CRIT-1", rf"value loss {_V} \(median of 3\) where rewards differ by {_V}", beside_rewards),
    ("CRIT-1", f"value loss {_V} vs usual {_V}", against_usual(*LOSS)),
    ("CRIT-1", f"value loss {_V} vs {_V} {_W}", against_past(*LOSS)),
    (
        "CRIT-1",
        rf"explained variance {_V} \(median of 5\)(?:, but the value loss is still falling)?",
        lambda past, x: Shown.of(x).is_(statistics.median(explained(past)[-5:])),
    ),
    ("CRIT-2", f"explained variance {_V}", value("critic/vf_explained_var")),
    (
        "CRIT-2",
        r"explained variance below 0.05 for (\d+) steps?",
        lambda past, n: (
            int(n) == past.run(lambda data: None if same_scores(data) else data["critic/vf_explained_var"] < 0.05)
        ),
    ),
    ("CLIP-2", rf"{_V} % of value updates are clipped \(median of 5\)", share("critic/vf_clipfrac", 5)),
    ("DISC-1", f"returns average {_V} % of the score(?:: gamma removes most of the reward)?", kept),
    ("GRAD-1", f"grad norm {_V} vs usual {_V}", against_usual(*GRADIENT)),
    ("GRAD-2", f"grad norm {_V}", value(*GRADIENT)),
    ("GRAD-2", f"grad norm {_V} for 3 steps: nothing is learned", value(*GRADIENT)),
    (
        "GRAD-2",
        f"grad norm {_V}, first steps {_V}",
        lambda past, x, first: (
            Shown.of(x).is_(past.value(*GRADIENT)) and min(past.values(*GRADIENT)) <= Shown.of(first).high
        ),
    ),
    ("LOSS-1", f"policy loss {_V}", value("actor/pg_loss")),
    (
        "MIS-1",
        "(?:, )?".join(f"(?:{name} {_V})?" for name in MISMATCHES),
        lambda past, diff, corr, kl, chi: all(
            text is None or Shown.of(text).is_(past.value(key))
            for text, key in (
                (diff, "training/rollout_probs_diff_mean"),
                (corr, "training/rollout_actor_probs_pearson_corr"),
                (kl, "rollout_corr/kl"),
                (chi, "rollout_corr/chi2_token"),
            )
        ),
    ),
    (
        "MIS-2",
        rf"probability difference {_V} \(usual {_V}\), highest {_V}(?:, responses {NUMBER} times as long)?",
        lambda past, x, usual, high: (
            against_usual("training/rollout_probs_diff_mean")(past, x, usual)
            and Shown.of(high).is_(past.value("training/rollout_probs_diff_max"))
        ),
    ),
    ("MIS-2", f"smoothed (probability difference|rollout KL) {_V}, first steps {_V}", mismatch_grown),
    (
        "MIS-3",
        f"samples with top_p {_V}, trains without",
        lambda past, x: Shown.of(x).is_(past.config["actor_rollout_ref.rollout.top_p"]),
    ),
    (
        "RATIO-1",
        rf"ppo_kl {_V} on the only update \(expected 0\), {_V} % of tokens clipped",
        lambda past, x, share: (
            Shown.of(x).is_(past.value("actor/ppo_kl")) and Shown.of(share).is_(past.value("actor/pg_clipfrac"), 100)
        ),
    ),
    ("STALE-1", f"samples are {_V} versions old", value("training/off_policy/trajectory_staleness/mean")),
    (
        "GROUP-1",
        rf"{_V} % of groups have equal rewards, median of 5(?: \(now {_V} % all right, {_V} % all wrong\))?",
        lambda past, x, right, wrong: (
            share("responses/unvaried_groups", 5)(past, x)
            and all(
                text is None or Shown.of(text).is_(past.value(f"responses/all_{name}_groups"), 100)
                for text, name in ((right, "right"), (wrong, "wrong"))
            )
        ),
    ),
    ("EVICT-1", "of the generated groups .*", lambda past: True),
    (
        "TEXT-1",
        "(?:, )?".join(
            f"(?:{_V} % of {what})?"
            for what in (
                "responses are nearly the same text",
                "responses repeat their prompt",
                "4-grams in a response are repeats",
                "responses have an empty answer field",
            )
        ),
        lambda past, *found: all(
            text is None or Shown.of(text).is_(past.value(f"responses/{name}"), 100)
            for text, name in zip(found, ("near_equal", "prompt_copied", "repetition", "format_only"), strict=True)
        ),
    ),
    (
        "WAIT-1",
        rf"the trainer waits for responses {_V} % of the time \(median of 5\)",
        lambda past, x: Shown.of(x).is_(100 * statistics.median(waited(past)[-5:])),
    ),
    ("THR-1", rf"a step takes {_V} s( without validation and saving)?, {_V}× the usual {_V} s", times),
    ("THR-1", rf"a step takes {_V} s( without validation and saving)?, {_V}× the {_V} s of 50 to 100 steps ago", times),
    (
        "THR-1",
        rf"a step takes {_V} s( without validation and saving)?, {NUMBER}× the (?:usual )?time per token"
        r"(?: of 50.*)?",
        took,
    ),
    (
        "MEM-2",
        rf"{_V} of {NUMBER} GB of host memory in use.*",
        value("actor/perf/cpu_memory_used_gb", "perf/cpu_memory_used_gb"),
    ),
)
_BY_RULE: dict[str, list[tuple[re.Pattern[str], Callable[..., bool]]]] = defaultdict(list)
for _rule, _form, _right in FORMS:
    _BY_RULE[_rule].append((re.compile(_form), _right))


def wrong(rule: str, message: str, past: Past) -> Iterator[str]:
    """What is wrong with a message; nothing if its numbers follow from the metrics."""
    text, _, at = message.partition(", as of step ")
    if at:  # what the rule said when it last judged
        past = Past(past.config, [each for each in past.steps if each[0] <= int(at)])
    text = _ENDING.sub("", _OPENING.sub("", text), count=1)
    for form, right in _BY_RULE[rule]:
        if found := form.fullmatch(text):
            if not right(past, *found.groups()):
                yield f"{rule}: {message}"
            return
    yield f"{rule}: no form for {message!r}"
