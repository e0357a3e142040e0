"""Texts have no gradients, nor have numbers made of them."""

from __future__ import annotations

from tensorplug.ops import strings as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.STRING_N_GRAMS)
gradients.stop(ops.STRING_SPLIT)
gradients.stop(ops.STRING_TO_HASH_BUCKET_FAST)
gradients.stop(ops.STATIC_REGEX_REPLACE)
