"""vmap = stack: kernels on many examples at once return what they return for each of them.

Integers, booleans and strings must be equal. Floats may differ by rounding, since an example is
part of a larger call there: of a product of more rows, or of a sum in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.errors import TensorplugError
from tensorplug.plugin import dispatch, dispatch_multiple
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import mapped
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.plugin import KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


EXAMPLES: Final = 3
_CASES: Final = 3  # per kernel and axis
_LARGEST: Final = 1 << 14  # elements of an input

WITHOUT_INPUTS: Final = {"Eye", "Fill", "LinSpace", "Range"}
DEPENDING_ON_DATA: Final = {
    *("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "RaggedGather"),
    *("RaggedRange", "RaggedTensorToTensor", "SparseFillEmptyRows", "SparseSegmentMean"),
    *("SparseSegmentSum", "StringNGrams", "StringSplit", "Unique", "Where"),
}
"""Kernels whose output shapes depend on the data, so that examples could differ in shape."""

Place = tuple[int, int | None]  # an input, and a member of it if it is a list


@dataclass(frozen=True)
class BatchedCall:
    """A call of a kernel some of whose inputs, those at ``places``, differ by example."""

    spec: KernelSpec
    case: Case
    places: Sequence[Place]

    def __repr__(self) -> str:
        which = [f"{number}" if at is None else f"{number}[{at}]" for number, at in self.places]
        text = self.spec.describe(self.case.types)
        return f"{text} with examples in input {', '.join(which)}, case {self.case.id}"

    def stacks(self) -> list[Array]:
        """Return the inputs at ``places`` of all examples, which have axis 0."""
        return [np.stack(_variants(_at(self.case.inputs, place))) for place in self.places]

    def run(self, *tensors: Tensor) -> list[Tensor]:
        """Call the kernel with one example of the inputs at ``places``."""
        inputs: list[Any] = mapped(tp.asarray, [*self.case.inputs])
        for (number, at), tensor in zip(self.places, tensors, strict=True):
            if at is None:
                inputs[number] = tensor
            else:
                inputs[number][at] = tensor
        if self.spec.multiple_outputs:
            return dispatch_multiple(self.spec, *inputs, **self.case.attributes)
        return [dispatch(self.spec, *inputs, **self.case.attributes)]

    def one_by_one(self) -> list[Array]:
        """Return the stacks of the outputs of each example."""
        stacks = self.stacks()
        rows = [
            [output.numpy() for output in self.run(*[tp.asarray(stack[at]) for stack in stacks])]
            for at in range(EXAMPLES)
        ]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def mapped(self, axis: int) -> list[Array]:
        """Return the outputs of all examples; these are in ``axis`` of the inputs that have it."""
        stacks = self.stacks()
        axes = [min(axis, stack.ndim - 1) for stack in stacks]
        tensors = [
            tp.asarray(np.moveaxis(stack, 0, at)) for stack, at in zip(stacks, axes, strict=True)
        ]
        return [np.asarray(output.numpy()) for output in tp.vmap(self.run, axes)(*tensors)]


def batched_calls(entry: CaseEntry, cases: Sequence[Case]) -> Iterator[BatchedCall]:
    """Yield calls in which all inputs have examples, and in which one has."""
    for case in cases:
        places: list[Place] = []
        for at, operand in enumerate(case.inputs):
            if isinstance(operand, list):
                places += [(at, member) for member in range(len(operand))]
            elif operand is not None:
                places.append((at, None))
        if places:
            yield BatchedCall(entry.spec, case, places)
        if len(places) > 1:
            yield from (BatchedCall(entry.spec, case, [place]) for place in places)


def compared(call: BatchedCall, results: Sequence[Array], meant: Sequence[Array]) -> None:
    """Compare all examples with the stack of them.

    Raises:
        CheckFailedError: they differ by more than rounding.

    """
    for at, (got, value) in enumerate(zip(results, meant, strict=True)):
        where = f"output {at} of vmap of {call!r}"
        if (got.shape, got.dtype) != (value.shape, value.dtype):
            raise CheckFailedError(
                f"{where} is {got.dtype}{list(got.shape)}, must be {value.dtype}"
                f"{list(value.shape)}"
            )
        kind = kind_of(got.dtype)
        if kind not in "fc":
            if not np.array_equal(got, value):
                raise CheckFailedError(f"{where} differs from the stack of the examples")
            continue
        wide: Any = np.complex128 if kind == "c" else np.float64
        exact = dt.of(got.dtype) in dt.STORAGE  # bits that are only moved
        eps = 0.0 if exact else float(finfo(got.dtype).eps)
        with np.errstate(invalid="ignore"):  # signalling NaN
            whole, stack = got.astype(wide), value.astype(wide)
        largest = np.abs(stack[np.isfinite(stack)]).max(initial=0.0)
        if not np.allclose(whole, stack, rtol=64 * eps, atol=16 * eps * largest, equal_nan=True):
            raise CheckFailedError(f"{where} differs by more than rounding from the stack")


def _variants(array: Array) -> list[Array]:
    """Return examples like ``array`` that a kernel accepts: in order, in range, definite."""
    if array.dtype.kind in "iu":
        other = array // 2
    elif array.dtype.kind == "b":
        other = ~array
    elif array.dtype.kind in "OUST":
        other = array
    else:
        with np.errstate(all="ignore"):
            other = (array * array.dtype.type(0.5)).astype(array.dtype)
    return [array, other, array]


def _at(inputs: Sequence[Any], place: Place) -> Array:
    number, at = place
    return np.asarray(inputs[number] if at is None else inputs[number][at])


def _maps(axis: int, _target: Target, opened: Callable[[], Session]) -> None:
    """Compare calls of each kernel in a dtype that the backend has."""
    session = opened()
    with session.entered():
        for kernel, entry in sorted(entries(extension_tables()).items()):
            if kernel in WITHOUT_INPUTS | DEPENDING_ON_DATA:
                continue
            if entry.spec.elementwise and not entry.grown:  # long formulas
                continue
            dtypes = [dtype for dtype in entry.dtypes if dtype in session.device.backend.dtypes]
            dtype = dt.float32 if dt.float32 in dtypes else next(iter(dtypes), None)
            if dtype is not None:
                _compare_kernel(entry, dtype, axis)


def _compare_kernel(entry: CaseEntry, dtype: dt.DType, axis: int) -> None:
    cases = small_cases(entry, dtype)
    for call in batched_calls(entry, cases[axis :: max(1, len(cases) // _CASES)][:_CASES]):
        try:
            meant = call.one_by_one()
        except TensorplugError:  # a variant that the kernel does not accept, or no such dtype
            continue
        compared(call, call.mapped(axis), meant)


def small_cases(entry: CaseEntry, dtype: dt.DType) -> list[Case]:
    """Return the cases of a kernel that is called often with inputs like them."""
    return [
        case
        for case in cases_of(entry, Row(entry.spec.name, dtype.name, "native"), 0)
        if not case.refused and not case.period and _is_small(case)
    ]


def _is_small(case: Case) -> bool:
    return all(
        type_.size <= _LARGEST
        for operand in case.types
        for type_ in (operand if isinstance(operand, list) else [operand])
        if type_ is not None
    )


CHECKS: Final = tuple(
    Check(4, f"vmap = stack: examples in axis {axis}", partial(_maps, axis)) for axis in range(3)
)
