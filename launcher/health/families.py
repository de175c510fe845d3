"""What a group of health rules is about."""

from typing import NamedTuple


class Family(NamedTuple):
    """What a group of rules is about, in words for someone who has not trained with PPO before."""

    meaning: str
    healthy: str
    bad: str


FAMILIES: dict[str, Family] = {
    "numbers": Family(
        "Every metric must be a finite number. NaN or infinity means that a computation overflowed or divided by zero.",
        "All metrics are finite at every step.",
        "NaN in a loss or a value spreads into the weights, and every later step is wasted. A single "
        "non-finite gradient norm is harmless, because veRL skips that update.",
    ),
    "kl": Family(
        "KL measures how far the policy has moved: from the initial model (KL to the reference), or "
        "within one step (ppo_kl, clipped share). The reward is only reliable close to the initial model.",
        "KL to the reference rises slowly and levels off; within a step it stays close to 0.",
        "A jump, or repeated doubling. A steady rise without a gain in reward is just as bad, only slower.",
    ),
    "entropy": Family(
        "Entropy measures how uncertain the policy is about the next token. Without it, all samples are alike "
        "and the policy no longer explores.",
        "Falls slowly, mostly early on, then levels off. A fall alone is not a problem.",
        "Close to 0 within a few steps: the model repeats itself. Rising: its responses become random.",
    ),
    "reward": Family(
        "The score of the sampled responses before any KL penalty: what training maximizes.",
        "Rises with some noise, then levels off.",
        "Flat for a long time: check the reward function before the algorithm. A sudden jump: read "
        "samples before trusting it. Reward and length that rise sharply together are the usual sign of "
        "reward hacking.",
    ),
    "validation": Family(
        "The score on prompts that are not used for training.",
        "Rises with the training reward, with some noise because the set is small.",
        "Falls over several validations while the training reward rises: the model learns the reward, not the task.",
    ),
    "length": Family(
        "How long responses are, and how many were truncated at the limit. A truncated response is rarely correct.",
        "Length changes slowly; few responses reach the limit.",
        "A rising share of truncated responses usually lowers the reward next. A collapse in length means "
        "that the model stops early.",
    ),
    "critic": Family(
        "The critic predicts the reward of a response. Its loss should be small and its explained variance above 0.",
        "The loss falls within 20 to 40 steps and stays low; explained variance rises towards 1.",
        "A critic that diverges feeds noise to the policy a few steps later.",
    ),
    "gradient": Family(
        "The size of the policy's gradient, measured before clipping.",
        "Varies around its usual size; single peaks are normal and are clipped.",
        "A series of peaks: updates undo each other. Almost 0: updates no longer change the policy.",
    ),
    "policy loss": Family(
        "The PPO loss. Its sign and slow drift carry no information: each batch is measured against a new policy.",
        "Small values around 0.",
        "NaN, or an absolute value above 10: something is broken.",
    ),
    "learning rate": Family(
        "The current step size of the optimizer, as set by its schedule.",
        "Above 0 from the end of the warmup to the end of the run.",
        "0 for several steps: the schedule does not match the length of the run, and nothing is learned.",
    ),
    "mismatch": Family(
        "The rollout engine and the trainer use different implementations of the same model. Both must compute "
        "the same probabilities, from about the same weights.",
        "Probability differences below 0.01, correlation close to 1.",
        "The policy learns from responses that it would not have generated.",
    ),
    "rollout": Family(
        "What becomes of the generated responses, and whether trainer and rollout wait for each other where each has "
        "GPUs of its own.",
        "Most groups are trained on, and neither side waits for long.",
        "Groups that are generated and then dropped, or GPUs that wait: the time is paid for and teaches nothing.",
    ),
    "speed": Family(
        "How long a step takes, without validation and saving.",
        "About constant for the same number of tokens.",
        "Much slower than usual, or no step for a long time.",
    ),
    "memory": Family(
        "Peak GPU memory reserved by training, and host memory in use.",
        "Rises in the first steps, then stays constant.",
        "Growth late in the run: memory will run out.",
    ),
    "errors": Family(
        "Error messages in the log. Some are harmless, such as libraries that fail to report usage.",
        "No errors, or none that stop training.",
        "An exception in a worker: the run usually ends within a minute.",
    ),
}
