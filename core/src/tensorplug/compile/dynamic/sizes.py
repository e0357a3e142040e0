"""Dynamic sizes: one program for many sizes of an axis, by padding (docs/adr/0040).

A size is padded to the next one of a geometric series. The function is traced at the exact sizes,
once for each, and at the padded ones; ``compile.dynamic.alignment`` makes one program of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from tensorplug.compile.arguments.donation import find_parameter
from tensorplug.compile.arguments.floats import Floats, find, remember
from tensorplug.compile.dynamic.alignment import Alignment, Result, build
from tensorplug.compile.specialized import Specialized, make_executable, run, upload
from tensorplug.compile.tracing.bodies import Request, Traced, trace_request
from tensorplug.contract.arguments import quoted
from tensorplug.contract.padding import RefusedError
from tensorplug.contract.shapes import normalize_axis
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import Context, use_context
from tensorplug.dispatch.device import Placement
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    CompileError,
    DeviceMismatchError,
    RecompileWarning,
    ShapeError,
)
from tensorplug.ops import extents
from tensorplug.system import notices
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug.compile.programs.executable import Executable
    from tensorplug.compile.tracing.bodies import Body
    from tensorplug.compile.tracing.decompositions import TracedDecomposition
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.shapes import Shape
    from tensorplug.engine.plans import Plan

    Paddings: TypeAlias = tuple[tuple[int, int], ...]


LIMIT: Final = 1024
"""The number of exact sizes that one function keeps: most of them share a program."""

_SMALLEST: Final = 2  # sizes 0 and 1 broadcast, or leave nothing to compute: they are exact


def padded_size(size: int) -> int:
    """Return the next size of the series 2, 3, 4, 6, 8, 12, 16, 24, ...; 0 and 1 are their own."""
    if size < _SMALLEST:
        return size
    power = 1 << (size - 1).bit_length()  # the next power of two
    return power * 3 // 4 if 4 * size <= 3 * power else power


class _Option(NamedTuple):
    """One dynamic parameter: its position and name, if it has them, and its axes by prefix."""

    position: int | None
    name: str | None
    axes: Any


class Dynamic:
    """The dynamic axes of one compiled function, and its traces at padded sizes.

    Raises:
        ArgumentError: the function has no such parameter, or axes are no integers.

    """

    def __init__(self, f: Callable[..., Any], wanted: Any) -> None:
        if not isinstance(wanted, dict):
            raise ArgumentError(
                "compile: dynamic must be a dict of axes by the name or position of a parameter, "
                f"got {quoted(wanted)}"
            )
        self._f = f
        self._options: list[_Option] = []
        for parameter, axes in wanted.items():
            _check_axes(axes, f"compile: dynamic of {parameter!r}")
            position, name = find_parameter(f, parameter, "dynamic")
            self._options.append(_Option(position, name, axes))
        self._templates: dict[Hashable, _Template] = {}
        self._warned = False

    def specialize(
        self,
        request: Request,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        signature: tuple[Hashable, ...],
    ) -> Specialized:
        """Return the program for a call, whose arguments have this signature.

        Raises:
            ArgumentError: the arguments do not have the dynamic axes.

        """
        tensors = request.arguments
        sizes = [
            tuple(padded_size(n) if at in axes else n for at, n in enumerate(tensor.shape))
            for tensor, axes in zip(tensors, self._axes(args, kwargs), strict=True)
        ]
        traced = trace_request(request, moves=False)
        if all(shape == tensor.shape for shape, tensor in zip(sizes, tensors, strict=True)):
            return Specialized.of(request, traced)
        placements = iter(
            tensor._placement.device.placement(
                TensorType(tensor.dtype, shape), committed=tensor.is_committed
            )
            for tensor, shape in zip(tensors, sizes, strict=True)
        )
        key = tuple(next(placements) if type(item) is Placement else item for item in signature)

        try:
            template = self._template(request, key, sizes)
            return Padded(request, traced, _align(request, traced, template))
        except RefusedError as error:
            self.warn(str(error))
            return Specialized.of(request, traced)

    def _template(self, request: Request, key: Hashable, sizes: Sequence[Shape]) -> _Template:
        """Return the trace at padded sizes.

        Raises:
            RefusedError: the function cannot be traced at these sizes.

        """
        floats = request.floats
        template = find(self._templates, key, floats.given)
        if template is not None and template.traced.state is request.engine.registry.state:
            return template
        padded = request._replace(
            body=_with_shapes(request.body, sizes),
            floats=Floats(floats.given, static=floats.static),
            donated=(),
        )
        try:
            template = _Template(trace_request(padded, moves=False), padded.floats, {}, {})
        except DeviceMismatchError:
            raise
        except CompileError as error:
            raise RefusedError(str(error)) from None
        except Exception as error:  # whatever the function raises at another size
            raise RefusedError(f"at the padded sizes, the function raises {error!r}") from error
        remember(self._templates, key, floats.given, template, LIMIT)
        return template

    def warn(self, reason: str) -> None:
        """Say once why each size gets a program of its own."""
        if not self._warned:
            self._warned = True
            name = getattr(self._f, "__qualname__", repr(self._f))
            notices.warn(
                f"compile: {name} is compiled anew for each of its dynamic sizes, which cannot be "
                f"padded: {reason}",
                RecompileWarning,
            )

    def _axes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the dynamic axes of each tensor among the arguments, in their order."""
        options: dict[int | str | None, _Option] = {}
        for each in self._options:
            options |= {each.position: each, each.name: each}
        arguments: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
        return [
            axes for key, argument in arguments for axes in _axes_of(argument, options.get(key))
        ]


def _check_axes(axes: Any, where: str) -> None:
    for leaf in [axes] if _are_axes(axes) else tree.flatten(axes)[0]:
        if not _are_axes(leaf):
            raise ArgumentError(f"{where}: axes must be integers, got {quoted(leaf)}")


def _are_axes(axes: Any) -> bool:
    """Return whether part of a prefix holds axes: an integer, several, or None."""
    members = axes if isinstance(axes, list | tuple) else () if axes is None else (axes,)
    return all(isinstance(axis, int) and not isinstance(axis, bool) for axis in members)


def _axes_of(argument: Any, option: _Option | None) -> list[tuple[int, ...]]:
    """Return the dynamic axes of each tensor in one argument."""
    leaves = tree.flatten(argument)[0]
    if option is None:
        return [() for leaf in leaves if leaf.__class__ is Tensor]
    name = option.name if option.name is not None else f"argument {option.position}"
    try:
        spread = tree.broadcast(option.axes, argument, _are_axes)
    except ArgumentError as error:
        raise ArgumentError(f"compile: dynamic of {name}{error}") from None
    axes_of_leaves = []
    for leaf, axes, path in zip(leaves, spread, tree.paths(argument), strict=True):
        if leaf.__class__ is Tensor:
            listed = axes if isinstance(axes, list | tuple) else [] if axes is None else [axes]
            axes_of_leaves.append(tuple(_axis(axis, leaf, name + path) for axis in listed))
    return axes_of_leaves


def _axis(axis: int, tensor: Tensor, where: str) -> int:
    try:
        return normalize_axis(axis, tensor.ndim)
    except ShapeError as error:
        raise ShapeError(f"compile: dynamic of {where}, {tensor.type}: {error}") from None


def _with_shapes(body: Body, shapes: Sequence[Shape]) -> Body:
    leaves = list(body.leaves)
    for at, shape in zip(body.places, shapes, strict=True):
        leaves[at] = TensorType(leaves[at].dtype, shape)
    return body._replace(leaves=leaves)


@dataclass(eq=False, slots=True)
class _Template:
    """A trace at padded sizes, without a program.

    ``programs``: by the log of an alignment. ``decompositions``: at padded sizes.
    """

    traced: Traced
    floats: Floats
    programs: dict[Hashable, Executable]
    decompositions: dict[Plan, TracedDecomposition | None]
    used: bool = False


class _Aligned(NamedTuple):
    """A program at padded sizes, and what depends on the exact ones.

    ``shared``: whether the program was made for other exact sizes. ``arguments``: what to add
    behind each argument; ``data``: the program's last inputs; ``results``: those of the function.
    """

    executable: Executable
    shared: bool
    arguments: list[Paddings | None]
    data: list[Buffer]
    results: list[Result]


def _align(request: Request, traced: Traced, template: _Template) -> _Aligned:
    """Return the program that gives the results of ``traced`` at the sizes of ``template``.

    Raises:
        RefusedError: padding would change the results.

    """
    engine, device, places = request.engine, request.device, request.body.places
    padded = template.traced
    if len(traced.wanted) != len(padded.wanted) or traced.changed != padded.changed:
        raise RefusedError("the function returns other results at another size")
    if traced.effects_on() != padded.effects_on():
        raise RefusedError("the function uses other variables at another size")
    alignment = Alignment(engine, device, template.decompositions)
    entered = alignment.enter(traced.inputs, padded.inputs, len(places))
    alignment.walk(traced.calls, padded.calls)
    pairs = zip(traced.wanted, padded.wanted, strict=True)
    results = [alignment.result(mine, other) for mine, other in pairs]
    operands = [result.operand for result in results if result.operand is not None]
    log = tuple(alignment.log)
    known = template.programs.get(log)
    if known is None:
        made = build(engine, device, alignment.calls)
        inputs = [*entered, *alignment.masks.values(), *alignment.varying]
        template.programs[log] = make_executable(engine, device, made, inputs, operands, [])
    data = [
        device.backend.from_host(np.arange(padded) < exact) for exact, padded in alignment.masks
    ]
    with use_context(Context(engine, device, None)):
        for value, constant in alignment.varying.items():
            tensor = Tensor._of(constant.buffer, constant.placement)
            data.append(_pad(tensor, _paddings(tensor.shape, value.placement.type.shape)))
    arguments = [
        _paddings(mine.placement.type.shape, other.placement.type.shape)
        for _, mine, other in zip(places, traced.inputs, padded.inputs, strict=False)
    ]
    return _Aligned(template.programs[log], known is not None, arguments, data, results)


class Padded(Specialized):
    """A function at exact sizes, run by a program at padded sizes."""

    def __init__(self, request: Request, traced: Traced, aligned: _Aligned) -> None:
        super().__init__(request, traced, aligned.executable)
        self.shared: bool = aligned.shared
        self._aligned = aligned
        self._exact: Specialized | None = None

    def run(
        self,
        context: Context,
        tensors: Sequence[Tensor],
        floats: Sequence[float],
        donated: Sequence[Tensor] = (),
    ) -> Any:
        """Run the program on padded arguments; return the function's result, cut back."""
        count = len(self._aligned.arguments)
        engine: Any = context.engine
        if context.observers or engine.observers:
            # They see what the function computes: no padding, which may hold NaN.
            if self._exact is None:
                numbers = Floats(floats, static=self.floats.static)
                request = Request(
                    self.engine,
                    self.device,
                    self.body,
                    tensors[:count],
                    numbers,
                    committed=self.committed,
                )
                self._exact = Specialized.of(request, trace_request(request))
            return self._exact.run(context, tensors, floats, donated)
        with use_context(Context(self.engine, self.device, None)):
            pairs = zip(tensors[:count], self._aligned.arguments, strict=True)
            buffers = [_pad(tensor, paddings) for tensor, paddings in pairs]
        buffers += [tensor._buffer for tensor in tensors[count:]]
        for tensor in donated:
            tensor.dispose()
        values: Sequence[float] = ()
        if self.numeric:
            values = self.floats.evaluate(floats)
            buffers += upload(self.device, self.floats, values)
        outputs = run(self.executable, context, [*buffers, *self._aligned.data])
        return self.leave(context, self._cut(outputs), values)

    def _cut(self, outputs: Sequence[Buffer]) -> list[Buffer]:
        """Return the results at exact sizes."""
        buffers = iter(outputs)
        cut = []
        with use_context(Context(self.engine, self.device, None)):
            for result, placement in zip(self._aligned.results, self.placements, strict=True):
                if result.operand is None:
                    assert result.held is not None, "a result is computed or held"
                    cut.append(result.held.buffer)
                    continue
                buffer, shape = next(buffers), placement.type.shape
                if result.operand.placement.type.shape != shape:
                    tensor = Tensor._of(buffer, result.operand.placement)
                    buffer = extents.slice(tensor, (0,) * len(shape), shape)._buffer
                cut.append(buffer)
        return cut


def _paddings(exact: Shape, padded: Shape) -> Paddings | None:
    """Return what to add behind each axis; None for nothing."""
    if exact == padded:
        return None
    return tuple((0, whole - size) for size, whole in zip(exact, padded, strict=True))


def _pad(tensor: Tensor, paddings: Paddings | None) -> Buffer:
    return (tensor if paddings is None else extents.pad(tensor, paddings))._buffer
