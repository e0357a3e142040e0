"""Variables: tensors with a name, whose contents can be replaced.

A variable holds a plain tensor. Each call reads that tensor once, so that an assignment in
another thread takes effect before the call or after it, never during it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from weakref import ref

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag, quoted
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DisposedError, DTypeError, GradientError, ShapeError
from tensorplug.tensors.names import Names

if TYPE_CHECKING:
    import numpy as np

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.context import EngineProtocol
    from tensorplug.dispatch.device import Device
    from tensorplug.typing import ArrayLike, DTypeLike, Index, Operand, TextLike


# The callback that removes a dead engine is C code (dispatch/weak.py says why).
_by_engine: Final[dict[ref[EngineProtocol], Names[Variable]]] = {}


def variables_of(engine: EngineProtocol) -> Names[Variable]:
    """Return the live variables of an engine."""
    count = _by_engine.get(ref(engine))
    if count is None:
        count = _by_engine.setdefault(ref(engine, _by_engine.__delitem__), Names())
    return count


class _Contents:
    """Replaces the placement of a variable; no plan has it in its key.

    So each call with a variable misses the plan cache. The slow path reads the variable once, so
    that placement, buffer and node belong together.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor  # private to the variable, and not on a tape

    @property
    def device(self) -> Device | None:
        return self.tensor._placement.device

    @property
    def type(self) -> TensorType:
        return self.tensor._placement.type

    @property
    def committed(self) -> bool:
        return self.tensor._placement.committed


class Variable(Tensor):
    """A tensor with a name, whose contents ``assign`` replaces; dtype and shape do not change.

    A variable can be used like a tensor. Each call reads it once; earlier reads, by a kernel, by
    the tape or with ``read``, keep the old contents. ``v += x`` and the other in-place operators
    assign. ``tidy`` does not free a variable: it lives until it is deleted or disposed of.

    A differentiated function treats a variable as a constant, unless ``variable_grads`` computes
    its gradient or it is passed as an argument.

    Threads may assign and read at the same time: a call sees the contents before or after, and
    the last assignment wins. ``v += x`` reads, computes and assigns; if two threads do so at the
    same time, one update may be lost.

    Args:
        value: the initial contents: a tensor, whose data and device are shared, or anything
            ``asarray`` accepts.
        trainable: whether ``variable_grads`` differentiates with respect to it by default.
        name: unique among the live variables of this engine; ``variable_0`` and so on by default.
        dtype: of the contents; the value's by default.

    Raises:
        ArgumentError: ``name`` is taken, empty or not text; ``trainable`` is not a bool.
        DisposedError, BackendClosedError: ``value`` was disposed, or its backend was closed.
            Also the errors of ``asarray``.

    Examples:
        >>> w = tp.Variable([1.0, 2.0])
        >>> before = w.read()
        >>> w -= 0.5
        >>> w.assign(w * 2)
        >>> w.tolist(), before.tolist()
        ([1.0, 3.0], [1.0, 2.0])
        >>> w.trainable, w.dtype
        (True, tensorplug.float32)

    """

    __slots__ = ("_name", "_registry", "_trainable")

    _name: str
    _registry: Names[Variable]
    _trainable: bool

    def __init__(
        self,
        value: ArrayLike | TextLike,
        *,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        _check_name(name)
        result_dtype = None if dtype is None else dt.of(dtype, "Variable")
        if not isinstance(value, Tensor) or (
            result_dtype is not None and value.dtype is not result_dtype
        ):
            value = as_tensor(value, result_dtype, what="Variable: value")
        self._begin(value, trainable)
        self._name = self._registry.enter(self, name)

    def _begin(self, value: Tensor, trainable: bool) -> None:  # noqa: FBT001  # private
        self._hold(value)
        self.trainable = trainable
        self._registry = variables_of(engine_of(current_context()))

    def _hold(self, value: Tensor) -> None:
        """Make the data of ``value`` the contents, even if ``value`` is disposed of later."""
        tensor = value._reading() if isinstance(value, Variable) else value
        current_context().interpreter.assign(self, tensor)

    def _keep(self, tensor: Tensor) -> None:
        """Make the data of ``tensor`` the contents now, whatever transforms the function."""
        handle = Tensor._of(tensor._buffer, tensor._placement)
        handle._live()
        self._placement = _Contents(handle)  # type: ignore[assignment]  # a substitute

    # Name and flag ------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name, unique among the live variables of the engine."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether ``variable_grads`` differentiates with respect to it by default."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = flag(value, "Variable: trainable")

    def __repr__(self) -> str:
        start = f"{type(self).__name__}({self._name!r}, "
        held = repr(self._reading()).replace("\n", "\n" + " " * len(start))
        return f"{start}{held}{'' if self._trainable else ', trainable=False'})"

    # Contents -------------------------------------------------------------------------

    def _reading(self) -> Tensor:
        """Return the tensor with the contents in this context; it must not be disposed of."""
        contents: Any = self._placement
        held: Tensor = contents.tensor
        context = current_context()
        placement: Any = held._placement
        if placement.device is None:  # disposed
            return held
        recording = context.recording
        watched: Tensor | None = None if recording is None else recording.reading(self)
        if watched is not None:
            return watched
        interpreted: Tensor = context.interpreter.read(self, held)
        return interpreted

    # For code that expects a tensor. Kernel calls do not use these properties.

    @property
    def _buffer(self) -> Any:
        return self._reading()._buffer

    @property
    def _node(self) -> Any:
        return self._reading()._node

    def _live(self) -> Device:
        return self._reading()._live()

    def read(self) -> Tensor:
        """Return the current contents as a tensor, which later assignments do not change."""
        return self._reading().__copy__()

    def assign(self, value: ArrayLike | TextLike) -> None:
        """Replace the contents by ``value``.

        The variable shares the data of a tensor and moves to its device; anything else is copied
        to the active device. Disposing of the tensor later does not affect the variable. No
        gradient flows from later reads of the variable back into ``value``.

        Args:
            value: of the variable's shape and dtype: a tensor, or anything ``asarray`` accepts
                (numbers and lists get the variable's dtype).

        Raises:
            DTypeError, ShapeError: the dtype or the shape differs.
            DisposedError, BackendClosedError: the variable or ``value`` was disposed, or the
                backend of ``value`` was closed. (That of the variable may be closed.)
            GradientError: an enclosing ``variable_grads`` differentiates with respect to the
                variable.

        """
        if self.is_disposed:  # contents on a closed device can be replaced
            raise DisposedError(f"variable {self._name!r} ({self.type}) was disposed")
        self._check_unwatched()
        if not isinstance(value, Tensor):
            listed = isinstance(value, list | tuple | range) or host_values.is_scalar(value)
            what = f"assign to variable {self._name!r}: value"
            value = as_tensor(value, self.dtype if listed else None, what=what)
        new, old = value.type, self.type
        if new.dtype is not old.dtype:
            raise DTypeError(
                f"assign: value is {new}, but variable {self._name!r} is {old} and cannot change "
                f"its dtype; cast the value with astype({old.dtype.name!r})"
            )
        if new.shape != old.shape:
            raise ShapeError(
                f"assign: value is {new}, but variable {self._name!r} is {old} and cannot change "
                "its shape; reshape or broadcast the value, or create another variable"
            )
        self._hold(value)

    def _check_unwatched(self) -> None:
        recording = current_context().recording
        if recording is not None and recording.reading(self) is not None:
            raise GradientError(
                f"assign: variable_grads is differentiating with respect to variable "
                f"{self._name!r}, whose contents must not change meanwhile. Compute with the new "
                "value as a tensor and assign it afterwards; or, if the variable is not a "
                "parameter but a state (a running average), create it with trainable=False"
            )

    def dispose(self) -> None:
        """Release the data and the name; calling it again does nothing."""
        contents: Any = self._placement
        contents.tensor._dispose(f"variable {self._name!r}")
        self._registry.remove(self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the current elements as a read-only NumPy array; waits for pending work."""
        return self._reading().numpy()

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001  # NumPy's protocol
    ) -> np.ndarray[Any, Any]:
        return self._reading().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the current contents as a DLPack capsule; see ``Tensor``."""
        return self._reading().__dlpack__(**options)

    def to(self, device: str) -> Tensor:
        """Return the current contents as a tensor on ``device``; do not move the variable."""
        return self.read().to(device)

    # Copies ---------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Return another variable with the same contents and a name derived from this one's."""
        return _restored(type(self), self._reading(), self._trainable, self._name)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self.__copy__()  # no op changes the data, so sharing it is safe

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle elements, name and flag; unpickling numbers the name if it is taken."""
        return _restored, (type(self), self._reading(), self._trainable, self._name)

    # In-place operators ---------------------------------------------------------------

    def __setitem__(self, key: Index, value: ArrayLike | TextLike) -> None:
        """Assign the current contents with ``self[key]`` replaced by ``value``.

        It follows the rules for a tensor; earlier reads and their views keep their values. No
        gradient flows from later reads of the variable back into ``value``.
        """
        changed = self.read()
        changed[key] = value
        self.assign(changed)

    def _assign_result(self, value: Any) -> Self:
        self.assign(value)
        return self

    def __iadd__(self, other: Operand) -> Self:
        return self._assign_result(self + other)

    def __isub__(self, other: Operand) -> Self:
        return self._assign_result(self - other)

    def __imul__(self, other: Operand) -> Self:
        return self._assign_result(self * other)

    def __imatmul__(self, other: Operand) -> Self:
        return self._assign_result(self @ other)

    def __itruediv__(self, other: Operand) -> Self:
        return self._assign_result(self / other)

    def __ifloordiv__(self, other: Operand) -> Self:
        return self._assign_result(self // other)

    def __imod__(self, other: Operand) -> Self:
        return self._assign_result(self % other)

    def __ipow__(self, other: Operand) -> Self:
        return self._assign_result(self**other)

    def __iand__(self, other: Operand) -> Self:
        return self._assign_result(self & other)

    def __ior__(self, other: Operand) -> Self:
        return self._assign_result(self | other)

    def __ixor__(self, other: Operand) -> Self:
        return self._assign_result(self ^ other)

    def __ilshift__(self, other: Operand) -> Self:
        return self._assign_result(self << other)

    def __irshift__(self, other: Operand) -> Self:
        return self._assign_result(self >> other)


def _check_name(name: object) -> None:
    if name is not None and not (isinstance(name, str) and name):
        raise ArgumentError(f"Variable: name must be text that is not empty, got {quoted(name)}")


V = TypeVar("V", bound=Variable)


def _restored(cls: type[V], value: Tensor, trainable: bool, name: str) -> V:  # noqa: FBT001  # pickles call it
    """Return a copy of a copied or pickled variable, with the same name if that is free."""
    variable = cls.__new__(cls)
    variable._begin(value, trainable)
    variable._name = variable._registry.enter_like(variable, name)
    return variable


def dispose_variables() -> None:
    """Dispose of every live variable of the current engine, which frees their names.

    Examples:
        >>> with tp.testing.isolated_engine("cpu"):
        ...     w = tp.Variable(1.0, name="w")
        ...     tp.dispose_variables()
        ...     w.is_disposed, tp.Variable(2.0, name="w").name
        (True, 'w')

    """
    for variable in variables_of(engine_of(current_context())).listed():
        variable.dispose()


def alias(tensor: Tensor) -> Tensor:
    """Return another tensor with the same data and node, which belongs to no scope.

    The caller alone can dispose of it. For a variable it has the current contents.
    """
    source = tensor._reading() if isinstance(tensor, Variable) else tensor
    return Tensor._of(source._buffer, source._placement, source._node)
