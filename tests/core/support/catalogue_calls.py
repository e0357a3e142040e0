"""Calls of every kernel of the catalogue: the conformance suite's, for other checks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import DTypeError, KernelNotFoundError
from tensorplug.ops import creation
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.trying.soak import own_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS = sorted(entries())


def cases(kernel: str) -> Iterator[tuple[Any, Any]]:
    """Yield the spec and the cases of a kernel: all in one dtype, two in each other one."""
    entry = entries()[kernel]
    for dtype in entry.dtypes:
        if dtype is entry.leading:
            result, most = iter(cases_of(entry, Row(kernel, dtype.name, "native"), 0)), None
        else:
            result, most = own_cases(entry, dtype, 0), 2
        valid = (case for case in result if not case.refused)
        for case in islice(valid, most):
            yield entry.spec, case


def run_twice(spec: Any, case: Any) -> bool:
    """Make the call without a plan and with one; return whether the device has such a kernel."""
    run = dispatch_multiple if spec.multiple_outputs else dispatch
    try:
        operands = [_operand(operand) for operand in case.inputs]
        run(spec, *operands, **case.attributes)
    except (DTypeError, KernelNotFoundError):
        return False  # not declared, or left to a decomposition
    run(spec, *operands, **case.attributes)
    return True


def _operand(given: Any) -> Any:
    if isinstance(given, list):
        return [_operand(part) for part in given]
    return None if given is None else creation.asarray(given)
