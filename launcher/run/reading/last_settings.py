"""What a run was last started with: its preset, and the settings that its newest attempt was resumed with."""

import contextlib
import dataclasses

from launcher.errors import UserError
from launcher.record.events import Action, read_events
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir


def last_settings(run: RunDir) -> tuple[RunInfo, tuple[str, ...]]:
    """run.yaml with the settings of the newest resume laid over its preset, and these settings.

    A resume starts from the run's own preset, not from the resume before it.
    """
    info, settings = run.read_info(), _resumed_with(run)
    if settings and info.preset is not None:
        from launcher.preset.files import restore

        with contextlib.suppress(UserError):  # the preset of another ppo-tui
            info = dataclasses.replace(info, preset=restore(info.name, info.preset, settings).snapshot())
    return info, settings


def _resumed_with(run: RunDir) -> tuple[str, ...]:
    resumes = [event.what for event in read_events(run.events) if isinstance(event.what, Action)]
    return next((action.settings for action in reversed(resumes) if action.verb == "resume"), ())
