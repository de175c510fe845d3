"""Builds the toy task: sums of two small numbers, and a model of 112 thousand parameters that is bad at them.

Its argument is the folder to make; it prints one line of progress per part. It needs no network and less than a minute
for a tokenizer, the rows, and a Qwen2 of two layers. A random model would never print "#### 7", and PPO would have
nothing to reinforce. So it first learns by imitation to answer in that form, right in one of three cases, with a
favorite mistake per question. PPO has to unlearn those: the reward rises from 0.3, and the greedy validation from
nearly 0.
"""

import errno
import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FULL = errno.ENOSPC  # exit code for a disk without room
ROOM = 1 << 20  # bytes; the finished folder takes less
RECIPE = "1"  # to be raised when the content changes: folders of other recipes are rebuilt
OPERANDS = range(2, 7)  # 25 questions, sums of one and of two digits
COPIES = 64  # copies per question in train.parquet, so that any usual batch size fits into an epoch
INSTRUCTION = 'Give the answer after "####".'

# Shares of the right sum and of the favorite mistake after the warm-up; the rest is any sum.
RIGHT, HABIT = 0.33, 0.42
WARM_UP_STEPS, WARM_UP_DISTANCE, BATCH_QUESTIONS = 1000, 0.04, 8

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(folder: Path, *, progress: Callable[[str], None]) -> None:
    """Makes `folder` with `model/`, `data/train.parquet` and `data/test.parquet`, whole or not at all.

    The test questions are those of the training set: the goal is a curve, not generalization.
    """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the matrices are too small to share, and sums are then reproducible
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        progress("toy: rows")
        questions = _write_rows(unfinished / "data")
        progress("toy: tokenizer")
        tokenizer = _tokenizer(questions)
        model = _model(tokenizer)
        _warm_up(model, tokenizer, questions, progress)
        model.save_pretrained(unfinished / "model")
        tokenizer.save_pretrained(unfinished / "model")
        (unfinished / "recipe").write_text(RECIPE)
        unfinished.chmod(0o755)  # mkdtemp keeps it to the owner
        unfinished.rename(folder)
    except Exception:  # each writer has errors of its own
        if shutil.disk_usage(unfinished).free < ROOM:
            sys.exit(FULL)
        raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    progress("toy: done")


def _write_rows(folder: Path) -> list[tuple[int, int]]:
    """Writes both splits in the form of `launcher.data.schema`; returns the pairs to add."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    pairs = list(itertools.product(OPERANDS, OPERANDS))
    for split, copies in (("train", COPIES), ("test", 1)):
        rows = [_row(split, index, *pair) for index, pair in enumerate(pairs * copies)]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{split}.parquet")
    return pairs


def _row(split: str, index: int, a: int, b: int) -> Mapping[str, object]:
    question, total = _question(a, b), _total(a, b)
    return {
        "data_source": "openai/gsm8k",  # the answer form for veRL's own scorer
        "prompt": [{"role": "user", "content": f"{question} {INSTRUCTION}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": str(total)},
        "extra_info": {"split": split, "index": index, "answer": _answer(total), "question": question},
    }


def _question(a: int, b: int) -> str:
    return f"What is {a} + {b}?"


def _total(a: int, b: int) -> int:
    return a + b


def _answer(total: int) -> str:
    return f"#### {total}"


def _tokenizer(pairs: list[tuple[int, int]]) -> Any:
    """A byte-level BPE of the rows; digits stay separate, so that 12 is a 1 and a 2."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    rows = [f"{_question(*pair)} {INSTRUCTION}\n{_answer(_total(*pair))}" for pair in pairs]
    bpe.train_from_iterator(["user\nassistant\n", *rows], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        model_max_length=512,
    )


def _model(tokenizer: Any) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen2ForCausalLM(config)


def _warm_up(model: Any, tokenizer: Any, pairs: list[tuple[int, int]], progress: Callable[[str], None]) -> None:
    """Teaches the model the shares of all answers, by cross-entropy against the shares themselves.

    A batch is a few questions, each with every answer: no answer is sampled. Ends when the model's shares are close
    enough, after about 500 steps.
    """
    import torch
    from torch.nn.functional import cross_entropy

    ids, labels, shares = _answers(tokenizer, pairs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    smoothed = 1.0
    for step in range(WARM_UP_STEPS):
        if step % 100 == 0:
            progress(f"toy: warm-up step {step}, distance {smoothed:.2f}, ends at {WARM_UP_DISTANCE}")
        batch = torch.randperm(len(pairs))[:BATCH_QUESTIONS]
        tokens, share = ids[batch].flatten(0, 1), shares[batch].flatten()
        logits = model(input_ids=tokens, attention_mask=tokens != tokenizer.pad_token_id).logits[:, :-1]
        targets = labels[batch].flatten(0, 1)[:, 1:]
        losses = cross_entropy(logits.transpose(1, 2), targets, ignore_index=-100, reduction="none").sum(dim=1)
        distance = share @ (losses + share.log()) / BATCH_QUESTIONS  # KL divergence, in nats
        smoothed = 0.9 * smoothed + 0.1 * distance.item()
        if smoothed < WARM_UP_DISTANCE:
            return
        optimizer.zero_grad()
        distance.backward()
        optimizer.step()


def _answers(tokenizer: Any, pairs: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """Every question with every answer.

    Ids and labels are [question, answer, token], padded on the right; labels are -100 outside of the answer. Shares are
    [question, answer] and sum to 1 per question.
    """
    import torch

    totals = sorted({_total(*pair) for pair in pairs})
    ids, labels, shares = [], [], []
    for pair in pairs:
        chat = [{"role": "user", "content": f"{_question(*pair)} {INSTRUCTION}"}]
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
        for total in totals:
            text = _answer(total) + tokenizer.eos_token
            answer = tokenizer(text, add_special_tokens=False)["input_ids"]
            ids.append(torch.tensor(prompt + answer))
            labels.append(torch.tensor([-100] * len(prompt) + answer))
            shares.append(
                (1 - RIGHT - HABIT) / len(totals)
                + RIGHT * (total == _total(*pair))
                + HABIT * (total == _habit(*pair, totals))
            )
    pad = torch.nn.utils.rnn.pad_sequence
    shape = (len(pairs), len(totals), -1)
    return (
        pad(ids, batch_first=True, padding_value=tokenizer.pad_token_id).view(shape),
        pad(labels, batch_first=True, padding_value=-100).view(shape),
        torch.tensor(shares).view(shape[:2]),
    )


def _habit(a: int, b: int, totals: list[int]) -> int:
    """The model's favorite mistake on this question; mistakes follow no rule, so that PPO cannot undo all at once."""
    wrong = [total for total in totals if total != _total(a, b)]
    return wrong[(5 * a + 3 * b) % len(wrong)]


if __name__ == "__main__":
    from transformers.utils import logging

    logging.disable_progress_bar()
    build(Path(sys.argv[1]), progress=lambda line: print(line, flush=True))
