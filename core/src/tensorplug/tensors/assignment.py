"""Assignment: ``x[key] = value``, ``x += y`` and the like, by copy-on-write.

Tensors are values. An assignment changes the contents of one tensor; the tape and all other
tensors, including views, keep the old ones (docs/adr/0015). It writes in place if no other
tensor, array or capsule shares the memory, and copies it otherwise.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import ShapeError
from tensorplug.ops.indexing import setting, subscripts, traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.indexing.subscripts import Subscript
    from tensorplug.typing import ArrayLike, Index, Operand, TextLike


class Assignment:
    """Methods of Tensor."""

    __slots__ = ()

    def __setitem__(self: Any, key: Index, value: ArrayLike | TextLike) -> None:
        """Replace ``self[key]`` by ``value``, by NumPy's rules.

        Keys are those of ``getitem``. The value broadcasts to the shape of ``self[key]``; of
        several values for one element the last one is kept. The value is cast to this tensor's
        dtype, by ``astype`` if that is an integer one: floats lose their fractions. Complex
        numbers do not become real, and numbers do not become booleans. Gradients flow to the
        value and to the unchanged elements.

        In a compiled function, an integer tensor i, and a slice ``i:i + n``, is a window of a
        fixed size: it is moved, so that it lies inside, as that of ``dynamic_update_slice``.

        Only this tensor changes: other tensors, including its views, keep their values.

        Raises:
            DTypeError, ShapeError: the value does not fit.
            OutOfRangeError, ArgumentError: the index does not fit.

        """
        self._live()
        window = traced.find_window(self._placement.type, key, writes=True)
        if window is not None:
            converted = setting.cast_assigned(value, self)
            replace_contents(self, setting.replace_window(self, window, converted))
            return
        subscript = subscripts.parse(self._placement.type, key)
        converted = setting.cast_assigned(value, self)
        if not _write_in_place(self, subscript, converted):
            replace_contents(self, setting.replace_selection(self, subscript, converted))

    def __iadd__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.add, other, "+")

    def __isub__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.sub, other, "-")

    def __imul__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.mul, other, "*")

    def __imatmul__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.matmul, other, "@")

    def __itruediv__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.truediv, other, "/")

    def __ifloordiv__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.floordiv, other, "//")

    def __imod__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.mod, other, "%")

    def __ipow__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.pow, other, "**")

    def __iand__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.and_, other, "&")

    def __ior__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.or_, other, "|")

    def __ixor__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.xor, other, "^")

    def __ilshift__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.lshift, other, "<<")

    def __irshift__(self: Any, other: Operand) -> Tensor:
        return _augmented(self, operator.rshift, other, ">>")


def _augmented(
    tensor: Tensor, function: Callable[[Any, Any], Any], other: Any, symbol: str
) -> Tensor:
    """Replace the contents of ``tensor`` by ``tensor symbol other``; return it.

    Dtype and shape do not change, as the array API standard requires.
    """
    result: Tensor = function(tensor, other)
    if not hasattr(result, "_placement"):
        return result  # of another library, whose class handled the operator
    if result.type != tensor.type:
        what = f"{tensor.type} {symbol}= ..."
        if result.shape != tensor.shape:
            raise ShapeError(f"{what}: the result is {result.type}, but the shape cannot change")
        result = setting.cast_value(result, tensor, what)
    replace_contents(tensor, result)
    return tensor


def replace_contents(tensor: Tensor, other: Tensor) -> None:
    """Give ``tensor`` the data and the node of ``other``, which has the same type."""
    device = tensor._live()
    context = current_context()
    context.interpreter.change(tensor)
    if other._placement.device is not device:
        now = context.device
        if (device.is_real or now is None or now.is_real) and context.outside is None:
            other = to_device(other, device.name)
        else:
            # Inside vmap, a constant becomes a tensor of one example, or the reverse; inside a
            # traced loop, a tensor that is the same in all steps one that is not.
            tensor._placement = other._placement
    tensor._exclusive = None
    tensor._node = other._node
    tensor._buffer = other._buffer


def _write_in_place(tensor: Tensor, subscript: Subscript, value: Tensor) -> bool:
    """Write ``value`` into memory that only ``tensor`` uses; return whether that was possible.

    The first assignment copies the contents into such memory. Later ones write to it, unless a
    view, another tensor, the tape or an array shares it: then they copy again.
    """
    device = tensor._live()
    exclusive_copy = device.capabilities.exclusive
    if exclusive_copy is None or subscript.picks:
        return False
    context = current_context()
    if context.recording is not None or context.observers or engine_of(context).observers:
        return False  # the tape or an observer must see the call
    if context.outside is not None:
        return False  # as may a tape outside of vmap
    fitted = setting.fit_value(value, subscript.shape, tensor)
    if fitted._placement.device is not device:
        return False
    own = getattr(tensor, "_exclusive", None)
    if own is not None:
        # The new loan comes first: another thread may read the buffer at any moment.
        tensor._buffer = own.lend()
        written = own.overwrite(subscript.basic, fitted._buffer)
    else:
        written = False
    if not written:
        if subscript.whole:
            return False  # all contents are replaced, so no copy is needed
        own = exclusive_copy(tensor._buffer)
        if own is None:
            return False
        buffer = own.lend()
        own.overwrite(subscript.basic, fitted._buffer)
        tensor._exclusive = own
        tensor._buffer = buffer
    tensor._node = None  # which computed the old contents
    return True
