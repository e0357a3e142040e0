"""The expressions of kernels against the CPU's kernels, on the cases of the conformance suite."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.fusion.forming import form_group
from tensorplug.compile.fusion.loops import Leaves, Loops
from tensorplug.compile.fusion.steps import Steps
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug_conformance.cases import tables
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.interpreter import interpreter

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry

LARGEST = 5000
"""Elements: larger cases only take longer."""

ULP = 64
"""Units in the last place of the largest number nearby: the formulas differ, the bounds of each
are tested elsewhere. A wrong operation, operand or constant is far outside."""

ENTRIES = {
    entry.spec.name: entry
    for table in tables()
    for entry in table
    if entry.spec.expression_rule is not None
    or entry.spec.name in ("Softmax", "LogSoftmax", "Sigmoid", "Gelu", "Silu", "Relu", "LayerNorm")
    or entry.spec.name in ("Sum", "Prod", "Max", "Min", "Mean", "All", "Any", "SquaredDifference")
}


def _interpreted(spec: KernelSpec, case: Case) -> Any:
    """Return the result of a case by its expression; None if it has none."""
    context = current_context()
    engine: Any = engine_of(context)
    device = engine.devices.of(context)
    plan, _ = engine.explain(spec, device, case.types, case.attributes)
    values = [operand and Value(device.placement(operand)) for operand in plan.inputs]
    call = Call(plan, values, [Value(plan.output)])
    step = Steps(engine).find(plan)
    everything = [*call.operands(), *call.outputs]
    shapes = sorted({value.placement.type.shape for value in everything}, key=prod)
    for shape in reversed(shapes) if step else ():
        loops = Loops(Leaves({}), shape)
        if loops.add(call, step):
            group, sources, _ = form_group(loops, call.outputs, spec.name, {})
            present = [x for x in case.inputs if x is not None]
            arrays = dict(zip(call.operands(), present, strict=True))
            given = [
                np.asarray(
                    source.number() if isinstance(source, Constant) else arrays[source],
                    source.placement.type.dtype.numpy,
                )
                for source in sources
            ]
            return interpreter(group)(*given)[0]
    return None


def _eligible(case: Case) -> bool:
    arrays = [x for x in case.inputs if x is not None]
    # Far from 0, a mean is rounded to more than the units that are allowed here.
    refused = case.refused or "far from 0" in case.id
    return not refused and all(
        isinstance(x, np.ndarray) and 0 < x.size <= LARGEST and dt.of(x.dtype) in dt.FIXED
        for x in arrays
    )


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_the_expression_computes_what_the_kernel_does(name: str) -> None:
    entry: CaseEntry = ENTRIES[name]
    compared = 0
    with tp.use_backend("cpu"):
        context = current_context()
        engine: Any = engine_of(context)
        for dtype in entry.dtypes:
            if dtype not in dt.FIXED:
                continue
            for case in entry.checked(entry.generate(Corpus(dtype, 0, name))):
                if not _eligible(case):
                    continue
                ours = _interpreted(entry.spec, case)
                if ours is None:
                    continue
                given = [None if x is None else tp.asarray(x) for x in case.inputs]
                theirs = engine.run(context, entry.spec, given, case.attributes).numpy()
                _compare(ours, theirs, f"{name} of {dtype}, {case.id}")
                compared += 1
    assert compared


def _compare(ours: Any, theirs: Any, what: str) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    about = dt.of(ours.dtype)
    if about not in dt.INEXACT:
        np.testing.assert_array_equal(ours, theirs, what)
        return
    wide = about.compute.numpy  # NumPy finds no NaN in bfloat16
    np.testing.assert_allclose(
        ours.astype(wide),
        theirs.astype(wide),
        rtol=ULP * about.eps,
        atol=ULP * about.eps,
        err_msg=what,
    )
