"""The plugin's namespace of TransferQueue, on a module with what the real one calls (0.1.11, `interface.py`)."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from verl_process import WITH_VERL

pytestmark = [*WITH_VERL, pytest.mark.slow]


def test_a_run_looks_for_its_own_controller(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def called(name: str, namespace: str = "", **more: Any) -> tuple[str, str]:
        return name, namespace

    def module(run: str) -> Any:
        found: Any = ModuleType("transfer_queue.interface")
        found.ray = SimpleNamespace(get_actor=called, get=len)
        found.TransferQueueController = SimpleNamespace(options=called)
        monkeypatch.setenv(plugin.side_by_side.METRICS, run)
        plugin.side_by_side.separate_queue(found)
        return found

    one, again, two = module("/runs/1/metrics.jsonl"), module("/runs/1/metrics.jsonl"), module("/runs/2/metrics.jsonl")
    name, namespace = one.ray.get_actor("TransferQueueController", namespace="transfer_queue")
    assert name == "TransferQueueController" and namespace.startswith("transfer_queue-")
    assert again.TransferQueueController.options(name="x", namespace="transfer_queue") == ("x", namespace)
    assert two.ray.get_actor("x", namespace="transfer_queue")[1] != namespace
    assert one.ray.get_actor("x", namespace="other") == ("x", "other") and one.ray.get([1]) == 1
