"""Batching of linear algebra: examples are further matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.mapping.derived import align, in_front
from tensorplug.ops import creation, diagonals
from tensorplug.ops.linalg import elimination, triangular
from tensorplug.ops.linalg import factorization as ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()

for _spec in (ops.CHOLESKY, ops.MATRIX_INVERSE, ops.QR, elimination.LU, diagonals.TRIANGLE):
    batching.leading(_spec)
for _spec in (ops.MATRIX_DETERMINANT, ops.LOG_MATRIX_DETERMINANT):
    batching.leading(_spec)
batching.elementwise(ops.MATRIX_SOLVE, triangular.MATRIX_TRIANGULAR_SOLVE)


def _decompose(spec: KernelSpec) -> Callable[..., Sequence[Tensor]]:
    """Return the rule of a factorization some of whose factors may be left out, as ``[0]``."""

    def rule(
        input: Tensor, *, attributes: dict[str, Any], size: int, out: tuple[TensorType, ...]
    ) -> Sequence[Tensor]:
        found = dispatch_multiple(spec, input, **attributes)
        return [
            creation.zeros((size, 0), dtype=type_.dtype) if type_.shape == (0,) else factor
            for factor, type_ in zip(found, out, strict=True)
        ]

    return rule


for _spec in (ops.SVD, ops.EIG, ops.SELF_ADJOINT_EIG):
    batching.of(_spec)(_decompose(_spec))


@batching.of(ops.PSEUDO_INVERSE)
def pseudo_inverse(
    input: Tensor,
    rtol: Tensor | None,
    *,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    bound = align(rtol, out.rank - 2) if rtol is not None and "rtol" in batched else rtol
    return dispatch(ops.PSEUDO_INVERSE, in_front(input, "input" in batched, size), bound)


@batching.of(diagonals.MATRIX_BAND_PART)
def band_part(
    input: Tensor, num_lower: Tensor, num_upper: Tensor, *, batched: frozenset[str]
) -> Any:
    if batched != {"input"}:
        return NotImplemented
    return dispatch(diagonals.MATRIX_BAND_PART, input, num_lower, num_upper)
