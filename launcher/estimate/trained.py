"""The memory of a trained model on one GPU, with FSDP's additions."""

from dataclasses import dataclass

from launcher.estimate.models import ModelFacts
from launcher.preset.effective import EffectiveConfig
from launcher.verl.config import ACTOR, CRITIC, MODEL, REF, ROLLOUT

_BYTES = {"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2}


@dataclass(frozen=True)
class Trained:
    """A trained model on one GPU. All bytes are per GPU shard.

    `element`: bytes per master weight (fp32 unless set, regardless of the files). Adam keeps two numbers of this width
    per trainable weight, and the gradient is one more.
    """

    name: str  # "actor" or "critic"
    parameters: int
    trainable: int
    element: int
    shards: int
    param_offload: bool
    optimizer_offload: bool
    offload_policy: bool
    fsdp2: bool

    @property
    def weights(self) -> int:
        return self.parameters * self.element // self.shards

    @property
    def adam(self) -> int:
        return 2 * self.trainable * self.element // self.shards

    @property
    def gradients(self) -> int:
        return self.trainable * self.element // self.shards

    @property
    def back(self) -> int:
        """Offloaded weights that return as a whole for computation or saving."""
        return self.weights if self.param_offload and not self.offload_policy else 0

    def idle(self, *, with_adam: bool = True) -> int:
        """Bytes on the GPU while another model works there."""
        if self.offload_policy:
            return 0
        adam = self.adam if with_adam and not self.optimizer_offload else 0
        return (0 if self.param_offload else self.weights) + adam

    def host(self) -> int:
        """Host memory in bytes per GPU's shard; offloaded gradients come with the policy only."""
        if self.offload_policy:
            return self.weights + self.adam + self.gradients
        return self.weights * self.param_offload + self.adam * self.optimizer_offload


def trained(subject: EffectiveConfig, block: str, facts: ModelFacts, parameters: int) -> Trained:
    """The actor or the critic, whose keys begin with `block`."""
    name, model, config = ("critic", f"{CRITIC}.model", f"{CRITIC}.fsdp")
    if block == ACTOR:
        name, model, config = "actor", MODEL, f"{ACTOR}.fsdp_config"
    adapter = facts.lora_parameters(subject.whole(f"{model}.lora_rank") or 0)
    strategy = subject.get(f"{block}.strategy", "fsdp")
    return Trained(
        name=name,
        parameters=parameters + adapter,
        trainable=adapter or parameters,
        element=element(subject, config),
        shards=_shards(subject, config),
        param_offload=subject.flag(f"{config}.param_offload", False),
        optimizer_offload=subject.flag(f"{config}.optimizer_offload", False),
        offload_policy=subject.flag(f"{config}.offload_policy", False) and strategy == "fsdp2",
        fsdp2=strategy == "fsdp2",
    )


def copied(subject: EffectiveConfig, actor: Trained, facts: ModelFacts) -> int:
    """A copy of the weights with the gathered embedding; for a separate adapter, the parts that contain it."""
    if actor.fsdp2:
        return 0
    if subject.has_lora and not subject.get(f"{MODEL}.lora.merge", False):
        layered = actor.shards == 1 or subject.get(f"{ROLLOUT}.layered_summon", False)
        return 0 if layered else actor.weights * actor.shards
    return actor.weights + 2 * actor.element * facts.sizes.embedding


def reference_first(subject: EffectiveConfig, reference: int) -> int:
    """The part of the reference that FSDP 1 leaves on the GPU until its first pass; 0 if sharded.

    Without sharding, or with `use_orig_params`, the model's own views keep the memory on the GPU after its flat
    parameter was offloaded.
    """
    config = f"{REF}.fsdp_config"
    shards = _shards(subject, config)
    if subject.get(f"{REF}.strategy", "fsdp") == "fsdp2":
        return 0
    return reference // shards if shards == 1 or subject.get(f"{config}.use_orig_params", False) else 0


def _shards(subject: EffectiveConfig, config: str) -> int:
    """Number of GPUs that share one copy of a model."""
    size = subject.get(f"{config}.fsdp_size", -1)
    return size if isinstance(size, int) and 0 < size <= subject.gpus else subject.gpus


def element(subject: EffectiveConfig, config: str) -> int:
    """Bytes per master weight."""
    return _BYTES.get(str(subject.get(f"{config}.model_dtype", "fp32")), 4)
