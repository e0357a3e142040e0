"""Variables: tensors with a name, whose contents can be replaced.

A variable holds a plain tensor. Whatever computes with the variable reads that tensor once, so
that an assignment in another thread comes before a call or after it, never in between.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import EngineProtocol, current_context, engine_of
from tensorplug.dispatch.locks import Lock
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, DisposedError, DTypeError, GradientError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device

__all__ = ["Variable", "Variables", "alias", "dispose_variables", "variables_of"]


class Variables:
    """The live variables of an engine by name, in the order in which they were made.

    They are held weakly: dropping or disposing of one frees its name.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._named: WeakValueDictionary[str, Variable] = WeakValueDictionary()
        self._count = itertools.count()

    def listed(self) -> list[Variable]:
        """Return the live variables, the oldest first."""
        with self._lock:
            return list(self._named.values())

    def enter(self, variable: Variable, name: str | None) -> str:
        """Take ``variable`` in under ``name``, or under a new name; return it.

        Raises:
            ArgumentError: another one has that name.

        """
        with self._lock:
            if name is None:
                name = next(item for item in self._automatic() if item not in self._named)
            taken = self._named.get(name)
            if taken is not None:
                raise ArgumentError(
                    f"Variable: the name {name!r} is taken by a live variable ({taken.type}). "
                    "Give another name, or none; or dispose of the old one first: "
                    "dispose_variables() at the top of a notebook cell that is run again"
                )
            self._named[name] = variable
            return name

    def enter_like(self, variable: Variable, name: str) -> str:
        """Take ``variable`` in under ``name``, or one made from it if that is taken."""
        with self._lock:
            numbered = (f"{name}_{number}" for number in itertools.count(1))
            candidates = itertools.chain((name,), numbered)
            return self.enter(variable, next(e for e in candidates if e not in self._named))

    def remove(self, variable: Variable) -> None:
        """Free the name of ``variable``."""
        with self._lock:
            if self._named.get(variable.name) is variable:
                del self._named[variable.name]

    def _automatic(self) -> Iterator[str]:
        while True:
            yield f"variable_{next(self._count)}"


_by_engine: Final[WeakKeyDictionary[EngineProtocol, Variables]] = WeakKeyDictionary()


def variables_of(engine: EngineProtocol) -> Variables:
    """Return the live variables of an engine."""
    found = _by_engine.get(engine)
    return _by_engine.setdefault(engine, Variables()) if found is None else found


class _Contents:
    """Stands in for the placement of a variable; no plan is ever found for it.

    So each call with a variable misses the plan cache, and there the variable is read, once:
    placement, buffer and place on the tape are of one moment.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor  # nobody else has this handle; it is on no tape

    @property
    def device(self) -> Device | None:
        return self.tensor._placement.device

    @property
    def type(self) -> TensorType:
        return self.tensor._placement.type


class Variable(Tensor):
    """A tensor with a name, whose contents ``assign`` replaces; dtype and shape stay.

    A variable goes wherever a tensor goes. Each call reads it once; what was read earlier, by a
    kernel, by the tape or with ``read``, keeps the old contents. ``v += x`` and its kin assign.
    No ``tidy`` frees a variable: it lives until it is dropped or disposed of.

    To a differentiated function a variable is a constant, unless ``variable_grads`` is asked for
    its gradient or it is passed as an argument.

    Threads may assign and read at the same time: a call sees the contents before or after, and
    the last assignment stands. ``v += x`` reads, computes and assigns; two threads doing so at
    once may lose one of the two.

    Args:
        value: the first contents: a tensor, with which the data is shared and on whose device
            the variable is, or what ``asarray`` takes.
        trainable: whether ``variable_grads`` differentiates with respect to it unless told with
            respect to what.
        name: one that no other live variable of this engine has; by default ``variable_0`` and
            so on.
        dtype: of the contents; the value's by default.

    Raises:
        ArgumentError: ``name`` is taken or no name, ``trainable`` is no bool.
        DisposedError, BackendClosedError: the data of ``value`` is gone. Besides, what
            ``asarray`` raises.

    """

    __slots__ = ("_name", "_registry", "_trainable")

    _name: str
    _registry: Variables
    _trainable: bool

    def __init__(
        self, value: Any, *, trainable: bool = True, name: str | None = None, dtype: Any = None
    ) -> None:
        _check_name(name)
        wanted = None if dtype is None else dt.of(dtype, "Variable")
        if not isinstance(value, Tensor) or (wanted is not None and value.dtype is not wanted):
            value = as_tensor(value, wanted, what="Variable: value")
        self._begin(value, trainable)
        self._name = self._registry.enter(self, name)

    def _begin(self, value: Tensor, trainable: bool) -> None:  # noqa: FBT001  # private
        self._hold(value)
        self.trainable = trainable
        self._registry = variables_of(engine_of(current_context()))

    def _hold(self, value: Tensor) -> None:
        """Make the data of ``value`` the contents, whatever becomes of ``value``."""
        seen = value._reading() if isinstance(value, Variable) else value
        trace = current_context().trace
        if trace is not None:
            trace.assign(self, seen)
            return
        handle = Tensor._of(seen._buffer, seen._placement)
        handle._live()
        self._placement = _Contents(handle)  # type: ignore[assignment]  # a stand-in

    # What it is ---------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name, which no other live variable of the engine has."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether ``variable_grads`` differentiates with respect to it by default."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise ArgumentError(f"Variable: trainable is True or False, got {value!r}")
        self._trainable = value

    def __repr__(self) -> str:
        start = f"{type(self).__name__}({self._name!r}, "
        held = repr(self._reading()).replace("\n", "\n" + " " * len(start))
        return f"{start}{held}{'' if self._trainable else ', trainable=False'})"

    # Contents -------------------------------------------------------------------------

    def _reading(self) -> Tensor:
        """Return the tensor as which the variable is read here; nobody may dispose of it."""
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
        device = context.device
        if device is None or device.trace is None:
            return held
        traced: Tensor = device.trace.read(self, held)
        return traced

    # Code that knows tensors only finds here what was read; calls of kernels never come here.

    @property
    def _buffer(self) -> Any:
        return self._reading()._buffer

    @property
    def _node(self) -> Any:
        return self._reading()._node

    def _live(self) -> Device:
        return self._reading()._live()

    def read(self) -> Tensor:
        """Return the present contents as a tensor, which no assignment changes."""
        return self._reading().__copy__()

    def assign(self, value: Any) -> None:
        """Make ``value`` the contents.

        A tensor's data is shared, not copied, and the variable is from now on where the tensor
        is; anything else comes to the active device. What becomes of the tensor later does not
        matter to the variable. Only the elements are taken: no gradient flows from later reads
        of the variable back into ``value``.

        Args:
            value: of the variable's shape and dtype: a tensor, or what ``asarray`` takes
                (numbers and lists take the variable's dtype).

        Raises:
            DTypeError, ShapeError: the dtype or the shape is another one.
            DisposedError, BackendClosedError: the variable was disposed, or the data of
                ``value`` is gone. (A variable on a device that was closed takes new contents.)
            GradientError: the variable is being differentiated by a ``variable_grads`` around
                this call.

        """
        if self.is_disposed:  # but what lies on a device that is gone can be replaced
            raise DisposedError(f"variable {self._name!r} ({self.type}) was disposed")
        self._check_unwatched()
        if not isinstance(value, Tensor):
            listed = isinstance(value, list | tuple | range) or host_values.is_scalar(value)
            what = f"assign to variable {self._name!r}: value"
            value = as_tensor(value, self.dtype if listed else None, what=what)
        new, old = value.type, self.type
        if new.dtype is not old.dtype:
            raise DTypeError(
                f"assign: the new value is {new}, but variable {self._name!r} is {old} and keeps "
                f"its dtype; cast the value with astype({old.dtype.name!r})"
            )
        if new.shape != old.shape:
            raise ShapeError(
                f"assign: the new value is {new}, but variable {self._name!r} is {old} and keeps "
                "its shape; reshape or broadcast the value, or make another variable"
            )
        self._hold(value)

    def _check_unwatched(self) -> None:
        recording = current_context().recording
        if recording is not None and recording.reading(self) is not None:
            raise GradientError(
                f"assign: variable {self._name!r} is being differentiated by variable_grads, and "
                "its gradient is that of the contents at the start. Compute with the new value "
                "as a tensor and assign it afterwards; or, if it is no parameter (a running "
                "average, a state), make it with trainable=False"
            )

    def dispose(self) -> None:
        """Free the variable's share of the data and its name; twice is fine."""
        contents: Any = self._placement
        contents.tensor._dispose(f"variable {self._name!r}")
        self._registry.remove(self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the present elements as a read-only NumPy array; waits for pending work."""
        return self._reading().numpy()

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001  # NumPy's protocol
    ) -> np.ndarray[Any, Any]:
        return self._reading().__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the present contents as a DLPack capsule; see ``Tensor``."""
        return self._reading().__dlpack__(**options)

    def to(self, device: str) -> Tensor:
        """Return the present contents as a tensor on ``device``; the variable stays."""
        return self.read().to(device)

    # Copies ---------------------------------------------------------------------------

    def __copy__(self) -> Self:
        """Return another variable of the same contents, with a name made from this one's."""
        return _restored(type(self), self._reading(), self._trainable, self._name)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self.__copy__()  # no op changes the data, so it is shared

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle elements, name and flag: another variable, if this one's name is taken then."""
        return _restored, (type(self), self._reading(), self._trainable, self._name)

    # In-place operators ---------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign the present contents with ``value`` in the place of ``self[key]``.

        As for a tensor; but what was read before keeps its values, also through a view. No
        gradient flows from later reads of the variable back into ``value``.
        """
        changed = self.read()
        changed[key] = value
        self.assign(changed)

    def _became(self, value: Any) -> Self:
        self.assign(value)
        return self

    def __iadd__(self, other: Any) -> Self:
        return self._became(self + other)

    def __isub__(self, other: Any) -> Self:
        return self._became(self - other)

    def __imul__(self, other: Any) -> Self:
        return self._became(self * other)

    def __imatmul__(self, other: Any) -> Self:
        return self._became(self @ other)

    def __itruediv__(self, other: Any) -> Self:
        return self._became(self / other)

    def __ifloordiv__(self, other: Any) -> Self:
        return self._became(self // other)

    def __imod__(self, other: Any) -> Self:
        return self._became(self % other)

    def __ipow__(self, other: Any) -> Self:
        return self._became(self**other)

    def __iand__(self, other: Any) -> Self:
        return self._became(self & other)

    def __ior__(self, other: Any) -> Self:
        return self._became(self | other)

    def __ixor__(self, other: Any) -> Self:
        return self._became(self ^ other)

    def __ilshift__(self, other: Any) -> Self:
        return self._became(self << other)

    def __irshift__(self, other: Any) -> Self:
        return self._became(self >> other)


def _check_name(name: object) -> None:
    if name is not None and not (isinstance(name, str) and name):
        raise ArgumentError(f"Variable: a name is a text of some length, got {name!r}")


V = TypeVar("V", bound=Variable)


def _restored(kind: type[V], value: Tensor, trainable: bool, name: str) -> V:  # noqa: FBT001  # pickled so
    """Return a variable like one that was copied or pickled, under its name if that is free."""
    variable = kind.__new__(kind)
    variable._begin(value, trainable)
    variable._name = variable._registry.enter_like(variable, name)
    return variable


def dispose_variables() -> None:
    """Dispose of every live variable of the current engine, which frees their names."""
    for variable in variables_of(engine_of(current_context())).listed():
        variable.dispose()


def alias(tensor: Tensor) -> Tensor:
    """Return another tensor of the same data and node, which belongs to no scope.

    Nobody else can dispose of it. Of a variable it holds the present contents.
    """
    seen = tensor._reading() if isinstance(tensor, Variable) else tensor
    return Tensor._of(seen._buffer, seen._placement, seen._node)
