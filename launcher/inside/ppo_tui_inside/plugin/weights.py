"""The checkpoint engine "gloo": sends new weights from the trainer to separate rollout servers, over the CPU.

veRL's trainer separate_async sends weights by an engine of its registry, each of which requires a GPU library. This one
broadcasts every tensor from the trainer's first worker to all rollout workers, in a gloo group per update. veRL:
`verl/checkpoint_engine/base.py: CheckpointEngine, CheckpointEngineManager`.
"""

import datetime
import json
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import torch

NAME, MODULE = "gloo", "verl.checkpoint_engine.base"
_SOURCE = 0
_LIMIT = datetime.timedelta(minutes=10)


def register(base: ModuleType) -> None:
    """Adds the engine to the registry of `base`, veRL's module, after its import."""

    class GlooCheckpointEngine(_Gloo, base.CheckpointEngine):  # type: ignore[name-defined, misc]
        pass

    base.CheckpointEngineRegistry.register(NAME)(GlooCheckpointEngine)


class _Gloo:
    """Both ends: `is_master` is the trainer's first worker, which listens for the others."""

    def __init__(self, bucket_size: int, is_master: bool = False, **_unused: Any) -> None:
        self.is_master = is_master
        self.rank = -1
        self.store: torch.distributed.TCPStore | None = None
        self.group: Any = None

    def prepare(self) -> tuple[str, int] | None:
        """The address where the group meets, known to the master alone."""
        if not self.is_master:
            return None
        import ray

        host = ray.util.get_node_ip_address()
        self.store = torch.distributed.TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=_LIMIT)
        return host, self.store.port

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[Any]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """The group consists of the master and all rollout workers, without the trainer's other workers (rank -1)."""

        def of(ranks: list[int]) -> dict[str, list[Any]]:
            count = len(ranks)
            return {"rank": ranks, "size": [1 + rollout_world_size] * count, "place": [metadata[0]] * count}

        return of([_SOURCE] + [-1] * (actor_wg_world_size - 1)), of(list(range(1, 1 + rollout_world_size)))

    def init_process_group(self, rank: int, size: int, place: tuple[str, int]) -> None:
        self.rank = rank
        if rank < 0:
            return
        if self.store is None:
            self.store = torch.distributed.TCPStore(*place, is_master=False, timeout=_LIMIT)
        self.group = torch.distributed.ProcessGroupGloo(self.store, rank, size, _LIMIT)

    def finalize(self) -> None:
        self.group = self.store = None

    async def send_weights(self, weights: Any, global_steps: int | None = None) -> None:
        """Sends (name, tensor) pairs. Every worker consumes the generator, as they gather each tensor together."""
        for name, tensor in weights:
            if self.rank == _SOURCE:
                tensor = tensor.detach().cpu().contiguous()
                self._broadcast_note([name, list(tensor.shape), str(tensor.dtype).removeprefix("torch.")])
                self._broadcast(tensor)
        if self.rank == _SOURCE:
            self._broadcast_note(None)

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        while (note := self._broadcast_note(None)) is not None:
            name, shape, dtype = note
            tensor = torch.empty(shape, dtype=getattr(torch, dtype))
            self._broadcast(tensor)
            yield name, tensor

    def _broadcast_note(self, note: Any) -> Any:
        """The source's message on every worker: the next tensor, or None at the end."""
        own = torch.frombuffer(bytearray(json.dumps(note).encode()), dtype=torch.uint8)
        length = torch.tensor([len(own)])
        self._broadcast(length)
        data = own if self.rank == _SOURCE else torch.empty(int(length), dtype=torch.uint8)
        self._broadcast(data)
        return note if self.rank == _SOURCE else json.loads(data.numpy().tobytes())

    def _broadcast(self, tensor: torch.Tensor) -> None:
        self.group.broadcast(tensor, _SOURCE).wait()
