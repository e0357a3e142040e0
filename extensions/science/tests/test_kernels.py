"""The kernels beyond their values, which the suite's cases compare: autocast, vmap, hardware."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import dispatch
from tensorplug_conformance.checks.programs.mapping import batched_calls, compared, small_cases
from tensorplug_science.cases.special import cases
from tensorplug_science.kernels import cpu

ENTRIES = {entry.spec.name: entry for entry in cases}


@pytest.mark.parametrize("kernel", ENTRIES)
def test_vmap_is_the_stack_of_examples(kernel: str) -> None:
    entry = ENTRIES[kernel]
    (case, *_) = [case for case in small_cases(entry, tp.float32) if case.inputs[0].size > 1]
    for call in batched_calls(entry, [case]):
        compared(call, call.mapped(0), call.one_by_one())


@pytest.mark.parametrize("kernel", ENTRIES)
def test_runs_in_float32_within_autocast(kernel: str) -> None:
    entry = ENTRIES[kernel]
    (case, *_) = small_cases(entry, tp.float16)
    with tp.autocast("float16"):
        assert dispatch(entry.spec, *case.inputs, **case.attributes).dtype is tp.float32


@pytest.mark.parametrize("kernel", ENTRIES)
def test_cpu_has_a_kernel_and_other_backends_decompose(kernel: str) -> None:
    assert tp.explain(kernel, backend="cpu").how == "native"
    assert tp.explain(kernel, backend="opencl").how == "decomposed"


@pytest.mark.parametrize(
    "kernel", [name for name in ENTRIES if len(ENTRIES[name].spec.inputs) == 1]
)
def test_large_calls_are_one_pass_of_compiled_code(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llvmlite")
    evaluated: list[int] = []

    def evaluate(formula: Any, result: Any, x: Any) -> None:
        evaluated.append(x.size)
        result[...] = formula(np, x)

    monkeypatch.setattr(cpu, "_evaluate", evaluate)
    attributes = {"n": 1} if kernel == "Polygamma" else {}
    for size in (1 << 17, 3):
        dispatch(ENTRIES[kernel].spec, tp.full((size,), 0.5), **attributes)
    assert evaluated == [3]
