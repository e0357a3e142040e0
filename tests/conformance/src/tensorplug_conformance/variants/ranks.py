"""Cases for every pair of ranks that a kernel's first two inputs can have.

A kernel may be wrong only where its first input has the lower rank, or for ranks 3 and 1 alone.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_conformance.case import flat

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorplug_conformance.case import Case


_RANKS: Final = range(6)
_AXES: Final = (3, 2, 3, 1, 2)  # sizes of axes that are put in front, the last one behind them
_Shapes = tuple[tuple[int, ...], ...]


def ranks_of(case: Case) -> tuple[int, int] | None:
    """Return the ranks of the first two inputs; None if there are not two with elements."""
    first = [x for x in case.inputs[:2] if isinstance(x, np.ndarray) and x.size]
    return (first[0].ndim, first[1].ndim) if len(first) == 2 else None


def other_ranks(base: Case, known: Iterable[tuple[int, int]]) -> Sequence[_Shapes]:
    """Return the shapes of a case's inputs for each pair of ranks that is not ``known``.

    Axes in front are left out, or added with sizes that fit one another; the spec decides.
    """
    arrays = flat(base.inputs)
    missing = sorted(set(product(_RANKS, repeat=2)) - set(known))
    others = tuple(array.shape for array in arrays[2:])
    return [
        (*(_of_rank(x.shape, rank) for x, rank in zip(arrays[:2], ranks, strict=True)), *others)
        for ranks in missing
    ]


def _of_rank(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    if rank <= len(shape):
        return shape[len(shape) - rank :]
    return (*_AXES[len(_AXES) - rank : len(_AXES) - len(shape)], *shape)
