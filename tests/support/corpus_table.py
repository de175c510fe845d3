"""docs/preflight.md from the rules and the corpus: `python tests/support/corpus_table.py` writes it."""

from __future__ import annotations

from pathlib import Path

from corpus import VERSION, Case, cases

from launcher.preflight.config import MODULES

FILE = Path(__file__).parents[2] / "docs" / "preflight.md"
INTRO = f"""# What the preflight checks in a configuration

`ppo-tui check PRESET`, `ppo-tui run` and the editor check a preset against the rules below before veRL is started.
V and P are rules of veRL {VERSION} (V: veRL exits at the start, P: it fails later or learns nothing), the other
names are ppo-tui's own. An error stops a launch unless `--force` is used; PRESET stands for a value that is
rejected when the preset is read. A suggested change is tested against all of these rules: if a number breaks
another rule, the nearest number that breaks none is suggested, or a change that includes what else must change.

This page is written by `python tests/support/corpus_table.py`; a test compares it.

## Rules
"""
ELSEWHERE = """
Rules that depend on more than the configuration: P4 and P5 (packages: `software`), P17, P26 and P27 (the model),
P6, P7 and P34b (rows against batches and steps), P28, P29 and P31 (data files), P30 (the reward function is
tried), memory, LOAD-1 to LOAD-3 (modules, classes, arguments of optimizers, models and tokenizers are loaded once
in veRL's interpreter), DATA-4 (files of a list have columns of the same types). The preset itself rejects values of
V5, V11, V13, P19, P20, P23 and P25 that veRL does not recognize: PRESET below. P32 to P35 cannot happen: `ppo-tui`
sets the checkpoint of a resumed run itself.
"""
MEASURED = """
## How often it is right

114 settings were written down before anybody asked about them, 54 of them unusual but meant to be right
(`tests/data/preflight/held_out.yaml`; `tests/support/held_out.py` asks both sides: veRL's loaders, agent loop, tools,
reward function and validation metrics, then what the probe below does). Time allowed for 34 of them, in the order of a
hash of their names. **Of the 15 that stop veRL, the preflight found 11 (recall 0.73); 3 of its 14 errors were of
settings that do not stop it (precision 0.79)**; 16 passed rightly. The three: a sampler that veRL ignores, messages
without text, a path where a template belongs; a run that goes on with these learns nothing, or not what was asked, so
that with them counted as faults it is 14 of 14 errors and 14 of 18 faults (0.78). Missed: a data set class with other
arguments, a score that is a numpy.float32, and two words that vLLM does not know; LOAD-1, P30 and ENGINE-2 find them
now. The other 80 (one did not end in time) remain for the next measurement, and may not help to write rules.

Before that, 64 further settings, chosen to be nasty and different from those below, were put before veRL 0.9.1: the
probe below, preceded by what a start loads by name (data set, sampler, reward manager and function). Names, broken
models and tokenizers, arguments of reward functions, files that differ in type, settings that are unusual but right.
Of the 33 that fail or lose the weights, the preflight had found 6, and 7 of its 13 errors were wrong. The rules CKPT-1,
PROF-1, RAY-1, REF-1, REWARD-2, LOAD-1 to LOAD-3 and DATA-4 were written with their help, so that these settings prove
nothing about them: a new measurement needs new ones. For six of the 64 veRL's own answer was corrected by hand.
"""
PROOF = f"""
## Proof

Each line is a preset that was broken on purpose. The column "veRL" shows where veRL {VERSION} stops and with
which message; `make test` runs veRL itself (`tests/support/verl_probe.py`: Hydra, the driver's checks, the workers
with a tiny model, the first step), and `make corpus` runs the lines marked *run* on the CPU platform. A dash:
veRL reports nothing.
"""


def text() -> str:
    """The whole page."""
    lines = [INTRO]
    for module in MODULES:
        lines.append(f"\n{(module.__doc__ or '').partition(chr(10) + chr(10))[0].strip()}\n")
        lines += [f"* {' '.join((rule.__doc__ or '').split())}" for rule in module.RULES]
    lines += [ELSEWHERE, MEASURED, PROOF, "| preset and settings | preflight | veRL |", "| --- | --- | --- |"]
    lines += [_row(case) for case in cases()]
    return "\n".join(lines) + "\n"


def _row(case: Case) -> str:
    settings = "<br>".join(f"`{_cell(word)}`" for word in case.set)
    milder = [f"{name} (warning)" for name in case.warns] + [f"{name} (info)" for name in case.notes]
    found = ", ".join([*case.finds, *milder])
    says = f"{case.stage}: `{_cell(case.says)}`" if case.says else case.stage or "–"
    how = "" if case.by == "probe" else f" ({case.by})" if case.by != "run" else " (*run*)"
    return f"| {case.on}{'<br>' if settings else ''}{settings} | {found} | {says}{how} |"


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
