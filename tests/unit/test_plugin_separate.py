"""What separate_async requires of the plugin: weights that reach engines of their own, and updates that stay."""

from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL

TRANSFER = """
import asyncio, threading
import torch, verl
from verl.checkpoint_engine import CheckpointEngineRegistry
weights = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "c": torch.tensor(7)}
sender, idle = (CheckpointEngineRegistry.new("gloo", bucket_size=1, is_master=first) for first in (True, False))
receivers = [CheckpointEngineRegistry.new("gloo", bucket_size=1) for _ in range(2)]
everybody = [sender, idle, *receivers]
got = {}

async def receive(engine):
    return {name: tensor async for name, tensor in engine.receive_weights(global_steps=1)}

def work(place, arguments):
    engine = everybody[place]
    engine.init_process_group(**arguments)
    if place < 2:
        asyncio.run(engine.send_weights(iter(weights.items()), global_steps=1))
    else:
        got[place] = asyncio.run(receive(engine))
    engine.finalize()

for update in range(2):  # every update makes a group of its own
    actors, rollouts = type(sender).build_topology(2, 2, [engine.prepare() for engine in everybody])
    words = [{name: values[i] for name, values in side.items()} for side in (actors, rollouts) for i in range(2)]
    threads = [threading.Thread(target=work, args=each) for each in enumerate(words)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    same = [all(torch.equal(each[name], weights[name]) and each[name].dtype == weights[name].dtype for name in weights)
            for each in (got[2], got[3])]
    print(same, len(got[2]))
"""
ASIDE = """
import torch, verl
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from verl.utils import fsdp_utils
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(2, 2, bias=False)
mesh = init_device_mesh("cpu", (1,))

def weight(value):
    return torch.nn.Parameter(distribute_tensor(torch.full((2, 2), value), mesh, [Shard(0)]))

for moved in (False, True):
    model.weight = weight(0.0)
    old = fsdp_utils.fsdp2_sharded_save_to_cpu(model)
    if moved:
        model.weight = weight(1.0)  # as after an update on a GPU: the weights are offloaded to other memory
    else:
        with torch.no_grad():
            model.weight.add_(1)
    new = fsdp_utils.fsdp2_sharded_save_to_cpu(model)
    for saved in (old, new):
        fsdp_utils.fsdp2_sharded_load_from_cpu(model, *saved)
        print(model.weight.to_local().sum().item())
"""
FLUSH = """
import verl
from verl.trainer.ppo.v1 import trainer_separate_async
trainer_separate_async.logger.info("rollout served by 1 standalone replica", flush=True)
print("said")
"""


def test_weights_reach_every_engine_and_no_idle_worker_is_waited_for(verl: Parent) -> None:
    done = verl.python(TRANSFER, VERL_PLATFORM="cpu")
    assert done.stdout.splitlines() == ["[True, True] 3"] * 2, done.stderr


def test_old_weights_are_put_aside_and_an_update_comes_back(verl: Parent) -> None:
    done = verl.python(ASIDE, VERL_PLATFORM="cpu")
    assert done.stdout.split() == ["0.0", "4.0"] * 2, done.stderr


def test_the_trainer_without_a_hybrid_engine_can_log(verl: Parent) -> None:
    done = verl.python(FLUSH)
    assert done.stdout.split()[-1:] == ["said"], done.stderr
