"""Loops of ops over the slices of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.ops.indexing.slicing import unstack
from tensorplug.ops.joining import stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Step = Callable[[list[Tensor]], list[Tensor]]


def run_steps(
    f: Step, init: Sequence[Tensor], xs: Sequence[Tensor], *, reverse: bool = False
) -> list[Tensor]:
    """Return the last carries, then the stacked results, of steps over slices of ``xs``.

    ``f`` takes the carries and one slice of each of ``xs``, of which there is one at least, along
    the first axis; it returns the next carries, then results. In a program this is one call
    (``compile.control.flat``).
    """
    run = engine_of(current_context()).handlers.loops
    results: list[Tensor] = run(_run_all, f, init, xs, reverse)
    return results


def _run_all(
    f: Step,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    reverse: bool,  # noqa: FBT001  # the form of a handler
) -> list[Tensor]:
    return run_one_by_one(f, init, xs, xs[0].shape[0], reverse=reverse)


def run_one_by_one(
    f: Step, init: Sequence[Tensor], xs: Sequence[Tensor], length: int, *, reverse: bool
) -> list[Tensor]:
    """Do the same for ``length`` steps, in plain Python."""
    columns = [unstack(x) for x in xs]
    carries, count = list(init), len(init)
    rows: list[list[Tensor]] = []
    order = range(length)
    for at in reversed(order) if reverse else order:
        results = f([*carries, *[column[at] for column in columns]])
        carries = results[:count]
        rows.append(results[count:])
    if reverse:
        rows.reverse()
    return [*carries, *[stack(column) for column in zip(*rows, strict=True)]]
