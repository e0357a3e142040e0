"""Points at which gradients of complex inputs are checked: our real ones moved, and the suite's.

A smooth point of a real function is one of the same function of complex numbers, moved off the
real axis by less than the distance to the next branch point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.core.support import gradient_points
from tests.core.support.gradient_cases import CASES
from tests.core.support.samples import Case, real

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.plugins import catalogue

if TYPE_CHECKING:
    import numpy as np

SPECS = {spec.name: spec for spec in catalogue.catalogue()}

# The phases of vectors are arbitrary: test_complex_gradients has functions that do not depend
# on them.
VALUES = {"Svd": {"compute_uv": False}, "SelfAdjointEigV2": {"compute_v": False}}


def takes_complex(kernel: str, name: str) -> bool:
    return dt.complex128 in SPECS[kernel].accepted(name)


def has_rule(kernel: str, name: str) -> bool:
    """Return whether complex numbers at this input have a gradient rule."""
    return takes_complex(kernel, name) and gradient_points.has_rule(kernel, name, dt.complex128)


def _off_axis(x: np.ndarray) -> np.ndarray:
    return x + 0.4j * real(*x.shape, low=-1.0, high=1.0, salt=9) if x.dtype.kind == "f" else x


def _moved(case: Case) -> Case:
    attributes: dict[str, Any] = {**case.attributes, **VALUES.get(case.kernel, {})}
    if case.kernel == "Cast":
        attributes["dtype"] = "complex128"
    inputs = {
        name: tp.tree_map(_off_axis, value) if takes_complex(case.kernel, name) else value
        for name, value in case.inputs.items()
    }
    wrt = tuple(name for name in case.wrt if has_rule(case.kernel, name))
    return Case(case.kernel, case.what, inputs, wrt, attributes)


MOVED = [case for case in map(_moved, CASES) if case.wrt]


def _points() -> list[Case]:
    suite = [
        Case(
            item.kernel,
            item.what,
            item.inputs,
            tuple(name for name in item.wrt if has_rule(item.kernel, name)),
            {**item.attributes, **VALUES.get(item.kernel, {})},
        )
        for item in gradient_points.of_the_suite(dt.complex128)[0]
    ]
    return [*MOVED, *(case for case in suite if case.wrt)]


COMPLEX_POINTS = _points()
