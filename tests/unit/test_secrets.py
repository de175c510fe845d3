"""Secrets by name and by looks: refused where they would be stored, hidden where text is shown."""

from pathlib import Path

import pytest
from commands import OF_RUNS, call
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled
from whole_run import whole_run

from launcher.core.errors import UserError
from launcher.core.secret_forms import is_secret
from launcher.core.secrets import in_setting, redact, redact_tree
from launcher.preset import environment
from launcher.preset.files import load

HF = "hf_" + "abcdEFGH" * 4


@tabled
def test_a_secret_in_a_setting_is_refused_with_what_works_and_not_repeated(setting: str, value: str) -> None:
    with pytest.raises(UserError, match=r"looks like a secret.*export .*in the shell") as refused:
        load("toy-cpu", [setting])
    assert value not in str(refused.value)


def test_what_the_environment_tells_at_the_start_is_a_setting() -> None:
    loaded = load("toy-cpu", ["+trainer.api_key=${oc.env:MY_KEY}"])
    assert loaded.preset.overrides["+trainer.api_key"] == "${oc.env:MY_KEY}"


@pytest.mark.parametrize(
    "key", ["data.prompt_key", "data.reward_fn_key", "x.pad_token", "a.max_token", "rollout.bypass"]
)
def test_keys_that_hold_no_secret(key: str) -> None:
    assert not in_setting(key, "a_value_of_letters")


_ANYWHERE = ["TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL", "COOKIE"]
_KINDS = [*_ANYWHERE, "PAT", "PASSWD", "PWD", "PASS", "PASSPHRASE", "CREDENTIALS", "AUTH", "DSN", "SAS", "JWT"]
_SHAPES = [
    ("ghp_", 36),
    ("gho_", 36),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("hf_", 34),
    ("sk-", 40),
    ("sk-ant-", 40),
    ("xoxb-", 24),
    ("AKIA", 16),
    ("Bearer ", 30),
    ("https://user:", 12),
]
_letters = st.text("ABCDEFGHJKLMNPQRSTUVWXYZ", min_size=2, max_size=8).map(lambda text: f"Q{text}")


def values(prefix: str, length: int) -> st.SearchStrategy[str]:
    body = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=length, max_size=length)
    return body.map(lambda text: prefix + text + ("@host/x" if "://" in prefix else ""))


@st.composite
def variables(draw: st.DrawFn) -> str:
    """Names as programs use them: GITHUB_PAT, PAT, AWS_SECRET_2, MYTOKEN, TOKEN_OF_BOT; in capitals."""
    kind, before = draw(st.sampled_from(_KINDS)), draw(_letters)
    forms = [f"{before}_{kind}", f"{before}_{kind}_2"] + [kind] * (kind != "PWD" and kind != "KEY")
    forms += [f"{kind}_OF_BOT"] * (kind in _ANYWHERE) + [f"{before}{kind}"] * (kind in ("TOKEN", "SECRET", "PASSWORD"))
    return draw(st.sampled_from(forms))


@given(variables(), st.text("abcdefghijkmnpqrstuvw", min_size=8))
def test_a_variable_that_holds_one_is_refused_and_hidden(name: str, value: str) -> None:
    for written in (name, name.lower()):
        assert is_secret(written)
        with pytest.raises(UserError, match="looks like a secret") as refused:
            environment.check(written, value, "x")
        assert value not in str(refused.value)
    for text in (
        f"export {name}={value}",
        f"{{'env_vars': {{'{name}': '{value}', 'X': 1}}}}",
        f'{{"{name}": "{value}"}}',
    ):
        assert value not in redact(text) and name in redact(text)
    assert in_setting(f"ray_kwargs.ray_init.runtime_env.env_vars.{name}", value)
    assert value not in str(redact_tree({"env": {name: value}}))


@given(st.sampled_from(_SHAPES).flatmap(lambda shape: values(*shape)))
def test_a_value_that_looks_like_one_is_refused_and_hidden_whatever_its_name(value: str) -> None:
    with pytest.raises(UserError, match="looks like a secret"):
        environment.check("PLAIN", value, "x")
    secret = value.removeprefix("Bearer ").removeprefix("https://user:").removesuffix("@host/x")
    assert secret not in redact(f"PLAIN={value}")


@tabled
def test_variables_that_hold_none(name: str) -> None:
    assert not is_secret(name)
    environment.check(name, "plain", "x")
    assert redact(f"{name}=plain") == f"{name}=plain" or name == "PWD"


def test_a_secret_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset that sets one is refused by all that would store or print it."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    preset = tmp_path / "mine.yaml"
    preset.write_text("extends: toy-cpu\nenv:\n  GITHUB_PAT: topsecret1\n")
    for words in (
        ["preset", "show", "--command", str(preset)],
        ["run", str(preset), "--detach"],
        ["run", "--queue", str(preset)],
    ):
        out, err, code = call(words)
        assert code == 2 and "GITHUB_PAT looks like a secret" in err.decode()
        assert "topsecret1" not in (out + err).decode()
    assert not any("topsecret1" in path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())


@tabled
def test_only_the_values_of_secrets_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown and redact(shown) == shown


@pytest.mark.slow
def test_no_command_shows_the_secrets_that_a_run_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of an older version, and a console in which veRL printed its configuration with what it got."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run, secret = whole_run(tmp_path), "topsecret1"
    whole_run(tmp_path, "0ld111", "older")
    log = run.attempt(1).console
    dump = f"{{'trainer': {{'api_key': '{secret}', 'n_gpus_per_node': 1, 'hf': '{HF}'}}}}\n"
    log.write_text(f"{dump}{log.read_text()}ValueError: cannot log in with api_key={secret}\n")
    text = run.run_yaml.read_text().replace("overrides:\n", f"overrides:\n- +trainer.api_key={secret}\n", 1)
    run.run_yaml.write_text(text.replace("preset:\n", f"preset:\n  overrides:\n    +trainer.api_key: {secret}\n", 1))
    run.state.write_text(run.state.read_text().replace("the reward function failed", f"token={secret} {HF}"))
    (tmp_path / "foreign.log").write_text(log.read_text())
    for words in (*OF_RUNS, ["import", "foreign.log"], ["diagnose", "foreign.log", "--json"]):
        out, err, _ = call(words)
        for hidden in (secret, HF):
            assert hidden not in (out + err).decode(), words
    imported = next(path for path in (tmp_path / "runs").iterdir() if path.name.endswith("foreign"))
    for path in imported.rglob("*"):
        if path.is_file() and path.name != "console.log":  # veRL's own words stay as they are, in a folder of yours
            assert secret not in path.read_text() and HF not in path.read_text(), path
