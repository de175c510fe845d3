"""The command `ppo-tui`. Run as a file with `-m MODULE`, it is a process of ppo-tui's own, such as a supervisor.

PYTHONPATH is meant for veRL, which inherits it. In our own processes its folders come after all others, and the current
folder is left out: a `tui/`, a `launcher/` or another version of a dependency there hides none of ours.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib is slow to import)


def main() -> None:
    """Runs the command line."""
    put_ours_first()
    from tui.entry import main as command_line

    command_line()


def put_ours_first() -> None:
    """Imports our packages from the folder of this file, and orders the path for all that they import."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]  # the folder of the script, or the current one
    given = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}  # noqa: PTH100
    if FOLDER not in given:  # otherwise ppo-tui is installed there, with its dependencies
        sys.path.sort(key=lambda entry: os.path.abspath(entry) in given)  # noqa: PTH100
    sys.path.insert(0, FOLDER)
    import launcher  # noqa: F401
    import tui  # noqa: F401

    del sys.path[0]


if __name__ == "__main__":
    if sys.argv[1:2] == ["-m"]:
        import runpy

        put_ours_first()
        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        main()
