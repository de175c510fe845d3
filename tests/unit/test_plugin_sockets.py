"""What runs on one host must not share: the socket through which veRL hands weights to vLLM, and ports."""

import os

from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL

# The package of the module wants vLLM, which CPU machines do not have: an empty one stands in its place.
WITHOUT_VLLM = """
import asyncio, sys, threading, types
from pathlib import Path
import verl, torch
import verl.workers.rollout as rollout
package = types.ModuleType("verl.workers.rollout.vllm_rollout")
package.__path__ = [str(Path(rollout.__file__).parent / "vllm_rollout")]
sys.modules[package.__name__] = package
from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer
handle = f"ipc:///tmp/rl-colocate-zmq-{sys.argv[1]}-replica-0-rank-0.sock"
"""
NAMES = (
    WITHOUT_VLLM
    + """
receiver = transfer.BucketedWeightReceiver(zmq_handle=handle, device=torch.device("cpu"), use_shm=True)
print(transfer.BucketedWeightSender(handle).zmq_handle, receiver.zmq_handle)
"""
)
TRANSFER = (
    WITHOUT_VLLM
    + """
sender = transfer.BucketedWeightSender(zmq_handle=handle, bucket_size_mb=1, use_shm=True)
receiver = transfer.BucketedWeightReceiver(zmq_handle=handle, device=torch.device("cpu"), use_shm=True)
sending = threading.Thread(
    target=lambda: asyncio.run(sender.async_send_weights([("weight", torch.full((4,), 7.0))]))
)
sending.start()
receiver.receive_weights(lambda weights, last: print("received", weights[0][1].sum().item(), last))
sending.join()
"""
)


def said(verl: Parent, script: str, **env: str) -> str:
    done = verl.python(script, f"job{os.getpid()}", VERL_PLATFORM="cpu", **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_both_ends_of_a_run_agree_on_a_socket_that_no_other_run_has(verl: Parent) -> None:
    first, second = (said(verl, NAMES, PPO_TUI_RUN=run).split() for run in ("7f3a21bc", "91d0e4aa"))
    assert first[0] == first[1] and "7f3a21bc" in first[0]
    assert second[0] == second[1] and second[0] != first[0]


def test_outside_a_run_the_socket_is_verls_own(verl: Parent) -> None:
    assert set(said(verl, NAMES).split()) == {f"ipc:///tmp/rl-colocate-zmq-job{os.getpid()}-replica-0-rank-0.sock"}


def test_weights_arrive_through_the_renamed_socket(verl: Parent) -> None:
    assert said(verl, TRANSFER, PPO_TUI_RUN="7f3a21bc") == "received 28.0 True"


PORTS = """
import types, verl
from verl.single_controller.ray import base
search = base.get_master_addr_port._function
base.get_master_addr_port = types.SimpleNamespace(
    options=lambda **how: types.SimpleNamespace(remote=lambda master_port_range: search(master_port_range))
)
base.ray = types.SimpleNamespace(get=lambda found: found, nodes=lambda: [{}], util=base.ray.util)
group = types.SimpleNamespace(_master_addr=None, _master_port=None)
base.RayWorkerGroup._get_master_addr_port(group, None, bundle_index=0, master_port_range=None)
print(group._master_port)
"""


def test_ranks_meet_at_a_port_that_the_kernel_gives_to_no_connection(verl: Parent) -> None:
    """On an H100 with ten runs one of these ports was taken between the choice and the ranks' start."""
    chosen = {int(said(verl, PORTS, PPO_TUI_RUN="7f3a21bc")) for _ in range(2)}
    assert len(chosen) == 2 and all(20_000 <= port < 30_000 for port in chosen)
    assert int(said(verl, PORTS)) > 30_000, "outside a run veRL asks the kernel"
    several = PORTS.replace("[{}]", "[{}] * 2")
    assert int(said(verl, several, PPO_TUI_RUN="7f3a21bc")) > 30_000
