"""What the plugin changes in real veRL processes: polling, adapters, sockets, ports, and what separate_async requires.

One process runs all parts of a kind, since each imports veRL for itself.
"""

import json
import re

import pytest
from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL
IN_RUN, OTHER_RUN, OUTSIDE, WITHOUT = "7f3a21bc", "91d0e4aa", "outside", "without the plugin"
PARTS = {
    # What the trainer makes, a sampler with an interval of its own, and one that sets it later; then other defaults.
    "polling": """
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
class Own(ReplayBuffer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs, poll_interval=5.0)
class Later(ReplayBuffer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.poll_interval = 3.0
words = dict(trainer_mode="sync", trainer_config={}, max_off_policy_threshold=None, max_off_policy_strategy="drop",
             sampler_kwargs={})
made = [kind(**words) for kind in (ReplayBuffer, ReplayBufferAsync, Own, Later)]
print([each.poll_interval for each in made], made[0].max_inflight_gen_batches, made[0].refill_fn)
""",
    # A veRL without the class, with another constructor, and with a shorter interval of its own.
    "other polling": """
from ppo_tui_inside.plugin import polling
print([polling.interval(text) for text in ("", "0", "0.5", "often")])
module, quick = types.ModuleType("replay_buffer"), types.ModuleType("replay_buffer")
polling.look_sooner(module)
class Long:
    def __init__(self, mode, size=3):
        self.size = size
class Quick:
    def __init__(self, mode, poll_interval=0.05, *, size=3):
        self.seen = (poll_interval, size)
module.ReplayBuffer, quick.ReplayBuffer = Long, Quick
polling.look_sooner(module), polling.look_sooner(quick)
print(Long(1).size, Quick(1).seen)
""",
    # The critic's workers answer with the note they got, which ends the call where they would compute.
    "critic": """
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
class Asked(Exception): pass
class Critic:
    def infer_batch(self, batch):
        raise Asked(sorted(batch.extra_info))
rollout = types.SimpleNamespace(temperature=1.0)
config = types.SimpleNamespace(actor_rollout_ref=types.SimpleNamespace(rollout=rollout))
batch = types.SimpleNamespace(extra_info={"no_lora_adapter": True})  # as _compute_ref_log_prob leaves it
try:
    PPOTrainer._compute_values(types.SimpleNamespace(critic_wg=Critic(), config=config), batch, metrics={})
except Asked as asked:
    print(asked.args[0])
""",
    # What `_build_lora_module` of veRL 0.9.1 does with each model, with real ones of transformers and peft.
    "adapters": """
from peft import LoraConfig, TaskType, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2ForTokenClassification
shape = Qwen2Config(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                    num_attention_heads=2, num_key_value_heads=1, num_labels=1)
for writes, targets, excluded in json.loads(sys.argv[1]):
    model = (Qwen2ForCausalLM if writes else Qwen2ForTokenClassification)(shape)
    adapted = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=2, target_modules=targets,
                                               exclude_modules=excluded, bias="none"))
    learns = [name for name, weight in adapted.named_parameters() if weight.requires_grad]
    print(json.dumps([type(adapted).__name__, learns]))
""",
    # The package of the module wants vLLM, which CPU machines do not have: an empty one stands in its place.
    "socket": """
import verl.workers.rollout as rollout
package = types.ModuleType("verl.workers.rollout.vllm_rollout")
package.__path__ = [str(Path(rollout.__file__).parent / "vllm_rollout")]
sys.modules[package.__name__] = package
from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer
handle = f"ipc:///tmp/rl-colocate-zmq-job{os.getpid()}-replica-0-rank-0.sock"
sender = transfer.BucketedWeightSender(zmq_handle=handle, bucket_size_mb=1, use_shm=True)
receiver = transfer.BucketedWeightReceiver(zmq_handle=handle, device=torch.device("cpu"), use_shm=True)
print(sender.zmq_handle.replace(str(os.getpid()), "PID"), receiver.zmq_handle == sender.zmq_handle)
sending = threading.Thread(
    target=lambda: asyncio.run(sender.async_send_weights([("weight", torch.full((4,), 7.0))]))
)
sending.start()
receiver.receive_weights(lambda weights, last: print("received", weights[0][1].sum().item(), last))
sending.join()
""",
    "ports": """
from verl.single_controller.ray import base
search = base.get_master_addr_port._function
base.get_master_addr_port = types.SimpleNamespace(
    options=lambda **how: types.SimpleNamespace(remote=lambda master_port_range: search(master_port_range))
)
for nodes in (1, 1, 2):
    ray = types.SimpleNamespace(get=lambda found: found, nodes=lambda: [{}] * nodes, util=base.ray.util)
    real, base.ray = base.ray, ray
    group = types.SimpleNamespace(_master_addr=None, _master_port=None)
    base.RayWorkerGroup._get_master_addr_port(group, None, bundle_index=0, master_port_range=None)
    base.ray = real
    print(group._master_port)
""",
    "weights": """
from verl.checkpoint_engine import CheckpointEngineRegistry
weights = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "c": torch.tensor(7)}
sender, idle = (CheckpointEngineRegistry.new("gloo", bucket_size=1, is_master=first) for first in (True, False))
everybody = [sender, idle, *(CheckpointEngineRegistry.new("gloo", bucket_size=1) for _ in range(2))]
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
""",
    "aside": """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from verl.utils import fsdp_utils
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model, mesh = torch.nn.Linear(2, 2, bias=False), init_device_mesh("cpu", (1,))
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
""",
    "logging": """
from verl.trainer.ppo.v1 import trainer_separate_async
trainer_separate_async.logger.info("rollout served by 1 standalone replica", flush=True)
print("said")
""",
}
# Each kind of process: its variables, and the parts that it runs.
KINDS = {
    IN_RUN: ({"PPO_TUI_RUN": IN_RUN}, list(PARTS)),
    OTHER_RUN: ({"PPO_TUI_RUN": OTHER_RUN, "PPO_TUI_POLL_INTERVAL": "0.5"}, ["polling", "socket"]),
    OUTSIDE: ({}, ["polling", "socket", "ports"]),
    WITHOUT: ({"VERL_USE_EXTERNAL_MODULES": "", "VERL_PLATFORM": ""}, ["critic"]),
}
CASES = [  # of adapters: writes text, adapted, not adapted
    (False, "all-linear", None),
    (False, ["q_proj"], ["k_proj"]),
    (False, "all-linear", r".*\.k_proj"),
    (True, "all-linear", None),
]


@pytest.fixture(scope="module")
def printed(verl: Parent) -> dict[str, dict[str, list[str]]]:
    """The lines of each part in each kind of process."""
    found = {}
    for kind, (env, parts) in KINDS.items():
        script = "import asyncio, json, os, sys, threading, types\nfrom pathlib import Path\nimport verl, torch\n"
        script += "".join(f"print('== {name}')\n{PARTS[name]}" for name in parts)
        done = verl.python(script, json.dumps(CASES), **{"VERL_PLATFORM": "cpu", **env})
        assert done.returncode == 0, done.stderr[-3000:]
        pieces = re.split(r"^== (.*)\n", done.stdout, flags=re.MULTILINE)[1:]
        found[kind] = {name: text.splitlines() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return found


Printed = dict[str, dict[str, list[str]]]


def test_finished_rollouts_are_noticed_sooner(printed: Printed) -> None:
    """Outside of a run veRL keeps its interval, or the change is not needed any more."""
    for kind, first in ((IN_RUN, "0.2, 0.2"), (OTHER_RUN, "0.5, 0.5"), (OUTSIDE, "2.0, 2.0")):
        assert printed[kind]["polling"] == [f"[{first}, 5.0, 3.0] 1 None"]
    assert printed[IN_RUN]["other polling"] == ["[0.2, None, 0.5, 0.2]", "3 (0.05, 3)"]


def test_the_critic_is_not_told_to_leave_its_adapter_out(printed: Printed) -> None:
    assert printed[IN_RUN]["critic"] == ["['compute_loss', 'temperature']"]
    assert printed[WITHOUT]["critic"] == ["['compute_loss', 'no_lora_adapter', 'temperature']"], "it is needed no more"


def test_a_critic_has_an_adapter_and_a_head_that_learn(printed: Printed) -> None:
    found = [
        (
            kind,
            *(any(part in name for name in learns) for part in ("q_proj.lora_A", "k_proj.lora_A")),
            sorted(name.split(".")[-1] for name in learns if "score.modules_to_save" in name),
        )
        for kind, learns in map(json.loads, printed[IN_RUN]["adapters"])
    ]
    critic, head = "PeftModelForTokenClassification", ["bias", "weight"]
    assert found == [
        (critic, True, True, head),
        (critic, True, False, head),
        (critic, True, False, head),
        ("PeftModelForCausalLM", True, True, []),
    ]


def test_weights_arrive_through_a_socket_that_no_other_run_has(printed: Printed) -> None:
    sockets = {kind: printed[kind]["socket"] for kind in (IN_RUN, OTHER_RUN, OUTSIDE)}
    assert {lines[1] for lines in sockets.values()} == {"received 28.0 True"}
    for kind, middle in ((IN_RUN, f"{IN_RUN}-"), (OTHER_RUN, f"{OTHER_RUN}-"), (OUTSIDE, "")):
        assert sockets[kind][0] == f"ipc:///tmp/rl-colocate-zmq-{middle}jobPID-replica-0-rank-0.sock True"


def test_ranks_meet_at_a_port_that_the_kernel_gives_to_no_connection(printed: Printed) -> None:
    """On an H100 with ten runs one of these ports was taken between the choice and the ranks' start."""
    first, second, of_two_nodes = map(int, printed[IN_RUN]["ports"])
    assert first != second and all(20_000 <= port < 30_000 for port in (first, second)) and of_two_nodes > 30_000
    assert all(int(port) > 30_000 for port in printed[OUTSIDE]["ports"]), "outside a run veRL asks the kernel"


def test_separate_async_gets_its_weights_and_keeps_its_updates(printed: Printed) -> None:
    """Weights reach every engine, no idle worker is waited for, old weights are put aside, and the trainer can log."""
    assert printed[IN_RUN]["weights"] == ["[True, True] 3"] * 2
    assert printed[IN_RUN]["aside"] == ["0.0", "4.0"] * 2
    assert printed[IN_RUN]["logging"] == ["said"]
