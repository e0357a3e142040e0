"""Which dtypes a case needs: those of its arrays, and those that its kernel's definition names.

And whether it needs a larger buffer than the backend declares that its device has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.session import Session


def _quantized(case: Case) -> set[DType]:
    """Return the dtypes that floats, integers of less than a byte and packed ones become."""
    a, b, _, _, *zero_points = case.inputs[:6]
    packed = case.attributes.get("b_packed")
    needed = set() if packed is None else {dt.of(packed), dt.unpacked(dt.of(packed))}
    for factor, zero_point in zip((a, b), zero_points, strict=True):
        dtype = dt.of(factor.dtype)  # type: ignore[union-attr]  # an array
        if dtype in dt.FLOATING:
            needed |= {dt.int8} if zero_point is None else set()
        else:
            needed.add(dt.unpacked(dtype))
    return needed


def _blended(case: Case) -> set[DType]:
    """Return the dtype in which pixels are weighted that float32 cannot hold."""
    image: Any = case.inputs[0]
    dtype = dt.of(image.dtype)
    wide = dtype in dt.INTEGER and dtype.itemsize >= dt.float32.itemsize
    return {dt.float64} if wide and case.attributes.get("interpolation") == "bilinear" else set()


_NEEDS: Final[Mapping[KernelSpec, Callable[[Case], set[DType]]]] = {
    specs.QUANTIZED_MAT_MUL: _quantized,
    specs.TRANSFORM: _blended,
}


LEAST_LIMIT: Final = 1 << 27
"""Bytes: what every WebGPU device binds. A smaller limit excuses nothing."""


def is_beyond(session: Session, spec: KernelSpec, case: Case) -> bool:
    """Return whether an array of the case is larger than the backend declares that it can be."""
    limit = session.device.capabilities.largest_buffer
    if limit is None or limit < LEAST_LIMIT or case.refused:
        return False
    inputs = [TensorType(dt.of(array.dtype), array.shape) for array in flat(case.inputs)]
    _, outputs = spec.resolve(case.types, case.attributes)
    return any(
        each.known and each.size * each.dtype.itemsize > limit for each in (*inputs, *outputs)
    )


def needed_dtypes(spec: KernelSpec, case: Case) -> set[DType]:
    """Return the dtypes that a backend needs for a case, besides those that each one has.

    They are those of its inputs and outputs, those of the parts of complex numbers, and those
    that the kernel's definition names.
    """
    needed = {dt.of(array.dtype) for array in flat(case.inputs)}
    if not case.refused:
        needed.update(output.dtype for output in spec.resolve(case.types, case.attributes)[1])
        needed |= _NEEDS[spec](case) if spec in _NEEDS else set()
    return needed | {dt.real_part(dtype) for dtype in needed}


def lacks_dtype(session: Session, spec: KernelSpec, case: Case) -> bool:
    """Return whether the case needs a dtype that the backend does not declare."""
    return not needed_dtypes(spec, case) <= session.device.backend.dtypes
