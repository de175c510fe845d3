"""`python -m launcher.run.supervisor RUN_DIR` supervises the newest attempt of a run directory."""

from launcher.run.supervisor.supervisor import main

main()
