"""Gradients of resizing: each kernel and its gradient kernel are transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import zeros
from tensorplug.ops.elementwise.complexes import complex as complex_
from tensorplug.ops.elementwise.complexes import imag, real
from tensorplug.ops.image import resizing as ops
from tensorplug.ops.movement import broadcast_to

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def _register(forward: KernelSpec, transposed: KernelSpec) -> None:
    @rules.vjp(forward, "images")
    def images(dy: Tensor, images_type: TensorType, attributes: dict[str, Any]) -> Tensor:
        # The transposed kernel needs only the images' type, so the tape need not keep their data.
        dtype = dt.real_part(images_type.dtype)
        like = broadcast_to(zeros((), dtype=dtype), images_type.shape)
        if dtype is images_type.dtype:
            return dispatch(transposed, like, dy, **attributes)
        return complex_(
            *(dispatch(transposed, like, part(dy), **attributes) for part in (real, imag))
        )

    rules.stop(transposed, "images", because="only its shape matters")

    @rules.vjp(transposed, "dy")
    def dy(ddy: Tensor, attributes: dict[str, Any]) -> Tensor:
        return dispatch(forward, ddy, **attributes)


_register(ops.RESIZE_BILINEAR, ops.RESIZE_BILINEAR_GRAD)
_register(ops.RESIZE_NEAREST_NEIGHBOR, ops.RESIZE_NEAREST_NEIGHBOR_GRAD)
