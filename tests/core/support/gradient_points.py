"""All points at which gradients are checked: those of the conformance suite and a few of ours.

The suite checks first and second gradients at its points, ``test_gradients`` at ours. What the
points of a kernel must cover is asked for in ``test_gradient_completeness``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.core.support.gradient_cases import CASES
from tests.core.support.samples import Case

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.rule_entries import GradientEntry
from tensorplug.plugins import catalogue
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, cases_of, entries

RULES: dict[tuple[str, str], GradientEntry] = {
    entry.key: entry
    for table in catalogue.rules()
    for entry in table
    if isinstance(entry, GradientEntry)
}


# Not the slopes of the results, which are constant between jumps: the suite's kinks, and
# test_quantization.
STRAIGHT_THROUGH = {
    *(("FakeQuantize", name) for name in ("x", "scale")),
    *(("QuantizedMatMul", name) for name in ("a", "b")),
}


def has_rule(kernel: str, name: str, dtype: dt.DType) -> bool:
    """Return whether an input of ``dtype`` has a gradient rule."""
    entry = RULES.get((kernel, name))
    return entry is not None and entry.rule_for(dtype) is not None


def of_the_suite(dtype: dt.DType) -> tuple[list[Case], list[Case]]:
    """Return the suite's points: the smooth ones, and those whose gradients it gives by value."""
    smooth, kinks = [], []
    for kernel, entry in sorted(entries().items()):
        ruled = [name for name in entry.wrt if has_rule(kernel, name, dtype)]
        if not ruled or dtype not in entry.dtypes:
            continue
        # Not the far points beside them: differences with steps of one length say nothing there.
        for point in entry.gradient_cases(Corpus(dtype, 0, f"{kernel}:gradient")):
            inputs = dict(zip(entry.spec.input_names, point.inputs, strict=False))
            given = {name: value for name, value in inputs.items() if value is not None}
            wrt = tuple(name for name in ruled if name in given)
            case = Case(kernel, f"suite: {point.id}", given, wrt, dict(point.attributes))
            (kinks if isinstance(point.expected, tuple) else smooth).append(case)
    return smooth, kinks


def ordinary(kernel: str) -> list[Case]:
    """Return the suite's ordinary cases of a kernel, those that are refused left out."""
    entry = entries()[kernel]
    dtype = "float64" if dt.float64 in entry.dtypes else entry.dtypes[0].name
    names = entry.spec.input_names
    return [
        Case(
            kernel,
            item.id,
            {n: x for n, x in zip(names, item.inputs, strict=True) if x is not None},
            (),
            dict(item.attributes),
        )
        for item in cases_of(entry, Row(kernel, dtype, "native"), 0)
        if not item.refused
    ]


_SMOOTH, SUITE_KINKS = of_the_suite(dt.float64)
POINTS: list[Case] = [*CASES, *_SMOOTH]

# They read one triangle, and their gradients are those of symmetric (Hermitian) changes.
OF_SYMMETRIC = {"Cholesky", "SelfAdjointEigV2"}


def as_function(case: Case, dtype: str = "float64") -> tuple[Any, list[Any]]:
    """Return the case as a function of what it differentiates, and where, floats in ``dtype``."""
    given = tp.tree_map(
        lambda x: x.astype(dtype) if np.issubdtype(x.dtype, np.floating) else x, case.inputs
    )
    fixed = {name: value for name, value in given.items() if name not in case.wrt}
    if case.kernel == "MaxPoolGrad":
        fixed["output"] = tp.run_kernel("MaxPool", {"x": given["input"]}, case.attributes)

    def f(*wrt: Any) -> Any:
        inputs = {**fixed, **dict(zip(case.wrt, wrt, strict=True))}
        if case.kernel in OF_SYMMETRIC:
            inputs["input"] = (inputs["input"] + tp.conj(tp.matrix_transpose(inputs["input"]))) / 2
        result = tp.run_kernel(case.kernel, inputs, case.attributes)
        if not isinstance(result, list):
            return result
        # Those that can have a gradient: others hold indices and the like.
        return [item for item in result if item.dtype.kind in ("float", "complex")]

    return f, [given[name] for name in case.wrt]
