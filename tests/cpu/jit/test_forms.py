"""Kernels by their forms, where there is nothing to compute, and without loops."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug_cpu.jit import forms
from tensorplug_cpu.jit.codegen.settings import JIT

pytest.importorskip("llvmlite")


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
