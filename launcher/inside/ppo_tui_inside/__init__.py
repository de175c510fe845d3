"""The part of ppo-tui that runs in veRL's interpreter, where ppo-tui itself need not be installed.

* plugin/: veRL's driver and all Ray workers load it.
* stacks.py: each of these processes writes what it waits for, on request.
* fork_server.py, setup_worker.py: on the CPU, workers are forks of one process, so a run starts sooner.
* probes/: each answers a question of the launcher in a process of its own.
* by_path/: presets name these files by path, and veRL loads them.

All of it imports the standard library and veRL's own dependencies only. Imports inside the package are relative,
because the launcher reads its constants as `launcher.inside.ppo_tui_inside`.
"""

SUPPORTED = "0.9.1"
"""The one veRL version that the CPU platform and some fixes are made for."""

SPANS = "PPO_TUI_SPANS"
"""The variable with the folder for spans of all processes; unset or 0: no spans."""
