"""Functions of groups: the backend compiles those that it declares, and they are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.plugin import TensorType, dispatch, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.programs.mapping import small_cases
from tensorplug_conformance.comparing.compare import judge
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import allows, flushed
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.trying.references import worked_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session

_SCALAR: Final = TensorType(dt.float32, ())
_LEAST: Final = 2  # elements: a group of one has no loop
_MOST: Final = 2  # operands of a function


def _functions() -> dict[str, KernelSpec]:
    """Return the kernels that are one function, by its name."""
    by_name: dict[str, KernelSpec] = {}
    for spec in specs:
        rule, count = spec.expression_rule, len(spec.inputs)
        if rule is None or spec.attributes or count > _MOST:
            continue
        if not all(dt.float32 in spec.accepted(name) for name in spec.inputs):
            continue
        _, (out,) = spec.resolve([_SCALAR] * count, {})
        expression = rule([expressions.parameter(at, dt.float32) for at in range(count)], {}, out)
        if expression is not None and expression.op in expressions.FUNCTIONS:
            by_name[expression.op] = spec
    return by_name


def _compiles(_target: Target, opened: Callable[[], Session]) -> str:
    """Compile each function among exact calls, and compare it with the kernel's references."""
    session = opened()
    groups = session.device.capabilities.groups
    if groups is None or not groups.functions:
        raise NotMeasuredError("groups of the backend have no functions")
    kernels, known = _functions(), entries(extension_tables())
    calls = 0
    with session.entered():
        for name in sorted(groups.functions):
            entry = known[kernels[name].name]
            by_values: dict[str, Case] = {}
            for case in small_cases(entry, dt.float32):  # sizes and layouts are the row's
                by_values.setdefault(case.id.partition(", ")[0], case)
            for case in by_values.values():
                calls += _check_case(session, name, entry, case)
    return f"{len(groups.functions)} functions in {calls} calls"


def _check_case(session: Session, name: str, entry: CaseEntry, case: Case) -> bool:
    """Judge a function's results in a group; return whether the case has a group."""
    spec, inputs = entry.spec, [tp.asarray(x) for x in case.inputs]  # type: ignore[arg-type]  # arrays

    def turned(x: Any) -> Any:
        return tp.negative(tp.negative(x))

    @tp.compile
    def among_others(*operands: Any) -> Any:  # enough calls for a group of any size
        return turned(turned(dispatch(spec, *map(turned, operands))))

    type_ = spec.resolve(case.types, case.attributes)[1][0]
    if type_.size < _LEAST or type_.dtype is not dt.float32:
        return False
    fusion = among_others.program(*inputs).fusion
    assert fusion is not None, "the backend compiles groups"
    if not any(spec.name in fused.group.name.split("+") for fused in fusion.groups):
        reasons = "; ".join(dict.fromkeys(fusion.alone.values()))
        raise CheckFailedError(
            f"functions has {name}, but {spec.describe(case.types)} is {reasons}"
        )
    result = among_others(*inputs).numpy()
    right = worked_out(entry, case)
    assert isinstance(right, tuple), "no function is judged by a relation"
    (reference,) = right
    ulp, signed_zero = tolerances().of(entry, dt.float32), entry.signed_zero
    fault = judge(result, type_, reference, ulp=ulp, signed_zero=signed_zero).fault
    zeros = flushed(session.device)
    if fault and not allows(entry, case, 0, result, type_, reference, dt.float32, zeros):
        raise CheckFailedError(f"{name} in a group, {case.id}: {fault}")
    return True


CHECKS: Final = (Check(4, "functions of groups", _compiles),)
