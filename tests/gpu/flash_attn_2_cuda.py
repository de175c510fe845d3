"""flash-attn's compiled module by PyTorch's own copy of the same kernels, for a host that cannot build it.

    PYTHONPATH=FLASH python3 flash_attn_2_cuda.py       compares it with attention in fp32

PyTorch is built with FlashAttention 2 (aten::_flash_attention_forward and _backward), so the Python part of flash-attn
(2.8.3), which `pack.sh` takes from its sources, needs only these four functions of its compiled one. Shapes: (batch,
tokens, heads, size of a head), or (tokens, heads, size) with cumulative lengths. No dropout, softcap or paged keys.
"""

from typing import Any

import torch

FORWARD, BACKWARD = torch.ops.aten._flash_attention_forward, torch.ops.aten._flash_attention_backward
Tensor = torch.Tensor


def _window(left: int, right: int) -> dict[str, int]:
    return {name: size for name, size in (("window_size_left", left), ("window_size_right", right)) if size >= 0}


def _forward(q: Tensor, k: Tensor, v: Tensor, lengths: tuple[Any, ...], scale: float, causal: bool, window: Any) -> Any:
    out, lse, rng_state, _unused, _mask = FORWARD(
        q, k, v, *lengths, 0.0, causal, False, scale=scale, **_window(*window)
    )
    return out, lse, q.new_empty(0), rng_state


def _backward(
    grad: Tensor, tensors: Any, into: Any, lengths: Any, scale: float, causal: bool, window: Any, rng: Any
) -> Any:
    nothing = torch.empty(0, dtype=torch.int64, device=grad.device)
    found = BACKWARD(
        grad, *tensors, *lengths, 0.0, causal, nothing if rng is None else rng, nothing, scale=scale, **_window(*window)
    )
    for buffer, gradient in zip(into, found, strict=True):
        buffer.copy_(gradient)
    return (*into, grad.new_empty(0))


def fwd(q, k, v, out, alibi, dropout, scale, causal, left, right, softcap, return_softmax, generator):  # type: ignore
    assert out is None and alibi is None and not dropout and not softcap
    return _forward(q, k, v, (None, None, q.shape[1], k.shape[1]), scale, causal, (left, right))


def varlen_fwd(  # type: ignore
    q, k, v, out, cu_q, cu_k, seqused, leftpad, blocks, alibi, max_q, max_k, dropout, scale, zero, causal, left, right,
    softcap, return_softmax, generator,
):  # fmt: skip
    assert all(each is None for each in (out, seqused, leftpad, blocks, alibi)) and not dropout and not softcap
    return _forward(q, k, v, (cu_q, cu_k, int(max_q), int(max_k)), scale, causal, (left, right))


def bwd(  # type: ignore
    grad, q, k, v, out, lse, dq, dk, dv, alibi, dropout, scale, causal, left, right, softcap, deterministic, generator,
    rng,
):  # fmt: skip
    lengths = (None, None, q.shape[1], k.shape[1])
    return _backward(grad, (q, k, v, out, lse), (dq, dk, dv), lengths, scale, causal, (left, right), rng)


def varlen_bwd(  # type: ignore
    grad, q, k, v, out, lse, dq, dk, dv, cu_q, cu_k, alibi, max_q, max_k, dropout, scale, zero, causal, left, right,
    softcap, deterministic, generator, rng,
):  # fmt: skip
    lengths = (cu_q, cu_k, int(max_q), int(max_k))
    return _backward(grad, (q, k, v, out, lse), (dq, dk, dv), lengths, scale, causal, (left, right), rng)


def _compare() -> None:
    """Packed sequences with grouped heads against plain attention in fp32: largest difference, relative to the size."""
    from flash_attn import flash_attn_func, flash_attn_varlen_func

    torch.manual_seed(0)
    sizes, heads, groups, size = (5, 300, 77), 14, 2, 64
    ends = torch.tensor([0, 5, 305, 382], dtype=torch.int32, device="cuda")
    q, k, v = (torch.randn(sum(sizes), n, size, device="cuda", requires_grad=True) for n in (heads, groups, groups))

    def plain() -> Tensor:
        parts = []
        for each in zip(*(t.split(sizes) for t in (q, k, v)), strict=True):
            a, b, c = (t.transpose(0, 1).repeat_interleave(heads // t.shape[1], 0) for t in each)
            scores = (a @ b.transpose(1, 2) / size**0.5).masked_fill(
                torch.ones(a.shape[1], a.shape[1], device="cuda").triu(1).bool(), float("-inf")
            )
            parts.append((scores.softmax(-1) @ c).transpose(0, 1))
        return torch.cat(parts)

    def packed() -> Tensor:
        low = [t.bfloat16() for t in (q, k, v)]
        return flash_attn_varlen_func(*low, ends, ends, 300, 300, causal=True).float()

    def dense() -> Tensor:
        parts = [t.bfloat16().split(sizes) for t in (q, k, v)]
        found = [flash_attn_func(*(t[None] for t in each), causal=True)[0] for each in zip(*parts, strict=True)]
        return torch.cat(found).float()

    weights = torch.randn(sum(sizes), heads, size, device="cuda")
    right = plain()
    wanted = (right, *torch.autograd.grad((right * weights).sum(), (q, k, v)))
    for name, function in (("packed", packed), ("dense", dense)):
        out = function()
        found = (out, *torch.autograd.grad((out * weights).sum(), (q, k, v)))
        print(name, [f"{((a - b).abs().max() / b.abs().max()).item():.4f}" for a, b in zip(found, wanted, strict=True)])


if __name__ == "__main__":
    print(torch.__version__, FORWARD.default._schema)
    _compare()
