"""Attention on the CPU: beside PyTorch, memory, threads, what the tape keeps and calls."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.extensions import share_out
from tensorplug_cpu.kernels.nn import attention_blocks
from tensorplug_loops.schedule import attention as schedule

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(21)


@pytest.fixture(scope="module", autouse=True)
def _cpu():
    """Blocks for short sequences, too."""
    with tp.use_backend("cpu"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "_SHORT", range(0))
        yield


def assert_close(tensor, expected, dtype, tolerance):
    assert (tensor.shape, tensor.dtype.name) == (expected.shape, dtype)
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_accuracy_of_float16_gradients():
    q, k, v = (rng.standard_normal((2, 8, 4)).astype(np.float16) for _ in range(3))

    def gradients(*inputs):
        y = lambda q, k, v: (attend(q, k, v) ** 2).sum()  # noqa: E731
        return tp.grad(y, argnums=(0, 1, 2))(*map(tp.asarray, inputs))

    wide = gradients(*(x.astype(np.float64) for x in (q, k, v)))
    for got, expected in zip(gradients(q, k, v), wide, strict=True):
        assert_close(got, expected.numpy(), "float16", 4e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [None, "bool", "additive"])
def test_like_torch(causal, masked):
    torch = pytest.importorskip("torch")
    shapes = ((2, 2, 9, 8), (2, 2, 9, 8), (2, 2, 9, 5))
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    mask = {
        None: None,
        "bool": np.tri(9, dtype=bool) | (np.arange(9) % 3 == 0),
        "additive": rng.standard_normal((9, 9)).astype(np.float32),
    }[masked]
    theirs = [torch.tensor(x, requires_grad=True) for x in inputs]
    limit = None if mask is None else torch.tensor(mask)
    if causal and limit is not None:  # PyTorch takes one of them only
        below = torch.ones(9, 9, dtype=torch.bool).tril()
        limit = limit & below if masked == "bool" else limit.masked_fill(~below, -math.inf)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=limit, is_causal=causal and limit is None
    )
    dy = rng.standard_normal(expected.shape).astype(np.float32)
    expected.backward(torch.tensor(dy))

    y, vjp = tp.vjp(
        lambda *qkv: attend(*qkv, mask, is_causal=causal),
        *map(tp.asarray, inputs),
    )
    assert_close(y, expected.detach().numpy(), "float32", 2e-6)
    for got, leaf in zip(vjp(tp.asarray(dy)), theirs, strict=True):
        assert_close(got, leaf.grad.numpy(), "float32", 5e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_memory_grows_with_the_length_and_not_with_its_square(shared):
    length, width = 4096, 8
    shapes = (
        [(4, length // 4, width), *[(1, length, width)] * 2] if shared else [(length, width)] * 3
    )
    q, k, v = (tp.asarray(rng.standard_normal(shape), dtype=tp.float32) for shape in shapes)
    count = tp.asarray(length - 7) if shared else None

    def loss(q, k, v):
        return attend(q, k, v, is_causal=True, lengths=count, grouped_query=shared).sum()

    gradient = tp.value_and_grad(loss, argnums=(0, 1, 2))
    gradient(q, k, v)  # loads modules and makes plans, which stay
    tracemalloc.start()
    try:
        gradient(q, k, v)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    threads = min(os.cpu_count() or 1, 8)  # each of which has a block of its own
    assert peak < (2 + threads) << 20  # all scores take 64 MiB; measured: 1.9, and 0.6 per thread


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_one_query_makes_no_copy_of_its_cache(dtype):
    pytest.importorskip("llvmlite")
    q, k, v = (
        tp.asarray(rng.standard_normal((2, heads, length, 64)), dtype=dtype)
        for heads, length in ((6, 1), (2, 2048), (2, 2048))
    )

    def run(count):
        return attend(q, k, v, is_causal=True, lengths=count, grouped_query=True)

    assert run(3).dtype.name == dtype
    tracemalloc.start()
    try:
        y = run(1800)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < k.nbytes // 4
    wide = [tp.astype(x, "float64") for x in (q, k, v)]
    expected = attend(*wide, is_causal=True, lengths=1800, grouped_query=True)
    assert_close(
        tp.astype(y, "float64"), expected.numpy(), "float64", {"float32": 1e-6}.get(dtype, 2e-3)
    )


DIGESTS = """
import hashlib
import numpy as np
import tensorplug as tp

attend = tp.nn.scaled_dot_product_attention
rng = np.random.default_rng(5)
for shape, causal in [((700, 16), True), ((5, 130, 64), False), ((9, 300, 8), True)]:
    inputs = [tp.asarray(rng.standard_normal(shape), dtype=tp.float32) for _ in range(4)]
    y, vjp = tp.vjp(
        lambda *qkv: attend(*qkv, is_causal=causal), *inputs[:3]
    )
    for tensor in (y, *vjp(inputs[3])):
        print(hashlib.sha256(tensor.numpy().tobytes()).hexdigest())
"""


def test_results_do_not_depend_on_the_number_of_threads():
    """Each number in a process of its own, which BLAS asks, too."""
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in ("1", "2")
    }
    assert [len(item.split()) for item in found] == [12]


def test_short_sequences_are_computed_all_at_once(monkeypatch):
    monkeypatch.setattr(schedule, "_SHORT", range(1 << 15, 1 << 23))
    how = {}
    for queries, keys in ((8, 8), (199, 257), (1, 257), (640, 640), (4096, 4096)):
        q, k = TensorType(dt.float32, (2, queries, 9)), TensorType(dt.float32, (2, keys, 9))
        how[queries, keys] = tp.explain(specs.ATTENTION, [q, k, k, None, None, None]).how
    expected = ["native", "decomposed", "native", "native", "native"]
    assert list(how.values()) == expected


@pytest.mark.parametrize("shape", [(1, 2048, 4), (8, 256, 4)], ids=str)
def test_there_is_work_for_eight_threads(shape, monkeypatch):
    shared = []

    def counted(work, count):
        shared.append(count)
        share_out(work, count)

    monkeypatch.setattr(attention_blocks, "share_out", counted)
    qkv = [tp.asarray(rng.standard_normal(shape)) for _ in "qkv"]
    y, vjp = tp.vjp(attend, *qkv)
    vjp(y)
    assert len(shared) == 2
    assert min(shared) >= 8


def test_gradient_keeps_little_memory():
    length, width = 512, 8
    q, k, v = (tp.asarray(rng.standard_normal((length, width)), dtype=tp.float32) for _ in "qkv")
    before = tp.memory()["cpu"].bytes
    y, vjp = tp.vjp(attend, q, k, v)
    kept = tp.memory()["cpu"].bytes - before
    assert y.nbytes <= kept <= 2 * y.nbytes + 4 * length
    assert len(vjp(y)) == 3


def test_one_gradient_kernel_for_q_k_and_v():
    q, k, v = (tp.asarray(rng.standard_normal((4, 2))) for _ in range(3))
    gradient = tp.grad(lambda q, k, v: attend(q, k, v).sum(), argnums=(0, 1, 2))
    with tp.profile() as profile:
        gradient(q, k, v)
    names = [kernel.name for kernel in profile.kernels]
    assert names.count(specs.ATTENTION.name) == names.count(specs.ATTENTION_GRAD.name) == 1


def test_compiled_step():
    inputs = [rng.standard_normal((2, 4, 3)).astype(np.float32) for _ in "qkv"]
    inputs.append(np.tri(4, dtype=bool))
    eager = attend(*inputs)
    compiled = tp.compile(attend)(*map(tp.asarray, inputs))
    assert_close(compiled, eager.numpy(), "float32", 0.0)
