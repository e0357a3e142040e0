"""What notebooks show of a tensor: HTML with its type, its device and a table of its values."""

from __future__ import annotations

import sys
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.dispatch.tensor import Tensor


_EDGE: Final = 4  # rows and columns that are shown at each end of a longer axis
_MATRICES: Final = 3  # of a tensor of more than two axes
_LONGEST: Final = 40  # characters of a string
_GAP: Final = "\u2026"

# Grey that is half transparent, and no other colour: it shows on light and on dark pages.
_LINE: Final = "1px solid rgba(128, 128, 128, 0.4)"
_CELL: Final = f"padding: 2px 8px; text-align: right; border: {_LINE}; white-space: pre"
_SMALL: Final = "opacity: 0.75; font-size: 90%"


class Notebooks:
    """The member that Jupyter and IPython ask for."""

    def _repr_html_(self: Any) -> str:
        """Return the tensor as HTML."""
        from html import escape  # needed in notebooks alone

        read = getattr(self, "_reading", None)  # of a variable, in the current context
        held: Tensor = self if read is None else read()
        title = escape(type(self).__name__ + (f" {self.name!r}" if read is not None else ""))
        if held.is_disposed:
            return _page(title, [("shape", held.shape), ("dtype", held.dtype)], "disposed")
        if held._placement.device.interpreter.describe(held) is not None:
            return f"<code>{escape(repr(self))}</code>"
        try:
            tables = "".join(_tables(*held._shown(), escape))
        except Exception:  # noqa: BLE001  # as the text says then
            return f"<code>{escape(repr(self))}</code>"
        facts = [("shape", held.shape), ("dtype", held.dtype), ("device", held.device)]
        return _page(title, [(name, escape(str(fact))) for name, fact in facts], tables)


def _page(title: str, facts: Iterable[tuple[str, object]], rest: str) -> str:
    """Return a line with a title and facts, and the rest below it."""
    shown = " ".join(
        f'<span style="{_SMALL}">{name}</span> <code>{fact}</code>' for name, fact in facts
    )
    return f"<div><div><b>{title}</b> {shown}</div>{rest}</div>"


def _tables(
    array: np.ndarray[Any, Any], digits: int | None, escape: Callable[[str], str]
) -> Iterator[str]:
    """Yield the tables of the last two axes, with their places among the others."""
    if not array.size:
        yield f'<div style="{_SMALL}">no elements</div>'
        return
    if array.ndim <= 2:
        yield _table(array.reshape((1, -1)) if array.ndim < 2 else array, digits, escape)
        return
    indices = product(*map(range, array.shape[:-2]))
    count = int(np.prod(array.shape[:-2]))
    for place, _ in zip(indices, range(_MATRICES), strict=False):
        yield f'<div style="{_SMALL}">[{", ".join(map(str, place))}, :, :]</div>'
        yield _table(array[place], digits, escape)
    if count > _MATRICES:
        yield f'<div style="{_SMALL}">{_GAP} {count - _MATRICES} more</div>'


def _table(matrix: np.ndarray[Any, Any], digits: int | None, escape: Callable[[str], str]) -> str:
    """Return the rows and columns at the edges of a matrix as a table."""
    rows, columns = (_places(size) for size in matrix.shape)
    kept = matrix[[at for at in rows if at is not None]]
    kept = kept[:, [at for at in columns if at is not None]]
    texts = iter(_texts(kept, digits))
    lines = []
    for row in rows:
        cells = [_GAP if None in (row, column) else escape(next(texts)) for column in columns]
        shown = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        lines.append(f"<tr>{shown}</tr>")
    return f'<table style="border-collapse: collapse; margin: 4px 0">{"".join(lines)}</table>'


def _places(size: int) -> list[int | None]:
    """Return the places on an axis that are shown; None stands for those between."""
    if size <= 2 * _EDGE + 1:
        return list(range(size))
    return [*range(_EDGE), None, *range(size - _EDGE, size)]


def _texts(array: np.ndarray[Any, Any], digits: int | None) -> list[str]:
    """Return the elements as text, numbers with the digits that NumPy gives them together."""
    if array.dtype.kind in "TUO":
        texts = [repr(str(element)) for element in array.ravel()]
        return [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + _GAP for text in texts]
    lines = np.array2string(
        array.ravel(),
        precision=digits,
        separator="\n",
        max_line_width=sys.maxsize,
        threshold=sys.maxsize,
    )
    return [line.strip() for line in lines[1:-1].split("\n")]
