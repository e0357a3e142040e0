"""The one seam between ops (below) and the engine (above).

Ops call ``dispatch``; which engine answers, on which device, and whether a tape records, is
the current ``Frame``'s business. Frames are immutable and travel in a context variable, so
threads and asyncio tasks never see one another's.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from tensorplug.errors import ArgumentError
from tensorplug.keys import exactly
from tensorplug.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.device import Device
    from tensorplug.dtypes import DType
    from tensorplug.observation import Observer
    from tensorplug.spec import KernelSpec
    from tensorplug.tensor import Tensor
    from tensorplug.variable import Variables

__all__ = [
    "Entrance",
    "Frame",
    "Runner",
    "as_tensor",
    "chained",
    "current",
    "dispatch",
    "dispatch_binary",
    "dispatch_several",
    "dispatch_unary",
    "placed",
]


F = TypeVar("F", bound="Callable[..., Any]")


class Runner(Protocol):
    """What a frame needs of an engine."""

    @property
    def device(self) -> Device:
        """The device that is active where a frame names none."""

    @property
    def variables(self) -> Variables:
        """The live variables by name."""

    def run(
        self,
        frame: Frame,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel, whatever it takes; return a tensor or a list of them."""

    def convert(self, frame: Frame, value: Any, dtype: DType | None, what: str) -> Tensor:
        """Return ``value`` as a tensor on the frame's device; ``what`` names it in messages."""

    def receive(
        self,
        frame: Frame,
        array: np.ndarray[Any, Any],
        device: str | None,
        what: str,
        *,
        copy: bool | None,
    ) -> Tensor:
        """Return an array as a tensor on the device of that name (None: the frame's).

        It shares the array's memory where the device can, unless ``copy`` is True.
        """

    def constant(
        self, frame: Frame, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return a Python number, input ``position`` of a call beside ``peer``, as a tensor."""

    def watch(
        self, frame: Frame, plan: Any, inputs: Sequence[Any], outputs: Sequence[Tensor]
    ) -> None:
        """Show what a plan made to the frame's tape and scope."""

    def follow(self, frame: Frame) -> None:
        """Keep ``frame.plans`` those of the active device, now and when it changes."""

    def open(self, name: str) -> Device:
        """Return the device of that name, opening it if need be."""

    def move(self, tensor: Tensor, device: str) -> Tensor:
        """Return ``tensor`` on the device of that name: itself if it is there already."""


class Frame:
    """The circumstances in which kernels run.

    ``device`` None means the engine's own choice, which ``set_backend`` changes. ``plans`` is
    the device's cache of native plans (empty until it is known, and where ``observers`` must
    see every call). ``recording`` is a tape, ``scope`` a tidy scope; ``watched`` says that there
    is one, so that results are shown to the engine.
    """

    __slots__ = (
        "__weakref__",
        "device",
        "engine",
        "observers",
        "plans",
        "recording",
        "scope",
        "watched",
    )

    def __init__(
        self,
        engine: Runner | None,
        device: Device | None = None,
        recording: Any = None,
        scope: Any = None,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        self.engine = engine
        self.device = device
        self.observers = observers
        self.recording = recording
        self.scope = scope
        self.watched = recording is not None or scope is not None
        self.plans: dict[Hashable, Any] = {}
        if observers:
            return
        if device is not None:
            self.plans = device.plans
        elif engine is not None:
            engine.follow(self)

    def replace(self, **changes: Any) -> Frame:
        """Return a frame that differs in ``changes``."""
        given = changes.get
        return Frame(
            runner(self),
            given("device", self.device),
            given("recording", self.recording),
            given("scope", self.scope),
            given("observers", self.observers),
        )


_NUMBERS: Final = (bool, int, float, complex)  # not NumPy's scalars, which have dtypes

HOST: Final = "host"  # the name of the host's memory among devices
ROOT: Final = Frame(None)  # the process-wide one; its engine is built at first use
_new: Final = object.__new__  # skips Tensor.__init__, whose checks a kernel's result does not need
_frame: Final[ContextVar[Frame]] = ContextVar("tensorplug.frame", default=ROOT)
current: Final = _frame.get


class _Default:
    """How the default engine is built; the facade says so at import."""

    build: Callable[[], Runner] | None = None
    lock = Lock()  # re-entrant: the builder notices when a plugin runs an op


def set_default_engine(build: Callable[[], Runner]) -> None:
    """Say how the default engine is built when the first op needs one."""
    _Default.build = build


def runner(frame: Frame) -> Runner:
    """Return the frame's engine, building the default one at first use."""
    if frame.engine is None:
        if _Default.build is None:
            raise RuntimeError("tensorplug.dispatch was used without the tensorplug package")
        with _Default.lock:  # two threads' first ops must not build two engines
            if ROOT.engine is None:
                engine = _Default.build()
                engine.follow(ROOT)
                ROOT.engine = engine
        frame.engine = ROOT.engine
    return frame.engine


class entered:  # noqa: N801  # reads as a word: ``with entered(frame):``
    """Make a frame current inside a ``with`` block, in this thread or task only."""

    __slots__ = ("_frame", "_token")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> Frame:
        self._token: Token[Frame] = _frame.set(self._frame)
        return self._frame

    def __exit__(self, *_error: object) -> None:
        _frame.reset(self._token)


class Entrance:
    """Lets an object that a user holds make a frame current, once at a time.

    Two entries would share one place for the frame to go back to, and it would be lost.
    """

    __slots__ = ("_entered", "_who")

    def __init__(self, who: str) -> None:
        self._who = who
        self._entered: entered | None = None

    def enter(self, frame: Frame) -> None:
        """Make ``frame`` current.

        Raises:
            RuntimeError: the object is entered already, here or in another thread.

        """
        if self._entered is not None:
            raise RuntimeError(f"this {self._who} is entered already; make another")
        self._entered = entered(frame)
        self._entered.__enter__()

    def leave(self) -> None:
        """Make the frame before current again."""
        left, self._entered = self._entered, None
        if left is not None:
            left.__exit__()


def dispatch(spec: KernelSpec, /, *inputs: Any, **attributes: Any) -> Tensor:
    """Run the kernel of ``spec``, which has one output, on the current device.

    ``inputs``: one per declared input, tensors or what can become one; a list where the spec
    says so, None for an absent optional one.
    """
    frame = _frame.get()
    try:
        placements = [each._placement for each in inputs]
        options = exactly(attributes) if attributes else ()
    except (AttributeError, TypeError):  # not tensors yet, or attributes that have no hash
        return _the_long_way(frame, spec, inputs, attributes)
    plan = frame.plans.get((spec, *placements, *options))
    if plan is None:
        return _the_long_way(frame, spec, inputs, attributes)
    try:
        buffer = plan.call(*[each._buffer for each in inputs])
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if frame.watched:
        runner(frame).watch(frame, plan, inputs, (tensor,))
    return tensor


def dispatch_several(spec: KernelSpec, /, *inputs: Any, **attributes: Any) -> list[Tensor]:
    """Run the kernel of ``spec``, which has several outputs; see ``dispatch``."""
    if not spec.several:
        raise ArgumentError(f"{spec.name} has one output; call dispatch")
    frame = _frame.get()
    result: list[Tensor] = runner(frame).run(frame, spec, inputs, attributes)
    return result


_NONE: Final[Mapping[str, Any]] = {}

# The two functions below are `dispatch` again for the commonest calls, where a microsecond
# counts: a hit in the plan cache costs one dictionary look-up (measured in docs/performance.md).


def dispatch_unary(spec: KernelSpec, x: Any, /) -> Tensor:
    """Run a kernel of one input and no attributes."""
    frame = _frame.get()
    try:
        plan = frame.plans.get((spec, x._placement))
    except AttributeError:  # not a tensor yet
        plan = None
    if plan is None:
        return _the_long_way(frame, spec, (x,))
    try:
        buffer = plan.call(x._buffer)
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if frame.watched and (x._node is not None or frame.scope is not None):
        runner(frame).watch(frame, plan, (x,), (tensor,))
    return tensor


def dispatch_binary(spec: KernelSpec, a: Any, b: Any, /) -> Tensor:
    """Run a kernel of two inputs and no attributes."""
    frame = _frame.get()
    try:
        plan = frame.plans.get((spec, a._placement, b._placement))
    except AttributeError:  # one of them is not a tensor yet
        return _with_scalar(frame, spec, a, b)
    if plan is None:
        return _the_long_way(frame, spec, (a, b))
    try:
        buffer = plan.call(a._buffer, b._buffer)
    except BaseException as error:
        plan.annotate(error)
        raise
    tensor: Tensor = _new(plan.tensor)
    tensor._buffer = buffer
    tensor._placement = plan.output
    tensor._node = None
    if frame.watched and (a._node is not None or b._node is not None or frame.scope is not None):
        runner(frame).watch(frame, plan, (a, b), (tensor,))
    return tensor


def _with_scalar(frame: Frame, spec: KernelSpec, a: Any, b: Any) -> Tensor:
    """Try again with a Python scalar beside a tensor as a constant."""
    engine = runner(frame)
    if b.__class__ in _NUMBERS and hasattr(a, "_placement"):
        return dispatch_binary(spec, a, engine.constant(frame, spec, 1, b, a))
    if a.__class__ in _NUMBERS and hasattr(b, "_placement"):
        return dispatch_binary(spec, engine.constant(frame, spec, 0, a, b), b)
    return _the_long_way(frame, spec, (a, b))


def _the_long_way(
    frame: Frame, spec: KernelSpec, inputs: tuple[Any, ...], attributes: Mapping[str, Any] = _NONE
) -> Tensor:
    if spec.several:
        raise ArgumentError(f"{spec.name} has several outputs; call dispatch_several")
    for each in inputs:
        if hasattr(each.__class__, "_reading"):  # a variable
            return dispatch(spec, *_read(inputs), **attributes)
    result: Tensor = runner(frame).run(frame, spec, inputs, attributes)
    return result


def _read(inputs: tuple[Any, ...]) -> list[Any]:
    """Return the inputs of a call with tensors for variables, each of which is read once."""
    seen: dict[int, Any] = {}
    plain = []
    for each in inputs:
        value = each
        if hasattr(each.__class__, "_reading"):
            value = seen.get(id(each))
            if value is None:
                value = seen[id(each)] = each._reading()
        plain.append(value)
    return plain


def as_tensor(value: Any, dtype: DType | None = None, *, what: str = "the argument") -> Tensor:
    """Return ``value`` as a tensor: itself, or a copy of numbers on the current device.

    ``what`` names it in messages: ``"squeeze: x"``.

    Raises:
        DisposedError: when it is a tensor that was disposed.
        ArgumentError, DTypeError, ShapeError: when it is no array of numbers.

    """
    frame = _frame.get()
    return runner(frame).convert(frame, value, dtype, what)


def placed(device: str | None, make: Callable[[], Tensor]) -> Tensor:
    """Return what ``make`` makes while ``device`` is the active one; None: whichever is.

    ``"host"``, where no kernel runs, gets a copy of what the active device makes.
    """
    if device is None:
        return make()
    frame = _frame.get()
    engine = runner(frame)
    if device == HOST:
        return engine.move(make(), device)
    with entered(frame.replace(device=engine.open(device))):
        return make()


def chained(function: F) -> F:
    """Mark an op as a method of ``Tensor`` too; the facade attaches it under the same name."""
    function.__tensorplug_chained__ = True  # type: ignore[attr-defined]  # functions take attributes
    return function
