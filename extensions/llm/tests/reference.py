"""Decoders in float64 NumPy, on whole texts without a cache: what all others are compared with."""

from __future__ import annotations

import numpy as np


def reference(kind, found, tokens, *, heads, base, epsilon, factors=1.0):
    """Return the scores after each token, [n, vocabulary].

    Args:
        kind: "llama" or "gpt2".
        found: weights by Hugging Face's names, without "transformer.".
        tokens: of one text.
        heads: of queries.
        base: of rotary frequencies.
        epsilon: of normalizations.
        factors: divide rotary frequencies.

    """
    w = {name: np.asarray(value, np.float64) for name, value in found.items()}
    return (_llama if kind == "llama" else _gpt2)(w, tokens, heads, base, epsilon, factors)


def _llama(w, tokens, heads, base, epsilon, factors):
    def norm(x, name):
        return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon) * w[f"{name}.weight"]

    x = w["model.embed_tokens.weight"][tokens]
    n, width = x.shape
    size = width // heads
    exponents = np.arange(size // 2) * 2 / size
    angles = np.outer(np.arange(n), base**-exponents / factors)
    turn = np.exp(1j * angles)  # features i and i + size / 2 are a complex number

    def rotated(vectors):
        turned = (vectors[..., : size // 2] + 1j * vectors[..., size // 2 :]) * turn
        return np.concatenate([turned.real, turned.imag], axis=-1)

    layer = 0
    while (prefix := f"model.layers.{layer}") + ".input_layernorm.weight" in w:
        h = norm(x, f"{prefix}.input_layernorm")
        q, k, v = (
            (h @ w[f"{prefix}.self_attn.{name}_proj.weight"].T).reshape(n, -1, size).swapaxes(0, 1)
            for name in "qkv"
        )
        group = heads // len(k)
        mixed = [
            _attention(rotated(q[head]), rotated(k[head // group]), v[head // group])
            for head in range(heads)
        ]
        x = x + np.concatenate(mixed, axis=-1) @ w[f"{prefix}.self_attn.o_proj.weight"].T
        h = norm(x, f"{prefix}.post_attention_layernorm")
        gate = h @ w[f"{prefix}.mlp.gate_proj.weight"].T
        up = h @ w[f"{prefix}.mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{prefix}.mlp.down_proj.weight"].T
        layer += 1
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return norm(x, "model.norm") @ head.T


def _attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True) @ v


def _gpt2(w, tokens, heads, _, epsilon, __):
    def norm(x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + epsilon)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]
    size = x.shape[-1] // heads
    layer = 0
    while (prefix := f"h.{layer}") + ".ln_1.weight" in w:
        joined = dense(norm(x, f"{prefix}.ln_1"), f"{prefix}.attn.c_attn")
        q, k, v = (part.reshape(-1, heads, size) for part in np.split(joined, 3, axis=-1))
        mixed = [_attention(q[:, head], k[:, head], v[:, head]) for head in range(heads)]
        x = x + dense(np.concatenate(mixed, axis=-1), f"{prefix}.attn.c_proj")
        h = dense(norm(x, f"{prefix}.ln_2"), f"{prefix}.mlp.c_fc")
        h = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + dense(h, f"{prefix}.mlp.c_proj")
        layer += 1
    return norm(x, "ln_f") @ w["wte.weight"].T
