import pytest

from launcher.core.errors import UserError
from launcher.preset.field_values import field_named
from tui.kit.actions.preset_saving import editor_command


def test_a_field_is_named_by_its_name_or_its_key() -> None:
    assert field_named("actor.lr") == field_named("+actor_rollout_ref.actor.optim.lr") == "actor.lr"
    assert field_named("actor_rollout_ref.actor.grad_clip") == "actor.clip_grad"  # until 0.8
    with pytest.raises(UserError, match=r"did you mean 'actor\.lr'"):
        field_named("actor.lrr")


def test_the_users_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "code --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editor_command() == ["code", "--wait"]
    monkeypatch.delenv("EDITOR")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="set EDITOR"):
        editor_command()
