"""What a group of health rules is about."""

from typing import NamedTuple


class Family(NamedTuple):
    """What a group of rules is about, in words for someone who has not trained with PPO before."""

    meaning: str
    healthy: str
    bad: str


FAMILIES: dict[str, Family] = {
    "numbers": Family(
        "Every figure of a step must be a number. NaN or infinity means that arithmetic overflowed or divided by zero.",
        "All figures finite, on every step.",
        "NaN in a loss or a value spreads into the weights; from then on every step is wasted. A single "
        "bad gradient norm is harmless, because veRL skips that update.",
    ),
    "kl": Family(
        "KL measures how far the policy has moved: from the model it started as (KL to the reference), or "
        "within one step (ppo_kl, clipped share). The reward can only be trusted near where it was "
        "designed.",
        "KL to the reference climbs slowly and levels off; within a step it stays close to 0.",
        "A jump, or doubling again and again. A steady climb that brings no reward is as bad, only slower.",
    ),
    "entropy": Family(
        "Entropy says how undecided the model is about its next token. Without it, all samples are alike "
        "and nothing new can be found.",
        "It falls slowly, most of it early, and then flattens. Falling alone is not a fault.",
        "Close to 0 within a few steps: the model repeats itself. Climbing: it babbles.",
    ),
    "reward": Family(
        "The score of the sampled answers before any KL penalty: what the run is for.",
        "Rises with ups and downs, then slows.",
        "Flat for very long: suspect the reward function before the algorithm. A sudden leap: read "
        "samples before celebrating. Reward and length that shoot up together are the usual sign of a "
        "gamed reward.",
    ),
    "validation": Family(
        "The score on questions that are not trained on.",
        "Follows the training reward upward, with jitter from the small set.",
        "Falls over several validations while the training reward rises: the model learns the reward, not the task.",
    ),
    "length": Family(
        "How long answers are, and how many were cut off at the limit. A cut-off answer cannot be right.",
        "Length drifts slowly; few answers reach the limit.",
        "A rising share of cut-off answers usually pulls the reward down next. Collapsing length means "
        "that the model stops early.",
    ),
    "critic": Family(
        "The critic predicts the reward of an answer. Its loss should be small and its explained variance above 0.",
        "The loss falls within 20 to 40 steps and stays low; explained variance climbs towards 1.",
        "A critic that diverges feeds noise to the policy a few steps later.",
    ),
    "gradient": Family(
        "The size of the policy's gradient, measured before clipping.",
        "Wanders around its usual size; single peaks are normal and are clipped.",
        "A series of peaks: the updates fight each other. Almost 0: the updates do nothing any more.",
    ),
    "policy loss": Family(
        "The PPO loss itself. Its sign and a slow drift mean nothing: it is measured anew on every batch.",
        "Anything small around 0.",
        "Beyond 10, or NaN, something is broken.",
    ),
    "learning rate": Family(
        "The step size of the optimiser, as its schedule has it now.",
        "Above 0 from the end of the warm-up to the end of the run.",
        "0 for several steps: the schedule is longer or shorter than the run, and nothing is learned.",
    ),
    "mismatch": Family(
        "Answers are sampled by the rollout engine and trained on by another implementation of the same "
        "model; both must give the same probabilities, from about the same weights.",
        "Differences in probability below 0.01, correlation close to 1.",
        "The policy learns from answers that it would not have given.",
    ),
    "speed": Family(
        "How long a step takes, without validation and saving.",
        "About constant for the same amount of tokens.",
        "Much slower than usual, or no step at all for a long time.",
    ),
    "memory": Family(
        "GPU memory that training has reserved at its peak, and memory of the host.",
        "Rises in the first steps and then stays.",
        "Steps upward late in the run: it will hit the ceiling.",
    ),
    "errors": Family(
        "Error messages in the log. Some are harmless: libraries that fail to report usage, for instance.",
        "None, or none that stops the steps.",
        "An exception of a worker: the run usually ends within the minute.",
    ),
}
