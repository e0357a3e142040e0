"""Points at which gradients are tried, and their expected values: the slopes of the oracle.

Slopes are central differences of the wide oracle, never of the kernel under test, so they are
accurate to about 1e-12 in every dtype. Both parts of complex inputs are moved: the gradient must
be the slope along the real part, minus i times that along the imaginary part (docs/adr/0018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tensorplug.autodiff.grad import vjp
from tensorplug.plugin import dispatch, dispatch_multiple
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded, Relation, flat, mapped
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.session import Session


STEP = 2.0**-11
# Five-point stencil: weights of f(x + k h) - f(x - k h), times 1 / h; error h**4.
STENCIL = ((1, 2.0 / 3.0), (2, -1.0 / 12.0))


class WrongGradientError(Exception):
    """A gradient is wrong; the text says how."""


Place = tuple[
    int, int, tuple[int, ...]
]  # of an element: position of the input, position in a list, index


@dataclass(frozen=True)
class Point:
    """One case, and the sum over its outputs whose gradients are compared.

    ``outputs``: positions of those that can have a gradient; others hold indices and the like.
    ``weights``: one array for each of them, the incoming gradients.
    """

    entry: CaseEntry
    case: Case
    wrt: tuple[str, ...]
    outputs: tuple[int, ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, session: Session, entry: CaseEntry, case: Case) -> Self:
        inputs = dict(zip(entry.spec.input_names, case.inputs, strict=True))
        wrt = tuple(name for name in entry.wrt if inputs[name] is not None)
        operands = session.operands(case)
        with session.entered():
            made = _run(entry.spec, operands, case)
        outputs = tuple(at for at, item in enumerate(made) if item.dtype in dt.INEXACT)
        values = _values(entry, case.inputs, case, outputs)
        outputs = outputs[: len(values)]  # a relation determines the first alone
        for at, value in zip(outputs, values, strict=True):
            if made[at].shape != value.shape:
                raise WrongGradientError(
                    f"the value has shape {list(made[at].shape)}, not {list(value.shape)}"
                )
        plain = isinstance(case.expected, tuple)
        weights = tuple(
            _weights(value, made[at].dtype, plain=plain, even=case.relative)
            for at, value in zip(outputs, values, strict=True)
        )
        return cls(entry, case, wrt, outputs, weights)

    def dtypes(self, name: str) -> list[DType]:
        """Return the dtypes of the gradients of input ``name``, mostly the dtype of the row."""
        operand = self.case.inputs[self.entry.spec.input_names.index(name)]
        return [dt.of(member.dtype) for member in flat([operand])]

    def on(self, session: Session) -> tuple[Callable[..., list[Tensor]], list[Any]]:
        """Return a function from the differentiated inputs to the outputs, and these inputs."""
        operands = session.operands(self.case)
        positions = [self.entry.spec.input_names.index(name) for name in self.wrt]

        def call(*chosen: Any) -> list[Tensor]:
            full = list(operands)
            for position, value in zip(positions, chosen, strict=True):
                full[position] = value
            made = _run(self.entry.spec, full, self.case)
            return [made[at] for at in self.outputs]

        return call, [operands[position] for position in positions]

    def gradients(self, session: Session) -> list[list[Array]]:
        """Return the tape's gradients for each input that is differentiated, as lists."""
        call, primals = self.on(session)
        with session.entered():
            _, vjp_function = vjp(call, *primals, unconnected="zeros")
            gradients = vjp_function([session.upload(weight) for weight in self.weights])
        return [
            [session.read(one) for one in gradient]
            if isinstance(gradient, list | tuple)
            else [session.read(gradient)]
            for gradient in gradients
        ]

    def expected(self) -> list[list[Array]]:
        """Return the expected gradients: the case's, or the slopes of the oracle."""
        if isinstance(self.case.expected, tuple):
            return [[np.asarray(array)] for array in self.case.expected]
        return [self.slope(name) for name in self.wrt]

    def slope(self, name: str) -> list[Array]:
        """Return the gradient of ``real(sum(weights * oracle))`` with respect to an input."""
        position = self.entry.spec.input_names.index(name)
        operand = self.case.inputs[position]
        result = []
        for index, member in enumerate(flat([operand])):
            complex_ = member.dtype.kind == "c"
            gradient = np.zeros(member.shape, dtype=np.clongdouble if complex_ else np.longdouble)
            for at in np.ndindex(member.shape):
                place = (position, index, at)
                gradient[at] = self._along(place, 1)
                if complex_:
                    gradient[at] -= 1j * self._along(place, 1j)
            result.append(gradient)
        return result

    def _along(self, place: Place, unit: complex) -> Any:
        """Return the slope where one element moves along ``unit``."""

        def moved(steps: int) -> Any:
            return self._moved(place, steps * STEP * unit)

        return sum(w * (moved(k) - moved(-k)) for k, w in STENCIL) / np.longdouble(STEP)

    def _moved(self, place: Place, by: complex) -> Any:
        """Return the weighted sum of the oracle's outputs with one element moved."""
        position, index, at = place
        inputs = [widened(operand) for operand in self.case.inputs]
        target = inputs[position]
        if isinstance(target, list):
            target[index][at] += by
        else:
            target[at] += by
        return self.weighted(inputs, self.weights)

    def weighted(self, inputs: Sequence[Any], weights: Sequence[Array]) -> Any:
        """Return ``real(sum(weights * oracle))`` at wide inputs."""
        return sum(term.sum().real for term in self.terms(inputs, weights))

    def values(self, inputs: Sequence[Any]) -> list[Array]:
        """Return the oracle's values of ``outputs`` at wide inputs."""
        return _values(self.entry, inputs, self.case, self.outputs)

    def terms(self, inputs: Sequence[Any], weights: Sequence[Array]) -> list[Array]:
        """Return the terms of that sum, by output."""
        return [
            np.asarray(value * widened(weight))
            for value, weight in zip(self.values(inputs), weights, strict=True)
        ]


def _run(spec: KernelSpec, operands: Sequence[Any], case: Case) -> list[Tensor]:
    """Return the outputs of a case, on the tape if there is one."""
    if spec.multiple_outputs:
        return dispatch_multiple(spec, *operands, **case.attributes)
    return [dispatch(spec, *operands, **case.attributes)]


def _weights(value: Array, dtype: DType, *, plain: bool, even: bool) -> Array:
    """Return the incoming gradient: uneven, so that a transposed or summed one is noticed.

    ``even``: of one sign and never 0, so that each element shows.
    """
    complex_ = value.dtype.kind == "c"
    numpy_dtype = (
        np.result_type(dtype.numpy, np.complex64) if complex_ else dt.real_part(dtype).numpy
    )
    if plain:
        return np.ones(value.shape, dtype=numpy_dtype)
    ramp = np.arange(value.size, dtype=np.float64)
    weights = 1 + ramp % 5 / 4 - (0 if even else ramp % 3 / 2)
    turned = weights + 1j * (ramp % 4 / 2 - 0.5) if complex_ else weights
    return np.asarray(turned.reshape(value.shape), dtype=numpy_dtype)


def widened(operand: Any) -> Any:
    """Return floating and complex arrays in the widest dtype, everything else as it is."""
    return mapped(_widened, operand)


def _widened(array: Array) -> Array:
    wide = {"f": np.longdouble, "c": np.clongdouble}.get(kind_of(array.dtype))
    return array if wide is None else array.astype(wide)


def _values(
    entry: CaseEntry, inputs: Sequence[Any], case: Case, chosen: Sequence[int]
) -> list[Array]:
    """Return the oracle's values of the outputs ``chosen``, as far as it determines them."""
    answer = entry.answered(inputs, case.attributes)
    if isinstance(answer, Relation):
        assert answer.first is not None  # gradients are tried where it is determined
        return [answer.first]
    outputs = answer if isinstance(answer, tuple) else (answer,)
    wide = [outputs[at] for at in chosen]
    return [array.value if isinstance(array, Bounded) else np.asarray(array) for array in wide]
