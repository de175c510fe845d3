"""The figures that people look at first, each with its names in order of preference."""

SCORE = ("critic/score/mean", "critic/rewards/mean")
KL = ("actor/reward_kl_penalty", "critic/kl", "actor/kl_loss")
ENTROPY = ("actor/entropy", "actor/entropy_loss")
THROUGHPUT = ("perf/throughput",)
