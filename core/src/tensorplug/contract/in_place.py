"""Prepared kernels that can write their result into the memory of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InPlace"]


class InPlace:
    """A prepared kernel of one output that can also write it into the memory of an input.

    A program writes there if nothing reads the input afterwards and nothing else uses its memory,
    which the backend tells (``ReusesMemory``). All other calls take new memory.

    Args:
        run: the call with new memory for its result.
        write: the same call, which writes the result into the buffer of the input, and returns it.
        at: the number of that input, which has the type of the output.

    Example:
        A kernel that replaces the first row::

            @kernels.prepare(FIRST_ROW)
            def first_row(x, row):
                def write(x, row):
                    x[0] = row
                    return x

                return InPlace(lambda x, row: write(x.copy(), row), write)

    """

    __slots__ = ("_run", "at", "write")

    def __init__(self, run: Callable[..., Any], write: Callable[..., Any], at: int = 0) -> None:
        self._run, self.write, self.at = run, write, at

    def __call__(self, *inputs: Any) -> Any:
        """Run the kernel with new memory."""
        return self._run(*inputs)
