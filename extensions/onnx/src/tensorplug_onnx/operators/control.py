"""Branches and loops: graphs among the attributes of a node.

Where a condition or a number of steps is known, a branch is chosen and a loop is plain Python.
While a model is compiled and it is not, both become one call of the program: ``tp.cond``,
``tp.while_loop``, ``tp.scan``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import ValueNeededError
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, as_tensor, namespace, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_onnx.executing import Scope
    from tensorplug_onnx.graph import Graph, ValueInfo

# A compiled loop of a known number of steps is written out up to here, and a call of scan beyond.
_WRITTEN_OUT: Final = 16
_TRUE: Final = np.ones((), np.bool)


@rule("If", raw=True)
def conditional(condition: Any, *, then_branch: Graph, else_branch: Graph, scope: Scope) -> Any:
    chosen = _known_flag(condition)
    if chosen is not None:
        return tuple(scope.run(then_branch if chosen else else_branch, ()))

    kept = scope.keeping(then_branch, else_branch)

    def branch(graph: Graph) -> Callable[[], Any]:
        return lambda: as_tensor(kept.run(graph, ()))

    predicate = tp.reshape(condition, ())
    return _uniform(lambda: tuple(tp.cond(predicate, branch(then_branch), branch(else_branch))))


@rule("Loop", raw=True)
def loop(
    trip_count: Any = None,
    condition: Any = None,
    *carried: Any,
    body: Graph,
    scope: Scope,
) -> Any:
    """Without a condition among the inputs, what the body says of it is ignored."""
    run = _Loop(body, scope.keeping(body), ignores_condition=condition is None)
    going, values, done = _TRUE if condition is None else condition, list(carried), 0
    most = None if trip_count is None else _known(trip_count)
    if trip_count is not None and most is None:
        return tuple(run.as_while(trip_count, done, going, values))
    limit = None if most is None else int(most.item())
    rows: list[list[Any]] = [[] for _ in body.outputs[1 + len(values) :]]
    while limit is None or done < limit:
        flag = _known_flag(going)
        if flag is None:
            return tuple(run.as_while(trip_count, done, going, values))
        if not flag:
            break
        if done == _WRITTEN_OUT and limit is not None and _is_traced(values, rows):
            rest = run.as_scan(done, limit, values)
            if rest is not None:
                ended, more = rest
                return (*ended, *map(_joined, rows, more))
        going, values, new = run.step(np.array(done, np.int64), going, values)
        for row, one in zip(rows, new, strict=True):
            row.append(one)
        done += 1
    infos = body.outputs[1 + len(values) :]
    return (*values, *map(_stacked, rows, infos))


class _Loop:
    """The steps of a Loop node."""

    def __init__(self, body: Graph, scope: Scope, *, ignores_condition: bool) -> None:
        self._body = body
        self._scope = scope
        self._ignores_condition = ignores_condition

    def step(
        self, number: Any, going: Any, values: Sequence[Any]
    ) -> tuple[Any, list[Any], list[Any]]:
        """Return the condition, the values and the results of a step."""
        found = self._scope.run(self._body, [number, going, *values])
        count = len(values)
        after = going if self._ignores_condition else found[0]
        return after, found[1 : 1 + count], found[1 + count :]

    def as_while(self, trip_count: Any, done: int, going: Any, values: list[Any]) -> list[Any]:
        """Return the last values of a loop whose number of steps depends on inputs."""
        if len(self._body.outputs) > 1 + len(values):
            raise ValueNeededError(
                "Loop: how many results it stacks depends on the values of inputs"
            )
        trips = None if trip_count is None else tp.reshape(as_tensor(trip_count), ())
        known = None if trip_count is None else _known(trip_count)

        def holds(now: Any) -> Any:
            number, still, _ = now
            return still if trips is None else tp.logical_and(still, number < trips)

        def advance(now: Any) -> Any:
            number, still, before = now
            after, new, _ = self.step(number, still, before)
            return number + 1, tp.reshape(as_tensor(after), ()), as_tensor(new)

        first = (
            tp.asarray(np.array(done, np.int64)),
            tp.reshape(as_tensor(going), ()),
            as_tensor(values),
        )
        # Gradients need to know how many steps there are at most. 2**63 - 1 stands for any.
        most = None if known is None else max(int(known.item()) - done, 0)
        bounded = None if most is None or most > np.iinfo(np.int32).max else most
        found: list[Any] = _uniform(lambda: tp.while_loop(holds, advance, first, bounded)[2])
        return found

    def as_scan(
        self, done: int, limit: int, values: list[Any]
    ) -> tuple[list[Any], list[Any]] | None:
        """Return the last values and the results of the other steps; None if steps differ."""

        def one(now: Any, number: Any) -> Any:
            after, new, results = self.step(number, _TRUE, now)
            if not _known_flag(after):
                raise ValueNeededError("Loop: its condition depends on the step")
            return as_tensor(new), as_tensor(results)

        numbers = tp.asarray(np.arange(done, limit, dtype=np.int64))
        try:
            ended, rows = tp.scan(one, as_tensor(values), numbers)
        except (ValueNeededError, tp.errors.ArgumentError):
            return None  # shapes or conditions depend on the step: the loop is written out
        return ended, rows


@rule("Scan", since=9, raw=True)
def scan(  # the names of ONNX's attributes
    *inputs: Any,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    scope: Scope,
) -> Any:
    count = len(inputs) - num_scan_inputs
    states, xs = list(inputs[:count]), list(inputs[count:])
    axes = scan_input_axes or (0,) * num_scan_inputs
    backward = scan_input_directions or (0,) * num_scan_inputs
    first = [_steps_first(x, at, flip) for x, at, flip in zip(xs, axes, backward, strict=True)]
    ended, rows = _scanned(body, scope, states, first)
    axes = scan_output_axes or (0,) * len(rows)
    backward = scan_output_directions or (0,) * len(rows)
    placed = [_steps_at(row, at, flip) for row, at, flip in zip(rows, axes, backward, strict=True)]
    return (*ended, *placed)


@rule("Scan", since=8, raw=True)
def scan_8(
    lengths: Any = None,
    *inputs: Any,
    body: Graph,
    num_scan_inputs: int,
    directions: Sequence[int] = (),
    scope: Scope,
) -> Any:
    """Each example of a batch by itself; results beyond an example's length are 0."""
    count = len(inputs) - num_scan_inputs
    states, xs = inputs[:count], inputs[count:]
    batch, steps = (int(size) for size in xs[0].shape[:2])
    taken = [steps] * batch if lengths is None else as_host(lengths).tolist()
    if len(taken) != batch or not all(0 <= one <= steps for one in taken):
        raise ValueError(f"sequence_lens must be {batch} lengths up to {steps}, got {taken}")
    backward = directions or (0,) * num_scan_inputs
    examples = []
    for at, length in enumerate(taken):
        own = [_steps_first(x[at, :length], 0, flip) for x, flip in zip(xs, backward, strict=True)]
        ended, rows = _scanned(body, scope, [state[at] for state in states], own)
        examples.append((*ended, *(_filled(row, steps) for row in rows)))
    return tuple(_stacked(list(column), None) for column in zip(*examples, strict=True))


def _scanned(
    body: Graph, scope: Scope, states: list[Any], xs: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the last states, and the results of all steps with the steps in front."""
    scope = scope.keeping(body)
    count, infos = len(states), body.outputs[len(states) :]
    lengths = {int(x.shape[0]) for x in xs}
    if len(lengths) != 1:
        raise ValueError(f"the scan inputs must have as many steps each, got {sorted(lengths)}")
    if namespace(*states, *xs) is np:  # text, and what becomes shapes
        rows: list[list[Any]] = [[] for _ in infos]
        for at in range(*lengths):
            outputs: list[Any] = scope.run(body, [*states, *(np.asarray(x[at]) for x in xs)])
            states = outputs[:count]
            for row, result in zip(rows, outputs[count:], strict=True):
                row.append(result)
        return states, list(map(_stacked, rows, infos))

    def one(now: Any, slices: Any) -> Any:
        results: Any = as_tensor(scope.run(body, [*now, *slices]))
        return results[:count], results[count:]

    first: Any = as_tensor(states)
    found: tuple[list[Any], list[Any]] = _uniform(lambda: tp.scan(one, first, as_tensor(xs)))
    return found


def _steps_first(x: Any, axis: int, backward: int) -> Any:
    xp = namespace(x)
    moved = xp.moveaxis(x, axis, 0) if axis else x
    return xp.flip(moved, axis=0) if backward else moved


def _steps_at(x: Any, axis: int, backward: int) -> Any:
    xp = namespace(x)
    ordered = xp.flip(x, axis=0) if backward else x
    return xp.moveaxis(ordered, 0, axis) if axis else ordered


def _filled(row: Any, steps: int) -> Any:
    lacking = steps - int(row.shape[0])
    if not lacking:
        return row
    xp = namespace(row)
    return xp.concat([row, xp.zeros((lacking, *row.shape[1:]), dtype=row.dtype)])


def _stacked(rows: list[Any], info: ValueInfo | None) -> Any:
    if rows:
        xp = namespace(*rows)
        return xp.stack(rows if xp is np else as_tensor(rows))
    if info is None or not info.dtype:
        raise ValueError("a loop without a step stacks results whose dtype is not known")
    # Sizes that the model leaves open are 0, as in onnxruntime.
    sizes = [size if isinstance(size, int) else 0 for size in info.shape or ()]
    return np.zeros((0, *sizes), to_numpy_dtype(info.dtype))


def _joined(rows: list[Any], more: Any) -> Any:
    return tp.concat([tp.stack(as_tensor(rows)), more])


def _known(value: Any) -> Any:
    """Return a value on the host; None if it is only known when the compiled model runs."""
    try:
        return as_host(value)
    except tp.errors.DataNeededError:
        return None


def _known_flag(value: Any) -> bool | None:
    found = _known(value)
    return None if found is None else bool(found.item())


def _is_traced(*values: Any) -> bool:
    return any(_known(value) is None for value in values)


def _uniform(call: Callable[[], Any]) -> Any:
    """Return what tp.cond, while_loop or scan returns.

    Raises:
        ValueNeededError: shapes or dtypes differ between branches or steps.

    """
    try:
        return call()
    except tp.errors.ArgumentError as error:
        raise ValueNeededError(
            f"shapes and dtypes must be the same in all branches and steps: {error}"
        ) from error
