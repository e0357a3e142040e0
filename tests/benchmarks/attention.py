"""Attention beside PyTorch's: one query over a cache, a prefill and a training step.

    OMP_NUM_THREADS=1 python tests/benchmarks/attention.py [cpu|opencl]

Times are of the processor, all threads together, so other programs hardly matter: the least and
the median of alternating calls, in microseconds.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
import torch

import tensorplug as tp

DECODING = {  # heads, heads of keys, features; places of the cache, of which so many are filled
    "SmolLM2": (9, 3, 64),
    "8B": (32, 8, 128),
}
CACHES = ((128, 128), (1024, 1024), (4096, 4096), (4096, 128))
WHOLE = {  # batch, heads, heads of keys, length, features
    "prefill, SmolLM2": (1, 9, 3, 512, 64),
    "prefill, 8B": (1, 32, 8, 512, 128),
    "training": (8, 8, 8, 256, 64),
}


def alternate(functions, rounds):
    """Return the times of each function."""
    times = [[] for _ in functions]
    for _ in range(rounds + 1):
        for own, function in zip(times, functions, strict=True):
            start = time.process_time()
            function()
            own.append((time.process_time() - start) * 1e6)
    return [own[1:] for own in times]


def compare(name, shapes, lengths, rounds):
    """Print a row; ``lengths`` of the cache that is filled, or None for causal attention."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    ours = [tp.asarray(x) for x in arrays]
    theirs = [torch.tensor(x) for x in arrays]
    if lengths is not None:
        theirs[1:] = [x[:, :, :lengths].contiguous() for x in theirs[1:]]
    count = None if lengths is None else tp.asarray(lengths)

    @tp.compile
    def attend(q, k, v, count):
        return tp.nn.scaled_dot_product_attention(
            q, k, v, is_causal=True, lengths=count, grouped_query=True
        )

    def run():
        np.asarray(attend(*ours, count))

    def run_theirs():
        torch.nn.functional.scaled_dot_product_attention(
            *theirs, is_causal=lengths is None, enable_gqa=True
        )

    np.testing.assert_allclose(
        attend(*ours, count).numpy(),
        torch.nn.functional.scaled_dot_product_attention(
            *theirs, is_causal=lengths is None, enable_gqa=True
        ).numpy(),
        atol=2e-5,
    )
    own, other = alternate([run, run_theirs], rounds)
    ratio = median(own) / median(other)
    print(
        f"| {name} | {min(own):.0f} ({median(own):.0f}) | {min(other):.0f} ({median(other):.0f}) "
        f"| {min(own) / min(other):.2f} ({ratio:.2f}) |",
        flush=True,
    )


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    torch.set_num_threads(1)
    with tp.use_backend(backend), torch.no_grad():
        print(f"| {backend} | tensorplug | PyTorch | ratio |\n|---|---|---|---|")
        for model, (heads, shared, width) in DECODING.items():
            for places, filled in CACHES:
                shapes = [(1, heads, 1, width), *[(1, shared, places, width)] * 2]
                compare(f"{model}, {filled} keys of {places}", shapes, filled, 101)
        for name, (batch, heads, shared, length, width) in WHOLE.items():
            shapes = [(batch, heads, length, width), *[(batch, shared, length, width)] * 2]
            compare(name, shapes, None, 9)


if __name__ == "__main__":
    main()
