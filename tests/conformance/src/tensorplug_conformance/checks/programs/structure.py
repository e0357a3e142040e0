"""Facts of specs hold: a kernel that is stated to be elementwise, or linear, is so.

The statements in force are compared with what the kernel computes, as level 3 compares that with
its decomposition. Whether ``fold`` and ``leading`` hold is asked by
vmap = stack, and whether ``symmetric`` does by jvp = slope along a direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.errors import TensorplugError
from tensorplug.plugin import dispatch, dispatch_multiple
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import mapped
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.programs.mapping import small_cases
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import KernelSpec, TangentEntry
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_CASES: Final = 12  # per kernel
_LARGEST: Final = 1e3  # magnitude, beyond which differences of results would lose digits
_ROUNDINGS: Final = 256  # of the largest result


def _run(spec: KernelSpec, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Array]:
    tensors = mapped(tp.asarray, [*inputs])
    if spec.multiple_outputs:
        return [one.numpy() for one in dispatch_multiple(spec, *tensors, **attributes)]
    return [dispatch(spec, *tensors, **attributes).numpy()]


def _check_elementwise(spec: KernelSpec, case: Case) -> None:
    """Call the kernel on every other element, which must not change the results there."""
    (whole,) = _run(spec, case.inputs, case.attributes)
    if whole.size < 2:
        return
    picked = mapped(lambda x: np.broadcast_to(x, whole.shape).ravel()[1::2], [*case.inputs])
    (result,) = _run(spec, picked, case.attributes)
    _compare(result, whole.ravel()[1::2], f"{spec.describe(case.types)}: it is not elementwise")


def _check_linear(spec: KernelSpec, entry: TangentEntry, case: Case) -> None:
    """Compare a difference of results with the linear kernel of the difference of inputs."""
    chosen = [name in entry.together for name in spec.input_names]
    own = [x for x, linear in zip(case.inputs, chosen, strict=True) if linear]
    if not all(x is not None and _is_moderate(x) for x in own):
        return

    def replaced(change: Callable[[Array], Any]) -> list[Any]:
        pairs = zip(case.inputs, chosen, strict=True)
        return [mapped(change, [x])[0] if linear else x for x, linear in pairs]

    there = _run(spec, case.inputs, case.attributes)
    here = _run(spec, replaced(_other), case.attributes)
    between = {**case.attributes, **entry.attributes}
    results = _run(spec, replaced(lambda x: x - _other(x)), between)
    which = " with ".join(entry.together)
    for a, b, difference in zip(there, here, results, strict=True):
        if a.dtype.kind in "fc":
            scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
            where = f"{spec.describe(case.types)}: it is not linear in {which}"
            _compare(difference, a - b, where, scale)


def _other(x: Array) -> Array:
    """Return other elements of the same type: the same ones in another order, halved."""
    return np.asarray(x.ravel()[::-1].reshape(x.shape) * x.dtype.type(0.5))


def _is_moderate(operand: Any) -> bool:
    members = operand if isinstance(operand, list) else [operand]
    return all(
        x.dtype.kind in "fc" and bool(np.all(np.abs(x) < _LARGEST))
        for x in map(np.asarray, members)
    )


def _compare(result: Array, meant: Array, where: str, scale: float = 0.0) -> None:
    if result.shape != meant.shape or result.dtype != meant.dtype:
        raise CheckFailedError(f"{where}: another type")
    if result.dtype.kind not in "fc":
        right = np.array_equal(result, meant)
    else:
        eps = float(finfo(result.dtype).eps)
        bound = _ROUNDINGS * eps
        right = np.allclose(result, meant, rtol=bound, atol=bound * scale, equal_nan=True)
    if not right:
        raise CheckFailedError(where)


def _holds(_target: Target, opened: Callable[[], Session]) -> str:
    """Compare the statements in force about each kernel with what it computes; tell how many."""
    session = opened()
    with session.entered():
        known = sorted(entries(extension_tables()).items())
        compared = [_check_kernel(session, entry) for _, entry in known]
    return f"{sum(count > 0 for count in compared)} kernels in {sum(compared)} calls"


def _check_kernel(session: Session, entry: CaseEntry) -> int:
    """Return the number of calls that were compared."""
    spec, state = entry.spec, session.engine.registry.state
    stated = [state.tangent(spec.name, name) for name in spec.input_names]
    tangents = [owned.entry for owned in stated if owned is not None]
    elementwise = spec.elementwise or (
        len(tangents) == len(spec.input_names) > 0
        and all(tangent.kind == "elementwise" for tangent in tangents)
    )
    linear = [tangent for tangent in tangents if tangent.kind == "linear"]
    dtypes = [dtype for dtype in entry.dtypes if dtype in session.device.backend.dtypes]
    real = [dtype for dtype in (dt.float64, dt.float32, dt.complex128) if dtype in dtypes]
    dtype = next(iter([*real, *dtypes]), None)
    if dtype is None or not spec.input_names or not (elementwise or linear):
        return 0
    compared = 0
    for case in small_cases(entry, dtype)[:_CASES]:
        try:
            if elementwise:
                _check_elementwise(spec, case)
            for tangent in linear:
                _check_linear(spec, tangent, case)
        except TensorplugError:  # a kernel that does not accept other elements, or their shape
            continue
        compared += 1
    return compared


CHECKS: Final = (Check(4, "facts of specs hold", _holds),)
