"""Kernels that move, gather, sort, multiply and factor, and the NumPy expression for each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from expressions import Row, made, matrix, of, rng, row, side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expressions import Array, Inputs


def structured() -> Iterator[Row]:
    """Yield the rows."""
    from created import created
    from imagery import imagery  # which needs this module's neighbours only
    from lists import lists

    yield from created()
    yield from _moved()
    yield from _parts()
    yield from _ordered()
    yield from _gathered()
    yield from _products()
    yield from _factors()
    yield from _spectra()
    yield from imagery()
    yield from lists()


def _sided(height: int = 2) -> Any:
    return lambda size: {"shape": (height, size // height)}


def _moved() -> Iterator[Row]:
    vector, square = of("signed"), matrix()
    yield Row("Reshape", lambda x: x.reshape(2, -1), vector, _sided(), "fi")
    yield row("Bitcast", lambda x: x.view(np.int32), vector, dtype="int32")
    yield row("ExpandDims", lambda x: x[None], vector)
    yield row("Transpose", np.transpose, square)
    yield Row(
        "BroadcastTo",
        lambda x: np.broadcast_to(x, (8, x.size)),
        vector,
        lambda size: {"shape": (8, size)},
    )
    yield row("Slice", lambda x: x[1:5], vector, begin=(1,), size=(4,))
    yield row(
        "StridedSlice", lambda x: x[1::2], vector, "f", begin=(1,), end=(1 << 30,), strides=(2,)
    )
    yield row("PadV2", lambda x: np.pad(x, 2), square, "fi", paddings=((2, 2), (2, 2)))
    yield row(
        "MirrorPad",
        lambda x: np.pad(x, 2, mode="reflect"),
        square,
        "f",
        paddings=((2, 2), (2, 2)),
        mode="reflect",
    )
    yield row("Tile", lambda x: np.tile(x, (2, 2)), square, "fi", reps=(2, 2))
    yield row("Repeat", lambda x: np.repeat(x, 2, axis=1), square, "fi", repeats=2, axis=1)
    yield row("Reverse", lambda x: np.flip(x, 1), square, "f", dims=(1,))
    yield row("Diag", np.diag, lambda n, d: [made("signed", side(n), d)])
    yield row(
        "MatrixBandPart",
        lambda x, *_: np.triu(np.tril(x, 2), -1),
        lambda n, d: [*square(n, d), np.int32(1), np.int32(2)],
    )
    yield row("Triangle", np.tril, square, "fi")
    images = _images(4)
    yield row("SpaceToDepth", _to_depth, images, "f", block_size=2)
    yield row("DepthToSpace", _from_depth, images, "f", block_size=2)
    yield row(
        "SpaceToBatchND", _to_batch, images, "f", block_shape=(2, 2), paddings=((0, 0), (0, 0))
    )
    yield row(
        "BatchToSpaceND",
        _from_batch,
        _images(1, batch=4),
        "f",
        block_shape=(2, 2),
        crops=((0, 0), (0, 0)),
    )


def _images(channels: int, batch: int = 1) -> Inputs:
    def make(size: int, dtype: str) -> list[Array]:
        edge = side(size, channels * batch) // 4 * 4
        return [made("unit", (batch, edge, edge, channels), dtype)]

    return make


def _to_depth(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // 2, 2, w // 2, 2, c)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


def _from_depth(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h, w, 2, 2, c // 4)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def _to_batch(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // 2, 2, w // 2, 2, c)
    return blocks.transpose(2, 4, 0, 1, 3, 5).reshape(4 * n, h // 2, w // 2, c)


def _from_batch(x: Array) -> Array:
    n, h, w, c = x.shape
    blocks = x.reshape(2, 2, n // 4, h, w, c)
    return blocks.transpose(2, 3, 0, 4, 1, 5).reshape(n // 4, 2 * h, 2 * w, c)


def _halves(size: int, dtype: str) -> list[Any]:
    return [[*of("signed", "signed")(size // 2, dtype)]]


def _parts() -> Iterator[Row]:
    yield row("Concat", np.concatenate, _halves, "fi")
    yield row("Pack", np.stack, _halves, "fi")
    parts = lambda n, d: [made("signed", (8, n // 8), d)]  # noqa: E731
    yield row("Unpack", list, parts)
    yield row("SplitV", lambda x: np.split(x, 4), parts, "f", num_or_size_splits=4)
    ends = {"begin": (1,), "end": (9,)}
    for size in (64, 1 << 20):
        yield row(
            "StridedSliceGrad",
            lambda x, n=size: _into(np.zeros(n, x.dtype), x),
            lambda _n, d: [made("signed", 8, d)],
            "f",
            only=size,
            shape=(size,),
            **ends,
        )
    yield row(
        "TensorStridedSliceUpdate",
        _put_in,
        lambda n, d: [made("signed", n, d), made("signed", 8, d)],
        "f",
        "",
        **ends,
    )
    at = lambda: np.array([1], np.int32)  # noqa: E731
    read = lambda n, d: [made("signed", n, d), at()]  # noqa: E731
    yield row("DynamicSlice", lambda x, at: x[at[0] : at[0] + 8], read, "f", sizes=(8,))
    write = lambda n, d: [made("signed", n, d), made("signed", 8, d), at()]  # noqa: E731
    yield row("DynamicUpdateSlice", lambda x, value, _: _put_in(x, value), write, "f")


def _put_in(x: Array, value: Array) -> Array:
    return _into(x.copy(), value)


def _into(result: Array, value: Array) -> Array:
    result[1:9] = value
    return result


def _ordered() -> Iterator[Row]:
    square = matrix()
    yield row("Sort", np.sort, square, "fi")
    yield row("ArgSort", lambda x: np.argsort(x, kind="stable"), square, "fi")
    yield row("ArgPartition", lambda x: np.argpartition(x, 5), square, "fi", kth=5)
    yield row("TopK", _largest, square, "fi", k=5)
    yield row("Unique", lambda x: np.unique(x, return_inverse=True), of("signed"), "i")
    for name, where in (("SearchSorted", "left"), ("LowerBound", "left"), ("UpperBound", "right")):
        yield row(name, lambda x, v, where=where: np.searchsorted(x[0], v[0], where), _sought, "f")
    yield row("Where", np.argwhere, lambda n, _d: [made("unit", n, "bool")])
    yield row("Bincount", lambda x, w: np.bincount(x, w, 100), _counted, "f", "", size=100)
    yield row("DenseBincount", lambda x, w: np.bincount(x, w, 100), _counted, "f", "", size=100)


def _largest(x: Array) -> tuple[Array, Array]:
    at = np.argsort(-x, axis=-1, kind="stable")[:, :5]
    return np.take_along_axis(x, at, -1), at


def _sought(size: int, dtype: str) -> list[Array]:
    return [np.sort(made("signed", (1, size), dtype)), made("signed", (1, size), dtype)]


def _counted(size: int, dtype: str) -> list[Array]:
    return [rng.integers(0, 100, size).astype(np.int32), made("unit", size, dtype)]


def _rows(size: int, dtype: str, width: int = 16) -> list[Array]:
    count = max(size // width, 1)
    return [made("signed", (count, width), dtype), rng.integers(0, count, count, np.int32)]


def _gathered() -> Iterator[Row]:
    def scattered(size: int, dtype: str) -> list[Array]:
        x, at = _rows(size, dtype)
        return [at[:, None], x]

    yield row("GatherV2", lambda x, at: x[at], _rows, "fi")
    yield row(
        "GatherNd",
        lambda x, at: x[at[:, 0]],
        lambda n, d: [_rows(n, d)[0], _rows(n, d)[1][:, None]],
        "fi",
    )
    yield Row("ScatterNd", _added, scattered, lambda n: {"shape": (n // 16, 16)})
    updated = lambda n, d: [_rows(n, d)[0], *scattered(n, d)]  # noqa: E731
    for reduction, fold in (("max", np.maximum), ("multiply", np.multiply)):
        found = partial(_folded, fold)
        yield row("TensorScatterReduce", found, updated, "f", reduction, reduction=reduction)
    yield row("TensorScatterUpdate", _replaced, lambda n, d: [_rows(n, d)[0], *scattered(n, d)])
    yield Row(
        "SparseToDense",
        _dense,
        lambda n, d: [
            np.arange(n, dtype=np.int32)[:, None],
            made("unit", n, d),
            made("unit", (), d),
        ],
        lambda n: {"output_shape": (n,)},
    )
    yield Row(
        "UnsortedSegmentSum",
        lambda x, at: _added(at[:, None], x),
        _rows,
        lambda n: {"num_segments": n // 16},
    )
    yield row(
        "OneHot",
        lambda at: np.eye(16, dtype=np.float32)[at],
        lambda n, _d: [rng.integers(0, 16, n // 16, np.int32)],
        depth=16,
    )


def _added(at: Array, x: Array) -> Array:
    result = np.zeros_like(x)
    np.add.at(result, at[:, 0], x)
    return result


def _folded(fold: np.ufunc, x: Array, at: Array, updates: Array) -> Array:
    result = x.copy()
    fold.at(result, at[:, 0], updates)
    return result


def _replaced(x: Array, at: Array, updates: Array) -> Array:
    result = x.copy()
    result[at[:, 0]] = updates
    return result


def _dense(at: Array, values: Array, default: Array) -> Array:
    result = np.full(len(at), default)
    result[at[:, 0]] = values
    return result


def _products() -> Iterator[Row]:
    def two(size: int, dtype: str) -> list[Array]:
        edge = min(side(size), 256)
        return [made("unit", (edge, edge), dtype) for _ in range(2)]

    def several(size: int, dtype: str) -> list[Array]:
        return [made("unit", (max(size // 256, 1), 16, 16), dtype) for _ in range(2)]

    yield row("BatchMatMul", np.matmul, two, "fi")
    yield row("BatchMatMul", np.matmul, several, "f", "of many")
    yield row(
        "_FusedMatMul",
        lambda a, b, c, _: np.maximum(a @ b + c, 0),
        lambda n, d: [*two(n, d), two(n, d)[0][0], None],
        activation="relu",
    )
    yield row(
        "Einsum",
        lambda xs: np.einsum("ij,jk->ik", *xs),
        lambda n, d: [two(n, d)],
        "f",
        "",
        equation="ij,jk->ik",
    )


def _solvable(size: int, dtype: str) -> list[Array]:
    edge = min(side(size), 128)
    x = made("unit", (edge, edge), dtype)
    return [x @ x.T + edge * np.eye(edge, dtype=dtype)]


def _factors() -> Iterator[Row]:
    linalg = np.linalg
    yield row("Cholesky", linalg.cholesky, _solvable)
    yield row("MatrixInverse", linalg.inv, _solvable)
    yield row("MatrixSolve", linalg.solve, lambda n, d: _solvable(n, d) * 2)
    yield row(
        "MatrixTriangularSolve",
        lambda a, b: linalg.solve(np.tril(a), b),
        lambda n, d: _solvable(n, d) * 2,
    )
    yield row("MatrixDeterminant", linalg.det, _solvable)
    yield row("LogMatrixDeterminant", linalg.slogdet, _solvable)
    yield row("Lu", linalg.det, _solvable)  # NumPy's elimination without its factors
    yield row("Qr", linalg.qr, _solvable)
    yield row("Svd", lambda x: linalg.svd(x, full_matrices=False), _solvable)
    yield row("SelfAdjointEigV2", linalg.eigh, _solvable)
    yield row("Eig", linalg.eig, _solvable)
    yield row(
        "PseudoInverse",
        lambda x, _: linalg.pinv(x),
        lambda n, d: [*_solvable(n, d), np.array(1e-6, d)],
    )


def _spectra() -> Iterator[Row]:
    yield row("FFT", np.fft.fft, matrix(), "c")
    yield row("IFFT", np.fft.ifft, matrix(), "c")
    yield row("RFFT", np.fft.rfft, matrix())
    yield row("IRFFT", np.fft.irfft, matrix(), "c")
