"""What a run was last started with: its preset, and the settings that its newest attempt was resumed with."""

import contextlib
from typing import Any

from launcher.errors import UserError
from launcher.record.events import read_events
from launcher.record.layout import RunDir


def settled(run: RunDir) -> tuple[dict[str, Any], list[str]]:
    """run.yaml with the settings of the newest resume laid over its preset, and these settings.

    A resume starts from the run's own preset, not from the resume before it.
    """
    info, settings = run.read_info(), _resumed_with(run)
    if settings and isinstance(info.get("preset"), dict):
        from launcher.preset.files import restore

        with contextlib.suppress(UserError):  # the preset of another ppo-tui
            info["preset"] = restore(str(info.get("name")), info["preset"], settings).snapshot()
    return info, settings


def _resumed_with(run: RunDir) -> list[str]:
    events = [event for event in read_events(run.events) if event.get("verb") == "resume"]
    settings = events[-1].get("settings") if events else None
    return [str(setting) for setting in settings] if isinstance(settings, list) else []
