"""Linearization: a function's derivative at one point, as a program of tangents.

The function runs once, in forward mode, on a device that records the calls which depend on the
tangents and runs all others at once. What is recorded is a program of the tangents alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.autodiff.directional import read_points
from tensorplug.autodiff.forward import push
from tensorplug.autodiff.grad import vjp
from tensorplug.autodiff.tape import with_node
from tensorplug.autodiff.tracing import check_function, check_result, match_tree
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.tracing.trace import Trace
from tensorplug.compile.tracing.values import Constant
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.commitment import commit, follow
from tensorplug.dispatch.context import current_context, engine_of, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.ops import creation
from tensorplug.tensors.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine

    Push = Callable[[Sequence[Tensor]], Sequence[Tensor]]


R = TypeVar("R")


def linearize(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """Return ``f(*primals)`` and its derivative there, a linear function of tangents.

    ``f`` is called once. Each call of the derivative runs only what depends on the tangents, as a
    program: for many directions at one point, this is cheaper than ``jvp``. The derivative keeps
    the intermediate results of ``f`` that it needs in memory.

    Args:
        f: takes and returns tensors, or trees of them. It may read the data of the primals.
        primals: its arguments.

    Returns:
        ``(y, f_jvp)``. ``f_jvp(*tangents)`` takes one tangent per primal, with its structure,
        shapes and dtypes, and returns that of y, as ``jvp`` does.

    Raises:
        ArgumentError: ``f`` is not a function, or its result is not a tensor; in ``f_jvp``, the
            tangents do not fit.
        DTypeError: a primal is neither floating nor complex.
        GradientNotFoundError: a kernel in ``f`` has no derivative.

    Examples:
        >>> y, f_jvp = tp.linearize(lambda x: x**3, tp.asarray([1.0, 2.0]))
        >>> f_jvp(tp.asarray([1.0, 1.0])).tolist()
        [3.0, 12.0]

    """
    check_function(f, "linearize")
    points = read_points(enumerate(primals), "linearize")
    rebuild = flatten(tuple(primals))[1]
    build: Any = None

    def flat(arguments: list[Tensor]) -> list[Tensor]:
        nonlocal build
        leaves, build = flatten(check_result(f(*rebuild(arguments))))
        return leaves

    context = follow(current_context(), points, "linearize")
    engine: Engine = engine_of(context)  # type: ignore[assignment]  # the only class of engines
    device = engine.devices.of(context)
    with use_context(context):
        if device.is_real and context.recording is None:
            y, push_forward = _as_program(engine, device, flat, points)
        else:
            y, push_forward = _by_transposition(flat, points)

    def f_jvp(*tangents: Any) -> Any:
        directions = match_tree(tangents, rebuild(points), "tangents", "primal")
        return build([with_node(dot, dot._node) for dot in push_forward(directions)])

    return build([with_node(value, value._node) for value in y]), f_jvp


def _by_transposition(
    f: Callable[[list[Tensor]], list[Tensor]], points: list[Tensor]
) -> tuple[list[Tensor], Push]:
    """Return the result and the derivative, both connected to the transformations around.

    The vector-Jacobian product is linear in dy; its own vector-Jacobian product is the derivative.
    """
    y, pull = vjp(f, points, unconnected="zeros")
    zeros = [creation.zeros_like(value) for value in y]
    smooth = [at for at, value in enumerate(y) if value.dtype in dt.INEXACT]

    def pull_smooth(dys: list[Tensor]) -> list[Tensor]:
        full = list(zeros)
        for at, dy in zip(smooth, dys, strict=True):
            full[at] = dy
        return list(pull(full)[0])

    def push_forward(tangents: Sequence[Tensor]) -> list[Tensor]:
        transpose = vjp(pull_smooth, [zeros[at] for at in smooth], unconnected="zeros")[1]
        dots = [creation.zeros_like(value) for value in y]
        for at, dot in zip(smooth, transpose(list(tangents))[0], strict=True):
            dots[at] = dot
        return dots

    return y, push_forward


class _Unrolled:
    """What the core asks of a trace, while a function runs once of which a part is recorded.

    Variables, generators and numbers are read and assigned now.
    """

    def __init__(self, trace: Trace, outside: Context) -> None:
        self._trace = trace
        self._outside = outside
        self.committed: bool = trace.committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trace, name)

    def number(self, *_value: Any, **_dtype: Any) -> None:
        """Return None: there are no floats without values."""

    def fixed(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the attributes of a call."""
        return attributes

    def read(self, variable: Any, held: Tensor) -> Tensor:  # noqa: ARG002  # as in a trace
        """Return the contents of a variable."""
        return held

    def draw(self, generator: Any, type_: TensorType) -> Tensor:  # noqa: ARG002  # as in a trace
        """Return a new key of a generator."""
        with use_context(self._outside):
            return generator.key()  # type: ignore[no-any-return]  # of any class

    def assign(self, variable: Any, tensor: Tensor) -> None:
        """Assign to a variable.

        Raises:
            ArgumentError: ``tensor`` has no data, because it depends on the tangents.

        """
        operand = self._trace.operand(tensor)
        if not isinstance(operand, Constant):
            raise ArgumentError(
                "linearize: the function assigns a tensor that depends on its tangents "
                f"({tensor.type}) to a variable"
            )
        with use_context(self._outside):
            variable._hold(Tensor._of(operand.buffer, operand.placement))

    def check(self, check: Callable[[], None]) -> None:
        """Do nothing: the function runs once."""

    def forbid(self, message: str) -> None:
        """Refuse an action that the function must not do."""
        raise ArgumentError(f"linearize: {message}")


def _as_program(
    engine: Engine,
    device: Device,
    f: Callable[[list[Tensor]], list[Tensor]],
    points: Sequence[Tensor],
) -> tuple[list[Tensor], Push]:
    """Return the result and a program of the derivative."""
    trace = Trace(engine, device, committed=any(point.is_committed for point in points))
    unrolled = trace.device.interpreter = _Unrolled(trace, current_context())
    try:
        entered = [trace.enter(point.type) for point in points]
        with use_context(trace.context(autocast=current_context().autocast)):
            y, dots = push(f, points, [tensor for _, tensor in entered])
        outputs = [trace.operand(value) for value in y]
        values = [None if dot is None else trace.operand(dot) for dot in dots]
    finally:
        recorded = trace.finish()
    tensors = []
    for value in outputs:
        assert isinstance(value, Constant)  # primals do not depend on tangents
        tensor = Tensor._of(value.buffer, value.placement)
        tensors.append(commit(tensor) if unrolled.committed else tensor)
    present = [value for value in values if value is not None]
    calls, kept = eliminate_common_calls(recorded.calls, present)
    inputs = [value for value, _ in entered]
    program = Program(device, inputs, eliminate_dead_calls(calls, kept), kept)
    derivative = _Derivative(engine, program, committed=unrolled.committed)
    zeros = [None if value else output.type for value, output in zip(values, tensors, strict=True)]

    def push_forward(tangents: Sequence[Tensor]) -> list[Tensor]:
        present = iter(derivative(tangents))
        return [
            next(present) if type_ is None else creation.zeros(type_.shape, dtype=type_.dtype)
            for type_ in zeros
        ]

    return tensors, push_forward


class _Derivative:
    """A program of tangents, which other transformations see as calls of ops."""

    def __init__(self, engine: Engine, program: Program, *, committed: bool) -> None:
        self._engine = engine
        self._program = program
        self._committed = committed
        self._executable = Executable(engine, program)

    def __call__(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        context = current_context()
        device = self._program.device
        if self._committed:
            tangents = [to_device(tangent, device.name) for tangent in tangents]
        watched = context.recording or context.observers or self._engine.observers
        if watched or any(tangent._placement.device is not device for tangent in tangents):
            return self._program.by_ops(tangents)
        buffers = self._executable.run([tangent._buffer for tangent in tangents])
        return [
            Tensor._of(buffer, value.placement.as_committed(self._committed))
            for buffer, value in zip(buffers, self._program.wanted, strict=True)
        ]
