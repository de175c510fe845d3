"""Counts the runs in which the level of a rule does not follow from the limits that its row shows.

    PYTHONPATH=tests/support .venv/bin/python bench/health_limits.py [SEEDS]

Every run is random (tests/support/shown_limits.py). 300 of them by default: about two minutes on one core. `make test`
has the first 30.
"""

import sys

from shown_limits import any_run, assert_implied

SEEDS = 300


def main() -> None:
    count, flags, wrong = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS, 0, 0
    for seed in range(count):
        try:
            flags += assert_implied(*any_run(seed))
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}: {error}", flush=True)
    print(f"{count} runs, {flags:,} rows with a flag: the limits shown are those applied in all but {wrong} runs.")


if __name__ == "__main__":
    main()
