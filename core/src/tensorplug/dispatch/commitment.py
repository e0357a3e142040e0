"""Committed tensors: computation follows the data that a program has placed on a device.

A tensor is committed to a device if a program placed it there (``device=``, ``to``), and so is
each result of a call with a committed input. Such a call runs on the device of these inputs. All
other calls run on the current device. (docs/adr/0052)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.context import engine_of
from tensorplug.errors import DeviceMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor


def commit(tensor: Tensor) -> Tensor:
    """Return a tensor as committed to its device; itself if it is, or is in host memory."""
    placement = tensor._placement
    device: Device | None = placement.device
    if placement.committed or device is None or device.host is None:
        return tensor
    committed: Tensor = device.commit(tensor)
    return committed


def release(operand: Any) -> Any:
    """Return an input of a call, also a list or None, with no tensor committed to its device."""
    if isinstance(operand, list):
        return [release(tensor) for tensor in operand]
    if operand is None or not operand._placement.committed:
        return operand
    free = operand._placement.as_committed(False)  # noqa: FBT003  # the one argument
    return type(operand)._of(operand._buffer, free, operand._node)


def find_root(
    tensors: Iterable[Any], who: str, names: Callable[[int], str] = "argument {}".format
) -> Device | None:
    """Return the real device to which tensors are committed; None if none of them is.

    Closed devices do not count: using the tensor raises a better error. ``names``: of the tensors
    by position, for messages.

    Raises:
        DeviceMismatchError: they are committed to different devices.

    """
    root: Device | None = None
    first: tuple[int, Any] = (0, None)
    for at, tensor in enumerate(tensors):
        placement = tensor._placement
        if not placement.committed or placement.device.closed:
            continue
        if root is None:
            root, first = placement.device.root, (at, tensor)
        elif placement.device.root is not root:
            before, other = names(first[0]), placement.device.root.name
            raise DeviceMismatchError(
                f"{who}: {before} ({first[1].type}) was placed on {root.name!r}, and {names(at)} "
                f"({tensor.type}) on {other!r}; a call runs on one device. Move one of them with "
                f".to({root.name!r}) or .to({other!r})",
                other,
            )
    return root


def follow(context: Context, tensors: Iterable[Tensor], who: str) -> Context:
    """Return the context in which to call a function of ``tensors``: on their device.

    Raises:
        DeviceMismatchError: they are committed to different devices.

    """
    root = find_root(tensors, who)
    if root is None:
        return context
    device = context.device or engine_of(context).open(None)
    return context if device.beside(root) is device else context.replace(device=root)
