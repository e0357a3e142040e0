"""Kernels by their forms give the same as by their decompositions."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.jit import forms
from tensorplug_cpu.jit.codegen.settings import JIT

pytest.importorskip("llvmlite")

BOXES = np.float32([[0.1, 0.2, 0.9, 0.7], [0, 0, 1, 1], [0.5, -0.2, 1.2, 0.4]])
CALLS = {
    "crop": lambda x, _: tp.image.crop_and_resize(x, BOXES, np.int32([0, 1, 0]), (7, 5)),
    "dilation": lambda x, w: tp.nn.dilation2d(x, w, 1, "same"),
    "largest": lambda x, _: tp.nn.max_pool(x, 2, 2, "same"),
    "average": lambda x, _: tp.nn.avg_pool(x, (3, 2), 3, "same"),
    "where": lambda x, _: tp.nn.max_pool_with_argmax(x, 3, 2, "same"),
    "largest's gradient": lambda x, _: tp.grad(
        lambda x: (tp.nn.max_pool(x, 3, 2, "same") ** 2).sum()
    )(x),
    "dilation's gradients": tp.grad(
        lambda x, w: (tp.nn.dilation2d(x, w, 1, "valid") ** 2).sum(), argnums=(0, 1)
    ),
    "counts": lambda x, _: tp.bincount(_counted(x), size=20),
    "weights": lambda x, _: tp.bincount(_counted(x), x, size=30),
    "one-hot": lambda x, _: tp.one_hot(_counted(x), 30),
    "triangle": lambda x, _: tp.tril(x, k=-1),
    "range": lambda x, _: tp.arange(5, 3 * x.size, 3),
    "line": lambda x, _: tp.linspace(-1, 2, x.size),
    "powers": lambda x, _: _counted(x) ** (_counted(x) % 5 - 1),
    "products": lambda x, _: tp.prod(x / 4, axis=1),
}


def _counted(x):
    return tp.astype(tp.abs(x) * 10, "int32")


class Other(CpuBackend):
    """The CPU with plans of its own."""

    name = "other"


def computed(call, channels):
    rng = np.random.default_rng(channels)
    x = tp.asarray(rng.integers(-9, 9, (2, 9, 11, channels)).astype(np.float32) / 4)
    w = tp.asarray(rng.integers(-5, 5, (3, 2, channels)).astype(np.float32) / 4)
    found = CALLS[call](x, w)
    return [part.numpy() for part in (found if isinstance(found, list | tuple) else [found])]


@pytest.fixture(scope="module")
def backends():
    """A backend without loops of its own for each setting."""
    tp.register_backend(Other.name, Other)
    with tp.copy_registered_kernels("cpu", Other.name):
        yield
    tp.remove_backend(Other.name)


@pytest.mark.usefixtures("backends")
@pytest.mark.parametrize("channels", [1, 3, 20])
@pytest.mark.parametrize("call", CALLS)
def test_the_same_as_by_the_decomposition(monkeypatch, call, channels):
    expected = computed(call, channels)  # of few elements, which are not worth a loop
    names = []
    compile_group = forms.compile_group

    def noted(group):
        names.append(group.name)
        return compile_group(group)

    monkeypatch.setattr(forms, "compile_group", noted)
    monkeypatch.setenv(JIT, "always")
    forms._entries.cache_clear()
    try:
        with tp.use_backend(Other.name):
            found = computed(call, channels)
    finally:
        forms._entries.cache_clear()
    assert names or channels == 20  # by hand, where windows overlap
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_nothing_to_compute():
    """A form of results without elements reads nothing."""
    shapes = ((1, 3, 3, 2), np.float32), ((0, 4), np.float32), ((0,), np.int32)
    inputs = [np.zeros(*each) for each in shapes]
    assert tp.image.crop_and_resize(*inputs, (2, 5)).shape == (0, 2, 5, 2)
    plan = tp.explain("CropAndResize", inputs, {"crop_size": (2, 5)}, backend="cpu")
    assert "cpu': native" in str(plan)


def test_without_loops(monkeypatch):
    monkeypatch.setenv(JIT, "0")
    prepare = forms.formed(specs.DILATION2D)
    with pytest.raises(KernelRefusedError, match="not compiled"):
        prepare(None, None, attributes={}, backend=None, out=None)
