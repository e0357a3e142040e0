"""The functions that formulas call, on tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import tensorplug as tp
from tensorplug.algorithms import least_group
from tensorplug.plugin import as_tensor

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor

_FEW: Final = 1 << 20  # numbers of one temporary result


def are_few(x: Tensor, count: int) -> bool:
    """Return whether ``count`` terms for each element of ``x`` are best computed in one call.

    A backend that compiles loops for large arrays alone must not get these from small inputs: the
    first call of a decomposition, kernel by kernel, would round otherwise than its program.
    """
    least = least_group(x)
    return count * x.size < (_FEW if least in (None, 1) else least)


FUNCTIONS: Final = SimpleNamespace(
    abs=tp.abs,
    are_few=are_few,
    asarray=as_tensor,
    cos=tp.cos,
    exp=tp.exp,
    expm1=tp.expm1,
    floor=tp.floor,
    log=tp.log,
    log1p=tp.log1p,
    sin=tp.sin,
    sqrt=tp.sqrt,
    sum=tp.sum,
    where=tp.where,
)
