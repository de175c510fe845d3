"""What the rollout engine holds on one GPU, awake and asleep.

vLLM's `gpu_memory_utilization` is a share of what CUDA calls the GPU's total. It includes vLLM's weights, the peak of
its profile run, and the KV cache as the rest. It excludes the memory of its process before the profile (the CUDA
context), and the memory that torch's allocator keeps for the many shapes of real batches. With `kv_cache_memory_bytes`
the KV cache has that size, and the share only has to be free at the start. SGLang's is a share of the free memory at
its start, for weights and KV cache only.
"""

from launcher.core.format import GIB
from launcher.estimate.models import Architecture
from launcher.estimate.sizing import MemoryInputs

# CUDA context, cuBLAS and buffers of the process: asleep, a tenth of the weights more
PROCESS = int(0.8 * GIB)
_GRAPHS = int(1.15 * GIB)  # CUDA graphs that a sleeping engine keeps: 0.4 GiB at 135M; else assumed
_SAMPLED = 6 * 4  # bytes for each row and word while tokens are drawn: copies of the logits in fp32
_BUFFERS = GIB // 10  # what vLLM counts beside weights, its profile run and KV cache (0.07 GiB in its logs)
_KEPT = 0.8  # of the profile's peak: what torch holds beyond it when as many rows are written as may be


def weights(plan: MemoryInputs) -> int:
    """The engine's copy of the model, in bf16."""
    return 2 * plan.facts.parameters // plan.tensor_parallel


def kv_bytes(plan: MemoryInputs) -> int:
    """KV cache of one token."""
    shape = plan.facts.sizes
    return 2 * 2 * shape.layers * shape.kv // min(plan.tensor_parallel, max(1, shape.kv_heads))


def profiled(plan: MemoryInputs) -> int:
    """Memory that vLLM's profile run finds: intermediate values of one layer for a full batch, or all rows' logits."""
    shape = plan.facts.sizes
    rows = min(plan.max_num_seqs, plan.max_num_batched_tokens)
    return max(plan.max_num_batched_tokens * layer_bytes(shape), rows * shape.vocab * _SAMPLED) // plan.tensor_parallel


def whole(plan: MemoryInputs, total: int) -> int:
    """The memory of which the engine takes its share."""
    return max(0, total - plan.at_start) if plan.of_free else total


def share(plan: MemoryInputs, total: int) -> int:
    """The memory that the engine certainly takes on a GPU with CUDA's `total` bytes."""
    if plan.kv_cache is not None:
        return weights(plan) + plan.kv_cache
    return int((plan.utilisation or 0) * whole(plan, total))


def asked(plan: MemoryInputs, total: int) -> int:
    """The memory that must be free when the engine starts; otherwise vLLM does not start."""
    return max(int((plan.utilisation or 0) * total), share(plan, total))


def beyond(plan: MemoryInputs) -> int:
    """The memory that the awake engine may take in addition."""
    inside = profiled(plan) if plan.kv_cache is not None or plan.of_free else 0
    return inside + _process(plan) + int(_KEPT * profiled(plan))


def asleep(plan: MemoryInputs) -> int:
    """The memory that the process of a sleeping engine keeps."""
    return _process(plan) + (0 if plan.eager else _GRAPHS)


def row_room(plan: MemoryInputs, total: int | None) -> int:
    """Bytes left for KV cache in addition to the longest row; negative: the engine cannot start."""
    if plan.utilisation is None or total is None:
        return 0
    return room(plan, total) - kv_bytes(plan) * plan.longest - working(plan)


def room(plan: MemoryInputs, total: int) -> int:
    """Bytes of the engine without its weights."""
    return share(plan, total) - weights(plan)


def working(plan: MemoryInputs) -> int:
    """Bytes that must remain after the KV cache is taken; 0 if its size was given in bytes."""
    inside = plan.kv_cache is None and not plan.of_free
    return profiled(plan) + _BUFFERS if inside else 0


def layer_bytes(shape: Architecture) -> int:
    """Bytes that one layer works with for one token: bf16, the two norms in fp32 too."""
    bf16 = 6 * shape.hidden + 2 * shape.query + 2 * shape.kv + 4 * shape.intermediate
    return 2 * bf16 + 4 * 4 * shape.hidden


def _process(plan: MemoryInputs) -> int:
    return PROCESS + weights(plan) // 10
