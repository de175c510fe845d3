"""Ends that a batch system (Slurm, PBS, LSF) announces before it sends a signal."""

from launcher.console.causes.entry import Cause

_SLURM = r"slurmstepd: error: \*{3} (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+"
RESUME = "continue with `ppo-tui resume RUN`"

CAUSES = (
    Cause(
        "job-time-limit",
        "Time limit of the batch job reached",
        "The batch system ended the job because the time it was given is over. Steps after the last checkpoint are "
        "lost.",
        (RESUME, "request more time (#SBATCH --time, #PBS -l walltime)", "save more often: trainer.save_freq ↓"),
        line=_SLURM + r" DUE TO TIME LIMIT|=>> PBS: job killed: walltime|TERM_RUNLIMIT: job killed",
        fatal=True,
        announced=True,
    ),
    Cause(
        "job-preempted",
        "Batch job preempted, or its node failed",
        "The batch system took the node away for another job, or lost it.",
        (RESUME, "submit it with --requeue, or to a partition that is not preempted", "trainer.save_freq ↓"),
        line=_SLURM + r" DUE TO (?:PREEMPTION|NODE FAILURE)|TERM_PREEMPT",
        fatal=True,
        announced=True,
    ),
    Cause(
        "job-cancelled",
        "Batch job cancelled",
        "A user or the administrator of the batch system ended the job (scancel).",
        (RESUME,),
        line=_SLURM + r"(?: \*{3}|$)|TERM_OWNER",
        fatal=True,
        announced=True,
    ),
)
