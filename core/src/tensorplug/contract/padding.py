"""What becomes of a kernel's results if its inputs are padded: a fact of its spec.

A padded value holds the exact one as its first elements along each axis, followed by anything at
all: axes are padded where the two sizes differ. A rule says whether the results of the padded call
begin with those of the exact call, and which inputs must first be masked along an axis, because
their padding would take part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.tensor_types import TensorType


Pair: TypeAlias = tuple[int, int]
"""An exact size and the padded one."""


class Mask(NamedTuple):
    """Padding of one input along one axis that must become ``neutral``.

    ``input``: its position among the tensors of the call, those in lists included.
    """

    input: int
    axis: int
    neutral: Scalar


class RefusedError(Exception):
    """A call does not allow padding; the message says why."""


@dataclass(frozen=True, slots=True)
class PaddedCall:
    """A call at exact sizes, and the same call at padded sizes.

    ``attributes``, ``types``: of the exact call, the types of each tensor that is given.
    ``padded``: the attributes of the padded call. ``inputs``, ``outputs``: the sizes of each
    tensor that is given or returned, by axis. ``known``: reads the data of an input at exact
    sizes; None if they depend on arguments.
    """

    attributes: Mapping[str, Any]
    padded: Mapping[str, Any]
    types: Sequence[TensorType]
    inputs: Sequence[Sequence[Pair]]
    outputs: Sequence[Sequence[Pair]]
    known: Sequence[Callable[[], Any] | None]

    def are_places(self, at: int, axes: Sequence[Pair]) -> bool:
        """Return whether an input is known to hold indices within the exact sizes of ``axes``."""
        read = self.known[at]
        if read is None:
            return False
        data, sizes = read(), np.array([exact for exact, _ in axes])
        return bool(((data >= 0) & (data < sizes)).all())


@dataclass(frozen=True, slots=True)
class Padding:
    """A rule of padding: ``rule`` returns the masks that a call needs.

    It returns None if the decomposition must tell, and raises ``RefusedError`` if the results do
    not begin with the exact ones, whatever is masked. ``sizes``: the attributes that may differ
    between the calls, because they are sizes.
    """

    rule: Callable[[PaddedCall], list[Mask] | None]
    sizes: tuple[str, ...] = ()

    def __str__(self) -> str:
        sizes = f", for any {' and '.join(self.sizes)}" if self.sizes else ""
        return f"{self.rule.__name__.strip('_').replace('_', ' ')}{sizes}"


def differ(sizes: Sequence[Pair]) -> list[int]:
    """Return the padded axes."""
    return [axis for axis, (exact, padded) in enumerate(sizes) if exact != padded]


def check_broadcast(sizes: Sequence[Pair], out: Sequence[Pair]) -> None:
    """Check that each axis of an input broadcasts to that of the output in the same way.

    Raises:
        RefusedError: an axis of one size has length 1, that of the other has not.

    """
    for pair, whole in zip(reversed(sizes), reversed(out), strict=False):
        if pair not in (whole, (1, 1)):
            raise RefusedError("an axis broadcasts at one of the sizes only")


def folds(call: PaddedCall, batch: Collection[int]) -> bool:
    """Return whether no more than axis 0 of the inputs at the positions ``batch`` is padded."""
    return all(
        not differ(sizes) or (differ(sizes) == [0] and at in batch)
        for at, sizes in enumerate(call.inputs)
    )


# Rules -----------------------------------------------------------------------------------------


def any_size(*sizes: str) -> Padding:
    """Return the rule of a kernel whose padded results begin with the exact ones as they are."""
    return Padding(_anything, sizes)


def _anything(_call: PaddedCall) -> list[Mask]:
    return []


def broadcast(*sizes: str) -> Padding:
    """Return the rule of a kernel each of whose elements depends on those in its place."""
    return Padding(elementwise, sizes)


def elementwise(call: PaddedCall) -> list[Mask]:
    """Allow a call in which each element depends on those in its place, which broadcast."""
    for sizes in call.inputs:
        check_broadcast(sizes, call.outputs[0])
    return []
