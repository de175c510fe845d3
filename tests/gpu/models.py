"""Models of the presets' sizes with random weights, for their memory, and data for steps of equal work.

    PYTHONPATH=$KIT/site python3 models.py $KIT [NAME]   the models, or one of them
    python3 models.py $KIT tasks                         sums and lists of numbers, for a model of 135M

Makes $KIT/qwen-0.5b and $KIT/qwen-1.5b, the shapes of Qwen2.5-0.5B and 1.5B with the tokenizer of $KIT/model.
A random model never ends an answer, so each has the full length: the worst case for the memory. In
$KIT/one-question.parquet is the first row of train.parquet again and again. What a model of 135M can learn within
minutes: sums-*.parquet, same-*.parquet with one question of them, and lists-*.parquet, which ask for the numbers in
questions of GSM8K.
"""

import gzip
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas
from list_numbers import numbers

SHAPES = {
    "qwen-0.5b": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
    "qwen-1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
    },
}

ASKED = 'Write the sum on one line and then the number after "####".'
LIST = "List every number in this text, in order."
SHOWN = (  # two examples before each question: a model of this size follows them, not the words
    ("Tom has 3 apples and buys 12 more. How many apples does he have?", "3, 12"),
    ("A shirt costs $45, which is 20% less than last year. Anna buys 2 of them. What did she save?", "45, 20, 2"),
)


def sums(kit: Path) -> None:
    """Sums of two numbers below 50, in veRL's schema: 2,048 rows to train on, 128 others, and one again and again."""
    pairs = [(a, b) for a in range(2, 50) for b in range(2, 50)]
    random.Random(0).shuffle(pairs)
    for split, chosen in (("train", pairs[:2048]), ("test", pairs[-128:])):
        rows = [([f"What is {a} + {b}? {ASKED}"], str(a + b)) for a, b in chosen]
        _write(kit, "sums", split, rows)
        _write(kit, "same", split, rows[:1] * len(rows))


def lists(kit: Path) -> None:
    """Short questions of GSM8K with two to four numbers, to train on and 256 others."""
    for split, most in (("train", 10_000), ("test", 256)):
        with gzip.open(kit / f"parts/{split}.jsonl.gz", "rt") as file:
            texts = [json.loads(line)["question"] for line in file]
        chosen = [text for text in texts if 2 <= len(numbers(text)) <= 4 and len(text) < 300][:most]
        before = [turn for text, answer in SHOWN for turn in (f"{text}\n\n{LIST}", answer)]
        rows = (([*before, f"{text}\n\n{LIST}"], " ".join(numbers(text))) for text in chosen)
        _write(kit, "lists", split, rows)


def _write(kit: Path, name: str, split: str, asked: Iterable[tuple[list[str], str]]) -> None:
    """Prompts, which are turns of user and assistant, with their answers, in veRL's schema."""
    rows = [
        {
            "data_source": name,
            "prompt": [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(turns)],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": answer},
            "extra_info": {"split": split, "index": number},
        }
        for number, (turns, answer) in enumerate(asked)
    ]
    pandas.DataFrame(rows).to_parquet(kit / f"{name}-{split}.parquet")


def main(kit: Path, names: Sequence[str]) -> None:
    import torch
    from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(kit / "model")
    for name in names or SHAPES:
        config = Qwen2Config(
            vocab_size=151936,
            max_position_embeddings=32768,
            tie_word_embeddings=True,
            rope_theta=1e6,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=tokenizer.bos_token_id,
            dtype="bfloat16",
            **SHAPES[name],
        )
        with torch.device("cuda"):
            model = Qwen2ForCausalLM(config).to(torch.bfloat16)
        model.save_pretrained(kit / name)
        tokenizer.save_pretrained(kit / name)
        del model
    question = pandas.read_parquet(kit / "train.parquet").head(1)
    pandas.concat([question] * 4096, ignore_index=True).to_parquet(kit / "one-question.parquet")


if __name__ == "__main__":
    if "tasks" in sys.argv[2:]:  # needs no GPU and no model
        sums(Path(sys.argv[1]))
        lists(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
