"""The token of a run's own Ray, and of a cluster that is joined."""

from pathlib import Path

import pytest

from launcher.runs.supervise.driver import ray_authentication

OWN, JOINS = {"+ray_kwargs.ray_init.address": "local"}, {"ray_kwargs.ray_init.address": "head:6379"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_run_without_a_token_gets_its_own(home: Path) -> None:
    file = home / "ray_token"
    made = ray_authentication(file, OWN)["RAY_AUTH_TOKEN"]
    assert file.read_text() == made and len(made) == 64 and file.stat().st_mode & 0o77 == 0
    assert ray_authentication(file, OWN)["RAY_AUTH_TOKEN"] != made
    assert "RAY_AUTH_TOKEN" in ray_authentication(home / "missing" / "file", OWN)
    assert ray_authentication(file, JOINS) == {} == ray_authentication(file, {})


def test_a_token_of_the_user_is_used_where_an_address_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("sesame")
    assert ray_authentication(home / "ray_token", JOINS) == {"RAY_AUTH_MODE": "token"}
    assert ray_authentication(home / "ray_token", OWN) == {} and not (home / "ray_token").exists()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert ray_authentication(home / "ray_token", JOINS) == {} == ray_authentication(home / "ray_token", OWN)
