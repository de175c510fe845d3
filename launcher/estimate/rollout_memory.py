"""Memory of the rollout engine on one GPU, awake and asleep.

vLLM's `gpu_memory_utilization` is a share of CUDA's total for the GPU. It includes vLLM's weights, the peak of its
profile run, and the KV cache as the remainder. It excludes the process's memory before the profile (the CUDA context),
and memory that torch's allocator keeps for the many shapes of real batches. With `kv_cache_memory_bytes` the KV cache
has that size, and the share only has to be free at the start. SGLang's is a share of the free memory at its start, for
weights and KV cache only.
"""

from launcher.core.format import GIB
from launcher.estimate.models import Architecture
from launcher.estimate.sizing import MemoryInputs

# CUDA context, cuBLAS and buffers of the process: asleep, a tenth of the weights more
PROCESS = int(0.8 * GIB)
_GRAPHS = int(1.15 * GIB)  # CUDA graphs of a sleeping engine: 0.4 GiB at 135M; otherwise assumed
_SAMPLED = 6 * 4  # bytes for each row and word while tokens are drawn: copies of the logits in fp32
_BUFFERS = GIB // 10  # vLLM's memory besides weights, its profile run and KV cache (0.07 GiB in its logs)
_KEPT = 0.8  # share of the profile's peak that torch holds in addition at the maximum number of rows


def weights(plan: MemoryInputs) -> int:
    """The engine's copy of the model, in bf16."""
    return 2 * plan.facts.parameters // plan.tensor_parallel


def kv_bytes(plan: MemoryInputs) -> int:
    """KV cache of one token."""
    shape = plan.facts.sizes
    return 2 * 2 * shape.layers * shape.kv // min(plan.tensor_parallel, max(1, shape.kv_heads))


def profiled(plan: MemoryInputs) -> int:
    """Peak memory of vLLM's profile run: intermediate values of one layer for a full batch, or all rows' logits."""
    shape = plan.facts.sizes
    rows = min(plan.max_num_seqs, plan.max_num_batched_tokens)
    return max(plan.max_num_batched_tokens * layer_bytes(shape), rows * shape.vocab * _SAMPLED) // plan.tensor_parallel


def whole(plan: MemoryInputs, total: int) -> int:
    """The memory to which the engine's share applies."""
    return max(0, total - plan.at_start) if plan.of_free else total


def share(plan: MemoryInputs, total: int) -> int:
    """The memory that the engine certainly uses on a GPU with CUDA's `total` bytes."""
    if plan.kv_cache is not None:
        return weights(plan) + plan.kv_cache
    return int((plan.utilisation or 0) * whole(plan, total))


def asked(plan: MemoryInputs, total: int) -> int:
    """Free memory required at the engine's start; with less, vLLM does not start."""
    return max(int((plan.utilisation or 0) * total), share(plan, total))


def beyond(plan: MemoryInputs) -> int:
    """Additional memory that the awake engine may use."""
    inside = profiled(plan) if plan.kv_cache is not None or plan.of_free else 0
    return inside + _process(plan) + int(_KEPT * profiled(plan))


def asleep(plan: MemoryInputs) -> int:
    """Memory of a sleeping engine's process."""
    return _process(plan) + (0 if plan.eager else _GRAPHS)


def row_room(plan: MemoryInputs, total: int | None) -> int:
    """Bytes left for KV cache beyond the longest row; negative: the engine cannot start."""
    if plan.utilisation is None or total is None:
        return 0
    return room(plan, total) - kv_bytes(plan) * plan.longest - working(plan)


def room(plan: MemoryInputs, total: int) -> int:
    """The engine's bytes without its weights."""
    return share(plan, total) - weights(plan)


def working(plan: MemoryInputs) -> int:
    """Bytes required besides the KV cache; 0 if its size was given in bytes."""
    inside = plan.kv_cache is None and not plan.of_free
    return profiled(plan) + _BUFFERS if inside else 0


def layer_bytes(shape: Architecture) -> int:
    """Working memory of one layer per token in bytes: bf16, and the two norms in fp32."""
    bf16 = 6 * shape.hidden + 2 * shape.query + 2 * shape.kv + 4 * shape.intermediate
    return 2 * bf16 + 4 * 4 * shape.hidden


def _process(plan: MemoryInputs) -> int:
    return PROCESS + weights(plan) // 10
