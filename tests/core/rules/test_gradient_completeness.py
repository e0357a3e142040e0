"""Every input has a rule or a stop, and every rule has points for its features."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.gradient_points import POINTS, RULES, STRAIGHT_THROUGH, has_rule, ordinary

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugins import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.support.samples import Case

    from tensorplug.contract.spec import KernelSpec

SPECS = {spec.name: spec for spec in catalogue.catalogue()}
INPUTS = {(spec.name, name) for spec in SPECS.values() for name in spec.input_names}
WITH_POINTS = sorted({case.kernel for case in POINTS})
AXES = {"axis", "dim", "dims", "reduction_indices"}
INDICES = {"indices", "segment_ids", "sparse_indices", "box_ind"}
# Their last two axes are a product's.
MATRICES = {"BatchMatMul", "MatrixSolve", "MatrixTriangularSolve", "_FusedMatMul"}
MASK = TensorType(dt.bool_, (3, 4))


def rules(spec: KernelSpec) -> list[str]:
    """Return the inputs of real numbers that have a rule."""
    return [name for name in spec.input_names if has_rule(spec.name, name, dt.float64)]


def test_every_input_has_a_rule_or_a_stop() -> None:
    missing = sorted(INPUTS - set(RULES))
    assert not missing, f"no gradient rule and no stop for {missing}"
    assert not set(RULES) - INPUTS


def test_every_stop_says_why() -> None:
    silent = sorted(key for key, entry in RULES.items() if not entry.rule and not entry.reason)
    assert not silent, f"stops without a reason: {silent}"


# Rules of complex numbers alone: see test_complex_gradients.
OF_COMPLEX = {("FFT", "input"), ("IFFT", "input"), ("IRFFT", "input"), ("ComplexAbs", "x")}


def test_every_rule_has_a_point() -> None:
    covered = {(case.kernel, name) for case in POINTS for name in case.wrt}
    covered |= OF_COMPLEX | STRAIGHT_THROUGH
    ruled = {key for key, entry in RULES.items() if entry.rule_for(dt.float64)}
    assert not sorted(ruled - covered), f"no point for {sorted(ruled - covered)}"
    assert not sorted(covered - ruled), f"points, but no rule, for {sorted(covered - ruled)}"


# What the points of a kernel must cover ------------------------------------------------------
#
# The gradient points of a kernel have all features of the suite's ordinary cases: an empty
# input, an operand that is broadcast, each padding, each layout, a negative axis, an input left
# out. The exceptions are listed below, with the reason.

NOT_REDUCED = "refused, and says so: test_factorization"
EXEMPT: dict[tuple[str, str], str] = {
    ("Qr", "full_matrices=True"): NOT_REDUCED,
    ("Svd", "full_matrices=True"): NOT_REDUCED,
    ("Eig", "compute_v=True"): "the vectors have any phase: test_complex_gradients",
}


def features(case: Case) -> Iterator[str]:
    """Yield the features of a call that a gradient rule may get wrong."""
    spec = SPECS[case.kernel]
    for declared in spec.declared:
        name = declared.name
        given = case.inputs.get(name)
        if declared.optional and (given is not None or len(rules(spec)) > 1):
            yield f"{name} {'absent' if given is None else 'given'}"
        if given is None:
            continue
        if declared.variadic:
            yield f"{name}: {'one' if len(given) == 1 else 'several'}"
        arrays = given if declared.variadic else [given]
        if name in rules(spec):
            yield from of_shapes(name, [np.shape(array) for array in arrays])
        elif name in INDICES and np.unique(given).size < np.size(given):
            yield f"{name} that repeat"
    yield from of_broadcasting(spec, case)
    for name, attribute in spec.attributes.items():
        yield from of_value(name, case.attributes.get(name, attribute.default))


def of_shapes(name: str, shapes: list[tuple[int, ...]]) -> Iterator[str]:
    if any(0 in shape for shape in shapes):
        yield f"{name}: empty"
    if any(1 in shape for shape in shapes):
        yield f"{name}: an axis of 1"
    if () in shapes:
        yield f"{name}: rank 0"
    if any(len(shape) > 2 for shape in shapes):
        yield f"{name}: rank above 2"


def of_broadcasting(spec: KernelSpec, case: Case) -> Iterator[str]:
    """Yield which operands are repeated along some axis."""
    if spec.name not in broadcasting():
        return
    names = [name for name in spec.promote if isinstance(case.inputs.get(name), np.ndarray)]
    core = 2 if spec.name in MATRICES else 0
    shapes = [np.shape(case.inputs[name]) for name in names]
    outer = [shape[: len(shape) - core] for shape in shapes]
    full = np.broadcast_shapes(*outer)
    for name, shape in zip(names, outer, strict=True):
        if shape != full and name in rules(spec):
            yield f"{name} broadcast"


@cache
def broadcasting() -> set[str]:
    """Return the kernels whose operands broadcast to one shape, or do so but for two axes."""
    result = {*MATRICES, "FusedBatchNorm"}
    for spec in SPECS.values():
        types = [TensorType(dt.float64, shape) for shape in ((3, 1), (1, 4))]
        named = iter(types)
        try:
            spec.resolve(
                [next(named) if n in spec.promote else MASK for n in spec.input_names], {}
            )
        except (ArgumentError, DTypeError, StopIteration):
            continue
        if len(spec.promote) == 2:
            result.add(spec.name)
    return result


def of_value(name: str, value: Any) -> Iterator[str]:
    """Yield the features of an attribute: a text or flag itself, the sign of a number."""
    if name in ("equation", "dtype") or "value" in name:
        return
    if name == "pad" and not isinstance(value, str):
        yield f"pad: {'a number' if isinstance(value, int) else 'explicit'}"
    elif isinstance(value, str | bool):
        yield f"{name}={value!r}"
    elif isinstance(value, int | tuple | list):
        numbers = [item for item in np.ravel(np.array(value, object)) if isinstance(item, int)]
        if any(number < 0 for number in numbers):
            yield f"negative {name}"
        if any(number > 1 for number in numbers):
            yield f"{name} above 1"


@cache
def tried() -> dict[str, set[str]]:
    result = defaultdict(set)
    for case in POINTS:
        result[case.kernel] |= set(features(case))
    return result


# Required of every kernel with these attributes, also where the ordinary cases lack them.
WINDOWS = {
    "pad": {"pad='same'", "pad='valid'", "pad: a number", "pad: explicit"},
    "strides": {"strides above 1"},
    "dilations": {"dilations above 1"},
}


def wanted(kernel: str) -> set[str]:
    result = {feature for case in ordinary(kernel) for feature in features(case)}
    for name, attribute in SPECS[kernel].attributes.items():
        if name in AXES:
            result.add(f"negative {name}")
        if isinstance(attribute.default, bool):
            result |= {f"{name}=False", f"{name}=True"}
        result |= WINDOWS.get(name, set())
    return result


@pytest.mark.parametrize("kernel", WITH_POINTS)
def test_the_points_cover_what_the_ordinary_cases_try(kernel: str) -> None:
    excused = {feature for name, feature in EXEMPT if name == kernel}
    missing = sorted(wanted(kernel) - tried()[kernel] - excused)
    assert not missing, f"{kernel}: no gradient point with {missing}"
    assert not excused & tried()[kernel], "excused and yet tried"
    assert excused <= wanted(kernel), "excused, but nobody asks for it"
