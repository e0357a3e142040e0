"""Kernels by their forms, where there is nothing to compute, and without loops."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug_cpu.jit import forms
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.groups import kernels
from tensorplug_loops import templates

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


def test_further_lengths_are_not_planned_anew(monkeypatch):
    """The first call plans, the second one records, and others repeat that."""
    monkeypatch.setenv(JIT, "always")
    for known in ("_met", "_recorded"):  # by other tests
        monkeypatch.setattr(templates, known, {})
    planned = []
    sized, plan, machine = kernels._planner()

    def count(group, machine):
        planned.append(group.name)
        return plan(group, machine)

    monkeypatch.setattr(kernels, "_planner", lambda: (sized, count, machine))
    for length in range(200, 220):
        indices = np.arange(length, dtype=np.int32) % 37
        result = tp.one_hot(tp.asarray(indices), 37).numpy()
        assert (result.dtype, result.shape) == (np.float32, (length, 37))
        np.testing.assert_array_equal(result, np.eye(37, dtype=np.float32)[indices])
    assert planned == ["OneHot"] * 2
