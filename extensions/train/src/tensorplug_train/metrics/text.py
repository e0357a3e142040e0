"""Metrics of language models."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Final

import tensorplug as tp
from tensorplug.plugin import as_tensor
from tensorplug_train.metrics.averages import widened
from tensorplug_train.metrics.metric import LabelMetric, ratio, read_labels, total, total_weight

_GREATEST: Final = math.log(sys.float_info.max)


@dataclass(frozen=True)
class Perplexity(LabelMetric):
    """``exp`` of the mean of ``-log(softmax(predictions)[label])`` over all labels.

    Predictions are logits ``[..., classes]``. Padding has labels of weight 0.

    Examples:
        >>> perplexity = tp.train.metrics.Perplexity()
        >>> round(perplexity.result(perplexity.of([[1, 0]], tp.zeros((1, 2, 5)))), 6)
        5.0

    """

    def of(self, labels: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return the sums of one batch; see ``Metric``."""
        logits = widened(as_tensor(predictions, what="Perplexity: predictions"))
        read = read_labels("Perplexity", labels, logits, weights)
        losses = tp.losses.sparse_softmax_cross_entropy(
            read.true, tp.reshape(logits, (-1, read.classes)), reduction="none"
        )
        return {
            "total": total(losses, read.weights),
            "weight": total_weight(losses, read.weights),
            "faults": read.faults,
        }

    def result(self, sums: Any) -> float:
        """Return the perplexity; NaN without any weight."""
        self.check(sums)
        mean = ratio(sums["total"], sums["weight"])
        return math.inf if mean > _GREATEST else math.exp(mean)
