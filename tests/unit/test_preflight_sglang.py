"""What veRL hands SGLang's server, against the options of the SGLang that is installed: ENGINE-5."""

import dataclasses
import sys
from pathlib import Path

import pytest
from corpus import machine
from tables import tabled

from launcher.check import checks, software
from launcher.check.subject import subject
from launcher.preset.files import load
from launcher.verl import env as verl_env

ENGINE = "actor_rollout_ref.rollout.engine_kwargs.sglang"
SERVER = '''
ATTENTION_BACKEND_CHOICES = [
    # Common
    "triton",
    "torch_native",
    "flashinfer",
]
SAMPLING_BACKEND_CHOICES = {"flashinfer", "pytorch"}
LOAD_FORMAT_CHOICES = ["auto", "dummy", "safetensors"]


class ServerArgs:
    """The server's options."""

    model_path: str
    # memory
    mem_fraction_static: float | None = None
    attention_backend: str | None = None
    load_format: str = "auto"
    forward_hooks: dict | None = None

    def __post_init__(self):
        sampling: str = "local"
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SGLang beside the interpreter that runs the tests."""
    (tmp_path / "srt").mkdir()
    (tmp_path / "srt" / "server_args.py").write_text(SERVER)
    env = dataclasses.replace(verl_env.probe(sys.executable), sglang_path=tmp_path)
    monkeypatch.setattr(verl_env, "probe", lambda _: env)


def found(*settings: str, rule: str = "ENGINE-5") -> list[tuple[str, str]]:
    what = subject(load("gsm8k-0.5b-24gb", ["rollout.engine=sglang", *settings]), on=machine("1x24"))
    return [(each.message, each.fix) for each in checks.quick(what) if each.id == rule]


@pytest.mark.usefixtures("installed")
def test_options_that_the_server_has_pass() -> None:
    own = ["attention_backend=triton", "mem_fraction_static=0.4", "+forward_hooks.layer=x"]
    assert not found(*(f"+{ENGINE}.{each.lstrip('+')}" for each in own))


@pytest.mark.usefixtures("installed")
@tabled
def test_what_the_server_lacks_is_named_with_the_nearest(setting: str, message: str, fix: str) -> None:
    ((said, advice),) = found(setting)
    assert message in said and fix in advice


@pytest.mark.usefixtures("installed")
def test_an_option_that_veRL_passes_itself() -> None:
    split = "actor_rollout_ref.rollout.disaggregation"
    key = f"{split}.decode_tensor_model_parallel_size"
    assert not found(f"{key}=2")
    ((said, advice),) = found(f"{key}=2", f"{split}.enabled=true")
    assert "no option 'disaggregation_decode_tp'" in said and advice == f"remove {key}"


def test_nothing_is_judged_where_sglang_is_not_installed() -> None:
    assert not found(f"+{ENGINE}.mem_fraction=0.4", "rollout.load_format=hf")
    assert found("rollout.dtype=bf16", rule="ENGINE-2")[0][0] == "SGLang has no dtype 'bf16'"


@tabled
def test_flashinfer_is_asked_for_where_the_attention_uses_it(monkeypatch, version, packages, setting, told):
    have = {"verl": "0.9.1", "torch": "2.11.0", "sglang": version, **packages}
    env = verl_env.VerlEnv("/opt/python", "3.12.3", have, None, (), "13.0")
    monkeypatch.setattr(verl_env, "probe", lambda _: env)
    here = dataclasses.replace(machine("1x24"), assumed=False)
    what = subject(load("gsm8k-0.5b-24gb", ["rollout.engine=sglang", setting]), on=here)
    assert ["SW-6"] * told == [each.id for each in software.checks(what) if each.id == "SW-6"]
