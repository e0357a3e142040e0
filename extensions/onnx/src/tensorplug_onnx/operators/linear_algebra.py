"""Products of matrices, and the determinant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from types import ModuleType


@rule("MatMul")
def matmul(a: Any, b: Any, *, xp: ModuleType) -> Any:
    return xp.matmul(a, b)


@rule("Gemm")
def gemm_6(
    a: Any,
    b: Any,
    c: Any,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Any:
    """Up to version 6, an attribute says whether C may be smaller than the product."""
    found = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if not broadcast and c.shape != found.shape:
        raise ValueError(f"C has shape {list(c.shape)}, the product {list(found.shape)}")
    return found


@rule("Gemm", since=7)
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Any:
    for matrix in (a, b):
        if matrix.ndim != 2:
            raise ValueError(f"the factors are matrices, not of rank {matrix.ndim}")
    product = _times(tp.matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB)), alpha)
    if c is None:
        return product
    total = product + _times(c, beta)
    if total.shape != product.shape:
        raise ValueError(f"C has shape {list(c.shape)}, the product {list(product.shape)}")
    return total


def _times(x: Any, factor: float) -> Any:
    return x if factor == 1 else tp.astype(x * factor, x.dtype)


rule("Det")(tp.linalg.det)


@rule("Einsum")
def einsum(*inputs: Any, equation: str) -> Any:
    return tp.einsum(equation, *inputs)
