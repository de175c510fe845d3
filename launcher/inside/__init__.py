"""ppo-tui's only folder on the path of veRL's interpreter: it contains just the package `ppo_tui_inside`."""

from pathlib import Path

FOLDER = Path(__file__).parent
PACKAGE = "ppo_tui_inside"
PLUGIN = f"{PACKAGE}.plugin"  # for VERL_USE_EXTERNAL_MODULES
BY_PATH = FOLDER / PACKAGE / "by_path"  # $PPO_TUI_REWARDS and $PPO_TUI_TOOLS

_RUN = (
    "import runpy, sys; folder, *sys.argv = sys.argv[1:]; sys.path.insert(0, folder); "
    "runpy.run_module(sys.argv[0], run_name='__main__')"
)


def probe(python: str, name: str, *words: str) -> list[str]:
    """The command line that runs a module of `ppo_tui_inside.probes` in the interpreter `python`."""
    return [python, "-c", _RUN, str(FOLDER), f"{PACKAGE}.probes.{name}", *words]
