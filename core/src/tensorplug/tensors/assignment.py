"""What NumPy does in place: ``x[key] = value``, ``x += y`` and the like.

Tensors are values. An assignment puts other values under this one handle; the tape, and every
other tensor, keep the old ones. Only where nobody else could see it is the buffer itself changed.
``x += y`` makes another tensor, for which x then stands. Where NumPy would let another live tensor
see the change, because one of the two is a view, both are refused (``aliasing``, docs/adr/0015).
"""

from __future__ import annotations

import operator
import sys
from dis import get_instructions
from opcode import opname
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch import aliasing
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import AliasError, ShapeError
from tensorplug.ops.indexing import setting, subscripts

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tensorplug.ops.indexing.subscripts import Subscript

__all__ = ["InPlace"]


class InPlace:
    """Base of Tensor: assignment."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Put ``value`` in the place of ``self[key]``, by NumPy's rules.

        All that reads (``getitem``) can be written: the value broadcasts to the shape of
        ``self[key]``; of several values for one place the last one stands. The value takes this
        tensor's dtype, where NumPy's casting of the same kind allows it: floats do not become
        integers. Gradients flow to the value, and to what is kept.

        Raises:
            AliasError: NumPy would change another live tensor too, because one of the two is a
                view; here that one would keep its values.
            DTypeError, ShapeError: the value does not fit.
            OutOfRangeError, ArgumentError: nor does the index.

        """
        tensor: Any = self
        tensor._live()
        subscript = subscripts.parse(tensor._placement.type, key)
        where = subscript.basic
        aliasing.check_write(tensor, where, value=value)
        given = setting.castable(value, tensor)
        outdated = aliasing.outdated(tensor, where, value)
        if not _overwritten(tensor, subscript, given):
            tensor._become(setting.updated(tensor, subscript, given))
        if outdated:
            value._outdate()

    def _augmented(self, function: Callable[[Any, Any], Any], other: Any, symbol: str) -> Any:
        """Return the tensor for which the name stands after ``self symbol= other``.

        Its dtype and shape are this one's, as the array API standard wants it.
        """
        tensor: Any = self
        what = f"{tensor.type} {symbol}= ..."
        if getattr(tensor, "_alias", None) is not None:
            try:
                aliasing.check_write(tensor, (), what)
            except AliasError:
                # `x[key] += y` changes what it has just read as x[key], and puts it back.
                frame = sys._getframe(2)
                if not (_stored_by_key(frame) or _stored_by_call(frame, tensor, what)):
                    raise
        result = function(tensor, other)
        if not hasattr(result, "_placement") or result.type == tensor.type:
            return result  # in the first case `other` knew what to do
        if result.shape != tensor.shape:
            raise ShapeError(f"{what}: the result is {result.type}, but the shape must stay")
        return setting.castable(result, tensor, what)

    def __iadd__(self, other: Any) -> Any:
        return self._augmented(operator.add, other, "+")

    def __isub__(self, other: Any) -> Any:
        return self._augmented(operator.sub, other, "-")

    def __imul__(self, other: Any) -> Any:
        return self._augmented(operator.mul, other, "*")

    def __imatmul__(self, other: Any) -> Any:
        return self._augmented(operator.matmul, other, "@")

    def __itruediv__(self, other: Any) -> Any:
        return self._augmented(operator.truediv, other, "/")

    def __ifloordiv__(self, other: Any) -> Any:
        return self._augmented(operator.floordiv, other, "//")

    def __imod__(self, other: Any) -> Any:
        return self._augmented(operator.mod, other, "%")

    def __ipow__(self, other: Any) -> Any:
        return self._augmented(operator.pow, other, "**")

    def __iand__(self, other: Any) -> Any:
        return self._augmented(operator.and_, other, "&")

    def __ior__(self, other: Any) -> Any:
        return self._augmented(operator.or_, other, "|")

    def __ixor__(self, other: Any) -> Any:
        return self._augmented(operator.xor, other, "^")

    def __ilshift__(self, other: Any) -> Any:
        return self._augmented(operator.lshift, other, "<<")

    def __irshift__(self, other: Any) -> Any:
        return self._augmented(operator.rshift, other, ">>")


_COUNTED: Final = sys.implementation.name == "cpython" and (
    not hasattr(sys, "_is_gil_enabled") or sys._is_gil_enabled()
)
"""Whether the number of references to an object is exact and does not change behind our back."""


def _overwritten(tensor: Any, subscript: Subscript, given: Any) -> bool:
    """Write ``given`` into the buffer of ``tensor`` if nobody else can see it; say whether.

    Whoever could (another handle, the tape, a view, NumPy's arrays in the user's hands) holds the
    buffer. The two references are this tensor's and that of the call which counts.
    """
    if not _COUNTED or subscript.picks or getrefcount(tensor._buffer) != 2:
        return False
    value = setting.fitting(given, subscript.shape, tensor)
    frame = current_context()
    if not engine_of(frame).overwrite(frame, tensor, subscript.basic, value):
        return False
    tensor._node = None  # it is no longer what was computed there
    return True


_BETWEEN: Final = {"CACHE", "EXTENDED_ARG", "NOP", "SWAP"}
_STORES: Final = {"STORE_SUBSCR", "STORE_SLICE"}
_CALLS: Final = {"CALL", "PRECALL"}


def _stored_by_key(frame: FrameType) -> bool:
    """Return whether the augmented assignment that ``frame`` is at has an index on its left.

    Nothing else tells ``x[0] += 1`` from ``y = x[0]; y += 1``. The former's next step, after the
    operator, is to store into x; whatever is not recognized counts as the latter, an error.
    """
    code = frame.f_code.co_code
    at = frame.f_lasti
    if not opname[code[at]].startswith("BINARY_OP"):
        return False
    at += 2
    while at < len(code) and opname[code[at]] in _BETWEEN:
        at += 2
    return at < len(code) and opname[code[at]] in _STORES


def _stored_by_call(frame: FrameType, view: Any, what: str) -> bool:
    """Return whether ``frame`` is at ``x[key] = operator.iadd(x[key], y)``, of which this is part.

    array-api-extra writes ``x[key] += y`` so, and SciPy through it. The store comes next, from
    two names into the tensor of which ``view`` shows just that part. Nobody else may see it.
    """
    target = _stored_next(frame)
    if target is None or not hasattr(target[0], "_placement"):
        return False
    x, key = target
    subscript = subscripts.parse(x.type, key)
    if subscript.picks or not aliasing.shows(view, x, subscript.basic):
        return False
    aliasing.check_write(view, (), what, x)
    return True


def _stored_next(frame: FrameType) -> tuple[Any, Any] | None:
    """Return x and key if the call that ``frame`` is at, and then ``x[key] = it``, is all."""
    steps = (
        get_instruction
        for get_instruction in get_instructions(frame.f_code)
        if get_instruction.offset >= frame.f_lasti
    )
    called = False
    loaded: list[Any] = []
    for step in steps:
        if not called and step.opname in _CALLS:
            called = step.opname == "CALL"
        elif called and step.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME")):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            loaded += [frame.f_locals.get(name) for name in names]
        elif called and step.opname == "LOAD_CONST":
            loaded.append(step.argval)
        elif step.opname not in _BETWEEN:
            stored = called and step.opname == "STORE_SUBSCR" and len(loaded) == 2
            return (loaded[0], loaded[1]) if stored else None
    return None
