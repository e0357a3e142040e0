"""Kernels of softmax cross-entropy and of the gradients of softmax.

The classes are the last axis. ``tensorplug.losses`` has the public functions.
"""

from __future__ import annotations

from tensorplug.contract import attributes, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.errors import ShapeError


def _infer_softmax_cross_entropy(labels: TensorType, logits: TensorType) -> TensorType:
    if labels.shape != logits.shape:
        raise ShapeError("labels and logits must have the same shape")
    if not logits.rank:
        raise ShapeError("labels and logits must have at least rank 1")
    return TensorType(logits.dtype, logits.shape[:-1])


def _infer_softmax_cross_entropy_grad(
    dy: TensorType, labels: TensorType, logits: TensorType
) -> TensorType:
    losses = _infer_softmax_cross_entropy(labels, logits)
    if dy.shape != losses.shape:
        raise ShapeError("dy must have the shape of logits without the last axis")
    return logits


def _infer_sparse(labels: TensorType, logits: TensorType) -> TensorType:
    if not logits.rank or logits.shape[-1] == 0:
        raise ShapeError("logits must have at least rank 1 and one class")
    if labels.shape != logits.shape[:-1]:
        raise ShapeError("labels must have the shape of logits without the last axis")
    return TensorType(logits.dtype, labels.shape)


def _infer_sparse_grad(dy: TensorType, labels: TensorType, logits: TensorType) -> TensorType:
    if dy.shape != _infer_sparse(labels, logits).shape:
        raise ShapeError("dy must have the shape of labels")
    return logits


SOFTMAX_CROSS_ENTROPY = KernelSpec(
    "SoftmaxCrossEntropy",
    ("labels", "logits"),
    _infer_softmax_cross_entropy,
    accepts=dt.REAL,
    promote=("labels", "logits"),
    inexact=True,
    leading=(),
)
SOFTMAX_CROSS_ENTROPY_GRAD = KernelSpec(  # with respect to logits
    "SoftmaxCrossEntropyGrad",
    ("dy", "labels", "logits"),
    _infer_softmax_cross_entropy_grad,
    accepts=dt.FLOATING,
    promote=("dy", "labels", "logits"),
    linear=("dy", "labels"),
    leading=(),
)
SPARSE_SOFTMAX_CROSS_ENTROPY = KernelSpec(  # a label is the number of a class
    "SparseSoftmaxCrossEntropy",
    ("labels", "logits"),
    _infer_sparse,
    accepts={"labels": dt.INTEGER, "logits": dt.REAL},
    promote=("logits",),
    inexact=True,
    leading=(),
)
SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD = KernelSpec(  # with respect to logits
    "SparseSoftmaxCrossEntropyGrad",
    ("dy", "labels", "logits"),
    _infer_sparse_grad,
    accepts={"dy": dt.FLOATING, "labels": dt.INTEGER, "logits": dt.FLOATING},
    promote=("dy", "logits"),
    linear=("dy",),
    leading=(),
)
SOFTMAX_GRAD = KernelSpec(  # y is the output of Softmax
    "SoftmaxGrad",
    ("dy", "y"),
    inference.of_one_shape("dy", "y"),
    attributes={"dim": attributes.axis("y", -1)},
    accepts=dt.FLOATING,
    promote=("dy", "y"),
    linear=("dy",),
    leading=("dim",),
)
