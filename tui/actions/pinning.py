"""Pinning a metric to the dashboard from any screen."""

from typing import Any

from textual.app import App

from launcher.metrics.pins import toggle
from tui.content.metrics import title


def pin(app: App[Any], key: str) -> None:
    """Pins a metric, or takes it off the dashboard, and says so."""
    try:
        now = toggle(key)
    except OSError as error:
        app.notify(f"The layout cannot be written: {error.strerror}", severity="warning", markup=False)
        return
    told = "is on the dashboard; on a small screen tab shows it." if now else "is off the dashboard."
    app.notify(f"{title(key)} {told}", markup=False)
