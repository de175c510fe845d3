"""The socket through which veRL hands weights to vLLM: its real module, each run with a socket of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"
)

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


def python(script: str, run: str | None) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VERL_", "PPO_TUI_"))}
    env |= {"VERL_USE_EXTERNAL_MODULES": "launcher.verl_plugin", "VERL_PLATFORM": "cpu"}
    if run:
        env["PPO_TUI_RUN"] = run
    done = subprocess.run(
        [sys.executable, "-c", script, f"job{os.getpid()}"],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_both_ends_of_a_run_agree_on_a_socket_that_no_other_run_has() -> None:
    first, second = python(NAMES, "7f3a21bc").split(), python(NAMES, "91d0e4aa").split()
    assert first[0] == first[1] and "7f3a21bc" in first[0]
    assert second[0] == second[1] and second[0] != first[0]


def test_outside_a_run_the_socket_is_verls_own() -> None:
    assert set(python(NAMES, None).split()) == {
        f"ipc:///tmp/rl-colocate-zmq-job{os.getpid()}-replica-0-rank-0.sock"
    }


def test_weights_arrive_through_the_renamed_socket() -> None:
    assert python(TRANSFER, "7f3a21bc") == "received 28.0 True"
