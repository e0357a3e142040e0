"""Einstein summation."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.contraction_order import label_sizes, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "einsum",
]


def _read_equation(value: Any, known: InputTypes) -> str:
    """Return the equation with its result written out and letters for the ellipsis."""
    if not isinstance(value, str):
        raise ArgumentError(f"must be a string such as 'ij,jk->ik', got {quoted(value)}")
    operands: list[TensorType] = known["xs"]
    text = value.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    for term in (*inputs, right):
        _check_term(term, value)
    if len(inputs) != len(operands):
        raise ArgumentError(f"{value!r} has terms for {len(inputs)} operands, got {len(operands)}")
    covered = [
        _count_covered(term, operand, at)
        for term, operand, at in zip(inputs, operands, range(len(inputs)), strict=True)
    ]
    free = [letter for letter in ascii_letters if letter not in text]
    if max(covered) > len(free):
        raise ArgumentError(
            f"{value!r} needs more than the {len(ascii_letters)} letters available"
        )
    dots = "".join(free[: max(covered)])
    spelled = [
        term.replace("...", dots[len(dots) - count :])
        for term, count in zip(inputs, covered, strict=True)
    ]
    out = right.replace("...", dots) if arrow else dots + _list_implied(left)
    _check_out(out, spelled, value)
    if arrow and dots and "..." not in right:
        raise ArgumentError(
            f"{value!r} omits the {len(dots)} axes of its ellipsis: put '...' into the result, "
            "or name them by letters"
        )
    return f"{','.join(spelled)}->{out}"


def _check_term(term: str, equation: str) -> None:
    letters = term.replace("...", "", 1)
    wrong = [letter for letter in letters if letter not in ascii_letters]
    if wrong:
        raise ArgumentError(
            f"{equation!r} contains {wrong[0]!r}: terms consist of letters and at most one '...', "
            "operands are separated by ',', and '->' precedes the result"
        )


def _count_covered(term: str, operand: TensorType, at: int) -> int:
    """Return the number of axes of the ellipsis in ``term``."""
    letters = len(term.replace("...", ""))
    free = operand.rank - letters
    if free < 0 or (free and "..." not in term):
        raise ShapeError(
            f"term {term!r} has {letters} labels, but operand {at} is {operand} of rank "
            f"{operand.rank}"
        )
    return free


def _list_implied(left: str) -> str:
    """Return the labels that occur once, in alphabetical order."""
    return "".join(
        sorted(ascii_letter for ascii_letter in ascii_letters if left.count(ascii_letter) == 1)
    )


def _check_out(out: str, inputs: Sequence[str], equation: str) -> None:
    for label in out:
        if out.count(label) > 1:
            raise ArgumentError(f"{equation!r}: the result names {label!r} twice")
        if not any(label in term for term in inputs):
            raise ArgumentError(f"{equation!r}: the result names {label!r}, but no operand does")


def _infer_einsum(xs: list[TensorType], *, equation: str) -> TensorType:
    labelled, out = terms(equation)
    sizes = label_sizes(labelled, [x.shape for x in xs])
    return TensorType(xs[0].dtype, tuple(sizes[label] for label in out))


EINSUM = KernelSpec(
    "Einsum",
    ("xs[]",),
    _infer_einsum,
    attributes={
        "equation": Attribute(
            _read_equation, form="str without spaces or ellipsis, such as 'ij,jk->ik'"
        )
    },
    accepts=dt.NUMERIC,
    promote=("xs",),
)


def einsum(equation: str, /, *operands: ArrayLike) -> Tensor:
    """Return sums of products of the operands' elements, over the labels that ``equation`` drops.

    ``einsum("ij,jk->ik", a, b)[i, k]`` is ``sum over j of a[i, j] * b[j, k]``. Each operand has a
    term of letters, one per axis. A label that occurs several times in one term takes the
    diagonal. ``...`` stands for any number of leading axes, which broadcast; so do axes of
    length 1. Without ``->`` the result has the ellipsis, then every label that occurs once, in
    alphabetical order. Operands are multiplied pairwise in a cheap order.

    They are promoted to a common dtype; integers wrap.

    Raises:
        ArgumentError: the equation cannot be parsed, or does not match the operands.
        ShapeError: a term does not match its operand's rank, or a label has two lengths.
        DTypeError: booleans or strings.

    Source: NumPy's ``einsum``; TensorFlow's kernel ``Einsum``.

    Examples:
        >>> a, b = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
        >>> tp.einsum("ij,jk->ik", a, b)  # the matrix product
        Tensor([[19, 22],
                [43, 50]], dtype=int32, device='cpu')
        >>> tp.einsum("ii", a)  # the trace
        Tensor(5, dtype=int32, device='cpu')
        >>> tp.einsum("ij->j", a)  # sums of columns
        Tensor([4, 6], dtype=int32, device='cpu')
        >>> tp.einsum("...ij,...j", tp.ones((5, 2, 3)), tp.ones((5, 3))).shape
        (5, 2)

    """
    return dispatch(EINSUM, list(operands), equation=equation)
