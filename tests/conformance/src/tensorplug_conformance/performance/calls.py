"""The calls that are timed: of each kernel typical shapes, or a case that is enlarged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case, flat, mapped
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.performance.typical import typical_case
from tensorplug_conformance.reporting.roofline import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug.plugin import DType, KernelSpec, TensorType
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry


_NEAR: Final = 4.0  # times more or fewer elements than asked for
_WORK: Final = 1 << 31  # operations at most
_CASES: Final = 16  # of a kernel that are tried
_GROWTH: Final = 1.5
_STEPS: Final = 36


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call of one kernel: its operands, and the least that any device must do for it.

    ``moved``: bytes of the inputs and outputs. ``work``: operations, where a formula is known.
    """

    kernel: str
    dtype: str
    size: str
    text: str
    operands: list[Any]
    attributes: dict[str, Any]
    moved: int
    work: int


def timed_calls(entry: CaseEntry, dtypes: frozenset[DType]) -> Iterator[TimedCall]:
    """Yield a call for each size: in typical shapes, or one that a case of ``entry`` can have.

    In float32 if the kernel takes that, else in its first dtype of ``dtypes``, which inputs and
    outputs have.
    """
    chosen = [dtype for dtype in entry.dtypes if dtype in dtypes]
    if not chosen:
        return
    dtype = dt.float32 if dt.float32 in chosen else chosen[0]
    corpus = Corpus(dtype, 0, entry.spec.name)
    cases: list[Case] | None = None
    for size, elements in SIZES.items():
        typical = typical_case(entry.spec.name, size, corpus)
        if typical is None:
            if cases is None:
                possible = (
                    case
                    for case in entry.generate(corpus)
                    if _is_plain(case) and dtypes_of(entry.spec, case) <= dtypes
                )
                cases = list(islice(possible, _CASES))
            typical = _nearest(entry, corpus, cases, elements)
        if typical is not None:
            yield _timed(entry, dtype, size, typical)


def _nearest(
    entry: CaseEntry, corpus: Corpus, cases: Sequence[Case], elements: int
) -> Case | None:
    """Return the first case that has about so many elements; None if none does."""
    for case in cases:
        fitted = _fitting(entry, corpus, case, elements)
        if elements / _NEAR <= _elements(fitted) <= elements * _NEAR:
            return _drawn(corpus, fitted)
    return None


def _is_plain(case: Case) -> bool:
    """Return whether a case is a call with ordinary numbers."""
    return (
        not case.refused
        and not case.period
        and all(array.size for array in flat(case.inputs))
        and all(
            array.dtype.kind not in "fc" or bool(np.all(np.isfinite(array)))
            for array in flat(case.inputs)
        )
    )


def dtypes_of(spec: KernelSpec, case: Case) -> set[DType]:
    """Return the dtypes of a call's inputs and outputs."""
    outputs = spec.resolve(case.types, case.attributes)[1]
    return {dt.of(type_.dtype) for type_ in [*outputs, *flat(case.types)]}


@dataclass(frozen=True, slots=True)
class _Sized:
    """A case, the sizes that replace its own, and its attributes with these."""

    case: Case
    new: Mapping[int, int]
    attributes: Mapping[str, Any]
    outputs: tuple[TensorType, ...]


def _fitting(entry: CaseEntry, corpus: Corpus, case: Case, elements: int) -> _Sized:
    """Return a case with its sizes multiplied until it has so many elements."""
    fixed = {
        n
        for array in flat(case.inputs)
        if corpus.redrawn(array, indices=True) is None
        for n in array.shape
    }
    shapes = [array.shape for array in flat(case.inputs)]
    asked = case.attributes.get("shape", ()) if not any(shapes) else ()  # as of Fill
    free = {n for shape in [*shapes, asked] for n in shape if n > 1} - fixed
    # First those of the first input alone: the batch and the image, but not the filter.
    alone = free - {n for shape in shapes[1:] for n in shape}
    best = _sized(entry, case, {})
    assert best is not None  # the case as it is
    for old in (alone, free) if alone and alone != free else (free,):
        best = _grown(entry, case, best, old, elements)
    return best


def _grown(entry: CaseEntry, case: Case, best: _Sized, old: set[int], elements: int) -> _Sized:
    factor = 1.0
    for _ in range(_STEPS):
        if not old or _elements(best) >= elements:
            break
        factor *= _GROWTH
        larger = _sized(entry, case, {n: round(n * factor) for n in old})
        if larger is None:
            continue
        if _elements(larger) > elements * _NEAR or _work(entry, larger) > _WORK:
            break
        if _elements(larger) > _elements(best):
            best = larger
    return best


def _sized(entry: CaseEntry, case: Case, new: Mapping[int, int]) -> _Sized | None:
    """Return a case with other sizes, in its attributes too if need be; None if it is no call."""
    types = [_typed(one, new) for one in case.types]
    renumbered = {name: _renumbered(value, new) for name, value in case.attributes.items()}
    for attributes in (case.attributes, renumbered) if case.inputs else (renumbered,):
        try:
            outputs = entry.spec.resolve(types, attributes)[1]
        except Exception:  # noqa: BLE001  # sizes that do not fit fail in many ways
            continue
        return _Sized(case, new, attributes, outputs)
    return None


def _typed(type_: Any, new: Mapping[int, int]) -> Any:
    if isinstance(type_, list):
        return [_typed(one, new) for one in type_]
    if type_ is None:
        return None
    return type(type_)(type_.dtype, tuple(new.get(n, n) for n in type_.shape))


def _renumbered(value: Any, new: Mapping[int, int]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_renumbered(one, new) for one in value)
    return new.get(value, value) if type(value) is int else value


def _shapes(sized: _Sized) -> list[tuple[int, ...]]:
    return [tuple(sized.new.get(n, n) for n in array.shape) for array in flat(sized.case.inputs)]


def _elements(sized: _Sized) -> int:
    outputs = [output.shape for output in sized.outputs if output.known]
    return max((math.prod(shape) for shape in [*_shapes(sized), *outputs]), default=0)


def _drawn(corpus: Corpus, sized: _Sized) -> Case:
    def again(array: Array) -> Array:
        drawn = corpus.redrawn(array, indices=True)
        if drawn is None:
            return array
        shape = tuple(sized.new.get(n, n) for n in array.shape)
        return drawn(corpus, shape, sized.new)

    inputs = tuple(mapped(again, operand) for operand in sized.case.inputs)
    return Case(sized.case.id, inputs, sized.attributes)


def _timed(entry: CaseEntry, dtype: DType, size: str, case: Case) -> TimedCall:
    canonical, outputs = entry.spec.resolve(case.types, case.attributes)
    arrays = flat(case.inputs)
    moved = sum(array.nbytes for array in arrays)
    moved += sum(output.nbytes for output in outputs if output.known)
    sized = _Sized(case, {}, case.attributes, outputs)
    text = entry.spec.describe(case.types)
    operands = list(case.inputs)
    work = _work(entry, sized)
    return TimedCall(
        entry.spec.name, dtype.name, size, text, operands, dict(canonical), moved, work
    )


def _work(entry: CaseEntry, sized: _Sized) -> int:
    """Return the operations of a product of matrices or of a convolution; 0 for other kernels.

    Each element of an output is the sum of as many products as the inputs have beyond it: of a
    matrix product a @ b, sqrt(a b c) of elements are n m k, whatever is transposed; and a
    convolution meets each element of the filter once in each place of the output.
    """
    name = entry.spec.name
    shapes = _shapes(sized)
    outputs = [output.shape for output in sized.outputs if output.known]
    if not outputs or len(shapes) < 2:
        return 0
    one, other, out = (math.prod(shape) for shape in (shapes[0], shapes[1], outputs[0]))
    if "MatMul" in name and min(map(len, (shapes[0], shapes[1], outputs[0]))) >= 2:
        batch = max(math.prod(outputs[0][:-2]), 1)
        each = (one / math.prod(shapes[0][:-2])) * (other / math.prod(shapes[1][:-2]))
        return round(2 * batch * math.sqrt(each * (out / batch)))
    if "Conv" in name and len(shapes[1]) > 2:
        filters, images = shapes[1], [outputs[0]]
        if "BackpropFilter" in name:
            filters, images = outputs[0], shapes[:2]
        elif "BackpropInput" in name:
            images = [shapes[0], outputs[0]]
        places = min(math.prod(image[:-1]) for image in images)
        return 2 * places * math.prod(filters)
    return 0
