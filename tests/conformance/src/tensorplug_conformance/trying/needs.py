"""Which dtypes a case needs: those of its arrays, and those that its kernel's definition names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.session import Session


def _quantized(case: Case) -> set[DType]:
    """Return the dtype of floats that are quantized on the way."""
    a, b, _, _, *zero_points = case.inputs
    pairs = zip((a, b), zero_points, strict=True)
    return {
        dt.int8
        for factor, zero_point in pairs
        if zero_point is None and dt.of(factor.dtype) in dt.FLOATING  # type: ignore[union-attr]  # an array
    }


def _blended(case: Case) -> set[DType]:
    """Return the dtype in which pixels are weighted that float32 cannot hold."""
    image: Any = case.inputs[0]
    dtype = dt.of(image.dtype)
    wide = dtype in dt.INTEGER and dtype.itemsize >= dt.float32.itemsize
    return {dt.float64} if wide and case.attributes.get("interpolation") == "bilinear" else set()


_NEEDS: Final[Mapping[KernelSpec, Callable[[Case], set[DType]]]] = {
    specs.MULTINOMIAL: lambda _case: {dt.uint32},  # of the key, which its seed becomes
    specs.QUANTIZED_MAT_MUL: _quantized,
    specs.TRANSFORM: _blended,
}


def lacks_dtype(session: Session, spec: KernelSpec, case: Case) -> bool:
    """Return whether the case needs a dtype that the backend does not declare."""
    needed = {dt.of(array.dtype) for array in flat(case.inputs)}
    if not isinstance(case.expected, type):
        needed.update(output.dtype for output in spec.resolve(case.types, case.attributes)[1])
        needed |= _NEEDS[spec](case) if spec in _NEEDS else set()
    return not needed <= session.device.backend.dtypes
