"""Calls of kernels on several examples, for tests of vmap: the suite's cases, and variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.ops import creation

from .catalogue_calls import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.dispatch.tensor import Tensor

Place = tuple[int, int | None]  # an input, and a member of it if it is a list

EXAMPLES = 3


class BatchedCall:
    """A call of a kernel some of whose inputs, those at ``places``, differ by example."""

    def __init__(self, spec: Any, case: Any, places: Sequence[Place]) -> None:
        self.spec = spec
        self.case = case
        self.places = places
        self.stacks = [np.stack(_variants(self._given(place))) for place in places]

    def __repr__(self) -> str:
        batched = [f"{number}" if at is None else f"{number}[{at}]" for number, at in self.places]
        return f"{self.spec.name} of {self.case.inputs}, inputs {', '.join(batched)} batched"

    def _given(self, place: Place) -> Any:
        number, at = place
        return self.case.inputs[number] if at is None else self.case.inputs[number][at]

    def run(self, *batched: Tensor) -> list[Tensor]:
        """Call the kernel with one example of the inputs at ``places``."""
        inputs: list[Any] = [_operand(given) for given in self.case.inputs]
        for (number, at), tensor in zip(self.places, batched, strict=True):
            if at is None:
                inputs[number] = tensor
            else:
                inputs[number][at] = tensor
        if self.spec.multiple_outputs:
            return dispatch_multiple(self.spec, *inputs, **self.case.attributes)
        return [dispatch(self.spec, *inputs, **self.case.attributes)]

    def one_by_one(self) -> list[list[Tensor]]:
        """Return the outputs of each example."""
        return [
            self.run(*[creation.asarray(stack[at]) for stack in self.stacks])
            for at in range(EXAMPLES)
        ]

    def tensors(self, axis: int = 0) -> list[Tensor]:
        """Return the batched inputs with the examples in ``axis``, as far as they have it."""
        return [
            creation.asarray(np.moveaxis(stack, 0, min(axis, stack.ndim - 1)))
            for stack in self.stacks
        ]

    def axes(self, axis: int = 0) -> list[int]:
        """Return the axes of the examples in ``tensors(axis)``."""
        return [min(axis, stack.ndim - 1) for stack in self.stacks]


def batched_calls(kernel: str, most: int) -> Iterator[BatchedCall]:
    """Yield calls in which all inputs are batched, and in which one is; of ``most`` cases."""
    for number, (spec, case) in enumerate(cases(kernel)):
        if number == most:
            return
        places: list[Place] = []
        for at, given in enumerate(case.inputs):
            if isinstance(given, list):
                places += [(at, member) for member in range(len(given))]
            elif given is not None:
                places.append((at, None))
        if places:
            yield BatchedCall(spec, case, places)
        if len(places) > 1:
            for place in places:
                yield BatchedCall(spec, case, [place])


def _variants(given: Any) -> list[np.ndarray]:
    """Return examples like ``given`` that a kernel still accepts: in order, in range, definite."""
    array = np.asarray(given)
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


def _operand(given: Any) -> Any:
    if isinstance(given, list):
        return [_operand(member) for member in given]
    return None if given is None else creation.asarray(given)
