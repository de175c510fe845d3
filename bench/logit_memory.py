"""Measures the bytes that veRL's passes need per token and word of the vocabulary: the table in
docs/evidence/memory.md.

python bench/logit_memory.py with a GPU, torch and transformers; a minute

Random Qwen2 models of the presets' sizes do what veRL 0.9.1's engine does with the logits (its workers/engine/fsdp,
read, not run). Activations that the backward pass keeps are subtracted.
"""

import gc

MODELS = {
    "0.5B": (896, 24, 14, 2, 4864, 151936),
    "1.5B": (1536, 28, 12, 2, 8960, 151936),
    "135M": (576, 30, 9, 3, 1536, 49152),
}
ROWS, LENGTH = 8, 768
PASSES = (
    "log-probabilities, packed, entropy compiled",
    "log-probabilities, packed, entropy not compiled",
    "log-probabilities, padded",
    "update, packed, log-softmax of torch",
    "update, padded, log-softmax of torch",
)


def main() -> None:
    try:
        import torch
        import transformers
    except ImportError:
        print("logit_memory: needs torch and transformers")
        return
    if not torch.cuda.is_available():
        print("logit_memory: needs a GPU")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
    for name, (hidden, layers, heads, kv, inner, vocab) in MODELS.items():
        config = transformers.Qwen2Config(
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv,
            intermediate_size=inner,
            vocab_size=vocab,
            tie_word_embeddings=True,
            use_cache=False,
            attn_implementation="sdpa",
        )
        with torch.device("cuda"):
            model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16).train()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for what in PASSES:
            measure(model, vocab, what)  # compiles
            print(f"{name:<5} {what:<48} {measure(model, vocab, what):5.2f}", flush=True)
        del model


def measure(model, vocab: int, what: str) -> float:
    """Peak above the weights and the kept activations, in bytes for each token and word."""
    import torch

    ids = torch.randint(0, vocab, (ROWS, LENGTH), device="cuda")
    labels, update = ids.flatten(), what.startswith("update")
    model.zero_grad(set_to_none=True)
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    with torch.set_grad_enabled(update), torch.autocast("cuda", dtype=torch.bfloat16):
        hidden = model.model(input_ids=ids).last_hidden_state
        kept = torch.cuda.memory_allocated() - before
        torch.cuda.reset_peak_memory_stats()
        logits = model.lm_head(hidden)
        entropy = None if update else entropy_of(logits, vocab, what)
        # without packing veRL gathers the valid rows of every answer anew
        rows = logits.reshape(-1, vocab) if "packed" in what else torch.cat(list(logits.unbind()))
        scores = log_probs(rows, labels)
    peak = torch.cuda.max_memory_allocated()
    if update:
        scores.mean().backward()
    del entropy
    return (peak - before - kept) / (ROWS * LENGTH * vocab)


def entropy_of(logits, vocab: int, what: str):
    import torch

    if what.endswith("entropy compiled"):
        return torch.compile(entropy, dynamic=True)(logits.reshape(-1, vocab))
    return entropy(logits)


def entropy(logits):
    import torch

    chances = torch.softmax(logits, dim=-1)
    return torch.logsumexp(logits, dim=-1) - torch.sum(chances * logits, dim=-1)


def log_probs(logits, labels):
    """Log-probabilities row by row, as veRL computes them for bf16."""
    import torch

    return torch.stack(
        [
            torch.log_softmax(row, dim=-1).gather(-1, label.unsqueeze(-1)).squeeze(-1)
            for row, label in zip(logits, labels, strict=True)
        ]
    )


if __name__ == "__main__":
    main()
