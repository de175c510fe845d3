"""docs/preflight.md from the rules and the corpus: `make pages` writes it."""

from __future__ import annotations

from pathlib import Path

from corpus import VERSION, Case, cases

from launcher.check.config import MODULES

FILE = Path(__file__).parents[1] / "docs" / "preflight.md"
INTRO = f"""# What the preflight checks in a configuration

`ppo-tui check PRESET`, `ppo-tui run` and the editor check a preset against the rules below before veRL is started.
V and P are rules of veRL {VERSION} (V: veRL exits at the start, P: it fails later or learns nothing), the other
names are ppo-tui's own. An error stops a launch unless `--force` is used; PRESET stands for a value that is
rejected when the preset is read. A suggested change is tested against all of these rules: if a number breaks
another rule, the nearest number that breaks none is suggested, or a change that includes what else must change.

This page is written by `make pages`; a test compares it.

## Rules
"""
ELSEWHERE = """
Rules that depend on more than the configuration: P4 and P5 (packages: `software`), P17, P26 and P27 (the model),
P6, P7 and P34b (rows against batches and steps), P28, P29 and P31 (data files), P30 (the reward function is
tried), memory, LOAD-1 to LOAD-3 (modules, classes, tools, arguments of optimizers, models and tokenizers are loaded
once in veRL's interpreter), LOAD-4 (a value that a class of veRL's configuration checks itself is tried there),
AGENT-1 (agent loops that rows name), DATA-4 (files of a list have columns of the same types). The preset itself
rejects values of V5, V11, V13, P19, P20, P23 and P25 that veRL does not recognize: PRESET below.
P32 to P35 cannot happen: `ppo-tui` sets the checkpoint of a resumed run itself.
"""
MEASURED = f"""
## How often it is right

Settings were written down before anybody asked about them, about half of them unusual but meant to be right
(`tests/data/preflight/held_out*.yaml`), and asked once, in the order of a hash of their names: the preflight first,
then veRL {VERSION} (`experiments/held_out.py`: its loaders, agent loop, tools, reward function and validation
metrics, then what the probe below does). Precision is the share of the preflight's errors that are of settings that
stop veRL; recall is the share of the settings that stop veRL which it finds; 95 % intervals after Wilson. `first` in
the lists keeps the first answer. After each list the rules were mended by what it had shown, so that only first
answers prove anything. The lists come from the same hands as the rules, and most settings are of the CPU preset.

| list, asked | found | missed | false alarms | passed | precision | recall |
| --- | --- | --- | --- | --- | --- | --- |
| the first 34, 2026-11-23 | 11 | 4 | 3 | 16 | 0.79 (0.52 to 0.92) | 0.73 (0.48 to 0.89) |
| the same, veRL's answers corrected | 14 | 4 | 0 | 16 | 1.00 (0.78 to 1.00) | 0.78 (0.55 to 0.91) |
| the other 80, 2026-11-23 | 23 | 6 | 6 | 45 | 0.79 (0.62 to 0.90) | 0.79 (0.62 to 0.90) |
| the same, veRL's answers corrected | 26 | 5 | 4 | 45 | 0.87 (0.70 to 0.95) | 0.84 (0.67 to 0.93) |
| 60 new ones, 2026-11-23 | 24 | 3 | 4 | 29 | 0.86 (0.69 to 0.94) | 0.89 (0.72 to 0.96) |
| the same, veRL's answers corrected | 25 | 3 | 3 | 29 | 0.89 (0.73 to 0.96) | 0.89 (0.73 to 0.96) |
| 42 more, after mending by those | 19 | 4 | 0 | 19 | 1.00 (0.83 to 1.00) | 0.83 (0.63 to 0.93) |
| 115 more, after mending by those | 49 | 21 | 2 | 43 | 0.96 (0.87 to 0.99) | 0.70 (0.58 to 0.79) |
| the same, veRL's answers corrected | 50 | 20 | 1 | 44 | 0.98 (0.90 to 1.00) | 0.71 (0.60 to 0.81) |
| all first answers, corrected | 134 | 36 | 8 | 153 | 0.94 (0.89 to 0.97) | 0.79 (0.72 to 0.84) |
| all again, after mending (not held out) | 169 | 1 | 2 | 159 | 0.99 | 0.99 |

Corrected by hand: prompts without text or of plain text, of which the template reads nothing; a path in the place of
a template; a sampler that veRL ignores; a `gen_batch_size` and a `clip_ratio_c` which veRL refuses only after the
probe has ended; and a template whose error the measuring script lost.

Missed and mended: the classes behind agent loops, checkpoint callbacks, tools and optimizers of other packages
(LOAD-1), agent loops that rows name, a file of agent loops that is no list (AGENT-1), a shard group of 0 (FSDP-1),
arguments of the chat template that veRL passes itself (P27), ground truths that no response can match (REWARD-6),
rows of a data set class without `raw_prompt` (LOAD-1), layers that are all excluded (LORA-5). False and mended:
lengths beyond the model's context, which cut responses and stop nothing from 0.7 on (MODEL-2); reward managers with
arguments of their own; `reward_kwargs` that replace what veRL passes; values that mean "all" to veRL (a validation
batch of 0, -5 rows, 0 filter workers). Not mended: a `truncation` that no version knows is refused, though veRL
{VERSION} no longer reads the key.

The fourth list was chosen to be nasty: its recall, 0.71, is the lowest. Two of its answers were corrected: the probe
does not see the choice of a `model_engine`, and ppo-tui passes an old name of the reward function under its new one.
Missed and mended: values that an optimizer refuses (LOAD-2) or that veRL's configuration classes check themselves
(LOAD-4: profilers and others), agent loops that do not take veRL's arguments and data sets without a length (LOAD-1),
a chat template among its own arguments (P27), rows with an extra_info of text or with pictures for a model without a
processor (P29), what a reward function returns beside the score and how its manager calls it (P30), adapters without
weights (LORA-4), types of tools (AGENT-3), numbers of losses that are 0 (ALG-10), Adafactor with fsdp2 (P22), classes
of layers (FSDP-4), tracing (SW-8), variables of Ray that are numbers (RAY-1) and levels of logging (ENV-1). Not mended:
options of vLLM's engine, which are not compared where vLLM is not installed; and `trainer.rollout_data_dir` is refused
because ppo-tui sets it, which counts as a false alarm.

False alarms have become rare: precision is 0.99 on the last two lists (69 of 70). Recall of the rules on settings that
none was made for is between 0.7 and 0.9: 20 of the 70 in the last list were missed. What they miss are things of the
user's own (classes, files, patterns) that only a start tries, and values that only one function of veRL checks. So the
start is tried:

### Rehearsals

`ppo-tui check PRESET --rehearse`, or `%` in the launch screen, lets veRL {VERSION} itself run two steps of a preset on
the CPU: with the preset's data, reward function, classes, algorithm and trainer, a small random model of the same
architecture and tokenizer, two prompts a step, responses of 16 tokens, ppo-tui's engine, a validation and a checkpoint.
It needs no GPU, about 6 GB of memory, and one to three minutes on two cores; the login node will do. What is left out:
GPUs and their memory, vLLM and SGLang, trackers and alerts, DAPO's filter of groups, the preset's own weights (unless
they have less than 64 MB) and sizes of batches, which the rules above know. Megatron and other engines beside FSDP,
reward models, distillation and models that read pictures cannot be rehearsed, and the finding says so.

Measured on 2026-11-23 with the 36 settings of the four lists that stop veRL and whose first answer was a miss
(`experiments/rehearsals.py`): **31 are found**, each with veRL's own error. The five others are options of vLLM
(three), a tracker's package, which a rehearsal does without, and a ground truth that no response can match, which stops
nothing. Rules and rehearsal together: **165 of 170, recall 0.97 (0.93 to 0.99)**. Of eight settings that run and that
the rules pass, rehearsed beside them, none failed. Two choices were made after the lists had been read (a shard group
of 0 and an adapter stay as they are), and for a preset of the CPU, as most of the lists' are, a rehearsal is nearly the
run itself: of a GPU's presets more depends on what is left out.

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
