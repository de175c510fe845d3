"""The one veRL version that this plugin was made for."""

from verl import __version__ as INSTALLED

SUPPORTED = "0.9.1"


class UnsupportedVerl(RuntimeError):
    """The CPU platform relies on names inside veRL that another version may have moved."""


def check_cpu_platform() -> None:
    """Raises UnsupportedVerl unless veRL is the supported version; in the driver, before Ray starts."""
    if INSTALLED != SUPPORTED:
        raise UnsupportedVerl(
            f"ppo-tui's CPU platform (VERL_PLATFORM=cpu) works with veRL {SUPPORTED} only, but veRL "
            f"{INSTALLED} is installed; install verl=={SUPPORTED} or choose a preset for GPUs"
        )
