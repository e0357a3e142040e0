"""The functions that formulas call, on tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from tensorplug.dispatch.calls import as_tensor
from tensorplug.ops.elementwise import powers, unary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.reduction import sum

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

_FEW: Final = 1 << 20  # numbers of one temporary result


def are_few(x: Tensor, count: int) -> bool:
    """Return whether ``count`` terms for each element of ``x`` are best computed in one call.

    A backend that compiles loops for large arrays alone must not get these from small inputs: the
    first call of a decomposition, kernel by kernel, would round otherwise than its program.
    """
    least = x._placement.device.root.least_group()
    return count * x.size < (_FEW if least in (None, 1) else least)


FUNCTIONS: Final = SimpleNamespace(
    **vars(unary),
    where=where,
    expm1=powers.expm1,
    log1p=powers.log1p,
    are_few=are_few,
    asarray=as_tensor,
    sum=sum,
)
