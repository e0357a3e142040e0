"""Linear models (domain ai.onnx.ml)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.ml import DOMAIN, labelled
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def post_transformed(scores: Any, name: str) -> Any:
    """Return what a model makes of its scores, along the last axis."""
    if name == "NONE":
        return scores
    if name == "SOFTMAX":
        return tp.nn.softmax(scores, axis=-1)
    if name == "LOGISTIC":
        return tp.nn.sigmoid(scores)
    if name == "SOFTMAX_ZERO":  # scores of 0 stay 0, and take no part
        present = scores != 0
        lowest = tp.full_like(scores, -math.inf)
        found = tp.nn.softmax(tp.where(present, scores, lowest), axis=-1)
        return tp.where(present, found, tp.zeros_like(scores))
    if name == "PROBIT":
        return tp.special.ndtri(scores)
    raise ValueError(f"post_transform {name!r} is unknown")


@rule("LinearRegressor", domain=DOMAIN)
def regress(
    x: Any,
    *,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Any:
    return post_transformed(linear_scores(x, coefficients, intercepts, targets), post_transform)


@rule("LinearClassifier", domain=DOMAIN)
def classify(
    x: Any,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Any:
    """The specification leaves open what one score for two classes means: as in onnxruntime."""
    del multi_class  # it does not change what is computed
    labels = labelled(classlabels_ints, classlabels_strings)
    x = tp.reshape(x, (1, -1)) if x.ndim == 1 else x
    scores = linear_scores(x, coefficients, intercepts, len(coefficients) // int(x.shape[-1]))
    if scores.shape[-1] == 1 and len(labels) == 2:
        first = tp.astype(tp.reshape(scores > 0, (-1,)), tp.int64)
        if post_transform == "PROBIT":
            raise UnsupportedError("LinearClassifier: PROBIT of one score for two classes")
        if post_transform == "LOGISTIC":
            return chosen_label(first, labels), _sigmoid_pair(scores)
        return chosen_label(first, labels), tp.concat([1 - scores, scores], axis=-1)
    best = tp.argmax(scores, axis=-1)
    return chosen_label(best, labels), post_transformed(scores, post_transform)


def _sigmoid_pair(scores: Any) -> Any:
    return tp.nn.sigmoid(tp.concat([-scores, scores], axis=-1))


def chosen_label(positions: Any, labels: Any) -> Any:
    """Return the labels of the best classes; text is on the host."""
    if dtype_of(labels) == "string":
        return labels[as_host(positions)]
    return tp.take(tp.asarray(labels), positions, axis=0)


def linear_scores(x: Any, coefficients: Sequence[float], intercepts: Any, rows: int) -> Any:
    """Return the products with so many rows of coefficients, and intercepts added: [N,rows]."""
    weights = np.array(coefficients, np.float32).reshape(rows, -1)
    scores = tp.astype(x, tp.float32) @ tp.asarray(weights.T.copy())
    return scores + tp.asarray(np.array(intercepts, np.float32)) if intercepts else scores
