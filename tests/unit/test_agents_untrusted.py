"""What an agent names is not run, imported or opened by the tools that are offered without `--write`."""

import contextlib
import json
import re
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread

import pytest
from commands import call
from tables import tabled
from whole_run import lose_supervisor, whole_run

from launcher.agents.server import AgentServer
from launcher.agents.tools import Tool, tools
from launcher.check import checks
from launcher.core.errors import UserError
from launcher.preset.files import load
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.verl import defaults

pytestmark = pytest.mark.slow
ADDRESSES = re.compile(r"url|addr|host|endpoint|server|uri|^env|path$")
FREE = {name: tool for name, tool in tools().items() if tool.free}
COMPANIONS = (
    *("reward.function=compute_score", "data.custom_cls_name=Evil", "reward.reward_manager.source=importlib"),
    *("reward.reward_manager.name=Evil", "trainer.v1.sampler.custom_sampler.name=Evil"),
    *("trainer.logger=[console,wandb]", "model.path=nobody/nothing", "env.HF_HUB_OFFLINE=0"),
)
"""Settings next to which a name of a program, file, class or address takes effect."""
EVIL = """#!{python}
open({mark!r}, "a").write(__file__)
class Evil:
    pass
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return 0.0
"""


@dataclass
class Trap:
    """A program that is also a module, and an address; `sprung` says which of them were used."""

    script: Path
    mark: Path
    port: int
    callers: list[str] = field(default_factory=list)

    @property
    def sprung(self) -> list[str]:
        return [*self.callers, *([self.mark.read_text()] if self.mark.exists() else [])]

    @property
    def values(self) -> tuple[str, ...]:
        address = f"127.0.0.1:{self.port}"
        return str(self.script), f"{self.script.stem}.Evil", self.script.stem, f"http://{address}", address


@contextlib.contextmanager
def set_trap(folder: Path, name: str = "evil_agent") -> Iterator[Trap]:
    script, mark = folder / f"{name}.py", folder / f"{name}.mark"
    script.write_text(EVIL.format(python=sys.executable, mark=str(mark)))
    script.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Trap(script, mark, server.getsockname()[1])

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = server.accept()
                    found.callers.append("the address")
                    caller.close()

        Thread(target=listen, daemon=True).start()
        yield found
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", "x")
    for name in ("TMUX", "PPO_TUI_PYTHON", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with set_trap(tmp_path) as found:
        yield found


def keys() -> list[str]:
    """Each preset field and veRL key that takes text, a list or a mapping, with some of Hydra and the environment."""
    tree = defaults.bundled(defaults.NEWEST)
    takes = (str, list, dict, type(None))
    fields = [spec.name for spec in FIELDS.values() if not spec.choices and set(spec.types) & {str, list, dict}]
    leaves = [key for key in defaults.leaves(tree) if key not in BY_KEY]
    known = [key for key in leaves if isinstance(defaults.leaf(tree, key)[1], takes)]
    variables = (
        *("PYTHONPATH", "LD_PRELOAD", "PYTHONSTARTUP", "HF_ENDPOINT", "WANDB_BASE_URL", "RAY_ADDRESS", "PATH"),
        *("MLFLOW_TRACKING_URI", "HTTP_PROXY", "HTTPS_PROXY", "VERL_USE_EXTERNAL_MODULES"),
    )
    more = ("hydra.searchpath", "actor@actor_rollout_ref.actor", "health.on_alert", "+trainer.evil._target_")
    return list(dict.fromkeys([*fields, *known, *more, *(f"env.{name}" for name in variables)]))


def check(settings: Mapping[str, str], *, static: bool) -> None:
    """Checks a preset with these settings, next to what else must be set."""
    companions = [each for each in COMPANIONS if each.partition("=")[0] not in settings]
    with contextlib.suppress(UserError):
        checks.check(
            load("toy-cpu", [*companions, *(f"{key}={value}" for key, value in settings.items())]), static=static
        )


@pytest.mark.nightly("launcher/check/", "launcher/data/", "launcher/machine/", "launcher/preset/", every=8)
@pytest.mark.parametrize("part", range(16))
def test_no_field_and_no_key_makes_a_static_check_run_import_or_open_what_it_names(trap, part, monkeypatch):
    monkeypatch.setattr("launcher.check.login.of_login", lambda *_: ())  # about the machine alone, and slow
    for key in keys()[part::16]:
        for value in trap.values if ADDRESSES.search(key) else trap.values[:2]:
            check({key: value}, static=True)
        assert not trap.sprung, key


@pytest.mark.nightly("launcher/check/", "launcher/data/", "launcher/machine/", "launcher/preset/", every=2)
@pytest.mark.parametrize("static", [True, False])
def test_a_static_check_does_not_load_the_code_of_a_model(trap: Trap, tmp_path: Path, static: bool) -> None:
    (model := tmp_path / "model").mkdir()
    shutil.copy(trap.script, model / "evil_agent.py")
    classes = {"AutoConfig": "evil_agent.Evil", "AutoTokenizer": ["evil_agent.Evil", None]}
    (model / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": classes}))
    named = {"auto_map": classes, "chat_template": "{{ messages }}", "tokenizer_class": "Evil"}
    (model / "tokenizer_config.json").write_text(json.dumps(named))
    (model / "tokenizer.json").write_text("{}")
    row = {"data_source": "x", "prompt": [{"role": "user", "content": "?"}], "reward_model": {"ground_truth": "1"}}
    (rows := tmp_path / "rows.json").write_text(json.dumps([row]))
    settings = [f"model.path={model}", "model.trust_remote_code=true", f"data.train={rows}", f"data.val={rows}"]
    result = checks.report("toy-cpu", settings, static=static)
    assert bool(trap.sprung) is not static, result.as_json()


def test_a_static_check_of_a_refused_setting_runs_nothing_either(trap: Trap) -> None:
    settings = [f"python={trap.script}", "trainer.steps=-1"]
    assert checks.report("toy-cpu", settings, static=True).findings[0].id == "PRESET"
    assert not trap.sprung


@pytest.mark.nightly("launcher/check/", "tests/data/tables/agents_untrusted", every=3)
@tabled
def test_the_same_settings_spring_the_trap_of_a_whole_check(trap, settings, tmp_path, monkeypatch):
    monkeypatch.setattr("launcher.check.cluster_view._LIMIT", 1.0)
    with contextlib.ExitStack() as stack:
        traps = {key: stack.enter_context(set_trap(tmp_path, f"evil_{n}")) for n, key in enumerate(settings)}
        check({key: traps[key].values[value] for key, value in settings.items()}, static=False)
        assert {key for key, each in traps.items() if each.sprung} == settings.keys()


def orphan(folder: Path, trap: Trap) -> Path:
    """A folder with a run whose supervisor has gone; its preset names a program for alerts."""
    run = whole_run(folder)
    info = run.read_info()
    replace(info, preset={**(info.preset or {}), "health": {"on_alert": [str(trap.script)]}}).write(run.run_yaml)
    return lose_supervisor(run).path


@pytest.mark.nightly("launcher/agents/", "launcher/cli/", "launcher/check/", every=4)
@pytest.mark.parametrize("name", FREE)
def test_no_free_tool_runs_imports_or_opens_what_it_is_given(trap: Trap, name: str, tmp_path: Path) -> None:
    tool = tools()[name]
    elsewhere = Path(shutil.move(orphan(tmp_path / "home", trap), tmp_path / "elsewhere"))
    (preset := tmp_path / "evil.yaml").write_text(
        f"extends: toy-cpu\npython: {trap.script}\nreward: {{path: {trap.script}, function: compute_score}}\n"
    )
    for value in (str(trap.script), f"http://127.0.0.1:{trap.port}", str(elsewhere), str(preset)):
        given: dict[str, object] = dict.fromkeys(set(tool.places) & {"run", "source", "preset", "topic"}, value)
        if "runs" in tool.places:
            given["runs"] = [value, value]
        if "settings" in tool.places:
            given["settings"] = [*COMPANIONS, f"python={trap.script}", f"reward.path={trap.script}"]
        given |= {name: [value] for name in {"key"} & set(tool.options)}
        with contextlib.suppress(UserError):
            call(tool.command(given))
        assert not trap.sprung, value
    assert not (elsewhere / "supervisor.log").exists(), "a folder that the caller names got a supervisor"


def test_the_page_lists_each_tool_with_its_effect() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "agents.md").read_text("utf-8")
    listed = {}
    for names, does, offered in re.findall(r"^\| (`.*?) \| (\w+)\b.*? \| (always|with `--write`) \|$", page, re.M):
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), (f"{does.removesuffix('s')}s", offered))
    told = {name: (tool.effect, "always" if tool.free else "with `--write`") for name, tool in tools().items()}
    assert listed == told


def test_what_runs_code_or_changes_runs_is_offered_with_write_alone_and_asks() -> None:
    def offered(*, write: bool) -> dict[str, Tool]:
        return AgentServer(write=write)._tools

    assert {tool.effect for tool in offered(write=False).values()} == {"reads"}
    assert offered(write=True) == tools()
    assert tools()["check"].words[-1] == "--static" and tools()["check_fully"].effect == "runs"
