"""Numbers that are none."""

from launcher.console.causes.entry import Cause

STEADY = (
    "actor_rollout_ref.actor.optim.lr ↓ (e.g. 1e-6)",
    "set actor_rollout_ref.actor.optim.clip_grad=1.0 critic.optim.clip_grad=1.0",
    "resume from a checkpoint before the first NaN: trainer.resume_from_path=.../global_step_<k>",
)

CAUSES = (
    Cause(
        "nan",
        "NaN in the policy",
        "Weights or logits are NaN or infinite, so no token can be sampled. An earlier update diverged: check "
        "grad_norm and the learning rate.",
        STEADY,
        raised=r"probability tensor contains either|(?:logits|loss|grad\w*) (?:is|are|contains?) (?:nan|NaN|inf)"
        r"|Input contains NaN|found NaN|nan values|cannot convert float NaN",
        line=r"\S{1,200}\.cuh?:\d+: .{0,200}Assertion `(?:probability tensor contains|val >= zero|sum > 0|cumdist\[)",
        explains="cuda-assert|cuda-error|nccl|crashed",
    ),
)
