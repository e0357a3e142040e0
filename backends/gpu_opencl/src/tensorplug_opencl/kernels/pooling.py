"""Gradients of pooling, and the positions of largest elements; pooling itself is a form.

As forms, on 2^20 elements, positions took 2.4 times as long, gradients of averages 4 to 14 times,
and those of largest elements 7 to 10 times. Channels that come first count as images of one
channel each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.algorithms import pooling_windows
from tensorplug.plugin import TensorType, Windows, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, folds
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.windows import strips
from tensorplug_opencl.windows.strips import RESULT, SOURCE, Lanes, Visit, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = calls.Kernels()

Attributes = dict[str, Any]

# Elements of a window along an axis that lie on the image, for the window at a position.
_INSIDE: Final = """
INLINE index_t inside(index_t at, index_t size, index_t taps, index_t stride, index_t before) {
  return min(at * stride + taps, before + size) - max(at * stride, before);
}"""


def _walk(
    runtime: Runtime, x: TensorType, windows: Windows, form: str = "N..C", *, back: bool = False
) -> Walk:
    """Return the walk over the windows of x in the layout ``form``; ``back``: over its pixels."""
    if form.endswith("C"):
        return Walk(runtime, windows, x.shape[0], x.shape[-1], back)
    return Walk(runtime, windows, x.shape[0] * x.shape[1], 1, back)


class Result(NamedTuple):
    """An output of a search, for each window: an expression over ``best`` and ``winner``.

    ``made`` is the C type of its elements.
    """

    name: str
    ctype: str
    expression: str
    made: str


class Search(NamedTuple):
    """The search for the first largest element of windows of a dtype.

    A NaN is larger than anything, and of multiple NaNs the first counts. ``element``: the C type
    of elements, wide enough for the numbers in ``position``, the type of a comparison's result.
    """

    dtype: DType

    @property
    def element(self) -> str:
        """The C type in which elements are compared, of 4 or 8 bytes."""
        return (
            "int"
            if self.dtype.itemsize < 4 and self.dtype.kind != "float"
            else ctypes.computed(self.dtype)
        )

    @property
    def position(self) -> str:
        """The C type of taps and positions, as wide as ``element``."""
        return "long" if self.dtype.itemsize == 8 else "int"

    def write(self, lanes: Lanes, visit: Visit, number: str) -> str:
        """Return statements that find ``best`` and its ``winner``: ``number``, or -1 for none."""
        ctype = lanes.widen(self.position)
        x = lanes.load(ctypes.stored(self.dtype), f"x + {SOURCE}")
        take = f"""const A v = {x};
  const {ctype} better = (winner < 0) | (((v > best) | (v != v)) & (best == best));
  best = better ? v : best;
  winner = better ? ({ctype})({number}) : winner;"""
        return f"A best = {folds.lowest(self.dtype)};\n  {ctype} winner = -1;\n{visit(take)}"

    def launch(
        self, walk: Walk, title: str, number: str, results: Callable[[Lanes], Sequence[Result]]
    ) -> Launch:
        """Return the launch (x, results...) that writes the results of each window."""

        def write(lanes: Lanes, visit: Visit) -> str:
            stores = (
                lanes.store(ctype, f"{name} + {RESULT}", expression, made)
                for name, ctype, expression, made in results(lanes)
            )
            return "\n  ".join([self.write(lanes, visit, number), *stores])

        return strips.launch(
            walk,
            f"{title} {self.dtype}",
            [
                Array("x", ctypes.stored(self.dtype)),
                *(Array(of.name, of.ctype, written=True) for of in results(Lanes(1, ""))),
            ],
            write,
            self.element,
        )


def _launch_collect(
    walk: Walk,
    title: str,
    arrays: Sequence[Array],
    share: Callable[[Lanes], str],
    out: TensorType,
) -> Launch:
    """Return the launch that adds up, for each element, the ``share`` of each window over it."""
    fold, stored = folds.sum_fold(out.dtype), ctypes.stored(out.dtype)

    def write(lanes: Lanes, visit: Visit) -> str:
        take = f"const A v = {share(lanes)};\n  {fold.step}"
        store = lanes.store(stored, f"y + {RESULT}", fold.result)
        return f"{fold.state}\n{visit(take)}\n  {store}"

    return strips.launch(
        walk,
        f"{title} {out.dtype}",
        [*arrays, Array("y", stored, written=True)],
        write,
        fold.element,
        declarations=_INSIDE,
    )


def _read_form(attributes: Attributes) -> str:
    return str(attributes.get("data_format", "NHWC"))


for _spec in (specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD):

    @kernels.write(_spec)
    def avg_pool_grad(
        dy: TensorType,
        input: TensorType,
        *,
        attributes: Attributes,
        backend: OpenedDevice,
        out: TensorType,
    ) -> Write:
        """Add up, for each element, its shares of the windows over it."""
        runtime = backend.runtime
        if not dy.size:
            return calls.fill_with(runtime, out.dtype)
        at = pooling_windows(input.shape, **attributes)
        walk = _walk(runtime, input, at, _read_form(attributes), back=True)
        stored = ctypes.stored(dy.dtype)
        counts = " * ".join(
            f"inside(from{n}, extent{n}, taps{n}, stride{n}, before{n})" for n in range(len(at))
        )

        def share(lanes: Lanes) -> str:
            return f"{lanes.load(stored, f'dy + {SOURCE}')} / (A)({counts})"

        collect = _launch_collect(walk, "AvgPoolGrad", [Array("dy", stored)], share, out)

        return lambda dy, _input, result: collect(dy, result)


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):

    @kernels.write(_spec)
    def max_pool_grad(
        dy: TensorType,
        input: TensorType,
        output: TensorType,
        *,
        attributes: Attributes,
        backend: OpenedDevice,
        out: TensorType,
    ) -> Write:
        """Give dy to the winner of each window."""
        runtime = backend.runtime
        if not dy.size:
            return calls.fill_with(runtime, out.dtype)
        at = pooling_windows(input.shape, **attributes)
        walk = _walk(runtime, input, at, _read_form(attributes))
        apart = all(window.stride >= window.filter for window in at)
        return _give_to_winners(walk, out) if apart else _add_for_winners(walk, output, out)


def _give_to_winners(walk: Walk, out: TensorType) -> Write:
    """Return the gradient of windows that lie apart: each writes all of its elements."""
    search, stored = Search(out.dtype), ctypes.stored(out.dtype)

    def write(lanes: Lanes, visit: Visit) -> str:
        dy = lanes.load(stored, f"dy + {RESULT}")
        share = f"(winner == ({lanes.widen(search.position)})(tap) ? slope : (A)(0))"
        store = lanes.store(stored, f"y + {SOURCE}", share)
        find = search.write(lanes, visit, "tap")
        return f"{find}\n  const A slope = {dy};\n{visit(store)}"

    arrays = [Array("dy", stored), Array("x", stored), Array("y", stored, written=True)]
    launch = strips.launch(walk, f"MaxPoolGrad {out.dtype}", arrays, write, search.element)
    covered = all(
        at.stride == at.filter and at.out * at.stride >= at.before + at.size for at in walk.windows
    )
    zero = None if covered else calls.make_element(0, out.dtype)

    def give(
        dy: DeviceBuffer, x: DeviceBuffer, _output: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        if zero is not None:
            walk.runtime.fill(result, zero)
        launch(dy, x, result)

    return give


def _add_for_winners(walk: Walk, output: TensorType, out: TensorType) -> Write:
    """Return the gradient of any windows: find the winners first, then add up by elements."""
    search, stored = Search(out.dtype), ctypes.stored(out.dtype)
    make_winners = walk.runtime.prepare_empty(TensorType(dt.int32, output.shape))
    tap = Result("winners", "int", "winner", search.position)
    find = search.launch(walk, "MaxPool winners", "tap", lambda _lanes: [tap])

    def share(lanes: Lanes) -> str:
        winner = lanes.load("int", f"winners + {SOURCE}", search.position)
        slope = lanes.load(stored, f"dy + {SOURCE}")
        return f"{winner} == ({lanes.widen(search.position)})(tap) ? {slope} : (A)(0)"

    arrays = [Array("dy", stored), Array("winners", "int")]
    back = walk._replace(back=True)
    collect = _launch_collect(back, "MaxPoolGrad", arrays, share, out)

    def add(
        dy: DeviceBuffer, x: DeviceBuffer, _output: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        winners = make_winners()
        find(x, winners)
        collect(dy, winners, result)

    return add


@kernels.prepare(specs.MAX_POOL_WITH_ARGMAX)
def max_pool_with_argmax(
    x: TensorType,
    *,
    filter_size: tuple[int, ...],
    strides: tuple[int, ...],
    pad: Any,
    include_batch_in_index: bool,
    backend: OpenedDevice,
    out: tuple[TensorType, TensorType],
) -> Callable[..., Any]:
    """Return the largest element of each window, and its position."""
    runtime = backend.runtime
    makers = [runtime.prepare_empty(type_) for type_ in out]
    if not out[0].size:
        return lambda _x: [make() for make in makers]
    at = pooling_windows(x.shape, filter_size=filter_size, strides=strides, pad=pad)
    search, stored = Search(x.dtype), ctypes.stored(x.dtype)
    first = "image * sources * channels" if include_batch_in_index else "0"

    def results(lanes: Lanes) -> list[Result]:
        ctype = lanes.widen(search.position)
        lane = ", ".join(map(str, range(lanes.width)))
        pixel = f"winner * ({ctype})(channels) + ({ctype})({first} + c) + ({ctype})({lane})"
        pixel = f"(winner < 0 ? winner : {pixel})"
        return [
            Result("y", stored, "best", search.element),
            Result("positions", "int", pixel, search.position),
        ]

    find = search.launch(_walk(runtime, x, at), f"MaxPoolWithArgmax from {first}", "from", results)

    def run(x: DeviceBuffer) -> list[DeviceBuffer]:
        made = [make() for make in makers]
        find(x, *made)
        return made

    return run
