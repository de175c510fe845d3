"""The part of ppo-tui that runs in veRL's interpreter, where ppo-tui itself need not be installed.

* plugin/: loaded by veRL's driver and all Ray workers.
* stacks.py: each of these processes writes its stacks on request.
* fork_server.py, setup_worker.py: on the CPU, workers are forks of one process, so that a run starts sooner.
* probes/: each answers a question of the launcher in a separate process.
* by_path/: files that presets name by path and veRL loads.

All of it imports only the standard library and veRL's own dependencies. Imports inside the package are relative,
because the launcher reads its constants as `launcher.inside.ppo_tui_inside`.
"""

SUPPORTED = "0.9.1"
"""The only veRL version for the CPU platform and some fixes."""

SPANS = "PPO_TUI_SPANS"
"""The variable with the folder for the spans of all processes; unset or 0: no spans."""
